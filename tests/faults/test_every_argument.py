"""Every argument of every public function, replaced in turn by values that nobody means.

A new public function is found here by itself; what its new required arguments are given joins ``GIVEN``.
"""

import importlib
import inspect
import re
from functools import partial
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import boosting, fairness, losses, metrics, off_policy
from public_calls import arrays

SCORES, LABELS = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, 2.0])
RANKINGS = np.array([[0, 1, 2], [2, 0, 1]])


class RequiresGradient:
    """A tensor that takes part in a computation: reading it as an array is refused."""

    requires_grad = True

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


HOSTILE = {
    "a huge int": 10**400,
    "an int that Python does not print": 10**5000,
    "-1": -1,
    "-1.0": -1.0,
    "0": 0,
    "True": True,
    "complex": np.complex128(1),
    "an array": np.array([1.0, 2.0]),
    "records": np.zeros(3, dtype=[("a", "i8")]),
    "no records": np.zeros(0, dtype=[("a", "i8")]),
    "a number that requires a gradient": type("Scalar", (RequiresGradient,), {"ndim": 0, "__float__": lambda x: 0.5})(),
    "nan": float("nan"),
    "inf": float("inf"),
    "str": "0.5",
    "a long str": "0" * 10_000,
    "None": None,
    "list": [],
    "object": object(),
    "module": np.random,
    "RandomState": np.random.RandomState(0),
}
HOSTILE_ARRAYS = {  # of the array that the argument may be
    "complex numbers": lambda array: array.astype(complex),
    "objects": lambda array: np.full(array.shape, object()),
    "words": lambda array: np.full(array.shape, "a").tolist(),
    "dates": lambda array: np.zeros(array.shape, dtype="M8[s]"),
    "masked": lambda array: np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 0),
    "a tensor that requires a gradient": lambda array: RequiresGradient(),
    "ragged": lambda array: [[1.0], [1.0, 2.0]],
    "another axis": lambda array: array[..., np.newaxis, np.newaxis],
    "no axis": lambda array: array.ravel()[0],
    "nan at the end": lambda array: np.append(array.ravel()[:-1], np.nan).reshape(array.shape),
    "inf at the end": lambda array: np.append(array.ravel()[:-1], np.inf).reshape(array.shape),
    "-1 at the end": lambda array: np.append(array.ravel()[:-1], -1).reshape(array.shape).astype(array.dtype),
    "-inf at the end": lambda array: np.append(array.ravel()[:-1], -np.inf).reshape(array.shape),
    "beyond the largest double": lambda array: np.full(array.shape, np.finfo(np.longdouble).max, dtype=np.longdouble),
}
HOSTILE_OFFSETS = {  # of three documents
    "falling": [0, 2, 1, 3], "negative": [-1, 3], "late": [1, 3], "too few": [0, 2], "too many": [0, 4],
    "floats": [0.0, 3.0], "a row": [[0, 3]], "empty": [], "truths": [True, False], "digits": ["0", "3"],
    "a wrap of 64 bits": np.array([0, 2**64 - 1, 3], dtype=np.uint64), "an int beyond 64 bits": [0, 2**70, 3],
}  # fmt: skip
HOSTILE_RANKINGS = {  # at ranks above the cutoff
    "negative": [[0, -3, 1]], "-2 is no end": [[0, -2, -1]], "beyond": [[0, 1, 2], [0, 5, 1]], "twice": [[0, 0, 1]],
    "after the end": [[-1, 0, 2]], "one ranking": [0, 1, 2], "four axes": np.zeros((2, 2, 1, 3), dtype=int),
    "none": np.zeros((0, 3), dtype=int), "floats": [[0.0, 1.0, 2.0]], "truths": [[True, False, True]],
    "a wrap of 64 bits": np.array([[0, 2**64 - 1, 1]], dtype=np.uint64),
    "a wrap of 32 bits": np.array([[0, 2**32, 1]], dtype=np.uint64),
}  # fmt: skip
HOSTILE_TOLERANCES = {"below rounding errors": 9.9e-11, "tiny": 1e-290, "1": 1.0, "huge": 1e300}
GIVEN = {
    "scores": SCORES, "log_scores": SCORES, "logging_scores": SCORES, "relevance": LABELS / 2, "labels": LABELS,
    "merit": LABELS, "exposure": LABELS, "cotangent": LABELS, "subtopics": LABELS[:, np.newaxis],
    "rank_weights": np.array([1.0, 0.5]), "examination": np.array([1.0, 0.5, 0.4]), "rankings": RANKINGS,
    "buckets": np.array([0, 1, 1]), "items": np.array([0, 1, 2]), "vector": SCORES, "target": np.full(3, 0.5), "k": 2,
    "rewards": np.array([1.0, 0.0]), "rank_rewards": RANKINGS * 1.0, "clicks": (RANKINGS < 2) * 1,
    "stop_probability": LABELS / 2, "noise": np.array([0.1, 0.2, 0.0]),
    "propensities": np.array([0.5, 0.25, 1.0]), "importance_weights": np.array([1.0, 2.0]), "qid": np.array([7, 7, 8]),
    "sizes": np.array([1, 2]),
    "weights": np.ones(1), "offsets": np.array([0, 3]), "cutoff": 2, "n_samples": 5, "n_chunks": 1,
    "reward": lambda rankings: np.ones(rankings.shape[:-1]), "profile": "mslr", "n_queries": 2, "rng": 1,
    "first_query": 1,
    "run": {"0": {"0": 0.5, "1": 1.0, "2": 0.0}}, "qrels": {"0": {"0": 1, "1": 0, "2": 2}},
}  # fmt: skip
METRICS = [name for name in plr.__all__ if name in vars(metrics) and name != "ideal_dcg"]  # of the ranking by score
LOG_PROBABILITIES = "ranking_log_prob", "ranking_log_prob_vjp", "bucket_log_prob", "bucket_log_prob_vjp"
ARRAYS = {name for name, value in GIVEN.items() if isinstance(value, np.ndarray)} | {
    "out", "noise", "predicted", "sampled_rankings", "sampled_inv_rankings", "gumbel_scores",
}  # fmt: skip
MODULES = ("losses", "fairness", "rewards", "off_policy", "interchange", "chunks", "compat.sigir22", "data")
OF_SCORES = {  # arguments with as many entries as scores or rankings have
    "relevance", "labels", "merit", "cotangent", "vector", "stop_probability", "buckets", "logging_scores", "rewards",
    "rank_rewards",
}  # fmt: skip
NO_NUMBERS = {"evaluate_loss", "concatenate", "load_letor", "load_model", "normalize_queries", "reseed", "train"}
ELEMENTWISE = {"gains.labels", "effective_sample_size.importance_weights"}
MAY_BE_0 = {"alpha", "baseline", "cutoff", "empty", "eta", "k", "missing", "persistence", "rng", "round_number"}
MEANT = {  # arguments that may have a value, by what is odd about it
    "a huge int": {"rng", "n_threads"},
    "an int that Python does not print": {"rng", "n_threads"},
    "-1": {"baseline", "empty", "missing", "n_threads"},
    "-1.0": {"baseline", "empty", "missing"},
    "0": {*MAY_BE_0, *ELEMENTWISE, "query_streams.first_query", "fit_strengths.ridge", "fit_strengths.reference"},
    "beyond": {"fit_strengths.rankings"},
    "True": {*ELEMENTWISE, "fit_strengths.reference"},
    "nan": {"empty"},
    "None": {"offsets", "cutoff", "stop_probability", "query_streams.rng"},
    "list": {*ARRAYS, "align_run.run", "align_run.qrels"},
    "an array": {*ARRAYS, "fit_strengths.weights"},
    "complex": {"fit_strengths.reference"},  # equal to the item 1
    "records": {"fit_strengths.names"},
    "no records": {"offsets_from_qid.qid"},
    "words": {"qid"},
    "str": {"RankingMetric.name"},
    "a long str": {"RankingMetric.name"},
    "another axis": ELEMENTWISE,
    "no axis": ELEMENTWISE,
    "-1 at the end": {
        *("scores", "log_scores", "logging_scores", "relevance", "labels", "rank_weights", "rewards", "rank_rewards"),
        *("cotangent", "vector", "exposure", "buckets", "qid", "rankings"),
    },
    "-inf at the end": {f"{each}.scores" for each in ("sample_rankings", "to_run", *METRICS, *LOG_PROBABILITIES)},
    "one entry fewer": {"ranking_log_prob_vjp.cotangent"},  # there are two rankings of three documents
    "too few": {"from_run.offsets", "position_bias_from_clicks.offsets", "query_chunks.offsets"},
    "too many": {"from_run.offsets", "position_bias_from_clicks.offsets", "query_chunks.offsets"},
}
SAMPLED = {  # what the option chooses looks at the other options too
    plr.expected_metric: {"method": "sample"},
    plr.value_and_gradient: {"stop_probability": LABELS / 2},
    fairness.disparity_gradient: {"method": "pl_rank_3"},
    losses.list_mle: {"ties": "random"},
    off_policy.ips: {"logging_scores": SCORES},
    off_policy.rips: {"logging_scores": SCORES},
    off_policy.iips: {"logging_scores": SCORES},
    off_policy.doubly_robust: {"logging_scores": SCORES},
    plr.policy_gradient: {"relevance": LABELS, "rank_weights": GIVEN["rank_weights"]},
    plr.ranking_log_prob_vjp: {"cotangent": LABELS[:2]},
    plr.bucket_log_prob_vjp: {"cotangent": LABELS[:1]},
    plr.fit_strengths: {"ridge": 0.1},
}  # fmt: skip


