"""Every public function that computes with queries, in one table: equal arguments give equal bits.

A call takes scores, relevance, rank weights and the number of the first query, ``offsets`` and ``n_threads``, and makes
the other arguments that its function requires from those. ``BATCHES`` gives each query of a batch the result that it
has alone; ``OTHERS`` are means over the batch, objects, and functions that combine several others.
"""

import inspect
from functools import partial

import numpy as np

import plrank_fast as plr
from plrank_fast import fairness, losses, off_policy, rewards
from plrank_fast._adapters.expected_loss import expected_loss
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.chunks import query_streams

N_SAMPLES = 70  # more than one group of rankings, and more than one block for queries of 33 items or more


def rankings(values, n_samples=N_SAMPLES):
    """Rankings of the streams, for a call over given ones."""
    rng = query_streams(5, values["first_query"])
    offsets = values["offsets"]
    return plr.sample_rankings(values["scores"], n_samples, values["cutoff"], rng=rng, n_threads=1, offsets=offsets)


def few_rankings(values):
    return rankings(values, 3)


def buckets(values):
    """A bucket for each different relevance, the highest first."""
    return np.unique(-values["relevance"], return_inverse=True)[1]


def of_each_ranking(numbers):
    """These numbers for the rankings of each query."""
    return lambda values: numbers if values["offsets"] is None else np.tile(numbers, (len(values["offsets"]) - 1, 1))


def chances_to_stop(values):
    """Some 0, some 1, others between, of labels times any power of two."""
    return np.where(values["labels"] == 0.0, 0.0, np.clip(1.5 - np.frexp(values["labels"])[0], 0.0, 1.0))


def ones_of_queries(values):
    return np.ones(1 if values["offsets"] is None else len(values["offsets"]) - 1)


def not_negative(name):
    return lambda values: values[name] if np.min(values[name], initial=0.0) >= 0.0 else np.abs(values[name])


