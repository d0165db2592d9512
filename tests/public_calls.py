"""Every public function that computes with queries, called in one way: scores, relevance, rank weights, first query.

Options are ``offsets`` and ``n_threads``. What else a call needs it makes itself, from fixed seeds, so that equal
arguments give equal bits. ``BATCHES`` gives each query of a batch what it has alone; ``OTHERS`` are means over the
batch, objects, and functions that are made of those.
"""

from functools import partial

import numpy as np

import plrank_fast as plr
from plrank_fast import fairness, losses, off_policy, rewards

N_SAMPLES = 70  # more than one group of rankings, and more than one block for queries of 33 items or more


def sampled(function, **options):
    """A call with streams, which depend on the number of the query."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        return function(
            scores, relevance, rank_weights, n_samples=N_SAMPLES, rng=5, first_query=first_query, **options, **batch
        )

    return call


def given(function, **options):
    """A call over given rankings, those of the streams."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        rankings = plr.sample_rankings(
            scores, N_SAMPLES, rank_weights.shape[-1], rng=5, first_query=first_query, offsets=batch.get("offsets")
        )
        return function(scores, relevance, rank_weights, rankings=rankings, **options, **batch)

    return call


def weighed(function, **options):
    return lambda scores, relevance, rank_weights, first_query, **batch: function(
        scores, relevance, rank_weights, **options, **batch
    )


def ranked(function, **options):
    return lambda scores, relevance, rank_weights, first_query, **batch: function(scores, relevance, **options, **batch)


def buckets_of(relevance):
    """A bucket for each different relevance, the highest first."""
    return np.unique(-relevance, return_inverse=True)[1]


def log_prob(scores, relevance, rank_weights, first_query, offsets=None, **batch):
    cutoff = rank_weights.shape[-1]
    rankings = plr.sample_rankings(scores, 3, cutoff, rng=5, first_query=first_query, offsets=offsets)
    return plr.ranking_log_prob(scores, rankings, offsets=offsets, **batch).reshape(-1)


def log_prob_vjp(scores, relevance, rank_weights, first_query, offsets=None, **batch):
    cutoff = rank_weights.shape[-1]
    rankings = plr.sample_rankings(scores, N_SAMPLES, cutoff, rng=5, first_query=first_query, offsets=offsets)
    cotangent = np.random.default_rng(5).normal(size=N_SAMPLES)
    if offsets is not None:
        cotangent = np.tile(cotangent, (len(offsets) - 1, 1))
    return plr.ranking_log_prob_vjp(scores, rankings, cotangent, offsets=offsets, **batch)


def expected_exposure(scores, relevance, rank_weights, first_query, **batch):
    return fairness.expected_exposure(
        scores, rank_weights, method="sample", n_samples=N_SAMPLES, rng=5, first_query=first_query, **batch
    )


