"""Measure the cost of a document in each step of training, and extrapolate it to many documents.

    python examples/scaling_costs.py [--documents 200000] [--features 136] [--length 120] [--cutoff 10]

The program prints nanoseconds of processor time for each document and epoch: to read its features from a mapped cache,
for the forward and backward pass of the network, and for the gradient of its query. All run on one thread; the smallest
of several rounds counts.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import plrank_fast as plr
from plrank_fast.data import PROFILES, RankingData
from plrank_fast.data.letor_cache import cached
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.network import ScoringNetwork, set_model_threads

PAIRS = 1e9  # query-document pairs of the plan


def mapped_data(folder, n_docs, n_features, length):
    """Write documents to a cache of the training command, and map it into memory."""
    text = Path(folder) / "text"
    text.write_bytes(b"0 qid:1 1:1\n")  # the cache only checks whether the file is unchanged
    rng = np.random.default_rng(0)
    offsets = np.arange(0, n_docs + 1, length)
    n_docs = int(offsets[-1])
    labels = rng.choice(5, p=PROFILES["mslr"].label_shares, size=n_docs).astype(float)
    features = rng.random((n_docs, n_features), dtype=np.float32)
    data = RankingData(features, labels, offsets, np.arange(offsets.size - 1), "generated")
    options = {"dtype": features.dtype.str, "string_qids": False}
    cached([str(text)], options, folder, lambda: data)
    return cached([str(text)], options, folder, lambda: data)  # the first call writes, the second maps


def nanoseconds_of(steps, n_docs, rounds):
    """Return the processor time of an epoch over the documents, the smallest of some rounds."""
    times = []
    for _ in range(rounds):
        begin = time.thread_time()
        for step in steps():
            step()
        times.append(time.thread_time() - begin)
    return 1e9 * min(times) / n_docs


def costs(n_docs=200_000, n_features=136, length=120, cutoff=10, rounds=3):
    """Return the nanoseconds of each step per document and epoch, and the bytes of a document's features."""
    set_model_threads(1)
    config = TrainingConfig(cutoff=cutoff)
    with tempfile.TemporaryDirectory() as folder:
        data = mapped_data(folder, n_docs, n_features, length)
        order = np.random.default_rng(1).permutation(data.n_queries)
        batches = np.array_split(order, max(1, data.n_queries // config.batch_queries))
        rows = [data.rows_of(batch) for batch in batches]
        inputs = [data.features[taken] for taken, _ in rows]
        network = ScoringNetwork(n_features, config)
        theta, relevance = plr.dcg_weights(cutoff), plr.gains(data.labels)
        scores = np.random.default_rng(2).normal(size=data.n_docs)

        def step(features):
            network.forward(features)
            network.step(np.zeros(len(features)))

        def gradient(method, taken, offsets, **options):
            method(scores[taken], relevance[taken], theta, offsets=offsets, n_threads=1, **options)

        epochs = {
            "reading a mapped cache": lambda: ((lambda t=taken: data.features[t]) for taken, _ in rows),
            "network": lambda: ((lambda x=features: step(x)) for features in inputs),
            "gradient, exact": lambda: ((lambda r=each: gradient(plr.pl_rank_exact, *r)) for each in rows),
            "gradient, one sample of cmc": lambda: (
                (lambda r=each: gradient(plr.pl_rank_cmc, *r, n_samples=1, rng=0)) for each in rows
            ),
        }
        found = {name: nanoseconds_of(steps, data.n_docs, rounds) for name, steps in epochs.items()}
        return found, data.features.itemsize * n_features


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("documents", 200_000), ("features", 136), ("length", 120), ("cutoff", 10), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    found, size = costs(given.documents, given.features, given.length, given.cutoff, given.rounds)
    print(f"{'':30} ns a document  hours of a core for an epoch of {PAIRS:.0e}")
    for name, cost in found.items():
        print(f"{name:30} {cost:13.0f}  {cost * PAIRS / 3.6e12:10.2f}")
    print(f"{'features':30} {size:7} bytes  {size * PAIRS / 1e9:7.0f} GB")


if __name__ == "__main__":
    main()
