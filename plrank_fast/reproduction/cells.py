"""What is measured: a part has rounds, a round has cells, and a cell is one line of the results file.

A round measures everything once, so that repetitions of a cell lie minutes apart: what other programs on the machine do
to one of them shows in the error bars. The budget decides how many rounds there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One of the experiments.

    Parameters
    ----------
    name, title : str
        In the results file, and on the screen.
    least_rounds, most_rounds : int
        So many even if that takes longer than its share of the budget, and not more even if there is time left.
    cells : list of dict
        The cells of a round, each described by plain values.
    measure : callable
        Takes a description and the number of the round; gives plain values.
    """

    name: str
    title: str
    least_rounds: int
    most_rounds: int
    cells: list[Figures]
    measure: Callable[[Figures, int], Figures]
