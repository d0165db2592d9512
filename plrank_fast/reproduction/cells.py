"""Measurements: a part has rounds, a round has cells, and a cell is one line of the results file.

A round measures everything once, so that repetitions of a cell are minutes apart, and error bars show the disturbance
by other programs on the machine. The budget determines the number of rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One of the experiments; the limits of its rounds take precedence over the budget."""

    name: str  # in the results file
    title: str
    least_rounds: int
    most_rounds: int
    cells: list[Figures]  # of a round, each described by plain values
    measure: Callable[[Figures, int], Figures]  # takes a cell and the number of the round
