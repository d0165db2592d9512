"""The gradients to compare, with their calls, reference implementations in NumPy, and titles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from plrank_fast import reference
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.training.paper_published import MINUTES, SAMPLES
from plrank_fast.training.workloads import Workload
from plrank_fast.validation import FloatArray


@dataclass(frozen=True)
class Method:
    """An estimator with its number of samples; 0 for the one that does not sample."""

    estimator: str
    n_samples: int

    @property
    def title(self) -> str:
        """Title in tables and legends."""
        return ESTIMATORS[self.estimator].title + (f", N = {self.n_samples}" if self.n_samples else "")

    def published_minutes(self, shape: str) -> tuple[float, ...]:
        """Return the minutes per epoch that the paper prints for a set, none for a method that it does not have."""
        return MINUTES.get((shape, self.estimator, self.n_samples), ())

    def call(self, workload: Workload, cutoff: int, seed: int) -> Callable[[], FloatArray]:
        """Return a function that computes the gradient of the queries, on one thread."""
        options = {"n_samples": self.n_samples, "rng": seed} if self.n_samples else {}
        function = partial(ESTIMATORS[self.estimator].function, offsets=workload.offsets, n_threads=1, **options)
        return partial(function, workload.scores, workload.relevance, workload.rank_weights(cutoff))

    def numpy_call(self, workload: Workload, cutoff: int, seed: int) -> Callable[[], FloatArray]:
        """Return a function that computes the gradient of the typical query in NumPy, sampling included."""
        docs, weights, rng = workload.typical, workload.rank_weights(cutoff), np.random.default_rng(seed)
        scores, relevance = workload.scores[docs], workload.relevance[docs]

        def call() -> FloatArray:
            if self.estimator == "stochastic_rank":
                noisy = scores + rng.gumbel(size=(self.n_samples, scores.size))
                return reference.stochastic_rank(scores, relevance, weights, noisy, reference.gumbel_density)
            rankings = reference.sample_rankings(scores, self.n_samples, weights.size, rng)
            result: FloatArray = getattr(reference, self.estimator)(scores, relevance, weights, rankings)
            return result

        return call


SLOWEST_FIRST = tuple(reversed(ESTIMATORS.items()))
PUBLISHED = tuple(Method(name, n) for name, method in SLOWEST_FIRST if method.is_published for n in SAMPLES)
BEYOND = tuple(Method(name, method.n_samples) for name, method in SLOWEST_FIRST if method.n_samples < 2)
ALL = (*PUBLISHED, *BEYOND)


def cell_of(method: Method) -> dict[str, Any]:
    """Describe a method by entries of a cell, which `method_of` reads."""
    return {"method": method.estimator, "samples": method.n_samples}


def method_of(cell: dict[str, Any]) -> Method:
    """Read the method of a cell."""
    return Method(cell["method"], cell["samples"])
