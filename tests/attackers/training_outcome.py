"""What a run of ``train`` has come to, without the seconds that it took: equal for runs that are equal to the last bit.

The model alone says too little. It holds the weights of the best epoch, and whatever goes wrong after that leaves it as
it is; so the weights of the last step count, the state of the optimizer, and the metrics of every epoch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plrank_fast.training.archive import read_archive
from plrank_fast.training.loop import CHECKPOINT, HISTORY

MODEL = "model.plrank"


def outcome_of(folder: Path) -> dict[str, Any]:
    """Parts of the outcome by their names, to be compared."""
    header, arrays = read_archive(folder / CHECKPOINT, "checkpoint")
    progress = header["progress"]
    lines = (folder / HISTORY).read_text().splitlines()
    return {
        "model": (folder / MODEL).read_bytes(),
        "place in training": {name: progress[name] for name in ("epoch", "batch", "best_epoch")},
        "weights and optimizer": {name: array.tobytes() for name, array in arrays.items()},
        "history": [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines],
    }


def differences(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Names of the parts that differ, or nothing."""
    return " and ".join(f"another {name}" for name in expected if found[name] != expected[name])
