"""Statements of the paper, each judged by a number and its interval.

A statement holds if the whole interval is on its side of the bound, does not reproduce if the whole interval is on the
other side, and is open otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from plrank_fast.reproduction import published
from plrank_fast.reproduction.cells import Figures
from plrank_fast.reproduction.methods import BEYOND, Method
from plrank_fast.reproduction.summary import Costs, Curves, Estimate, costs, curves, over_rounds, over_seeds
from plrank_fast.validation import FloatArray

HOLDS, OPEN, FAILS = "holds", "open", "does not reproduce"
# Growth of the cost from the least to the greatest cutoff, as a power of the cutoff: the paper's own figures give
# 0.11 to 0.23 for PL-Rank-3 and 0.86 to 1.07 for the others on the sets with long lists.
FLAT, LINEAR = 0.3, 0.7
LONG_LISTS = ("mslr", "istella")  # where the paper states growth in K; the lists of Yahoo are shorter than the cutoffs
LONG_CUTOFF = 50
THIRD = Method("pl_rank_3", 1000)
NEW = {"pl_rank_exact": "The exact gradient", "pl_rank_cmc": "One sample of conditional Monte Carlo"}


@dataclass(frozen=True)
class Finding:
    """A statement, the verdict, and the figures."""

    statement: str
    verdict: str
    evidence: str


def judged(estimate: Estimate, low: float, high: float) -> str:
    """Return whether an interval lies within bounds, outside them, or across one."""
    if low <= estimate.low and estimate.high <= high:
        return HOLDS
    return FAILS if estimate.high < low or estimate.low > high else OPEN


def growth(cost: FloatArray, cutoffs: tuple[int, ...]) -> Estimate:
    """Estimate the exponent p of cost K^p between the least and the greatest cutoff, over the rounds."""
    return over_rounds(np.log(cost[:, -1] / cost[:, 0]) / np.log(cutoffs[-1] / cutoffs[0]))


def all_findings(cells: list[Figures]) -> list[Finding]:
    """Judge all statements for which there are cells."""
    by_part = {name: [cell for cell in cells if cell["part"] == name] for name in ("cost", "curves", "disparity")}
    measured = costs(by_part["cost"], "cutoffs")
    found = [*_growth(measured), *_speed(measured), *_precision(measured)]
    found += _ndcg(curves(by_part["curves"], "ndcg_dataset"))
    found += _disparity(curves(by_part["disparity"], "disparity"))
    return found


def _growth(measured: dict[tuple[str, Method], Costs]) -> Iterator[Finding]:
    claims = {
        "pl_rank_3": ("PL-Rank-3 is nearly flat in K", (-np.inf, FLAT)),
        "pl_rank_2": ("PL-Rank-2 is linear in K", (LINEAR, np.inf)),
        "stochastic_rank": ("StochasticRank is linear in K", (LINEAR, np.inf)),
    }
    for estimator, (statement, bounds) in claims.items():
        rows = [
            (shape, method.n_samples, row)
            for (shape, method), row in measured.items()
            if shape in LONG_LISTS and method.estimator == estimator and len(row.columns) > 1
        ]
        for where in ("in NumPy", "in this library") if rows else ():
            parts, verdicts = [], []
            for shape, n_samples, row in rows:
                seconds = row.numpy_seconds if where == "in NumPy" else row.seconds
                assert seconds is not None
                exponent = growth(seconds, row.columns)
                verdicts.append(judged(exponent, *bounds))
                parts.append(f"{shape}, N = {n_samples}: {exponent}")
                paper = published.MINUTES.get((shape, estimator, n_samples))
                if paper is not None and row.columns == published.CUTOFFS:
                    parts[-1] += f", paper {growth(np.array([paper]), published.CUTOFFS).value:.2f}"
            yield Finding(f"{statement}, {where}", together(verdicts), "cost ~ K^p, p = " + "; ".join(parts))


def together(verdicts: Iterable[str]) -> str:
    """Return one verdict for several cases: a statement holds, or fails, if it does so in all of them."""
    different = set(verdicts)
    if len(different) == 1:
        return different.pop()
    return "holds in part" if HOLDS in different else OPEN


def _speed(measured: dict[tuple[str, Method], Costs]) -> Iterator[Finding]:
    """Compare each published method with NumPy, and PL-Rank-3 with the paper's additions."""
    for estimator in ("pl_rank_3", "pl_rank_2", "stochastic_rank"):
        ratios = [
            row.numpy_seconds / row.seconds
            for (_, method), row in measured.items()
            if method.estimator == estimator and row.numpy_seconds is not None
        ]
        if ratios:
            middles = np.concatenate([np.median(ratio, axis=0) for ratio in ratios])
            yield Finding(
                f"{Method(estimator, 0).title} is faster here than in NumPy in every cell",
                HOLDS if min(ratio.min() for ratio in ratios) > 1 else FAILS,
                f"{np.exp(np.log(middles).mean()):.0f} times in the geometric mean over sets, N and K, "
                f"{middles.min():.0f} to {middles.max():.0f} times",
            )
    for estimator, title in NEW.items():
        faster = _over_third(measured, estimator, lambda row: row.seconds)
        if faster is not None:
            yield Finding(
                f"{title} costs less than PL-Rank-3 with 1000 samples",
                judged(faster, 1.0, np.inf),
                f"{faster.low:.2g} to {faster.high:.2g} times faster over sets and K",
            )


