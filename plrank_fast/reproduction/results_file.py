"""The measured cells on disk: a first line with the settings, then a line of JSON for each cell.

Adding a cell replaces the file in one step, so it is complete at every instant; a kill loses the present cell only.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from plrank_fast._shared.files import write_atomically
from plrank_fast.reproduction.cells import Figures

KIND = "plrank-fast reproduction"
VERSION = 1


class ResultsFile:
    """The results of one folder; an existing file must have the same settings, which determine the cells."""

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.path = Path(path)
        self._header = json.loads(_line({"kind": KIND, "version": VERSION, "settings": settings}))
        self.cells: list[Figures] = []
        if self.path.exists():
            self._read()
        else:
            self._write()
        self._done = {self._key(cell) for cell in self.cells}

    def _read(self) -> None:
        settings = self._header["settings"]
        try:
            header, *self.cells = map(json.loads, self.path.read_text().splitlines())
            if header != {**self._header, "settings": header["settings"]}:
                raise KeyError("kind")
            earlier = header["settings"]
            for cell in self.cells:
                self._key(cell), cell["result"], cell["seconds"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"results {self.path} is not a results file of this version, or is damaged") from error
        for name in sorted(earlier.keys() | settings.keys()):
            if earlier.get(name) != settings.get(name):
                raise ValueError(
                    f"{name} {settings.get(name)!r} contradicts the run in {self.path.parent}, which has "
                    f"{earlier.get(name)!r}: choose another folder with --output, or replace it with --overwrite"
                )

    @staticmethod
    def _key(cell: Figures) -> str:
        return json.dumps([cell["part"], cell["round"], cell["cell"]], sort_keys=True)

    def has(self, part: str, number: int, cell: Figures) -> bool:
        """Return whether a cell has been measured in a round."""
        return self._key({"part": part, "round": number, "cell": cell}) in self._done

    def add(self, part: str, number: int, cell: Figures, result: Figures, seconds: float) -> None:
        """Add the figures of a cell, and the seconds of their measurement."""
        entry = {"part": part, "round": number, "cell": cell, "result": result, "seconds": round(seconds, 3)}
        self.cells.append(entry)
        self._write()
        self._done.add(self._key(entry))

    def of(self, part: str) -> list[Figures]:
        """Return the cells of a part, in the order of their measurement."""
        return [cell for cell in self.cells if cell["part"] == part]

    def seconds(self, part: str) -> float:
        """Return the seconds that the cells of a part have taken so far."""
        return float(sum(cell["seconds"] for cell in self.of(part)))

    def _write(self) -> None:
        write_atomically(self.path, "".join(f"{_line(each)}\n" for each in (self._header, *self.cells)).encode())


def _line(values: Figures) -> str:
    return json.dumps(values, sort_keys=True, allow_nan=False)
