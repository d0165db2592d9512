"""Threads: batches and long lists by their number, and calls after pauses in which threads fall asleep."""

import time

import numpy as np

import plrank_fast as plr
from plrank_fast import losses

from .workloads import batch

BATCHES = {"32 x 24": (32, 24), "1024 x 120": (1024, 120), "8000 x 12": (8000, 12)}
LISTS = {"one of 1e4": (1, 10_000), "one of 1e5": (1, 100_000), "one of 1e6": (1, 1_000_000)}
PROCESSORS = plr.build_info()["n_threads"]
K = 10


def calls(n_lists, n_docs):
    """Make functions of the number of threads."""
    scores, relevance, offsets = batch([n_docs] * n_lists)
    labels, theta = np.log2(relevance + 1), plr.dcg_weights(K if n_lists > 1 else 100)
    options = {"offsets": offsets}
    return {
        "pl_rank_exact": lambda n: plr.pl_rank_exact(scores, relevance, theta, n_threads=n, **options),
        "pl_rank_cmc": lambda n: plr.pl_rank_cmc(scores, relevance, theta, n_samples=1, rng=0, n_threads=n, **options),
        "pl_rank_3": lambda n: plr.pl_rank_3(scores, relevance, theta, rng=0, n_threads=n, **options),
        "sample_rankings": lambda n: plr.sample_rankings(scores, 100, theta.size, rng=0, n_threads=n, **options),
        "ndcg": lambda n: plr.ndcg(scores, relevance, theta, n_threads=n, **options),
        "list_mle": lambda n: losses.list_mle(scores, labels, n_threads=n, **options),
        "softmax_cross_entropy": lambda n: losses.softmax_cross_entropy(scores, relevance, n_threads=n, **options),
        "lambda_rank": lambda n: losses.lambda_rank(scores, labels, n_threads=n, **options),
    }


class Threads:
    """Calls by the number of threads, up to the number of processors."""

    params = (list(calls(1, 2)), [*BATCHES, *LISTS], [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= PROCESSORS])
    param_names = ("function", "lists", "n_threads")

    def setup(self, function, lists, n_threads):
        if lists in LISTS and function == "lambda_rank":
            raise NotImplementedError("pairs of long lists take minutes")
        self.call = calls(*{**BATCHES, **LISTS}[lists])[function]

    def time_call(self, function, lists, n_threads):
        self.call(n_threads)


class Pauses:
    """Exact gradients on all processors and on one thread, after pauses of so many milliseconds."""

    number, repeat, warmup_time = 1, 50, 0.0
    params = (["32 x 24", "32 x 100", "128 x 120", "1024 x 120"], [0.0, 0.5, 5.0, 30.0], ["all", "one"])
    param_names = ("lists", "pause", "threads")

    def setup(self, lists, pause, threads):
        if not hasattr(self, "call"):
            self.call = calls(*map(int, lists.split(" x ")))["pl_rank_exact"]
        self.call(None if threads == "all" else 1)
        time.sleep(pause / 1e3)

    def time_call(self, lists, pause, threads):
        self.call(None if threads == "all" else 1)