def public_functions():
    """Every public function, and methods of public objects, by name."""
    for module in (plr, *(importlib.import_module(f"plrank_fast.{name}") for name in MODULES)):
        for name in sorted(set(dir(module)) - NO_NUMBERS):  # not getmembers, which imports PyTorch for `train`
            function = getattr(module, name)
            if name[0] != "_" and inspect.isroutine(function) and function.__module__.startswith(module.__name__):
                yield f"{module.__name__}.{name}", partial(function, **SAMPLED.get(function, {}))
    reward = {"reward": GIVEN["reward"], "baseline": True}
    yield "policy_gradient of rewards", partial(plr.policy_gradient, **reward)
    policy = plr.PlackettLuce(SCORES)
    for name in ("sample", "mode", "rank_probabilities", "exposure", "entropy"):
        yield f"PlackettLuce.{name}", getattr(policy, name)
    yield "PlackettLuce.kl", partial(policy.kl, policy)
    yield "PlackettLuce.log_prob", partial(policy.log_prob, GIVEN["rankings"])
    yield "OffPolicyEstimate.interval", off_policy.ips(SCORES, RANKINGS, [1, 0], logging_scores=SCORES).interval
    yield from (("BoostingObjective", boosting.BoostingObjective), ("RankingMetric", boosting.RankingMetric))
    yield "BoostingObjective.derivatives", boosting.BoostingObjective().derivatives
    yield "RankingMetric.evaluate", boosting.RankingMetric().evaluate


