"""Compare the integral of ``bucket_log_prob`` with the integral of Ma et al. (AISTATS 2021), node for node.

The probability that a set of documents comes before the rest, in any order, is the integral from 0 to 1 of
``prod_i (1 - u^(w_i / W))``, where W is the weight of the rest. Ma et al. evaluate it numerically; here by the midpoint
rule, in u, and after the substitution u = v^c with the best c of a grid for each shape and number of nodes. The
reference is a trapezoid rule in ln(-ln u) with 20,000 nodes. The program prints the largest error of a log-probability
in u, after the substitution, and in brackets the processor time over the time of ``bucket_log_prob``:

    python examples/partitioned_preference.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import plrank_fast as plr

SHAPES = {
    "5 of 20": (5, 20, 1.0),
    "10 of 100": (10, 100, 1.0),
    "100 of 1000": (100, 1000, 1.0),
    "100 of 1000, scores three times as wide": (100, 1000, 3.0),
}
NODES = 24, 96, 1000
POWERS = np.exp2(np.arange(-4.0, 21.0))

Array = NDArray[np.float64]


def midpoint(scores: Array, size: int, nodes: int, power: float) -> float:
    """Compute the log-probability that the first ``size`` documents come first, by the midpoint rule."""
    share = np.exp(scores[:size]) / np.exp(scores[size:]).sum()
    log_v = np.log((np.arange(nodes) + 0.5) / nodes)
    return log_mean(share, power * log_v, np.log(power) + (power - 1.0) * log_v)


def log_mean(share: Array, log_u: Array, of_slope: Array) -> float:
    """Return the logarithm of the mean of the integrand over nodes, each times the slope of a substitution."""
    terms = np.log(-np.expm1(np.outer(log_u, share))).sum(axis=1) + of_slope
    highest = terms.max()
    return float(highest + np.log(np.mean(np.exp(terms - highest))))


def reference(scores: Array, size: int, nodes: int = 20_000) -> float:
    """Compute it by a trapezoid rule, whose error falls exponentially with the number of nodes."""
    share = np.exp(scores[:size]) / np.exp(scores[size:]).sum()
    low, high = -50.0 - np.log(share.max()), 10.0 - np.log(share.min())
    place, width = np.linspace(low, high, nodes, retstep=True)
    log_u = -np.exp(place)  # du = -u log(u) d place
    return log_mean(share, log_u, place + log_u) + float(np.log(width * nodes))


def ours(scores: Array, size: int) -> float:
    buckets = (np.arange(scores.size) >= size).astype(int)
    return float(plr.bucket_log_prob(scores, buckets, n_threads=1)[0])


def largest_error(sets: list[tuple[Array, float]], rule: Callable[..., float], *arguments: float) -> float:
    """Return the largest error of a rule over sets, each with its log-probability."""
    return max(abs(rule(scores, *arguments) - true) for scores, true in sets)


def fastest(turns: int, rule: Callable[..., float], *arguments: object) -> float:
    """Return the least processor time of a call."""
    times = []
    for _ in range(turns):
        start = time.process_time()
        rule(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def main(arguments: list[str] | None = None) -> dict[str, list[float]]:
    """Print a row for each shape and return the errors of the rules, ours last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=10, help="sets for each shape")
    parser.add_argument("--turns", type=int, default=20, help="calls of which the fastest counts")
    options = parser.parse_args(arguments)
    rows = {}
    print("| | " + " | ".join(f"{nodes} nodes" for nodes in NODES) + " | `bucket_log_prob` |")
    for name, (size, n_docs, deviation) in SHAPES.items():
        rng = np.random.default_rng(0)
        drawn = [deviation * rng.normal(size=n_docs) for _ in range(options.problems)]
        sets = [(scores, reference(scores, size)) for scores in drawn]
        unit = fastest(10 * options.turns, ours, drawn[0], size)
        rows[name], cells = [], []
        for nodes in NODES:
            errors = {power: largest_error(sets, midpoint, size, nodes, power) for power in POWERS.tolist()}
            best = min(errors, key=errors.__getitem__)
            spent = fastest(options.turns, midpoint, drawn[0], size, nodes, best)
            rows[name] += [errors[1.0], errors[best]]
            cells.append(f"{errors[1.0]:.0e}, {errors[best]:.0e} ({spent / unit:.2g})")
        rows[name].append(largest_error(sets, ours, size))
        print(f"| {name} | " + " | ".join(cells) + f" | {rows[name][-1]:.0e} (1) |")
    return rows


if __name__ == "__main__":
    main()
