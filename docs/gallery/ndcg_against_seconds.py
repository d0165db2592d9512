r"""
NDCG against seconds
====================

What a gradient is worth shows in training: the same network, the same data, the same optimiser, and for each method the
``NDCG@10`` of held-out queries after so many seconds. All lines climb the same expectation; they differ in how much a
step costs, and in how noisy it is.

The data is generated in the shape of MSLR-Web30k; the set is small, so that the page is quickly built, and every run
takes other starting weights. For the paper's figure, with its sets, cutoffs and methods, run
``python -m plrank_fast reproduce``.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import torch

import plrank_fast as plr

SECONDS = 0.6  # of the processor for each run
SEEDS, BATCH, CUTOFF = 3, 10, 10

train = plr.data.generate("mslr", 100)
test = plr.data.generate("mslr", 60, split="test")
theta = plr.dcg_weights(CUTOFF)


def normalized_gains(data):
    """What documents are worth over the best DCG of their query, so that the expected metric is NDCG."""
    relevance = plr.gains(data.labels)
    ideal = plr.dcg(relevance, relevance, theta, offsets=data.offsets)
    return relevance / np.repeat(np.where(ideal > 0, ideal, np.inf), np.diff(data.offsets))


relevance = normalized_gains(train)
features, test_features = (torch.tensor(data.features, dtype=torch.float32) for data in (train, test))


def learning_curve(method, seed, **options):
    """Seconds of training, evaluation not counted, and the NDCG of the test queries after them."""
    torch.manual_seed(seed)
    order = np.random.default_rng(seed)
    network = torch.nn.Sequential(torch.nn.Linear(features.shape[1], 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    seconds, values, spent, wanted = [], [], 0.0, SECONDS / 50
    while spent < SECONDS:
        start = time.thread_time()
        query = order.integers(train.n_queries - BATCH + 1)
        begin, end = train.offsets[query], train.offsets[query + BATCH]
        scores = network(features[begin:end]).squeeze(1)
        gradient = method(
            scores.detach().numpy(), relevance[begin:end], theta, n_threads=1,
            offsets=train.offsets[query : query + BATCH + 1] - begin, **options,
        )  # fmt: skip
        optimizer.zero_grad()
        scores.backward(-torch.tensor(gradient, dtype=torch.float32))  # Adam descends, the gradient ascends
        optimizer.step()
        spent += time.thread_time() - start
        if spent >= wanted:
            wanted = min(1.2 * spent, SECONDS)
            with torch.no_grad():
                scores = network(test_features).squeeze(1).numpy()
            seconds.append(spent)
            values.append(plr.ndcg(scores, plr.gains(test.labels), theta, offsets=test.offsets).mean())
    return seconds, values


threads = torch.get_num_threads()
torch.set_num_threads(1)
methods = {
    "pl_rank_exact, rtol = 1e-3": (plr.pl_rank_exact, {"rtol": 1e-3}),
    "pl_rank_cmc, N = 1": (plr.pl_rank_cmc, {"n_samples": 1}),
    "pl_rank_3, N = 1000": (plr.pl_rank_3, {"n_samples": 1000}),
    "pl_rank_2, N = 1000": (plr.pl_rank_2, {"n_samples": 1000}),
}
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for name, (method, options) in methods.items():
    places, curves = np.geomspace(SECONDS / 30, SECONDS, 30), []
    for seed in range(SEEDS):
        drawn = {"rng": np.random.default_rng(seed)} if "n_samples" in options else {}
        curves.append(np.interp(places, *learning_curve(method, seed, **options, **drawn)))
    (line,) = axes.plot(places, np.mean(curves, axis=0), label=name)
    axes.fill_between(places, np.min(curves, axis=0), np.max(curves, axis=0), color=line.get_color(), alpha=0.15, lw=0)
    print(f"{name:<28}NDCG@{CUTOFF} after {SECONDS:g} seconds: {np.mean(curves, axis=0)[-1]:.3f}")
torch.set_num_threads(threads)

axes.set(xscale="log", xlabel="seconds of training", ylabel=f"NDCG@{CUTOFF} of held-out queries")
axes.xaxis.set_major_formatter("{x:g}")
axes.grid(alpha=0.3)
axes.legend(loc="lower right")

# %%
# Lines are means over three seeds, bands go from the worst to the best. PL-Rank-2 computes the same estimate as
# PL-Rank-3 from the same rankings, but the cost of a ranking is that of the list's length times the cutoff.
