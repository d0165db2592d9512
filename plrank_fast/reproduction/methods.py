"""The gradients to compare, with their calls, reference implementations in NumPy, and titles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plrank_fast import reference
from plrank_fast._shared.methods import ESTIMATORS
from plrank_fast.reproduction.published import MINUTES, SAMPLES
from plrank_fast.validation import FloatArray, IntArray


@dataclass(frozen=True)
class Method:
    """An estimator with its number of samples; 0 for the one that does not sample."""

    estimator: str
    n_samples: int

    @property
    def title(self) -> str:
        """Title in tables and legends."""
        return ESTIMATORS[self.estimator].title + (f", N = {self.n_samples}" if self.n_samples else "")

    @property
    def has_twin(self) -> bool:
        """Whether the published experiments have the method, so that NumPy is timed beside it."""
        return ESTIMATORS[self.estimator].is_published

    def published_minutes(self, shape: str) -> tuple[float, ...]:
        """Return the minutes per epoch that the paper prints for a set, none for a method that it does not have."""
        return MINUTES.get((shape, self.estimator, self.n_samples), ())

    def gradient(
        self, scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, offsets: IntArray, seed: int
    ) -> FloatArray:
        """Compute the gradient of a batch, on one thread."""
        options: dict[str, Any] = {"n_samples": self.n_samples, "rng": seed} if self.n_samples else {}
        result: FloatArray = ESTIMATORS[self.estimator].function(
            scores, relevance, rank_weights, offsets=offsets, n_threads=1, **options
        )
        return result

    def twin(
        self, scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Compute the gradient of one query in NumPy, sampling included."""
        if self.estimator == "stochastic_rank":
            noisy = scores + rng.gumbel(size=(self.n_samples, scores.size))
            return reference.stochastic_rank(scores, relevance, rank_weights, noisy, reference.gumbel_density)
        rankings = reference.sample_rankings(scores, self.n_samples, rank_weights.size, rng)
        result: FloatArray = getattr(reference, self.estimator)(scores, relevance, rank_weights, rankings)
        return result


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
