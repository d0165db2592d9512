"""Statements of the paper, each judged by a number and its interval.

A statement holds if the whole interval is on its side of the bound, does not reproduce if the whole interval is on the
other side, and is open otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from plrank_fast.reproduction import published
from plrank_fast.reproduction.cells import Figures
from plrank_fast.reproduction.methods import Method
from plrank_fast.reproduction.summary import Costs, Curves, Estimate, costs, curves, over_rounds, over_seeds
from plrank_fast.validation import FloatArray

HOLDS, OPEN, FAILS = "holds", "open", "does not reproduce"
# Growth of the cost from the least to the greatest cutoff, as a power of the cutoff: the paper's own figures give
# 0.11 to 0.23 for PL-Rank-3 and 0.86 to 1.07 for the others on the sets with long lists.
FLAT, LINEAR = 0.3, 0.7
LONG_LISTS = ("mslr", "istella")  # where the paper states growth in K; the lists of Yahoo are shorter than the cutoffs
LONG_CUTOFF = 50


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
    found += _samples(curves(by_part["curves"], "ndcg_dataset"))
    found += _best(curves(by_part["curves"], "ndcg_dataset"))
    found += _disparity(curves(by_part["disparity"], "disparity"))
    return found


def _growth(measured: dict[tuple[str, Method], Costs]) -> Iterator[Finding]:
    claims = {
        "pl_rank_3": ("PL-Rank-3 is nearly flat in K", (-np.inf, FLAT)),
        "pl_rank_2": ("PL-Rank-2 is linear in K", (LINEAR, np.inf)),
        "stochastic_rank": ("StochasticRank is linear in K", (LINEAR, np.inf)),
    }
    for estimator, (statement, bounds) in claims.items():
        for twin in (True, False):
            rows = {
                key: costs
                for key, costs in measured.items()
                if key[0] in LONG_LISTS and key[1].estimator == estimator and len(costs.columns) > 1
            }
            if not rows:
                continue
            parts, verdicts = [], []
            for (shape, method), row in rows.items():
                seconds = row.numpy_seconds if twin else row.seconds
                assert seconds is not None
                exponent = growth(seconds, row.columns)
                verdicts.append(judged(exponent, *bounds))
                paper = published.MINUTES.get((shape, estimator, method.n_samples))
                theirs = ""
                if (
                    paper is not None
                    and row.columns[0] == published.CUTOFFS[0]
                    and row.columns[-1] == published.CUTOFFS[-1]
                ):
                    theirs = f", paper {growth(np.array([paper]), published.CUTOFFS).value:.2f}"
                parts.append(f"{shape}, N = {method.n_samples}: {exponent}{theirs}")
            where = "in NumPy" if twin else "in this library"
            yield Finding(f"{statement}, {where}", together(verdicts), "cost ~ K^p, p = " + "; ".join(parts))


def together(verdicts: Iterable[str]) -> str:
    """Return one verdict for several cases: a statement holds, or fails, if it does so in all of them."""
    different = set(verdicts)
    if len(different) == 1:
        return different.pop()
    return "holds in part" if HOLDS in different else OPEN


def _speed(measured: dict[tuple[str, Method], Costs]) -> Iterator[Finding]:
    """Compare each published method with NumPy, and with the paper's additions."""
    for estimator in ("pl_rank_3", "pl_rank_2", "stochastic_rank"):
        ratios = [
            row.numpy_seconds / row.seconds
            for (_, method), row in measured.items()
            if method.estimator == estimator and row.numpy_seconds is not None
        ]
        if ratios:
            middles = np.concatenate([np.median(ratio, axis=0) for ratio in ratios])
            title = Method(estimator, 0).title
            yield Finding(
                f"{title} is faster here than in NumPy in every cell",
                HOLDS if min(ratio.min() for ratio in ratios) > 1 else FAILS,
                f"{np.exp(np.log(middles).mean()):.0f} times in the geometric mean over sets, N and K, "
                f"{middles.min():.0f} to {middles.max():.0f} times",
            )
    for estimator in ("pl_rank_exact", "pl_rank_cmc"):
        ratios = [
            measured[shape, Method("pl_rank_3", 1000)].seconds / row.seconds
            for (shape, method), row in measured.items()
            if method.estimator == estimator and (shape, Method("pl_rank_3", 1000)) in measured
            and measured[shape, Method("pl_rank_3", 1000)].seconds.shape == row.seconds.shape
        ]  # fmt: skip
        if ratios:
            middles = np.concatenate([np.median(ratio, axis=0) for ratio in ratios])
            yield Finding(
                f"{NEW[estimator]} costs less than PL-Rank-3 with 1000 samples",
                judged(Estimate(0, float(middles.min()), float(middles.max())), 1.0, np.inf),
                f"{middles.min():.2g} to {middles.max():.2g} times faster over sets and K",
            )


