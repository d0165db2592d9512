"""Measure the seconds per epoch of the published training loop, before and after its import is changed.

    python examples/sigir22_epoch.py [--queries 64] [--cutoffs 5 10 25 50 100] [--samples 100 1000] [--original FOLDER]

The loop has the structure of the experiments of SIGIR 2022: batches of 256 queries, one call of PL_rank_3 for each
query with relevant documents, a network of two hidden layers of 32 sigmoid units, and stochastic gradient descent (in
PyTorch instead of TensorFlow). Lists have the lengths of MSLR-Web30k. The columns are seconds per epoch on one thread
with PL-Rank-3 in NumPy, with ``plrank_fast.compat.sigir22``, and with one call of ``pl_rank_3`` for each batch; the
speed-ups of the loop; and the gradient's share of the epoch after the change. The NumPy function is the reference
implementation (``plrank_fast.reference``) or, with ``--original``, the published one, from a clone of its repository.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
import time
from pathlib import Path

import numpy as np
import torch

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast.compat import sigir22
from plrank_fast.data import generate


def numpy_reference(rank_weights, labels, scores, n_samples):
    """Compute PL-Rank-3 in NumPy."""
    rankings = reference.sample_rankings(scores, n_samples, rank_weights.size, np.random.default_rng())
    return reference.pl_rank_3(scores, labels, rank_weights[: scores.size], rankings)


def published(folder):
    """Import PL-Rank-3 of the published repository."""
    sys.path.insert(0, str(folder))
    return importlib.import_module("algorithms.PLRank").PL_rank_3


def epoch(data, network, optimizer, rank_weights, n_samples, function, batched=False, batch_size=256):
    """Train for an epoch; return its seconds, and the seconds spent in the function."""
    worth = plr.gains(data.labels)
    ideal = plr.ideal_dcg(worth, rank_weights, offsets=data.offsets)
    order = np.random.default_rng(0).permutation(data.n_queries)
    in_function, start = 0.0, time.perf_counter()
    for begin in range(0, data.n_queries, batch_size):
        rows, offsets = data.rows_of(order[begin : begin + batch_size])
        scores = network(torch.from_numpy(data.features[rows].astype(np.float32)))
        values, labels = scores.detach().numpy()[:, 0].astype(np.float64), worth[rows]
        before = time.perf_counter()
        if batched:
            weights = function(values, labels, rank_weights, n_samples=n_samples, offsets=offsets, n_threads=1)
        else:
            weights = np.zeros(values.size)
            for query, (first, last) in enumerate(itertools.pairwise(offsets)):
                if ideal[order[begin + query]] != 0:
                    weights[first:last] = function(
                        rank_weights, labels[first:last], values[first:last], n_samples=n_samples
                    )
        in_function += time.perf_counter() - before
        loss = -(scores[:, 0] * torch.from_numpy(weights).to(scores.dtype)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - start, in_function


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=64)
    parser.add_argument("--cutoffs", type=int, nargs="+", default=[5, 10, 25, 50, 100])
    parser.add_argument("--samples", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--original", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = generate("mslr", arguments.queries, seed=0)
    before = published(arguments.original) if arguments.original else numpy_reference
    ways = {
        "before": (before, False), "after": (sigir22.PL_rank_3, False), "one call per batch": (plr.pl_rank_3, True)
    }  # fmt: skip
    print("| N | K | before | after | one call per batch | faster | faster, one call | share of the gradient after |")
    print("|---|---|---|---|---|---|---|---|")
    for n_samples in arguments.samples:
        for cutoff in arguments.cutoffs:
            best = dict.fromkeys(ways, (np.inf, 0.0))
            for _ in range(arguments.rounds):
                for name, (function, batched) in ways.items():
                    torch.manual_seed(0)
                    network = torch.nn.Sequential(
                        torch.nn.Linear(data.n_features, 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 32),
                        torch.nn.Sigmoid(), torch.nn.Linear(32, 1),
                    )  # fmt: skip
                    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
                    taken = epoch(data, network, optimizer, plr.dcg_weights(cutoff), n_samples, function, batched)
                    best[name] = min(best[name], taken)
            (old, _), (new, inside), (one, _) = best.values()
            seconds = f"{old:.3f} | {new:.4f} | {one:.4f}"
            times = f"{old / new:.1f} | {old / one:.1f} | {inside / new:.2f}"
            print(f"| {n_samples} | {cutoff} | {seconds} | {times} |", flush=True)


if __name__ == "__main__":
    main()