OF_A_SHARE = {name: not_negative(name) for name in ("relevance", "rank_weights")}
DRAWN = {"n_samples": N_SAMPLES, "rng": 5}
GIVEN = {"rankings": rankings}
SAMPLERS = ("introselect", "network", "slot_table", "threshold", "guide_table")
# Options by function. A function among the options computes the argument from those that all calls have.
CASES = {
    **{each.function: [DRAWN, GIVEN] for each in ESTIMATORS.values() if each.n_samples},
    plr.pl_rank_1: [DRAWN, GIVEN, {**DRAWN, "baseline": True}, {**GIVEN, "baseline": True}],
    plr.pl_rank_3: [
        DRAWN, GIVEN, {**DRAWN, "hessian": True}, {**GIVEN, "hessian": True}, {**DRAWN, "sampler": "introselect"},
    ],
    plr.pl_rank_cmc: [DRAWN, GIVEN, {**DRAWN, "hessian": True}],
    plr.policy_gradient: [
        {**DRAWN, "cutoff": None}, {**DRAWN, "cutoff": None, "baseline": True},
        {**GIVEN, "cutoff": None, "baseline": True},
        {**GIVEN, "cutoff": None, "relevance": None, "rank_weights": None, "baseline": True,
         "rewards": of_each_ranking(np.cos(np.arange(N_SAMPLES))),
         "importance_weights": of_each_ranking(np.exp(np.sin(np.arange(N_SAMPLES))))},
        {**DRAWN, "relevance": None, "rank_weights": None, "baseline": True,
         "reward": lambda values: lambda rankings: (rankings % 3 == 0).sum(axis=-1) ** 2},
    ],
    plr.stochastic_rank: [DRAWN, {**DRAWN, "noise": "normal", "sigma": 0.5}],
    plr.pl_rank_exact: [
        {}, {"hessian": True}, {"noise": "normal"}, {"sigma": 0.05}, {"sigma": 1e-3, "hessian": True},
        {"stop_probability": chances_to_stop, "hessian": True},
        {"stop_probability": chances_to_stop, "noise": "normal"},
    ],
    plr.expected_metric: [
        {}, {"noise": "normal"}, {"sigma": 0.05}, {"stop_probability": chances_to_stop},
        {"method": "sample", **DRAWN}, {"method": "sample", **GIVEN},
    ],
    plr.expected_ap: [{}, {"cutoff": None, "gradient": True}],
    plr.value_and_gradient: [
        {"method": "exact"}, {"stop_probability": chances_to_stop},
        {**DRAWN, "method": "pl_rank_3"}, {**DRAWN, "method": "cmc"},
    ],
    plr.rank_probabilities: [{}],
    plr.exposure: [{}, GIVEN],
    plr.inclusion_probabilities: [{"k": 3}],
    plr.pl_rank_exact_hvp: [{"vector": lambda values: values["relevance"]}],
    plr.sample_rankings: [DRAWN, *({**DRAWN, "sampler": name} for name in SAMPLERS)],
    plr.ranking_log_prob: [{"rankings": few_rankings}],
    plr.ranking_log_prob_vjp: [{**GIVEN, "cotangent": of_each_ranking(np.cos(np.arange(N_SAMPLES)))}],
    plr.bucket_log_prob: [{"buckets": buckets}],
    plr.bucket_log_prob_vjp: [{"buckets": buckets, "hessian": True, "cotangent": ones_of_queries}],
    plr.dcg: [{}, {"ties": "average"}, {"rank_weights": None, "cutoff": 3}],
    plr.ndcg: [{**OF_A_SHARE, "ties": ties} for ties in ("index", "average")],
    plr.ideal_dcg: [OF_A_SHARE],
    plr.precision: [{}],
    plr.recall: [{}],
    plr.ap: [{}],
    plr.mrr: [{}],
    plr.success: [{"cutoff": 2}],
    plr.err: [{"max_label": 4, "labels": lambda values: np.minimum(values["labels"], 4.0)}],
    plr.rbp: [{}],
    plr.average_relevance_position: [{"relevance": lambda values: values["labels"]}],
    fairness.disparity: [{"kind": kind} for kind in ("squared", "absolute")],
    fairness.disparity_gradient: [
        {"kind": "absolute", "method": "exact"}, *({"kind": "squared", "method": name, **DRAWN} for name in ESTIMATORS),
    ],
    losses.pointwise: [{}, {"kind": "logistic", "labels": lambda values: np.minimum(values["labels"] / 4.0, 1.0)}],
    losses.softmax_cross_entropy: [{}],
    losses.list_mle: [{}, {"cutoff": None}, {"ties": "random", "rng": 3}],
    losses.pairwise_logistic: [{}],
    losses.lambda_rank: [{}, {"truncation": "pairs"}],
    losses.lambda_loss: [{}],
    losses.approx_ndcg: [{}],
    losses.soft_rank: [{}, {"cutoff": None}],
}  # fmt: skip


def values_of(scores, relevance, rank_weights, first_query=0, offsets=None):
    """Arguments by name: of each document, of each query and rank, of the batch."""
    labels = np.abs(relevance)
    return {
        "scores": scores, "relevance": relevance, "labels": labels, "merit": labels, "exposure": labels,
        "cotangent": relevance, "rank_weights": rank_weights, "cutoff": np.shape(rank_weights)[-1],
        "first_query": first_query, "offsets": offsets,
    }  # fmt: skip


class Call:
    """A public function with some options, called in one way."""

    def __init__(self, function, options):
        self.function = function
        self.options = options
        self.parameters = inspect.signature(function).parameters
        words = [str(value) if isinstance(value, str) else name
                 for name, value in options.items() if name not in ("n_samples", "rng")]  # fmt: skip
        self.name = " ".join([function.__name__, *words])

    def __call__(self, scores, relevance, rank_weights, first_query=0, *, offsets=None, **more):
        values = values_of(scores, relevance, rank_weights, first_query, offsets)
        arguments = {name: value for name, value in {**values, **more}.items() if name in self.parameters}
        for name, option in {**self.options, **more}.items():
            if name in self.parameters:
                arguments[name] = option(values) if callable(option) else option
        if first_query and "rng" in arguments:
            arguments["rng"] = query_streams(arguments["rng"], first_query)
        result = self.function(**arguments)
        # without the padding of queries shorter than the cutoff
        return result[result >= 0] if self.function is plr.sample_rankings else result


