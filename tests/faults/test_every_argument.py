"""Every argument of every public function, replaced in turn by values that nobody means.

A new public function is found here by itself; what its new required arguments are given joins ``GIVEN``.
"""

import importlib.util
import inspect
import re
from functools import partial

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import boosting, fairness, losses, off_policy

SCORES, LABELS = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, 2.0])
RANKINGS = np.array([[0, 1, 2], [2, 0, 1]])
HOSTILE = {
    "a huge int": 10**400,
    "minus a huge int": -(10**400),
    "an int that Python does not print": 10**5000,
    "complex": np.complex128(1),
    "an array": np.array([1.0, 2.0]),
    "nan": float("nan"),
    "inf": float("inf"),
    "str": "0.5",
    "a long str": "0" * 10_000,
    "None": None,
    "list": [],
    "object": object(),
}
GIVEN = {
    "scores": SCORES, "log_scores": SCORES, "logging_scores": SCORES, "relevance": LABELS / 2, "labels": LABELS,
    "merit": LABELS, "exposure": LABELS, "cotangent": LABELS, "subtopics": LABELS[:, np.newaxis],
    "rank_weights": np.array([1.0, 0.5]), "examination": np.array([1.0, 0.5, 0.4]), "rankings": RANKINGS,
    "buckets": np.array([0, 1, 1]), "items": np.array([0, 1, 2]), "vector": SCORES, "target": np.full(3, 0.5), "k": 2,
    "rewards": np.array([1.0, 0.0]), "rank_rewards": RANKINGS * 1.0, "clicks": RANKINGS > 0,
    "propensities": np.array([0.5, 0.25, 1.0]), "importance_weights": np.array([1.0, 2.0]), "qid": np.array([7, 7, 8]),
    "sizes": np.array([1, 2]), "offsets": np.array([0, 3]), "cutoff": 2, "n_samples": 5, "n_chunks": 1,
    "reward": lambda rankings: np.ones(rankings.shape[:-1]), "profile": "mslr",
    "run": {"0": {"0": 0.5, "1": 1.0, "2": 0.0}},
}  # fmt: skip
ARRAYS = {name for name, value in GIVEN.items() if isinstance(value, np.ndarray)} | {
    "out", "noise", "predicted", "sampled_rankings", "sampled_inv_rankings", "sampled_values",
}  # fmt: skip
MODULES = ("losses", "fairness", "rewards", "off_policy", "interchange", "chunks", "compat.sigir22", "data")
NO_NUMBERS = {"evaluate_loss", "concatenate", "load_letor", "load_model", "normalize_queries", "reseed"}
MEANT = {
    ("rng", "a huge int"), ("rng", "an int that Python does not print"), ("empty", "nan"), ("offsets", "None"),
}  # fmt: skip
SAMPLED = {  # what the option chooses looks at the other options too
    plr.expected_metric: {"method": "sample"},
    fairness.expected_exposure: {"method": "sample"},
    fairness.disparity_gradient: {"method": "pl_rank_3"},
    losses.list_mle: {"ties": "random"},
    off_policy.ips: {"logging_scores": SCORES},
    off_policy.doubly_robust: {"logging_scores": SCORES},
    plr.policy_gradient: {"relevance": LABELS, "rank_weights": GIVEN["rank_weights"]},
    plr.ranking_log_prob_vjp: {"cotangent": LABELS[:2]},
    plr.bucket_log_prob_vjp: {"cotangent": LABELS[:1]},
    plr.fit_strengths: {"ridge": 0.1},
}  # fmt: skip


def public_functions():
    """Every public function, and methods of public objects, by name."""
    for module in (plr, *(importlib.import_module(f"plrank_fast.{name}") for name in MODULES)):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name[0] != "_" and name not in NO_NUMBERS and function.__module__.startswith(module.__name__):
                yield f"{module.__name__}.{name}", partial(function, **SAMPLED.get(function, {}))
    reward = {"reward": GIVEN["reward"], "baseline": True}
    yield "policy_gradient of rewards", partial(plr.policy_gradient, **reward)
    policy = plr.PlackettLuce(SCORES)
    for name in ("sample", "log_prob", "mode", "rank_probabilities", "exposure", "entropy"):
        yield f"PlackettLuce.{name}", getattr(policy, name)
    yield "OffPolicyEstimate.interval", off_policy.ips(SCORES, RANKINGS, [1, 0], logging_scores=SCORES).interval
    yield from (("BoostingObjective", boosting.BoostingObjective), ("RankingMetric", boosting.RankingMetric))


def is_meant(name, default, kind, value):
    """Whether the argument may have this value."""
    return (
        value is default
        or (name in ARRAYS and isinstance(value, (list, np.ndarray)))
        or name == "sampled_inv_rankings"  # which is not needed, nor looked at
        or (name == "n_threads" and isinstance(value, int))
        or (name, kind) in MEANT
    )


def parameters_of(function):
    """Parameters that have a name, by it."""
    named = inspect.signature(function).parameters.items()
    return {name: each for name, each in named if each.kind != each.VAR_KEYWORD}


@pytest.mark.parametrize(("where", "function"), [pytest.param(*each, id=each[0]) for each in public_functions()])
def test_what_nobody_means_is_refused_by_name(where, function):
    """Mutants: `real` without its OverflowError; `shown` that prints any int, or a whole str; ``empty`` not checked."""
    parameters = parameters_of(function).items()
    needed = {"n_samples"} if "sigir22" in where else set()
    plain = {name: GIVEN[name] for name, each in parameters if each.default is each.empty or name in needed}
    wrong = []
    for name, each in parameters:
        for kind, value in HOSTILE.items():
            if is_meant(name, each.default, kind, value):
                continue
            try:
                function(**(plain | {name: value}))
                wrong.append((name, kind, "is taken"))
            except (TypeError, ValueError) as error:
                if not re.search(rf"\b{name}\b", str(error)) or len(str(error)) > 1000:
                    wrong.append((name, kind, str(error)))
    assert not wrong


def with_tolerance():
    yield from (each for each in public_functions() if "rtol" in inspect.signature(each[1]).parameters)
    for name in ("torch", "jax"):
        if importlib.util.find_spec(name):
            adapter = importlib.import_module(f"plrank_fast.{name}")
            scores = adapter.torch.tensor(SCORES) if name == "torch" else SCORES
            yield f"plrank_fast.{name}", partial(adapter.plackett_luce_loss, scores, relevance=LABELS)


@pytest.mark.parametrize("rtol", [1e-290, 9.9e-11, 1.0, 1e300])
@pytest.mark.parametrize(("where", "function"), [pytest.param(*each, id=each[0]) for each in with_tolerance()])
def test_a_tolerance_is_one_that_expectations_can_hold(where, function, rtol):
    """Mutants: `relative_tolerance` that takes any positive number; one adapter that asks for no more than that."""
    plain = {name: GIVEN[name] for name, each in parameters_of(function).items() if each.default is each.empty}
    with pytest.raises(ValueError, match="rtol must be at least 1e-10 and below 1"):
        function(**plain, rtol=rtol)
