"""Every public function of a batch gives each query the bits that it has alone, whatever stands beside it."""

import inspect
import tracemalloc

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import fairness, losses
from plrank_fast._shared.methods import ESTIMATORS

RNG = np.random.default_rng(5)
LENGTHS = np.array([3, 0, 1, 40, 2, 7, 0, 0, 25, 130, 1, 5, 12, 0, 64, 9, 300, 2, 33, 0])
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
N_DOCS = int(OFFSETS[-1])
WEIGHTS = plr.dcg_weights(10)
LABELS = RNG.choice([0.0, 0.0, 0.0, 1.0, 2.0, 4.0], size=N_DOCS)

# of each document, by the name of the argument; of each query and rank
SPREAD = {
    "scores": RNG.normal(size=N_DOCS),
    "relevance": RNG.normal(size=N_DOCS),
    "labels": LABELS,
    "merit": RNG.choice([0.0, 1.0, 3.0], size=N_DOCS),
    "exposure": RNG.uniform(size=N_DOCS),
    "cotangent": RNG.normal(size=N_DOCS),
    "rank_weights": WEIGHTS,
    "cutoff": 10,
}
PEAKED = {**SPREAD, "scores": 8.0 * SPREAD["scores"], "rank_weights": RNG.normal(size=(LENGTHS.size, 40)), "cutoff": 40}
# one query far from all the others, in what a common plan or a common scale would follow
FAR = {name: np.array(values, copy=True) for name, values in SPREAD.items()}
far = slice(OFFSETS[8], OFFSETS[9])
FAR["scores"][far] *= 1e307
FAR["relevance"][far] *= 1e55
FAR["cotangent"][far] *= 1e-55
FAR["exposure"][far] *= 1e-55
FAR["cutoff"] = 10
SETTINGS = {"spread": SPREAD, "peaked": PEAKED, "far": FAR}

SAMPLED = {"n_samples": 20, "rng": 3}
EXPOSURES_METHODS = [{"method": name, **SAMPLED} for name in ESTIMATORS]
CASES = {
    plr.pl_rank_1: [SAMPLED],
    plr.pl_rank_2: [SAMPLED],
    plr.pl_rank_3: [SAMPLED, {**SAMPLED, "hessian": True}],
    plr.pl_rank_cmc: [SAMPLED, {**SAMPLED, "hessian": True}],
    plr.policy_gradient: [
        {**SAMPLED, "cutoff": None},
        {**SAMPLED, "cutoff": None, "baseline": True},
    ],  # with reward only
    plr.placement_policy_gradient: [SAMPLED, {**SAMPLED, "baseline": True}],
    plr.stochastic_rank: [SAMPLED, {**SAMPLED, "noise": "normal", "sigma": 0.5}],
    plr.pl_rank_exact: [{}, {"hessian": True}, {"noise": "normal"}, {"sigma": 0.05}, {"sigma": 1e-3, "hessian": True}],
    plr.expected_metric: [{}, {"noise": "normal"}, {"sigma": 0.05}, {"method": "sample", **SAMPLED}],
    plr.value_and_gradient: [{"method": "exact"}, {**SAMPLED, "method": "pl_rank_3"}],
    plr.rank_probabilities: [{}],
    plr.exposure: [{}],
    plr.exposure_vjp: [{}],
    plr.sample_rankings: [SAMPLED, *({**SAMPLED, "sampler": name} for name in ("introselect", "network", "threshold"))],
    plr.dcg: [{}, {"ties": "average"}, {"rank_weights": None, "cutoff": 3}],
    plr.ndcg: [{"relevance": LABELS}, {"relevance": LABELS, "ties": "average", "rank_weights": None}],
    plr.precision: [{}],
    plr.recall: [{}],
    plr.average_precision: [{}],
    plr.reciprocal_rank: [{}],
    plr.success: [{"cutoff": 2}],
    plr.err: [{"max_label": 4}],
    plr.rbp: [{}],
    plr.average_relevance_position: [{"relevance": LABELS}],
    fairness.expected_exposure: [{}, {"method": "sample", **SAMPLED}],
    fairness.disparity: [{"kind": kind} for kind in fairness.KINDS],
    fairness.disparity_gradient: [{"kind": kind, **how} for kind in fairness.KINDS for how in EXPOSURES_METHODS],
    losses.pointwise: [{}, {"kind": "logistic", "labels": LABELS / 4}],
    losses.softmax_cross_entropy: [{}],
    losses.list_mle: [{}, {"cutoff": None}, {"ties": "random", "rng": 3}],
    losses.pairwise_logistic: [{}],
    losses.lambda_rank: [{}, {"truncation": "pairs"}],
    losses.lambda_loss: [{}],
    losses.approx_ndcg: [{}],
    losses.soft_rank: [{}],
}
# these take rankings or buckets of the batch: test_sampling.py, test_rewards.py, test_bucket_order.py
OTHERWISE_TESTED = {plr.ranking_log_prob, plr.ranking_log_prob_vjp, plr.bucket_log_prob, plr.bucket_log_prob_vjp}


