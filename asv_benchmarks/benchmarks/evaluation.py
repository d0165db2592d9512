"""Metrics and values."""

import numpy as np

import plrank_fast as plr

from .workloads import RULER


class Evaluation:
    """Metrics of 2000 queries with the list lengths of MSLR, on one thread."""

    params = (10, 100)
    param_names = ("cutoff",)

    def setup(self, cutoff):
        workload = RULER.Workload.of_profile("mslr", 2000)
        self.batch = workload.scores, workload.relevance, workload.offsets
        self.rank_weights = plr.dcg_weights(cutoff)

    def time_ndcg(self, cutoff):
        scores, relevance, offsets = self.batch
        plr.ndcg(scores, relevance, self.rank_weights, offsets=offsets, n_threads=1)

    def time_expected_metric_sampled(self, cutoff):
        scores, relevance, offsets = self.batch
        plr.expected_metric(
            scores, relevance, self.rank_weights, offsets=offsets, method="sample", n_samples=10, rng=0, n_threads=1
        )

    def time_expected_average_precision(self, cutoff):
        scores, relevance, offsets = self.batch
        plr.expected_average_precision(scores, relevance, cutoff, offsets=offsets, gradient=True, n_threads=1)

    def time_exposure_sampled(self, cutoff):
        scores, _, offsets = self.batch
        plr.fairness.expected_exposure(
            scores, self.rank_weights, offsets=offsets, method="sample", n_samples=10, rng=0, n_threads=1
        )

    def time_ranking_log_prob(self, cutoff):
        scores, _, _ = self.batch
        rankings = np.tile(np.arange(cutoff), (1000, 1))
        plr.ranking_log_prob(scores[:1000], rankings, n_threads=1)
