"""An estimate of a policy's value: its gradient, weights, standard error and interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._shared.once import cached_property
from plrank_fast.off_policy.log import Log
from plrank_fast.validation import FloatArray, RandomState


@dataclass(frozen=True, repr=False)
class OffPolicyEstimate:
    """The estimated value of a policy, its gradient, and measures of its uncertainty; the arrays are read-only.

    Attributes
    ----------
    value : float
        Mean reward of a session under the new policy.
    importance_weights : ndarray, shape (n_sessions,), or (n_sessions, K) for ``rips`` and ``iips``
        w of each session, in the order of the log, after clipping; all 1 for ``pseudo_inverse``.
    numerators, denominators : ndarray, shape (n_sessions, n_terms)
        ``value`` is the sum over the terms of total numerator over total denominator.
    """

    value: float
    importance_weights: FloatArray
    numerators: FloatArray
    denominators: FloatArray
    _compute_gradient: Callable[[], FloatArray] = field(compare=False)
    _compute_size: Callable[[], float] = field(compare=False)

    def __post_init__(self) -> None:
        """Lock the arrays, from which the gradient is computed later."""
        for name in ("importance_weights", "numerators", "denominators"):
            object.__setattr__(self, name, validation.read_only(getattr(self, name)))

    def __repr__(self) -> str:
        """Return a text with the value and its uncertainty."""
        names = "value", "standard_error", "effective_sample_size"
        return f"OffPolicyEstimate({', '.join(f'{name}={getattr(self, name):.4g}' for name in names)})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or pickle, in which nothing is left to compute."""
        gradient, size = self.gradient, self.effective_sample_size
        state = {"_compute_gradient": None, "_compute_size": None, "gradient": gradient, "effective_sample_size": size}
        return self.__dict__ | state

    @cached_property
    def gradient(self) -> FloatArray:
        """Derivative of ``value`` by each of the new scores, (n_docs,), to be ascended; computed at the first use."""
        return self._compute_gradient()

    @cached_property
    def effective_sample_size(self) -> float:
        """Number of sessions of equal weight that would give the same variance; the smallest of all ranks' weights."""
        return self._compute_size()

    @property
    def standard_error(self) -> float:
        """Standard error of the value over sessions; with normalised weights to first order (the delta method)."""
        n_sessions = len(self.numerators)
        if n_sessions < 2:
            return math.inf
        totals = self.denominators.sum(axis=0)
        ratios = ratios_or_zero(self.numerators.sum(axis=0), totals)
        scale = np.divide(n_sessions, totals, out=np.zeros_like(totals), where=totals != 0.0)
        influence = ((self.numerators - ratios * self.denominators) * scale).sum(axis=1)
        largest = float(np.abs(influence).max()) or 1.0  # its square may be beyond the largest double
        return largest * float((influence / largest).std(ddof=1)) / math.sqrt(n_sessions)

    @validation.hinted
    def interval(
        self, confidence: float = 0.95, n_resamples: int = 1000, rng: RandomState = None
    ) -> tuple[float, float]:
        """Compute a percentile bootstrap interval of the value, with sessions drawn with replacement.

        Parameters
        ----------
        confidence : float
            Nominal coverage of the interval, between 0 and 1.
        n_resamples : int
            Number of bootstrap samples.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.

        Returns
        -------
        low, high : float
            Infinite for a single session, which does not tell how sessions vary.
        """
        confidence = validation.real(confidence, "confidence", above=0.0, below=1.0)
        n_resamples = validation.count(n_resamples, "n_resamples", 1)
        generator = np.random.default_rng(validation.seed_sequence(rng))
        n_sessions = len(self.numerators)
        if n_sessions < 2:
            return -math.inf, math.inf
        values = np.empty(n_resamples)
        for i in range(n_resamples):
            times = np.bincount(generator.integers(0, n_sessions, n_sessions), minlength=n_sessions).astype(np.float64)
            totals = (np.einsum("i,ik->k", times, array) for array in (self.numerators, self.denominators))
            values[i] = ratios_or_zero(*totals).sum()
        low, high = np.quantile(values, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]).tolist()
        return low, high


def effective_sample_size(importance_weights: ArrayLike) -> float:
    """Compute the number of equally weighted draws with the same variance: (sum w)^2 / sum w^2.

    Parameters
    ----------
    importance_weights : array_like
        Weights of at least 0, of any shape.

    Returns
    -------
    float
        0 where all weights are 0.

    Examples
    --------
    >>> from plrank_fast.off_policy import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
    2.0
    """
    weights = validation.real_array(importance_weights, "importance_weights", ndim=None).reshape(-1)
    validation.within(weights, "importance_weights", 0.0, np.inf)
    largest = weights.max(initial=0.0)
    if largest == 0.0:
        return 0.0
    weights = weights / largest
    return float(weights.sum() ** 2 / (weights**2).sum())


def weighted_estimate(
    log: Log,
    counts: NDArray[np.bool_],
    gains: FloatArray,
    weights: FloatArray,
    summed: FloatArray,
    slopes: Callable[[], FloatArray],
    self_normalized: bool,
    gradient: Callable[[FloatArray], FloatArray],
) -> OffPolicyEstimate:
    """Return the estimate from gains of sessions, (n_queries, n_rows, n_terms), where ``counts`` is true.

    ``weights`` are reported, and ``summed`` are those by which gains are multiplied. ``gradient`` pulls a cotangent of
    the variable by which ``slopes`` are the derivatives of the weights back to the scores. Normalised weights give the
    mean gain of the sessions that have a term, which counts with their share of all sessions; the numerators hold the
    deviation of that share too, as it varies from log to log.
    """
    w = log.of_sessions(summed)
    numerators = w * log.of_sessions(gains)
    if self_normalized:
        present = log.of_sessions(counts)
        denominators, share = np.where(present, w, 0.0), present.mean(axis=0)
        largest = np.where(share > 0.0, denominators.max(axis=0), 1.0)
        remedy = ": scores rank nothing as the log does"
        validation.each(largest >= validation.SMALLEST_MAGNITUDE, largest, "importance weights", "not all be 0", remedy)
        means = ratios_or_zero(numerators.sum(axis=0), denominators.sum(axis=0))
        numerators = share * numerators + means * denominators.mean(axis=0) * (present - share)
        totals = denominators.sum(axis=0)
        value = float(ratios_or_zero(numerators.sum(axis=0), totals).sum())
    else:
        denominators, share, means = np.broadcast_to(1.0, w.shape), np.ones(w.shape[1]), np.zeros(w.shape[1])
        totals = np.full(w.shape[1], float(len(w)))
        value = float(numerators.sum()) / len(w)

    def compute_gradient() -> FloatArray:
        surplus = gains - means
        return gradient(np.where(counts, ratios_or_zero(share * slopes() * surplus, totals), 0.0))

    def compute_size() -> float:
        of_terms = zip(w.T, log.of_sessions(counts).T, strict=True)
        return min(effective_sample_size(of_term[present]) for of_term, present in of_terms if present.any())

    return OffPolicyEstimate(value, log.of_sessions(weights), numerators, denominators, compute_gradient, compute_size)


def ratios_or_zero(numerators: FloatArray, denominators: FloatArray) -> FloatArray:
    """Return numerators over denominators, 0 where all weights are 0."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=denominators != 0.0)
