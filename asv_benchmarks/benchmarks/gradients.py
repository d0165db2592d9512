"""Time, peak memory and error of every gradient, on batches of lists of equal length."""

import numpy as np

import plrank_fast as plr
from plrank_fast import losses

from .workloads import ESTIMATORS, SLOW, batch, call


class Gradients:
    """A batch of 64 queries on one thread, with as many rankings for each query as the method draws by default."""

    params = (list(ESTIMATORS), [24, 120, 316], [10, 100], [1.0, 3.0])
    param_names = ("method", "n_docs", "cutoff", "spread")

    def setup(self, method, n_docs, cutoff, spread):
        if method in SLOW and n_docs > 120:
            raise NotImplementedError("too slow to be tracked at this size")
        self.batch = batch([n_docs] * 64, spread)
        self.rank_weights = plr.dcg_weights(cutoff)

    def time_gradient(self, method, n_docs, cutoff, spread):
        scores, relevance, offsets = self.batch
        call(method, scores, relevance, self.rank_weights, offsets, ESTIMATORS[method].n_samples)


class OneQuery:
    """One query per call, as in published training loops, which shows the overhead of a call.

    The last two pass the query as a list and with ``offsets``, which needs the general checks.
    """

    params = (
        [
            *("pl_rank_3", "pl_rank_cmc", "pl_rank_exact", "stochastic_rank", "sample_rankings", "rank_probabilities"),
            *("bucket_log_prob", "scores_for_exposure"),
            *("ndcg", "losses.softmax_cross_entropy", "losses.lambda_rank"),
            *("pl_rank_3 of a list", "pl_rank_3 of a batch"),
        ],
        [8, 24, 120],
    )
    param_names = ("method", "n_docs")

    def setup(self, method, n_docs):
        name, _, how = method.partition(" ")
        scores, relevance, offsets = batch([n_docs])
        weights, rng = plr.dcg_weights(min(n_docs, 10)), np.random.default_rng(0)
        self.arguments, self.options = (scores, relevance, weights), {}
        self.function = getattr(losses, name.removeprefix("losses.")) if "." in name else getattr(plr, name)
        if name.startswith("losses."):
            self.arguments = scores, np.log2(relevance + 1)
        elif name == "sample_rankings":
            self.arguments = scores, 1
        elif name == "rank_probabilities":
            self.arguments = scores, weights.size
        elif name == "bucket_log_prob":
            self.arguments = scores, np.rint(-np.log2(relevance + 1))
        elif name == "scores_for_exposure":
            self.arguments = plr.exposure(scores, weights), weights
        if name in ("pl_rank_3", "pl_rank_cmc", "stochastic_rank"):
            self.options["n_samples"] = 1
        if name in ("pl_rank_3", "pl_rank_cmc", "stochastic_rank", "sample_rankings"):
            self.options["rng"] = rng
        if how == "of a list":
            self.arguments = scores.tolist(), relevance, weights
        elif how == "of a batch":
            self.options["offsets"] = offsets

    def time_call(self, method, n_docs):
        self.function(*self.arguments, **self.options)


class Noise:
    """StochasticRank and its exact counterpart, for both kinds of noise, on a batch of 16 queries and one thread."""

    params = (["stochastic_rank", "pl_rank_exact"], ["gumbel", "normal"], [24, 120, 316], [10, 100])
    param_names = ("method", "noise", "n_docs", "cutoff")

    def setup(self, method, noise, n_docs, cutoff):
        self.batch = batch([n_docs] * 16)
        self.rank_weights = plr.dcg_weights(cutoff)
        self.options = {"noise": noise, "n_threads": 1}
        if method == "stochastic_rank":
            self.options |= {"n_samples": 1000, "rng": 0}
        try:  # versions before normal noise without sampling
            getattr(plr, method)([0.0], [1.0], [1.0], **self.options)
        except TypeError as fault:
            raise NotImplementedError(f"this version has no {method} of {noise} noise") from fault

    def time_gradient(self, method, noise, n_docs, cutoff):
        scores, relevance, offsets = self.batch
        getattr(plr, method)(scores, relevance, self.rank_weights, offsets=offsets, **self.options)