def parameters_of(function):
    """Parameters that have a name, by it."""
    named = inspect.signature(function).parameters.items()
    return {name: each for name, each in named if each.kind != each.VAR_KEYWORD}


def plain_arguments(where, function):
    """Arguments that are required, and sizes that would be large by default."""
    needed = {"n_samples"} if "sigir22" in where else {"n_queries"}
    parameters = parameters_of(function).items()
    return {name: GIVEN[name] for name, each in parameters if each.default is each.empty or name in needed}


def hostile_values(where, name, parameters):
    """Values that an argument must not have, each with what is odd about it."""
    values, default = dict(HOSTILE), parameters[name].default
    if "scores" in parameters and name in OF_SCORES:
        values["one entry fewer"] = GIVEN[name][:-1]
    if isinstance(GIVEN.get(name), np.ndarray):
        values |= {kind: make(GIVEN[name]) for kind, make in HOSTILE_ARRAYS.items()}
    values |= {"offsets": HOSTILE_OFFSETS, "rankings": HOSTILE_RANKINGS, "rtol": HOSTILE_TOLERANCES}.get(name, {})
    for kind, value in values.items():
        is_meant = {name, f"{where.rpartition('.')[2]}.{name}"} & MEANT.get(kind, set())
        if not is_meant and value is not default and not (value is True and default is False):
            yield kind, value


