"""Draw the picture of docs/gradients.md: error of the gradient against the time it takes, one thread.

    python docs/error_against_time.py [PNG]

Error is the norm of the difference over the norm of the gradient, root mean square over a batch of queries; the
reference is ``pl_rank_exact`` at rtol = 1e-10 with the more nodes of the Hessian diagonal. Time is that of the fastest
of a few calls on the batch, per query.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

import plrank_fast as plr

QUERIES, DOCS, CUTOFF = 64, 120, 10


def measure(call: Callable[[], np.ndarray], exact: np.ndarray) -> tuple[float, float]:
    """(microseconds per query, root mean square of the queries' relative errors)."""
    fastest, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        start = time.perf_counter()
        result = call()
        fastest = min(fastest, time.perf_counter() - start)
    difference, norm = (np.linalg.norm(x.reshape(QUERIES, DOCS), axis=1) for x in (result - exact, exact))
    return 1e6 * fastest / QUERIES, float(np.sqrt(np.mean((difference / norm) ** 2)))


def main(picture: str) -> None:
    """Measure all methods, print the figures, draw them."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=QUERIES * DOCS)
    relevance = plr.gains(rng.choice(5, p=[0.52, 0.32, 0.13, 0.02, 0.01], size=scores.size))
    offsets = np.arange(QUERIES + 1) * DOCS
    weights = plr.dcg_weights(CUTOFF)
    options = {"offsets": offsets, "n_threads": 1}
    exact, _ = plr.pl_rank_exact(scores, relevance, weights, rtol=1e-10, hessian=True, **options)

    def sampled(method: Callable[..., np.ndarray], n_samples: int) -> Callable[[], np.ndarray]:
        return lambda: method(scores, relevance, weights, n_samples=n_samples, rng=1, **options)

    series = {
        "pl_rank_3": [(f"N = {n}", sampled(plr.pl_rank_3, n)) for n in (1, 10, 100, 1000, 10000)],
        "pl_rank_cmc": [(f"N = {n}", sampled(plr.pl_rank_cmc, n)) for n in (1, 10)],
        "pl_rank_exact": [
            (f"rtol = {rtol:g}", lambda rtol=rtol: plr.pl_rank_exact(scores, relevance, weights, rtol=rtol, **options))
            for rtol in (1e-6, 1e-8, 1e-10)
        ],
    }
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    for (name, points), marker in zip(series.items(), "os^", strict=True):
        measured = [measure(call, exact) for _, call in points]
        axes.plot(*zip(*measured, strict=True), marker=marker, label=name)
        for (label, _), (microseconds, error) in zip(points, measured, strict=True):
            print(f"{name:<14}{label:<14}{microseconds:>10.1f} us per query   relative error {error:.1e}")
            axes.annotate(label, (microseconds, error), textcoords="offset points", xytext=(6, 4), fontsize="small")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="microseconds per query, one thread",
        ylabel="relative error of the gradient",
        title=f"D = {DOCS} documents, cutoff K = {CUTOFF}, scores of standard deviation 1",
    )
    axes.margins(x=0.15)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "error_against_time.png")
