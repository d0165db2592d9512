"""The experiment: its parts in turn within a budget of time, and results kept after every cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from reproduction import cost, learning
from reproduction.results import Figures, Part, ResultsFile

RESULTS = "results.jsonl"
# These are the parts' shares of the time; time that one does not use goes to those after it.
SHARES = {"cost": 0.25, "length": 0.07, "curves": 0.5, "settings": 0.08, "disparity": 0.1}
MOST_ROUNDS = 15  # of each part
# The time includes imports and the report, which together take ten seconds with all pictures.
SECONDS_OF_REPORT, SHARE_OF_REPORT = 15.0, 0.25


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

    The minutes include the report and the time before a kill. A part measures cell by cell in the first round, then by
    whole rounds, as long as its share of the budget lasts: a cell or a round that would not end in time does not begin.
    ``observer`` is called after every cell with the part and the share of the budget that is spent.
    """
    total = sum(SHARES[part.name] for part in parts)
    budget = 60 * minutes - min(SECONDS_OF_REPORT, SHARE_OF_REPORT * 60 * minutes)
    allowed = 0.0
    for part in parts:
        allowed += budget * SHARES[part.name] / total
        for number, cell in _in_time(part, parts, results, allowed):
            if interrupted():
                return False
            start = time.perf_counter()
            result = part.measure(cell, number)
            results.add(part.name, number, cell, result, time.perf_counter() - start)
            observer(part, _spent(parts, results) / budget)
    return True


def _spent(parts: list[Part], results: ResultsFile) -> float:
    return sum(results.seconds(part.name) for part in parts)


def _in_time(part: Part, parts: list[Part], results: ResultsFile, allowed: float) -> Iterator[tuple[int, Figures]]:
    """Yield the next cell of a part, with its round, as long as it is expected to end before ``allowed`` are spent."""
    for number in range(MOST_ROUNDS):
        due = [cell for cell in part.cells if not results.has(part.name, number, cell)]
        if (
            number
            and len(due) == len(part.cells)
            and results.seconds(part.name) / number > allowed - _spent(parts, results)
        ):
            return
        for cell in due:
            # A cell takes as long as before, or at most as the longest so far.
            taken = results.of(part.name)
            same = [entry for entry in taken if entry["cell"] == cell]
            expected = max((entry["seconds"] for entry in same or taken), default=0.0)
            if expected > allowed - _spent(parts, results):
                return
            yield number, cell