@pytest.mark.parametrize(("where", "function"), [pytest.param(*each, id=each[0]) for each in public_functions()])
def test_what_nobody_means_is_refused_by_name(where, function):
    """It is refused before anything is written to ``out`` or drawn from ``rng``; what is taken is not written to.

    Mutants: `real` without its OverflowError; `shown` that prints any int, or a whole str; ``empty`` not checked;
    labels of a data set that an objective knows read by NumPy alone; weights, propensities, clicks or merit of any
    sign; `relative_tolerance` that takes any positive number.
    """
    parameters = parameters_of(function)
    parameters.pop("sampled_inv_rankings", None)  # neither needed nor looked at
    plain = plain_arguments(where, function)
    before = {name: value.copy() for name, value in plain.items() if isinstance(value, np.ndarray)}
    result = function(**plain)
    for name, value in before.items():
        np.testing.assert_array_equal(plain[name], value)
    outs = [np.full_like(each, 7.0) for each in arrays(result)] if "out" in parameters else []
    if outs:
        plain["out"] = tuple(outs) if isinstance(result, tuple) else outs[0]
    generator = np.random.default_rng(0)
    if "rng" in parameters:
        plain["rng"] = generator
    wrong = []
    for name in parameters:
        for kind, value in hostile_values(where, name, parameters):
            state = generator.bit_generator.state
            try:
                function(**(plain | {name: value}))
                wrong.append((name, kind, "is taken"))
            except (TypeError, ValueError) as error:
                named = re.search(rf"\b{name.replace('sampled_', '(sampled_)?')}\b", str(error))
                written = any((out != 7.0).any() for out in outs) or generator.bit_generator.state != state
                if not named or len(str(error)) > 1000 or written:
                    wrong.append((name, kind, str(error)))
    assert not wrong


def choices(kind):
    """Names of a type that has some, one that may be None included."""
    return (
        get_args(kind) if get_origin(kind) is Literal else [name for each in get_args(kind) for name in choices(each)]
    )


@pytest.mark.parametrize(("where", "function"), [pytest.param(*each, id=each[0]) for each in public_functions()])
def test_types_name_what_is_accepted(where, function):
    """And a refusal lists the same names. Mutants: a name more, or one less, in a type; ``sampler: str``."""
    of = getattr(function, "func", function)
    plain, parameters = plain_arguments(where, function), parameters_of(function)
    for argument, kind in get_type_hints(inspect.unwrap(of.__init__ if inspect.isclass(of) else of)).items():
        names = choices(kind) if argument in parameters else []
        assert argument not in parameters or kind is not str
        for name in [*names, "none of them"] if names else []:
            try:
                function(**(plain | {argument: name}))
                refusal = ""
            except ValueError as error:  # other arguments may not fit either
                refusal = str(error)
            listed = re.findall(r"'(\w+)'", refusal.partition("must be one of")[2].partition(", got")[0])
            assert sorted(listed) == (sorted(names) if name == "none of them" else [])