def public_batch_functions():
    for module in (plr, losses, fairness):
        for name in getattr(module, "__all__", vars(module)):
            function = getattr(module, name)
            if not inspect.isfunction(function) or function in OTHERWISE_TESTED or name.startswith("_"):
                continue
            if function.__module__.startswith("plrank_fast") and "offsets" in inspect.signature(function).parameters:
                yield function


def arguments_of(function, options, values, query=None):
    """Keyword arguments for the batch, or for one query of it."""
    parameters = inspect.signature(function).parameters
    arguments = {name: values[name] for name in values if name in parameters}
    arguments |= {name: value for name, value in options.items() if name in parameters}
    if query is None:
        return {**arguments, "offsets": OFFSETS}
    part = slice(OFFSETS[query], OFFSETS[query + 1])
    for name, value in arguments.items():
        if np.ndim(value) and np.shape(value)[0] == N_DOCS:
            arguments[name] = value[part]
        elif np.ndim(value) == 2:
            arguments[name] = value[query]
    if "first_query" in parameters:
        arguments["first_query"] = query
    return {**arguments, "offsets": [0, int(LENGTHS[query])]}


def pieces(result, query=None):
    """Results as a list of arrays, cut to what belongs to ``query``."""
    parts = []
    for array in result if isinstance(result, tuple) else (result,):
        if query is None:
            parts.append(array)
        elif array.shape[0] == N_DOCS:
            parts.append(array[OFFSETS[query] : OFFSETS[query + 1]])
        else:
            parts.append(array[query : query + 1])
    return parts


def test_no_function_is_forgotten():
    functions = set(public_batch_functions())
    assert functions == set(CASES)
    assert len(functions) > 30


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("function", "options"),
    [(function, options) for function, cases in CASES.items() for options in cases],
    ids=lambda value: (
        getattr(value, "__name__", None)
        or "-".join(f"{k}={v}" for k, v in value.items() if np.ndim(v) == 0 and k not in SAMPLED)
    ),
)
def test_batch_is_loop(function, options, setting):
    """Mutants: exposure by a product of matrices; rank probabilities for as many columns as the longest query has (the
    bits of a shorter one must not follow); gaps of scores cut in all queries because one overflows."""
    values = SETTINGS[setting]
    if function.__module__ == losses.__name__:  # some of which square them
        values = {**values, "scores": np.clip(values["scores"], -1e140, 1e140)}
    whole = function(**arguments_of(function, options, values))
    for query in range(LENGTHS.size):
        alone = function(**arguments_of(function, options, values, query))
        for batch, single in zip(pieces(whole, query), pieces(alone), strict=True):
            if function is plr.sample_rankings:
                assert (batch[..., single.shape[-1] :] == -1).all()
                batch = batch[..., : single.shape[-1]]
            np.testing.assert_array_equal(batch, single, err_msg=f"query {query}, {LENGTHS[query]} documents")


@pytest.mark.parametrize("function", [f for f in CASES if "rank_weights" in inspect.signature(f).parameters])
def test_weights_of_ranks_that_no_query_has(function):
    """A million ranks for lists of 1 and 3: no bit depends on them, and beyond a copy nothing of their size is made.

    Mutant: K not clamped to the longest query (documents by ranks are then four times the weights)."""
    weights = np.concatenate([[1.0, 0.5, 0.25], np.full(10**6, 3.0)])
    values = {name: np.asarray(SPREAD[name])[:4] for name in SPREAD if np.ndim(SPREAD[name]) and name != "rank_weights"}
    options = {name: value[:4] if np.ndim(value) else value for name, value in CASES[function][0].items()}
    parameters = inspect.signature(function).parameters

    def call(rank_weights):
        arguments = {name: value for name, value in {**values, **options}.items() if name in parameters}
        return function(**{**arguments, "rank_weights": rank_weights, "offsets": [0, 1, 4]})

    short = pieces(call(weights[:3]))
    tracemalloc.start()
    try:
        long = pieces(call(weights))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    for one, other in zip(short, long, strict=True):
        np.testing.assert_array_equal(one, other)
    assert peak < 1.5 * weights.nbytes
