r"""
Gradients of metrics of readers who stop
========================================

Reciprocal rank, success and ERR judge what a reader sees who stops at a satisfying document. With
``stop_probability=``, ``pl_rank_exact`` computes the gradients of their expectations as exactly as for DCG.

On the left, one query of eight documents. DCG raises every relevant document. Reciprocal rank and success raise the
second and the third less, since a reader who has found another does not come to them. On the right, the error of the
gradient of expected reciprocal rank at 10 against time, on one thread: from sampled rankings with a baseline
(REINFORCE), and by the integral. The reference is the integral at ``rtol=1e-10``.
"""

import sys
import time

import matplotlib.pyplot as plt
import numpy as np

import plrank_fast as plr

QUERIES, DOCS, CUTOFF = 32, 120, 10
SECONDS = 0.3  # of processor time for each point

figure, (bars, lines) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")

scores = np.linspace(2.0, -2.0, 8)
relevant = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
gradients = {
    "DCG at 8": plr.pl_rank_exact(scores, relevant, plr.dcg_weights(8)),
    "reciprocal rank at 8": plr.pl_rank_exact(scores, relevant, 1 / np.arange(1, 9), stop_probability=relevant),
    "success at 3": plr.pl_rank_exact(scores, relevant, np.ones(3), stop_probability=relevant),
}
for i, (name, gradient) in enumerate(gradients.items()):
    bars.bar(np.arange(8) + 0.27 * (i - 1), gradient / np.abs(gradient).max(), 0.25, label=name)
bars.axhline(0.0, color="black", linewidth=0.8)
labels = [f"{score:+.1f}\n{'relevant' if hit else ''}" for score, hit in zip(scores, relevant, strict=True)]
bars.set_xticks(np.arange(8), labels)
bars.set(xlabel="document, by its score", ylabel="gradient over its largest entry")
bars.legend(loc="upper right")

rng = np.random.default_rng(0)
scores = rng.normal(size=QUERIES * DOCS)
relevant = (rng.random(scores.size) < 0.1) * 1.0
weights = 1 / np.arange(1, CUTOFF + 1)
options = {"offsets": np.arange(QUERIES + 1) * DOCS, "n_threads": 1}


def integral(rtol):
    return plr.pl_rank_exact(scores, relevant, weights, stop_probability=relevant, rtol=rtol, **options)


def reciprocal_rank(rankings):
    """Return one over the rank of the first relevant document of each ranking, 0 if there is none."""
    found = np.take_along_axis(relevant.reshape(QUERIES, 1, DOCS), rankings.astype(int), axis=2) > 0
    return found.any(axis=2) / (1 + found.argmax(axis=2))


def sampling(n_samples):
    return plr.policy_gradient(
        scores, reward=reciprocal_rank, cutoff=CUTOFF, n_samples=n_samples, baseline=True, rng=1, **options
    )


exact = integral(1e-10)
for method, settings, marker in ((sampling, (10, 100, 1000, 10_000), "o"), (integral, (1e-6, 1e-9), "^")):
    measured = []
    for setting in settings:
        fastest, begin = np.inf, time.thread_time()
        while time.thread_time() - begin < SECONDS:
            start = time.thread_time()
            result = method(setting)
            fastest = min(fastest, time.thread_time() - start)
        measured.append((1e6 * fastest / QUERIES, np.linalg.norm(result - exact) / np.linalg.norm(exact)))
        label = f"N = {setting}" if method is sampling else f"rtol = {setting:g}"
        print(f"{method.__name__:<10}{label:<14}{measured[-1][0]:>10.1f} us per query   error {measured[-1][1]:.1e}")
        lines.annotate(label, measured[-1], textcoords="offset points", xytext=(8, 3), fontsize="small")
    lines.plot(*zip(*measured, strict=True), marker=marker, label=method.__name__)
lines.set(
    xscale="log", yscale="log", xlabel="microseconds of one processor per query",
    ylabel="relative error of the gradient", title=f"reciprocal rank at {CUTOFF}, D = {DOCS}",
)  # fmt: skip
lines.margins(x=0.25, y=0.1)
lines.grid(alpha=0.3)
lines.legend(loc="lower right")

if len(sys.argv) > 1:  # python docs/gallery/cascade_metrics.py PNG
    figure.savefig(sys.argv[1], dpi=110)
