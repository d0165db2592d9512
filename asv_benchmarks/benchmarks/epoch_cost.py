"""The main benchmark: CPU cost of one epoch's gradients against the cutoff K."""

import time

import numpy as np

import plrank_fast as plr

from .workloads import SHAPES, batch, call, list_lengths

QUERIES = {"yahoo": 96, "mslr": 48, "istella": 24}  # measured; the result is scaled to the whole set
# The O(N D K) baselines would take minutes per cell on the long lists.
SLOW = {"pl_rank_1", "pl_rank_2"}
SAMPLE_FREE = {"pl_rank_exact": 100, "pl_rank_cmc": 100}  # measured once, because they do not depend on N


class EpochCost:
    """Seconds of one thread for the gradients of an epoch, by method, K, N and data shape.

    Measured on a sample of queries with the list lengths of the set, then scaled by (queries of the set) / (queries
    measured). Only sampling and gradients are counted, not the model.
    """

    params = (
        ["pl_rank_1", "pl_rank_2", "pl_rank_3", "pl_rank_cmc", "pl_rank_exact"],
        [5, 10, 25, 50, 100],
        [100, 1000],
        list(SHAPES),
    )
    param_names = ("method", "cutoff", "n_samples", "shape")
    unit = "seconds per epoch"
    timeout = 300

    def setup(self, method, cutoff, n_samples, shape):
        if not hasattr(plr, method):
            raise NotImplementedError(f"this version has no {method}")
        if method in SLOW and (n_samples > 100 or shape != "yahoo"):
            raise NotImplementedError("minutes per cell")
        if method in SAMPLE_FREE and n_samples != SAMPLE_FREE[method]:
            raise NotImplementedError("does not depend on the number of samples")
        lengths = list_lengths(shape, QUERIES[shape], np.random.default_rng(1))
        self.batch = batch(lengths)
        self.scale = SHAPES[shape][0] / QUERIES[shape]
        self.rank_weights = plr.dcg_weights(cutoff)

    def track_seconds_per_epoch(self, method, cutoff, n_samples, shape):
        scores, relevance, offsets = self.batch
        samples = 1 if method in SAMPLE_FREE else n_samples
        fastest = np.inf
        end = time.perf_counter() + 0.3
        while time.perf_counter() < end:
            start = time.thread_time()  # a call longer than a time slice never has a busy processor to itself
            call(method, scores, relevance, self.rank_weights, offsets, samples)
            fastest = min(fastest, time.thread_time() - start)
        return fastest * self.scale

    track_seconds_per_epoch.unit = "seconds per epoch"
