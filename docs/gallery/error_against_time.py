r"""
Error of the gradient against time
==================================

There are three ways to compute the same gradient: PL-Rank from sampled rankings, conditional Monte Carlo, which
integrates out the position of each item, and the exact integral. Each point is one setting of a method, on one thread.
Lower points are more exact, and points further left are faster. Two lines in grey show what a script without this
library takes: PL-Rank-3 as published, in NumPy, and the policy gradient (REINFORCE) in PyTorch.

The error is the norm of the difference over the norm of the gradient, as root mean square over a batch of queries. The
reference is ``pl_rank_exact`` at ``rtol=1e-10`` with the additional nodes of the Hessian diagonal. The time is the
processor time per query of the fastest of a few calls on the batch.
"""

import itertools
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
import torch

import plrank_fast as plr
from plrank_fast import reference

QUERIES, DOCS, CUTOFF = 64, 120, 10
SECONDS = 0.3  # of processor time for each point

rng = np.random.default_rng(0)
scores = rng.normal(size=QUERIES * DOCS)
relevance = plr.gains(rng.choice(5, p=plr.data.PROFILES["mslr"].label_shares, size=scores.size))
weights = plr.dcg_weights(CUTOFF)
options = {"offsets": np.arange(QUERIES + 1) * DOCS, "n_threads": 1}
exact, _ = plr.pl_rank_exact(scores, relevance, weights, rtol=1e-10, hessian=True, **options)


def pl_rank_3_in_numpy(scores, relevance, weights, offsets, n_samples, **_):
    """Estimate the gradient by the published algorithm, query by query."""
    draw = np.random.default_rng(1)
    parts = [
        reference.pl_rank_3(
            scores[start:stop], relevance[start:stop], weights,
            reference.sample_rankings(scores[start:stop], n_samples, CUTOFF, draw),
        )
        for start, stop in itertools.pairwise(offsets)
    ]  # fmt: skip
    return np.concatenate(parts)


def reinforce_in_pytorch(scores, relevance, weights, offsets, n_samples, **_):
    """Estimate the gradient as the derivative of log-probabilities times rewards, for all queries at once."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.tensor(scores.reshape(QUERIES, 1, DOCS), requires_grad=True)
    noise = -torch.empty(QUERIES, n_samples, DOCS).exponential_(generator=generator).log()
    rankings = (rows.detach() + noise).topk(CUTOFF).indices
    gain = torch.tensor(relevance.reshape(QUERIES, 1, DOCS)).expand(-1, n_samples, -1).gather(2, rankings)
    chosen = rows.expand(-1, n_samples, -1)
    placed = torch.zeros_like(chosen).scatter(2, rankings, 1.0).bool()
    rest = chosen.masked_fill(placed, -torch.inf).logsumexp(2, keepdim=True)
    drawn = chosen.gather(2, rankings)
    normalizer = torch.cat([rest, drawn.flip(2)], 2).logcumsumexp(2)[:, :, 1:].flip(2)
    reward = (gain * torch.tensor(weights)).sum(2)
    ((drawn - normalizer).sum(2) * reward).mean(1).sum().backward()
    return rows.grad.numpy().ravel()


torch.set_num_threads(1)


def measure(method, **setting):
    """Return the microseconds per query and the root mean square of the queries' relative errors."""
    fastest, begin = np.inf, time.thread_time()
    while time.thread_time() - begin < SECONDS:
        start = time.thread_time()
        result = method(scores, relevance, weights, **setting, **options)
        fastest = min(fastest, time.thread_time() - start)
    difference, norm = (np.linalg.norm(x.reshape(QUERIES, DOCS), axis=1) for x in (result - exact, exact))
    return 1e6 * fastest / QUERIES, np.sqrt(np.mean((difference / norm) ** 2))


series = {
    pl_rank_3_in_numpy: [{"n_samples": n} for n in (10, 100, 1000)],
    reinforce_in_pytorch: [{"n_samples": n} for n in (10, 100, 1000)],
    plr.pl_rank_3: [{"n_samples": n, "rng": 1} for n in (1, 10, 100, 1000, 10000)],
    plr.pl_rank_cmc: [{"n_samples": n, "rng": 1} for n in (1, 10)],
    plr.pl_rank_exact: [{"rtol": rtol} for rtol in (1e-6, 1e-8, 1e-10)],
}
figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
styles = [
    {"marker": "v", "color": "0.45", "label": "PL-Rank-3 in NumPy, as published"},
    {"marker": "D", "color": "0.7", "label": "policy gradient in PyTorch"},
    *({"marker": marker, "color": color} for marker, color in zip("os^", ("C0", "C1", "C2"), strict=True)),
]
for (method, settings), style in zip(series.items(), styles, strict=True):
    measured = [measure(method, **setting) for setting in settings]
    axes.plot(*zip(*measured, strict=True), **{"label": method.__name__, **style})
    for setting, (microseconds, error) in zip(settings, measured, strict=True):
        label = f"rtol = {setting['rtol']:g}" if "rtol" in setting else f"N = {setting['n_samples']}"
        print(f"{method.__name__:<22}{label:<14}{microseconds:>10.1f} us per query   relative error {error:.1e}")
        # The points of rtol = 1e-8 and 1e-10 nearly coincide, so their labels are on different sides.
        left = setting.get("rtol") == 1e-8
        place = (-8, -3) if left else (8, 8 if label == "N = 1" else 3)
        if method in (pl_rank_3_in_numpy, reinforce_in_pytorch):  # whose lines are close to each other
            if label != "N = 1000":
                continue
            place = (8, -10 if method is pl_rank_3_in_numpy else 3)
        axes.annotate(
            label, (microseconds, error), textcoords="offset points", xytext=place,
            ha="right" if left else "left", fontsize="small",
        )  # fmt: skip
axes.set(
    xscale="log",
    yscale="log",
    xlabel="microseconds of one processor per query",
    ylabel="relative error of the gradient",
    title=f"D = {DOCS} documents, cutoff K = {CUTOFF}, scores of standard deviation 1",
)
axes.margins(x=0.2, y=0.08)
axes.grid(alpha=0.3)
axes.legend(loc="center right")

if len(sys.argv) > 1:  # python docs/gallery/error_against_time.py PNG
    figure.savefig(sys.argv[1], dpi=110)