def _over_third(
    measured: dict[tuple[str, Method], Costs], estimator: str, figure: Callable[[Costs], FloatArray | None]
) -> Estimate | None:
    """Return the range of a figure of PL-Rank-3 with 1000 samples over the estimator's, over sets and K."""
    ratios = []
    for (shape, method), row in measured.items():
        own, third = figure(row), figure(measured[shape, THIRD]) if (shape, THIRD) in measured else None
        if method.estimator == estimator and own is not None and third is not None and own.shape == third.shape:
            ratios.append(np.median(third / own, axis=0))
    return over_rounds(np.concatenate(ratios)) if ratios else None


def _precision(measured: dict[tuple[str, Method], Costs]) -> Iterator[Finding]:
    """Compare the errors of single gradients, which need no training."""
    rows = {key: row for key, row in measured.items() if row.error is not None and len(row.columns) > 1}
    growths = [
        over_rounds(row.error[:, -1] / row.error[:, 0])
        for (_, method), row in rows.items()
        if method.estimator == "pl_rank_3" and row.error is not None
    ]
    if growths:
        least, most = min(g.low for g in growths), max(g.high for g in growths)
        first = next(iter(rows.values())).columns
        yield Finding(
            "Long cutoffs have more variance (PL-Rank-3, error of a gradient relative to its norm)",
            together(judged(g, 1.0, np.inf) for g in growths),
            f"the error at K = {first[-1]} is {least:.2g} to {most:.2g} times that at K = {first[0]}, over sets and N",
        )
    smaller = _over_third(rows, "pl_rank_cmc", lambda row: row.error)
    if smaller is not None:
        yield Finding(
            "One sample of conditional Monte Carlo errs less than 1000 of PL-Rank-3",
            judged(smaller, 1.0, np.inf),
            f"its error is smaller by a factor of {smaller.low:.2g} to {smaller.high:.2g} over sets and K",
        )


def _difference(
    measured: dict[tuple[str, int, Method, str], Curves], cutoffs: Iterable[int], first: Method, second: Method
) -> Estimate | None:
    """Compute the mean difference of the last values of ``first`` and ``second``, with its error over seeds."""
    wanted = set(cutoffs)
    rows = []
    for (name, cutoff, method, preset), own in measured.items():
        other = measured.get((name, cutoff, second, preset))
        if cutoff in wanted and method == first and other is not None:
            seeds = min(len(own.values), len(other.values))
            rows.append(own.values[:seeds, -1] - other.values[:seeds, -1])
    if not rows:
        return None
    seeds = min(map(len, rows))
    return over_seeds(np.mean([row[:seeds] for row in rows], axis=0))


def _ndcg(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    """Compare the NDCG at the end of runs of equal time."""
    cutoffs = sorted({key[1] for key in measured})
    long, short = ([k for k in cutoffs if (k >= LONG_CUTOFF) == is_long] for is_long in (True, False))
    few = Method("pl_rank_3", 100)
    statements = [
        ("Large K wants more samples: N = 1000 ends above N = 100 (PL-Rank-3)", long, THIRD, few),
        ("At small K, N = 1000 is not needed: N = 100 ends at least as high (PL-Rank-3)", short, few, THIRD),
    ]
    for other in (Method("pl_rank_2", 1000), Method("stochastic_rank", 1000)):
        title = Method(other.estimator, 0).title
        statements.append((f"PL-Rank-3 ends above {title} in the same time (N = 1000)", cutoffs, THIRD, other))
    for new in BEYOND:
        title = NEW[new.estimator]
        statements.append((f"{title} ends above PL-Rank-3 with 1000 samples in the same time", cutoffs, new, THIRD))
    for statement, some, first, second in statements:
        difference = _difference(measured, some, first, second)
        if difference is not None:
            signed = f"{difference.value:+.4f} (one seed, no error bar)"
            if np.isfinite(difference.low):
                signed = f"{difference.value:+.4f} ± {difference.high - difference.value:.4f}"
            evidence = f"difference in test NDCG@K {signed} over sets and K in {', '.join(map(str, some))}"
            yield Finding(statement, judged(difference, 0.0, np.inf), evidence)


def _disparity(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    """Compare the remaining disparity, in logarithms, since sets differ in its size."""
    logs = {key: Curves(row.seconds, np.log(row.values)) for key, row in measured.items()}
    cutoffs = {key[1] for key in measured}
    for other in (Method("policy_gradient", 100), Method("placement_policy_gradient", 100), Method("pl_rank_3", 100)):
        for own in (Method("pl_rank_3", 100), Method("pl_rank_exact", 0)):
            difference = _difference(logs, cutoffs, other, own) if own != other else None
            if difference is not None:
                ratio = Estimate(*np.exp([difference.value, difference.low, difference.high]).tolist())
                yield Finding(
                    f"{NEW.get(own.estimator, own.title)} leaves less disparity than {other.title} in the same time",
                    judged(difference, 0.0, np.inf),
                    f"{other.title} leaves {ratio} times as much",
                )