def rankings(sampler):
    """Without the padding of queries shorter than the cutoff."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        drawn = plr.sample_rankings(
            scores, N_SAMPLES, 4, rng=5, sampler=sampler, first_query=first_query, **batch
        ).reshape(-1)
        return drawn[drawn >= 0]

    return call


BATCHES = {
    "pl_rank_3": sampled(plr.pl_rank_3),
    "pl_rank_3 hessian": sampled(plr.pl_rank_3, hessian=True),
    "pl_rank_3 given": given(plr.pl_rank_3),
    "pl_rank_3 introselect": sampled(plr.pl_rank_3, sampler="introselect"),
    "pl_rank_2": sampled(plr.pl_rank_2),
    "pl_rank_2 given": given(plr.pl_rank_2),
    "pl_rank_1": sampled(plr.pl_rank_1),
    "pl_rank_cmc": sampled(plr.pl_rank_cmc),
    "pl_rank_cmc hessian": sampled(plr.pl_rank_cmc, hessian=True),
    "pl_rank_cmc given": given(plr.pl_rank_cmc),
    "policy_gradient": sampled(plr.policy_gradient),
    "policy_gradient baseline": sampled(plr.policy_gradient, baseline=True),
    "placement_policy_gradient": sampled(plr.placement_policy_gradient),
    "placement_policy_gradient given": given(plr.placement_policy_gradient, baseline=True),
    "stochastic_rank": sampled(plr.stochastic_rank),
    "stochastic_rank normal": sampled(plr.stochastic_rank, noise="normal"),
    "expected_metric sample": sampled(plr.expected_metric, method="sample"),
    "expected_metric given": given(plr.expected_metric, method="sample"),
    "expected_metric": weighed(plr.expected_metric),
    "pl_rank_exact": weighed(plr.pl_rank_exact),
    "pl_rank_exact hessian": weighed(plr.pl_rank_exact, hessian=True),
    "pl_rank_exact normal": weighed(plr.pl_rank_exact, noise="normal"),
    "rank_probabilities": ranked(lambda scores, relevance, **batch: plr.rank_probabilities(scores, 4, **batch)),
    "dcg": weighed(plr.dcg),
    "ndcg": weighed(plr.ndcg),
    "precision": ranked(plr.precision, cutoff=3),
    "recall": ranked(plr.recall, cutoff=3),
    "dcg ties": weighed(plr.dcg, ties="average"),
    "average_precision": ranked(plr.average_precision, cutoff=3),
    "reciprocal_rank": ranked(plr.reciprocal_rank),
    "success": ranked(plr.success, cutoff=2),
    "err": ranked(plr.err, max_label=4),
    "rbp": ranked(plr.rbp),
    "average_relevance_position": ranked(plr.average_relevance_position),
    "ranking_log_prob": log_prob,
    "bucket_log_prob": lambda scores, relevance, rank_weights, first_query, **batch: plr.bucket_log_prob(
        scores, buckets_of(relevance), **batch
    ),
    "bucket_log_prob_vjp": lambda scores, relevance, rank_weights, first_query, offsets=None, **batch: (
        plr.bucket_log_prob_vjp(
            scores,
            buckets_of(relevance),
            np.ones(1 if offsets is None else len(offsets) - 1),
            offsets=offsets,
            hessian=True,
            **batch,
        )
    ),
    "ranking_log_prob_vjp": log_prob_vjp,
    **{name: ranked(getattr(losses, name)) for name in losses.__all__},
    "soft_rank cutoff": ranked(losses.soft_rank, cutoff=3),
    **{
        f"sample_rankings {sampler}": rankings(sampler)
        for sampler in ("auto", "introselect", "network", "alias", "threshold")
    },
    **{
        f"value_and_gradient {method}": sampled(plr.value_and_gradient, method=method)
        for method in ("pl_rank_exact", "pl_rank_3", "pl_rank_cmc")
    },
    "expected_exposure sample": expected_exposure,
    **{
        f"disparity_gradient {method}": sampled(fairness.disparity_gradient, method=method)
        for method in ("pl_rank_3", "pl_rank_2", "stochastic_rank", "policy_gradient")
    },
}  # fmt: skip


def at_exponent(scores, relevance, rank_weights, first_query, **batch):
    return plr.exposure_vjp(scores, rank_weights, relevance, **batch)


def logged(estimator, *arrays, per_rank=False):
    """An estimate from rankings that another policy has shown."""

    def call(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
        rng = np.random.default_rng(5)
        logging_scores = scores / 2
        shown = plr.sample_rankings(
            logging_scores, 6, rank_weights.shape[-1], rng=5, offsets=offsets, n_threads=n_threads
        )
        of_rows = rng.normal(size=shown.shape if per_rank else shown.shape[:-1])
        given = {"relevance": relevance, "rank_weights": rank_weights}
        estimate = estimator(
            scores, shown, of_rows, *(given[name] for name in arrays), logging_scores=logging_scores, offsets=offsets,
            n_threads=n_threads, **({"rng": 5, "n_samples": 200} if estimator is off_policy.pseudo_inverse else {}),
        )  # fmt: skip
        return estimate.gradient, estimate.importance_weights, estimate.numerators, estimate.denominators

    return call


def ranking_propensities(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    rankings = plr.sample_rankings(scores, 3, rank_weights.shape[-1], rng=5, offsets=offsets, n_threads=n_threads)
    return off_policy.ranking_propensities(scores, rankings, offsets=offsets, n_threads=n_threads).reshape(-1)


def item_propensities(scores, relevance, rank_weights, first_query, **batch):
    return off_policy.item_propensities(scores, off_policy.position_bias(rank_weights.shape[-1]), **batch)


def rewarded(make):
    """Value and gradient of a reward of rankings."""

    def call(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
        reward = make(relevance, offsets)
        drawn = {"n_samples": 20, "rng": 5, "offsets": offsets, "n_threads": n_threads}
        cutoff = rank_weights.shape[-1]
        value, error = rewards.expected_reward(scores, reward, cutoff=cutoff, **drawn)
        gradient = plr.policy_gradient(scores, reward=reward, cutoff=cutoff, baseline=True, **drawn)
        return np.asarray(value), np.asarray(error), gradient

    return call


def distribution(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    policy = plr.PlackettLuce(scores, offsets, n_threads=n_threads)
    other = plr.PlackettLuce(scores / 2, offsets, n_threads=n_threads)
    cutoff = rank_weights.shape[-1]
    entropy = policy.entropy(cutoff, n_samples=20, rng=5)
    divergence = policy.kl(other, cutoff, n_samples=20, rng=5)
    return policy.mode(cutoff), entropy.value, entropy.standard_error, divergence.value, divergence.standard_error


def disparities(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    exposure = plr.exposure(scores, rank_weights, offsets=offsets, n_threads=n_threads)
    merit = np.abs(relevance)
    return tuple(
        part for kind in fairness.KINDS for part in fairness.disparity(exposure, merit, offsets=offsets, kind=kind)
    )


OTHERS = {
    "exposure": lambda scores, relevance, rank_weights, first_query, **batch: plr.exposure(
        scores, rank_weights, **batch
    ),
    "exposure_vjp": at_exponent,
    "disparity": disparities,
    "PlackettLuce": distribution,
    "ips": logged(off_policy.ips),
    "ips of sets": logged(partial(off_policy.ips, ordered=False)),
    "doubly_robust": logged(off_policy.doubly_robust, "relevance", "rank_weights"),
    "rips": logged(off_policy.rips, per_rank=True),
    "iips": logged(off_policy.iips, per_rank=True),
    "pseudo_inverse": logged(off_policy.pseudo_inverse),
    "item_propensities": item_propensities,
    "ranking_propensities": ranking_propensities,
    "expected_reward reciprocal_rank": rewarded(
        lambda labels, offsets: rewards.reciprocal_rank(labels, offsets=offsets)
    ),
    "expected_reward success": rewarded(lambda labels, offsets: rewards.success(labels, offsets=offsets)),
    "expected_reward err": rewarded(lambda labels, offsets: rewards.err(labels, max_label=4, offsets=offsets)),
    "expected_reward alpha_ndcg": rewarded(
        lambda labels, offsets: rewards.alpha_ndcg((labels[:, np.newaxis] > np.arange(3)) * 1.0, offsets=offsets)
    ),
}  # fmt: skip


def arrays(result):
    return [np.asarray(array) for array in (result if isinstance(result, tuple) else (result,))]
