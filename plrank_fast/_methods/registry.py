"""The estimators of the gradient of the expected metric by name, wherever a user can choose one.

The names stand in `validation.Method`; the function of a name, and what it takes, are found in the modules below.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from plrank_fast import gradients, policy_gradients, validation
from plrank_fast._methods.cost_model import choose_method
from plrank_fast.stochastic_rank import stochastic_rank
from plrank_fast.validation import IntArray

FUNCTIONS = {**vars(gradients), **vars(policy_gradients), "stochastic_rank": stochastic_rank}


@dataclass(frozen=True)
class Method:
    """A function of ``(scores, relevance, rank_weights, offsets=, n_threads=)`` and its properties."""

    function: Callable[..., Any]
    n_samples: int  # the default; 0 if it does not sample
    has_hessian: bool

    @classmethod
    def of(cls, name: str) -> Method:
        """Find the public function of this name, or of this name after "pl_rank_"."""
        function = FUNCTIONS.get(f"pl_rank_{name}") or FUNCTIONS[name]
        parameters = inspect.signature(function).parameters
        n_samples = parameters.get("n_samples")
        return cls(function, n_samples.default if n_samples else 0, "hessian" in parameters)


AUTO, EXACT = "auto", "exact"
METHODS: tuple[str, ...] = get_args(validation.Method)
ESTIMATORS = {name: Method.of(name) for name in METHODS if name != AUTO}


def resolve_method(method: str, offsets: IntArray, cutoff: int) -> validation.Method:
    """Return the name of the estimator ``method``; the cost model chooses "auto" for a batch with these offsets."""
    validation.choice(method, "method", validation.Method)
    name: Any = choose_method(offsets, cutoff) if method == AUTO else method
    return name
