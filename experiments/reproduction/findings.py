"""Statements of the papers, each judged by figures and their intervals.

A statement holds if the whole interval is within its bounds, does not reproduce if the whole interval is outside of
them, and is open otherwise. With several intervals, it holds in part if it holds for some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np

from plrank_fast.benchmarks.epoch_cost import CUTOFFS, Method
from plrank_fast.validation import FloatArray
from reproduction import published
from reproduction.results import Figures
from reproduction.summary import Costs, Curves, Estimate, costs, curves, over_rounds, over_seeds

HOLDS, OPEN, FAILS, IN_PART = "holds", "open", "does not reproduce", "holds in part"
# Growth of the cost from the least to the greatest cutoff, as a power of the cutoff: the paper's own figures give
# 0.11 to 0.23 for PL-Rank-3 and 0.86 to 1.07 for the others on the sets with long lists.
FLAT, LINEAR = (-np.inf, 0.3), (0.7, np.inf)
GROWTHS = {
    "pl_rank_3": ("PL-Rank-3 is nearly flat in K", FLAT),
    "pl_rank_2": ("PL-Rank-2 is linear in K", LINEAR),
    "stochastic_rank": ("StochasticRank is linear in K", LINEAR),
}
LONG_LISTS = ("mslr", "istella")  # where the paper states growth in K; the lists of Yahoo are shorter than the cutoffs
LONG_CUTOFF = 50
FEW, THIRD = Method("pl_rank_3", 100), Method("pl_rank_3", 1000)


class Finding(NamedTuple):
    """A statement, the verdict on it, and the figures."""

    verdict: str
    statement: str
    evidence: str


def judged(
    statement: str, meaning: str, estimates: Mapping[str, Estimate], low: float = -np.inf, high: float = np.inf
) -> Iterator[Finding]:
    """Yield the finding about estimates, which a statement places within bounds, by the names of their cases."""
    verdicts = {
        HOLDS if low <= each.low and each.high <= high else FAILS if each.high < low or each.low > high else OPEN
        for each in estimates.values()
    }
    if estimates:
        verdict = verdicts.pop() if len(verdicts) == 1 else IN_PART if HOLDS in verdicts else OPEN
        shown = "; ".join(f"{case}: {each}" if case else str(each) for case, each in estimates.items())
        yield Finding(verdict, statement, f"{meaning}: {shown}")


def growth(cost: FloatArray, cutoffs: tuple[int, ...]) -> Estimate:
    """Estimate the exponent p of cost K^p between the least and the greatest cutoff, over the rounds."""
    return over_rounds(np.log(cost[:, -1] / cost[:, 0]) / np.log(cutoffs[-1] / cutoffs[0]))


def all_findings(cells: list[Figures]) -> list[Finding]:
    """Judge all statements for which there are cells."""
    return [
        *_cost(costs(cells, "cost")),
        *_ndcg(curves(cells, "curves", "ndcg_dataset")),
        *_disparity(curves(cells, "disparity", "disparity")),
    ]


def _cost(measured: dict[tuple[str, Method], Costs]) -> Iterator[Finding]:
    """Judge the growth of cost and error with the cutoff, the speed, and the error of single gradients."""
    long = {key: row for key, row in measured.items() if len(row.columns) > 1}
    for estimator, (statement, bounds) in GROWTHS.items():
        for figure, place in (("numpy_seconds", "in NumPy"), ("seconds", "in this library")):
            exponents = {
                f"{shape}, N = {method.n_samples}{_of_paper(shape, method)}": growth(getattr(row, figure), row.columns)
                for (shape, method), row in long.items()
                if shape in LONG_LISTS and method.estimator == estimator
            }
            yield from judged(f"{statement}, {place}", "p, where cost ~ K^p", exponents, *bounds)
        rows = [row for (_, method), row in measured.items() if method.estimator == estimator]
        ratios = [(row.numpy_seconds / row.seconds).ravel() for row in rows if row.numpy_seconds is not None]
        statement = f"{Method(estimator, 0).title} is faster here than in NumPy in every cell"
        meaning = "times faster, geometric mean over sets, N and K"
        yield from judged(statement, meaning, _over_all(ratios, geometric_mean), 1.0)
    errors = [row.error for (_, method), row in long.items() if method in (FEW, THIRD) and row.error is not None]
    growths = [error[:, -1] / error[:, 0] for error in errors]
    yield from judged(
        "Long cutoffs have more variance (PL-Rank-3, error of a gradient relative to its norm)",
        "the error at the greatest K over that at the least, over sets and N",
        _over_all(growths),
        1.0,
    )


def _of_paper(shape: str, method: Method) -> str:
    minutes = published.published_minutes(method, shape)
    return f" (paper: {growth(np.array([minutes]), CUTOFFS).value:.2f})" if minutes else ""


def _over_all(parts: list[FloatArray], middle: Callable[[FloatArray], Any] = np.median) -> dict[str, Estimate]:
    """Return one estimate over all parts, or none without parts."""
    return {"": over_rounds(np.concatenate(parts), middle)} if parts else {}


def _difference(
    measured: dict[tuple[str, int, Method, str], Curves], cutoffs: list[int], first: Method, second: Method
) -> dict[str, Estimate]:
    """Return the mean difference of the last values of ``first`` and ``second``, with its error over seeds."""
    pairs = [
        (own.values[:, -1], measured[name, cutoff, second, preset].values[:, -1])
        for (name, cutoff, method, preset), own in measured.items()
        if cutoff in cutoffs and method == first and (name, cutoff, second, preset) in measured
    ]
    if not pairs:
        return {}
    seeds = min(len(values) for pair in pairs for values in pair)
    return {"": over_seeds(np.mean([own[:seeds] - other[:seeds] for own, other in pairs], axis=0))}


def _ndcg(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    """Compare the NDCG at the end of runs of equal time."""
    cutoffs = sorted({key[1] for key in measured})
    long, short = [k for k in cutoffs if k >= LONG_CUTOFF], [k for k in cutoffs if k < LONG_CUTOFF]
    same_time = "in the same time"
    statements = [
        ("Large K wants more samples: N = 1000 ends above N = 100 (PL-Rank-3)", long, THIRD, FEW),
        ("At small K, N = 1000 is not needed: N = 100 ends at least as high (PL-Rank-3)", short, FEW, THIRD),
    ]
    for name in ("pl_rank_2", "stochastic_rank"):
        title = Method(name, 0).title
        statements.append((f"PL-Rank-3 ends above {title} {same_time} (N = 1000)", cutoffs, THIRD, Method(name, 1000)))
    for statement, some, first, second in statements:
        meaning = f"difference in test NDCG@K over sets and K in {', '.join(map(str, some))}"
        yield from judged(statement, meaning, _difference(measured, some, first, second), 0.0)


def _disparity(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    """Compare the remaining disparity, in logarithms, since sets differ in its size."""
    logs = {key: Curves(row.seconds, np.log(row.values)) for key, row in measured.items()}
    cutoffs = [key[1] for key in measured]
    for other in (Method("policy_gradient", 100), Method("pl_rank_1", 100)):
        statement = f"{FEW.title} leaves less disparity than {other.title} in the same time"
        meaning = "logarithm of the ratio of the remaining disparities"
        yield from judged(statement, meaning, _difference(logs, cutoffs, other, FEW), 0.0)
