"""The experiment: its parts in turn within a budget of time, and results kept after every cell."""

from __future__ import annotations

import time
from collections.abc import Callable

from plrank_fast.reproduction import cost, learning
from plrank_fast.reproduction.results import LEAST_ROUNDS, MOST_ROUNDS, Figures, Part, ResultsFile

RESULTS = "results.jsonl"
# These are the parts' shares of the time; time that one does not use goes to those after it.
SHARES = {"cost": 0.25, "length": 0.07, "curves": 0.5, "settings": 0.08, "disparity": 0.1}


def plan(settings: Figures) -> list[Part]:
    """Set up the parts, with training runs as long as the budget allows.

    The settings are ``minutes``, ``parts`` (names from `SHARES`), ``sets`` (profiles), ``data`` (a folder with LETOR
    files for training in place of generated data, or None) and ``cutoffs``.
    """
    shapes, cutoffs, chosen = settings["sets"], settings["cutoffs"], settings["parts"]
    sets = [settings["data"]] if settings["data"] else shapes
    fewer = [name for name in sets if name != "istella"] or sets
    seconds = {name: 60 * settings["minutes"] * SHARES[name] / sum(SHARES[part] for part in chosen) for name in chosen}
    parts = [cost.cost_part(shapes, cutoffs), cost.length_part()]
    for name, of_part, at in (
        ("curves", sets, cutoffs),
        ("settings", fewer, [learning.CUTOFF]),
        ("disparity", fewer, [learning.CUTOFF]),
    ):
        parts.append(learning.training_part(name, of_part, at, seconds.get(name, 0.0)))
    return [part for part in parts if part.name in chosen]


def run_parts(
    minutes: float,
    parts: list[Part],
    results: ResultsFile,
    *,
    interrupted: Callable[[], bool],
    observer: Callable[[Part, float], None],
) -> bool:
    """Measure the cells that are left, and return whether no interrupt ended it.

    A part continues by whole rounds until its share of the budget is spent, time before a kill included. ``observer``
    is called after every cell with the part and the share of the budget that is spent, which may pass 1.
    """
    total = sum(SHARES[part.name] for part in parts)
    budget = 60 * minutes
    allowed = 0.0
    for part in parts:
        allowed += budget * SHARES[part.name] / total
        for number in range(MOST_ROUNDS):
            spent = sum(results.seconds(other.name) for other in parts[: parts.index(part) + 1])
            # A round begins if at least half of it fits.
            expected = results.seconds(part.name) / max(1, number)
            if number >= LEAST_ROUNDS and spent + 0.5 * expected > allowed:
                break
            for cell in part.cells:
                if results.has(part.name, number, cell):
                    continue
                if interrupted():
                    return False
                start = time.perf_counter()
                result = part.measure(cell, number)
                results.add(part.name, number, cell, result, time.perf_counter() - start)
                observer(part, sum(results.seconds(other.name) for other in parts) / max(budget, 1.0))
    return True
