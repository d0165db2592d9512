r"""
NDCG against seconds
====================

Training shows the value of a gradient. The network, the data and the optimiser are the same for all methods, and the
picture shows the ``NDCG@10`` of held-out queries against the seconds of training. All methods ascend the same
expectation; they differ in the cost and the noise of a step.

The data is generated in the shape of MSLR-Web30k. The set is small, to keep this page quick to build, and each run has
other initial weights. ``experiments/reproduce.py`` draws the paper's figure, with its sets, cutoffs and methods.
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
    """Return the gains over the best DCG of each query, so that the expected metric is NDCG."""
    relevance = plr.gains(data.labels)
    ideal = plr.ideal_dcg(relevance, theta, offsets=data.offsets)
    return relevance / np.repeat(np.where(ideal > 0, ideal, np.inf), np.diff(data.offsets))


relevance = normalized_gains(train)
features, test_features = (torch.tensor(data.features, dtype=torch.float32) for data in (train, test))


def learning_curve(method, seed, **options):
    """Return seconds of training, without evaluation, and the NDCG of the test queries after each."""
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
ticks = [0.02, 0.05, 0.1, 0.2, 0.5]
axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
axes.minorticks_off()
axes.grid(alpha=0.3)
figure.legend(loc="outside lower center", ncols=2, frameon=False)

# %%
# Lines are means over three seeds, and bands reach from the worst to the best seed. PL-Rank-2 computes the same
# estimate as PL-Rank-3 from the same rankings, but its cost per ranking grows with the list length times the cutoff.
