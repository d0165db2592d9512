"""The estimators of the gradient of the expected metric by name, wherever a user can choose one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from plrank_fast import validation
from plrank_fast._methods.cost_model import choose_method
from plrank_fast.gradients import pl_rank_1, pl_rank_2, pl_rank_3, pl_rank_cmc, pl_rank_exact
from plrank_fast.policy_gradients import placement_policy_gradient, policy_gradient
from plrank_fast.stochastic_rank import stochastic_rank
from plrank_fast.validation import IntArray


@dataclass(frozen=True)
class Method:
    """A function of ``(scores, relevance, rank_weights, offsets=, n_threads=)`` and its properties."""

    function: Callable[..., Any]
    title: str  # in tables and legends
    n_samples: int = 100  # by default; 0 if it does not sample
    has_hessian: bool = False
    is_published: bool = False  # in the experiments of the SIGIR 2022 paper
    color: str = "#999999"  # in pictures; the colour-blind can tell these apart


AUTO, EXACT = "auto", "pl_rank_exact"
ESTIMATORS = {
    EXACT: Method(pl_rank_exact, "exact", n_samples=0, has_hessian=True, color="#111111"),
    "pl_rank_cmc": Method(pl_rank_cmc, "conditional MC", n_samples=1, has_hessian=True, color="#009E73"),
    "pl_rank_3": Method(pl_rank_3, "PL-Rank-3", has_hessian=True, is_published=True, color="#0072B2"),
    "pl_rank_2": Method(pl_rank_2, "PL-Rank-2", is_published=True, color="#E69F00"),
    "pl_rank_1": Method(pl_rank_1, "PL-Rank-1", color="#56B4E9"),
    "stochastic_rank": Method(stochastic_rank, "StochasticRank", is_published=True, color="#D55E00"),
    "policy_gradient": Method(policy_gradient, "policy gradient", color="#CC79A7"),
    "placement_policy_gradient": Method(placement_policy_gradient, "placement PG", color="#8C6BB1"),
}
SHORT_NAMES = {"exact": EXACT, "cmc": "pl_rank_cmc"}
METHODS: tuple[str, ...] = get_args(validation.Method)


def resolve_method(method: str, offsets: IntArray, cutoff: int) -> validation.Method:
    """Return the name of the estimator ``method``; the cost model chooses "auto" for a batch with these offsets."""
    validation.choice(method, "method", METHODS)
    name: Any = choose_method(offsets, cutoff) if method == AUTO else SHORT_NAMES.get(method, method)
    return name
