"""Metrics and values."""

import numpy as np

import plrank_fast as plr
from plrank_fast import losses

from .workloads import RULER, batch


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

    def time_expected_ap(self, cutoff):
        scores, relevance, offsets = self.batch
        plr.expected_ap(scores, relevance, cutoff, offsets=offsets, gradient=True, n_threads=1)

    def time_exposure_sampled(self, cutoff):
        scores, _, offsets = self.batch
        rankings = plr.sample_rankings(scores, 10, cutoff, offsets=offsets, rng=0, n_threads=1)
        plr.exposure(scores, self.rank_weights, offsets=offsets, rankings=rankings, n_threads=1)

    def time_ranking_log_prob(self, cutoff):
        scores, _, _ = self.batch
        rankings = np.tile(np.arange(cutoff), (1000, 1))
        plr.ranking_log_prob(scores[:1000], rankings, n_threads=1)


class Passes:
    """Calls that read each document a few times: their copies, page faults and selections show, on one thread."""

    params = (["ndcg", "mrr", "softmax_cross_entropy", "pointwise"], [120, 5000, 1_000_000])
    param_names = ("function", "n_docs")

    def setup(self, function, n_docs):
        scores, relevance, self.offsets = batch([n_docs] * (1_000_000 // n_docs))
        self.function = getattr(plr, function, None) or getattr(losses, function)
        self.arguments = scores, relevance

    def time_call(self, function, n_docs):
        self.function(*self.arguments, offsets=self.offsets, n_threads=1)


class OffPolicy:
    """The value of a new policy, without its gradient, from sessions of 10 ranks of 120 documents, on one thread."""

    params = ("ips", "rips", "iips")
    param_names = ("estimator",)

    def setup(self, estimator):
        rng = np.random.default_rng(0)
        scores = rng.normal(size=120)
        logging_scores = scores / 2
        rankings = plr.sample_rankings(logging_scores, 20_000, 10, rng=0, n_threads=1).astype(np.int64)
        rewards = rng.random(rankings.shape) < 0.3
        self.call = getattr(plr.off_policy, estimator)
        self.arguments = scores, rankings, rewards.sum(axis=1) if estimator == "ips" else rewards
        self.options = {"logging_scores": logging_scores, "n_threads": 1}

    def time_value(self, estimator):
        self.call(*self.arguments, **self.options)