class StoppingReaders:
    """The exact gradients of metrics of readers who stop, beside DCG's, on 16 queries and one thread."""

    params = (["dcg", "reciprocal rank", "success", "err"], [24, 120, 1000], [10, 100], [1.0, 3.0])
    param_names = ("metric", "n_docs", "cutoff", "spread")

    def setup(self, metric, n_docs, cutoff, spread):
        scores, gains, offsets = batch([n_docs] * 16, spread)
        relevance = {"dcg": gains, "err": gains / 16}.get(metric, (gains > 0) * 1.0)
        harmonic = 1 / np.arange(1, cutoff + 1)
        rank_weights = {"dcg": plr.dcg_weights(cutoff), "success": np.ones(cutoff)}.get(metric, harmonic)
        self.arguments = scores, relevance, rank_weights
        self.options = {"offsets": offsets, "n_threads": 1} | (
            {} if metric == "dcg" else {"stop_probability": relevance}
        )

    def time_gradient(self, metric, n_docs, cutoff, spread):
        plr.pl_rank_exact(*self.arguments, **self.options)


class Rewards:
    """The policy gradients of the metric and of equal rewards, with 100 rankings on one thread."""

    params = (["metric", "rewards"], [24, 120, 1000], [False, True])
    param_names = ("source", "n_docs", "baseline")

    def setup(self, source, n_docs, baseline):
        if not hasattr(plr, "ranking_log_prob_vjp"):
            raise NotImplementedError("this version has no rewards of rankings")
        scores, relevance, offsets = batch([n_docs] * 16)
        theta = plr.dcg_weights(10)
        rankings = plr.sample_rankings(scores, 100, 10, offsets=offsets, rng=0)
        rewards = (theta * relevance[offsets[:-1, np.newaxis, np.newaxis] + rankings]).sum(axis=2)
        self.arguments = (scores, relevance, theta) if source == "metric" else (scores,)
        self.options = {"rankings": rankings, "offsets": offsets, "baseline": baseline, "n_threads": 1}
        if source == "rewards":
            self.options["rewards"] = rewards

    def time_gradient(self, source, n_docs, baseline):
        plr.policy_gradient(*self.arguments, **self.options)


class LongList:
    """One query of many documents; memory must not grow with the number of samples."""

    params = (["pl_rank_3", "cmc", "exact"], [1_000, 100_000, 1_000_000], [10, 100])
    param_names = ("method", "n_docs", "cutoff")
    timeout = 300

    def setup(self, method, n_docs, cutoff):
        if method not in ESTIMATORS:
            raise NotImplementedError(f"this version has no {method}")
        self.batch = batch([n_docs])
        self.rank_weights = plr.dcg_weights(cutoff)
        self.n_samples = 1 if method == "cmc" else 100

    def time_gradient(self, method, n_docs, cutoff):
        scores, relevance, offsets = self.batch
        call(method, scores, relevance, self.rank_weights, offsets, self.n_samples)

    def peakmem_gradient(self, method, n_docs, cutoff):
        scores, relevance, offsets = self.batch
        call(method, scores, relevance, self.rank_weights, offsets, self.n_samples)


class SharedQuery:
    """One query on one thread, and on two threads that share its nodes and its items."""

    params = (["pl_rank_exact", "rank_probabilities"], [1_000, 10_000], [1, 2])
    param_names = ("method", "n_docs", "n_threads")

    def setup(self, method, n_docs, n_threads):
        scores, relevance, _ = batch([n_docs])
        cutoff = min(n_docs, 1_000) if method == "pl_rank_exact" else 100
        self.arguments = (scores, relevance, plr.dcg_weights(cutoff)) if method == "pl_rank_exact" else (scores, cutoff)

    def time_call(self, method, n_docs, n_threads):
        getattr(plr, method)(*self.arguments, n_threads=n_threads)


class Accuracy:
    """Norm of the error over the norm of the exact gradient at rtol=1e-10; smaller is better."""

    params = (list(ESTIMATORS), [1, 10, 100, 1000])
    param_names = ("method", "n_samples")
    timeout = 300

    def setup_cache(self):
        scores, relevance, offsets = batch([60], 1.0, seed=3)
        return plr.pl_rank_exact(scores, relevance, plr.dcg_weights(10), offsets=offsets, rtol=1e-10)

    def setup(self, exact, method, n_samples):
        if ESTIMATORS[method].n_samples == 0 and n_samples > 1:
            raise NotImplementedError("does not sample")

    def track_error(self, exact, method, n_samples):
        scores, relevance, offsets = batch([60], 1.0, seed=3)
        got = call(method, scores, relevance, plr.dcg_weights(10), offsets, n_samples)
        return float(np.linalg.norm(got - exact) / np.linalg.norm(exact))

    track_error.unit = "relative error"