BATCHES = {call.name: call for call in (Call(function, each) for function, cases in CASES.items() for each in cases)}


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


def expected_alpha_ndcg(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    """Value and gradient of a reward of rankings."""
    subtopics = (relevance[:, np.newaxis] > np.arange(3)) * 1.0
    reward = rewards.alpha_ndcg(subtopics, offsets=offsets, n_threads=n_threads)
    drawn = {"n_samples": 20, "rng": 5, "offsets": offsets, "n_threads": n_threads}
    cutoff = rank_weights.shape[-1]
    value, error = rewards.expected_reward(scores, reward, cutoff=cutoff, **drawn)
    gradient = plr.policy_gradient(scores, reward=reward, cutoff=cutoff, baseline=True, **drawn)
    return np.asarray(value), np.asarray(error), gradient


def distribution(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    policy = plr.PlackettLuce(scores, offsets, n_threads=n_threads)
    other = plr.PlackettLuce(scores / 2, offsets, n_threads=n_threads)
    cutoff = rank_weights.shape[-1]
    entropy = policy.entropy(cutoff, n_samples=20, rng=5)
    divergence = policy.kl(other, cutoff, n_samples=20, rng=5)
    drawn = policy.sample(3, cutoff, rng=query_streams(5, first_query))
    of_drawn = drawn, policy.log_prob(drawn), policy.log_prob_vjp(drawn, np.ones(drawn.shape[:-1]))
    marginals = policy.rank_probabilities(cutoff), policy.exposure(rank_weights)
    return *of_drawn, *marginals, policy.mode(cutoff), *entropy, *divergence


def towards_exposures(function):
    """A function that takes exposures, here of other scores."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        target = plr.exposure(-np.round(np.tanh(scores), 3), [1.0, 0.5], **batch)
        given = {"scores": scores} if "scores" in inspect.signature(function).parameters else {}
        return function(**given, target=target, rank_weights=[1.0, 0.5], **batch)

    return call


def fit_strengths(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    """Fit items that are numbered in each ranking: all rankings are about the first of them."""
    offsets = np.array([0, scores.size]) if offsets is None else np.asarray(offsets)
    items = np.arange(scores.size) - np.repeat(offsets[:-1], np.diff(offsets))
    places = np.argsort(np.argsort(scores)) // 2
    return plr.fit_strengths(items, places, offsets, ridge=0.1, n_threads=n_threads).strengths


def normalised_loss(scores, relevance, rank_weights, first_query, *, offsets=None, n_threads=None):
    """The loss of the adapters as its ideal DCG divides it."""
    gradient = np.empty(scores.shape)
    return expected_loss(
        scores, relevance, offsets, None, None, rank_weights, metric="ndcg", cutoff=None, gain="linear",
        max_label=None, reduction="mean", method="exact", seed=None, gradient=gradient, rtol=1e-6,
        n_threads=n_threads, first_query=first_query,
    )[0], gradient  # fmt: skip


OTHERS = {
    "scores_for_exposure": towards_exposures(plr.scores_for_exposure),
    "exposure_matching": towards_exposures(losses.exposure_matching),
    "fit_strengths": fit_strengths,
    "PlackettLuce": distribution,
    "ips": logged(off_policy.ips),
    "ips of sets": logged(partial(off_policy.ips, ordered=False)),
    "doubly_robust": logged(off_policy.doubly_robust, "relevance", "rank_weights"),
    "rips": logged(off_policy.rips, per_rank=True),
    "iips": logged(off_policy.iips, per_rank=True),
    "pseudo_inverse": logged(off_policy.pseudo_inverse),
    "normalised loss": normalised_loss,
    "ranking_propensities": ranking_propensities,
    "expected_reward alpha_ndcg": expected_alpha_ndcg,
}  # fmt: skip


def arrays(result):
    return [np.asarray(array) for array in (result if isinstance(result, tuple) else (result,))]
