"""The measurements of the parts, and their file: a line with the settings, then a line of JSON for each cell.

A part has rounds, and a round has cells. A round measures everything once, so that repetitions of a cell are minutes
apart, and error bars show the disturbance by other programs on the machine. The budget determines the number of rounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plrank_fast._shared.files import write_atomically

KIND: dict[str, Any] = {"kind": "plrank-fast reproduction", "version": 1}
ENTRIES = {"part", "round", "cell", "result", "seconds"}  # a line has these

Figures = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One of the experiments."""

    name: str  # its name in the results file
    title: str
    cells: list[Figures]  # those of a round, each described by plain values
    measure: Callable[[Figures, int], Figures]  # takes a cell and the number of the round


class ResultsFile:
    """The results of one folder; an existing file must have the same settings, which determine the cells.

    The file is replaced in one step for every cell, so it is complete at every instant.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Figures) -> None:
        self.path: Path = Path(path)
        self.cells: list[Figures] = []
        self._header = {**KIND, "settings": settings}
        if self.path.exists():
            self._read(settings)
        self._write()

    def _read(self, settings: Figures) -> None:
        try:
            header, *self.cells = map(json.loads, self.path.read_text().splitlines())
            earlier = header["settings"]
            if header != {**KIND, "settings": earlier} or any(cell.keys() != ENTRIES for cell in self.cells):
                raise ValueError("another kind, version or form")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"results {self.path} is not a results file of this version, or is damaged") from error
        for name in sorted(earlier.keys() | settings.keys()):
            if earlier.get(name) != settings.get(name):
                raise ValueError(
                    f"{name} {settings.get(name)!r} contradicts the run in {self.path.parent}, which has "
                    f"{earlier.get(name)!r}: choose another folder with --output, or replace it with --overwrite"
                )

    def has(self, part: str, number: int, cell: Figures) -> bool:
        """Return whether a cell has been measured in a round."""
        return any(entry["round"] == number and entry["cell"] == cell for entry in self.of(part))

    def add(self, part: str, number: int, cell: Figures, result: Figures, seconds: float) -> None:
        """Add the figures of a cell, and the seconds of their measurement."""
        entry = {"part": part, "round": number, "cell": cell, "result": result, "seconds": round(seconds, 3)}
        self.cells.append(entry)
        self._write()

    def of(self, part: str) -> list[Figures]:
        """Return the cells of a part, in the order of their measurement."""
        return [cell for cell in self.cells if cell["part"] == part]

    def seconds(self, part: str) -> float:
        """Return the seconds that the cells of a part have taken so far."""
        return float(sum(cell["seconds"] for cell in self.of(part)))

    def _write(self) -> None:
        write_atomically(self.path, "".join(map(_line, (self._header, *self.cells))).encode())


def _line(values: Figures) -> str:
    return json.dumps(values, sort_keys=True, allow_nan=False) + "\n"