NEW = {"pl_rank_exact": "The exact gradient", "pl_rank_cmc": "One sample of conditional Monte Carlo"}


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
    pairs = [
        (np.median(row.error, axis=0), np.median(rows[shape, Method("pl_rank_3", 1000)].error, axis=0))  # type: ignore[arg-type]
        for (shape, method), row in rows.items()
        if method.estimator == "pl_rank_cmc" and (shape, Method("pl_rank_3", 1000)) in rows
    ]
    pairs = [pair for pair in pairs if pair[0].shape == pair[1].shape]
    if pairs:
        ratios = np.concatenate([theirs / own for own, theirs in pairs])
        yield Finding(
            "One sample of conditional Monte Carlo errs less than 1000 of PL-Rank-3",
            judged(Estimate(0, float(ratios.min()), float(ratios.max())), 1.0, np.inf),
            f"its error is smaller by a factor of {ratios.min():.2g} to {ratios.max():.2g} over sets and K",
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


def _signed(estimate: Estimate) -> str:
    if not np.isfinite(estimate.low):
        return f"{estimate.value:+.4f} (one seed, no error bar)"
    return f"{estimate.value:+.4f} ± {estimate.high - estimate.value:.4f}"


def _samples(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    cutoffs = sorted({key[1] for key in measured})
    few, many = Method("pl_rank_3", 100), Method("pl_rank_3", 1000)
    for statement, some in (
        ("Large K wants more samples: N = 1000 ends above N = 100", [k for k in cutoffs if k >= LONG_CUTOFF]),
        ("At small K, N = 1000 is not needed: N = 100 ends at least as high", [k for k in cutoffs if k < LONG_CUTOFF]),
    ):
        wants_many = "Large" in statement
        difference = _difference(measured, some, *((many, few) if wants_many else (few, many)))
        if difference is not None:
            verdict = judged(difference, 0.0, np.inf)
            yield Finding(
                f"{statement} (PL-Rank-3)",
                verdict,
                f"difference in test NDCG@K {_signed(difference)} over sets and K in {', '.join(map(str, some))}",
            )


def _best(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    cutoffs = sorted({key[1] for key in measured})
    third = Method("pl_rank_3", 1000)
    for other in (Method("pl_rank_2", 1000), Method("stochastic_rank", 1000)):
        difference = _difference(measured, cutoffs, third, other)
        if difference is not None:
            yield Finding(
                f"PL-Rank-3 ends above {Method(other.estimator, 0).title} in the same time (N = 1000)",
                judged(difference, 0.0, np.inf),
                f"difference in test NDCG@K {_signed(difference)} over sets and all K",
            )
    for new in (Method("pl_rank_exact", 0), Method("pl_rank_cmc", 1)):
        difference = _difference(measured, cutoffs, new, third)
        if difference is not None:
            yield Finding(
                f"{NEW[new.estimator]} ends above PL-Rank-3 with 1000 samples in the same time",
                judged(difference, 0.0, np.inf),
                f"difference in test NDCG@K {_signed(difference)} over sets and all K",
            )


def _disparity(measured: dict[tuple[str, int, Method, str], Curves]) -> Iterator[Finding]:
    """Compare the remaining disparity, in logarithms, since sets differ in its size."""
    logs = {key: Curves(row.seconds, np.log(row.values), row.epochs) for key, row in measured.items()}
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
