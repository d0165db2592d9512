"""Measure the costs by which ``sampler="auto"`` chooses, at every SIMD level of this machine, and print them as source.

``python asv_benchmarks/sampler_costs.py`` takes some minutes on an otherwise idle machine. The rates fit the weighted
geometric mean over the levels, by least squares of relative errors. The last lines say by how much the choice
then misses the fastest sampler at each level.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import numpy.typing as npt

import plrank_fast as plr
from plrank_fast._core.sampling import samplers

NAMES = ("spread", "introselect", "network", "slot_table", "threshold", "guide_table")  # by number
LENGTHS = (12, 24, 60, 120, 316, 1000, 3000, 10_000)
CUTOFFS = (1, 5, 10, 25, 50, 100, 316)
NUMBERS = (1, 2, 3, 4, 8, 16, 32, 100)  # of rankings
SPREADS = (1.0, 3.0)  # standard deviations of the scores
USERS = 3.0  # weight of each level but the baseline, for which there are few processors
Row = tuple[npt.NDArray[np.float64], float]  # terms, and the nanoseconds of a query


def problems() -> list[tuple[npt.NDArray[np.float64], int, int]]:
    """Return batches (n_queries, length), cutoffs and numbers of rankings.

    No list is there twice: processors would learn which way its branches go.
    """
    rng = np.random.default_rng(0)
    return [
        (spread * rng.normal(size=(max(4, min(64, 20_000 // length)), length)), cutoff, number)
        for length in LENGTHS
        for spread in SPREADS
        for cutoff in CUTOFFS
        if cutoff <= length
        for number in NUMBERS
    ]


def terms_of(scores: npt.NDArray[np.float64], cutoff: int, number: int) -> tuple[npt.NDArray[np.float64], list[bool]]:
    """Return the mean terms of the lists of a batch, and which samplers may be chosen for all of them."""
    of_lists = [samplers.terms_of_costs(one, cutoff, number) for one in scores]
    serves = np.array([serves for _, serves in of_lists]).all(axis=0)
    return np.mean([terms for terms, _ in of_lists], axis=0), list(serves)


def measure(scores: npt.NDArray[np.float64], cutoff: int, number: int, names: list[str], calls: int = 5) -> list[float]:
    """Measure the nanoseconds of a query of each sampler on one thread, the fastest of some calls taken in turn."""
    n_queries, length = scores.shape
    offsets = np.arange(n_queries + 1) * length
    fastest = [np.inf] * len(names)
    for _ in range(1 + calls):
        for i, name in enumerate(names):
            start = time.perf_counter()
            plr.sample_rankings(scores.ravel(), number, cutoff, offsets=offsets, rng=0, sampler=name, n_threads=1)
            fastest[i] = min(fastest[i], time.perf_counter() - start)
    return [1e9 * seconds / n_queries for seconds in fastest]


def measure_level() -> list[dict[str, float]]:
    """Measure all problems at this process's level: nanoseconds by sampler, of those that may be chosen.

    Where the slot table is asked for all ranks of a list, introselect draws them, once it is known how many draws the
    table would take.
    """
    found = []
    for scores, cutoff, number in problems():
        serves = terms_of(scores, cutoff, number)[1]
        names = [name for name, may_be in zip(NAMES[1:], serves[1:], strict=True) if may_be]
        found.append(dict(zip(names, measure(scores, cutoff, number, names), strict=True)))
        length = scores.shape[1]
        if 50 < length < 4000 and cutoff == CUTOFFS[0] and number == NUMBERS[0]:
            known, unknown = measure(scores, length, 1, ["slot_table", "introselect"], calls=30)
            found[-1]["spread"] = max(known - unknown, 100.0 + 0.5 * length)
    return found


def fit(rows: list[Row]) -> npt.NDArray[np.float64]:
    """Return the rates with the least squares of relative errors, none of them negative."""
    terms, costs = np.array([row for row, _ in rows]), np.array([cost for _, cost in rows])
    used = terms.any(axis=0)
    while True:
        rates = np.zeros(used.size)
        rates[used] = np.linalg.lstsq(terms[:, used] / costs[:, np.newaxis], np.ones(costs.size), rcond=None)[0]
        if (rates >= 0.0).all():
            return rates
        used &= rates > 0.0


def fit_all(levels: list[list[dict[str, float]]]) -> npt.NDArray[np.float64]:
    """Return the rates of all samplers, (samplers, terms), from the measurements of all levels, baseline first."""
    rows: dict[str, list[Row]] = {name: [] for name in NAMES}
    weights = [1.0] + [USERS] * (len(levels) - 1)
    for (scores, cutoff, number), *measured in zip(problems(), *levels, strict=True):
        terms = terms_of(scores, cutoff, number)[0]
        for name in measured[0]:
            logarithms = np.log([level[name] for level in measured])
            rows[name].append((terms[NAMES.index(name)], float(np.exp(np.average(logarithms, weights=weights)))))
    return np.array([fit(rows[name]) for name in NAMES])


def missed(rates: npt.NDArray[np.float64], level: list[dict[str, float]]) -> npt.NDArray[np.float64]:
    """Return, for each problem, the time of the sampler that these rates choose over the time of the fastest."""
    ratios = []
    for (scores, cutoff, number), costs in zip(problems(), level, strict=True):
        terms = terms_of(scores, cutoff, number)[0]
        expected = {name: rates[NAMES.index(name)] @ terms[NAMES.index(name)] for name in costs if name != "spread"}
        ratios.append(costs[min(expected, key=expected.__getitem__)] / min(costs[name] for name in expected))
    return np.array(ratios)


def main() -> None:
    """Measure each level in a process of its own; print the rates and what they miss."""
    if sys.argv[1:] == ["--level"]:
        print(json.dumps(measure_level()))
        return
    names = plr.build_info()["simd_levels"]
    levels = []
    for name in names:
        command = [sys.executable, __file__, "--level"]
        environment = {**os.environ, "PLRANK_FAST_SIMD": name}
        levels.append(json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout))
    rates = fit_all(levels)
    for name, row in zip(NAMES, rates, strict=True):
        print(f"    [{', '.join(f'{rate:.3g}' for rate in row)}],  # {name}")
    for name, level in zip(names, levels, strict=True):
        ratios = missed(rates, level)
        print(f"{name}: {np.exp(np.log(ratios).mean()):.3f} times the fastest, at most {ratios.max():.2f}")


if __name__ == "__main__":
    main()
