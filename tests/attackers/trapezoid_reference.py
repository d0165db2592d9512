"""Reference values of the exact functions by the trapezoid rule in log time: nothing of it is shared with a kernel.

Value, gradient and Hessian diagonal come from ``reference.exact_by_trapezoid``, which multiplies polynomials out and
carries adjoints back. Rank probabilities come from the generating function on the unit circle: there every factor has
a modulus of at most 1, so nothing is ever divided and nothing can grow.
"""

from __future__ import annotations

import numpy as np

from plrank_fast import reference

NODES_AT_ONCE = 400_000  # complex numbers in an array


def step_of(cutoff: int, *, finer: bool = False) -> float:
    """Spacing in ln t: the arrival of rank k is 1 / sqrt(k) wide at least; at 0.6 of that the rule errs by e^-54.

    The same holds for normal noise, in its standard deviations, with the number of documents for k.
    """
    return 0.6 / np.sqrt(max(cutoff, 9)) / (3 if finer else 1)


def nodes_needed(scores: np.ndarray, cutoff: int, noise: str = "gumbel") -> float:
    """About how many nodes the rule takes."""
    if noise == "normal":
        return float((18.0 + np.ptp(scores)) / step_of(scores.size))
    return float((45.0 + np.log(scores.size) + np.ptp(scores)) / step_of(cutoff))


def expectations(scores, relevance, rank_weights, *, noise="gumbel", stop_probability=None, finer=False):
    """Value, gradient and Hessian diagonal; ``finer`` takes three times the nodes."""
    if noise == "gumbel":
        step = step_of(min(rank_weights.size, scores.size), finer=finer)
        return reference.exact_by_trapezoid(
            scores, relevance, rank_weights, step=step, stop_probability=stop_probability
        )
    step = step_of(scores.size, finer=finer)
    return reference.exact_normal_by_trapezoid(
        scores, relevance, rank_weights, step=step, stop_probability=stop_probability
    )


def average_precision(scores, relevance, cutoff, *, finer=False):
    """Expected average precision and its gradient."""
    return reference.average_precision_by_trapezoid(scores, relevance, cutoff, step=step_of(cutoff, finer=finer))


def rank_probabilities(scores: np.ndarray, cutoff: int, *, finer: bool = False) -> np.ndarray:
    """P(rank of d = k), (D, K), from its discrete Fourier transform over ranks.

    The transform is the integral over t of w_d q_d prod_{i != d} (q_i + p_i z) at the D-th roots of unity z; products
    over the others are those before times those after.
    """
    n_docs = scores.size
    weights = np.exp(scores - scores.max())
    z = np.exp(-2j * np.pi * np.arange(n_docs // 2 + 1) / n_docs)
    step = step_of(cutoff, finer=finer)
    first, last = -np.log(weights.sum()) - 37.0, 4.0 - np.log(weights.min())
    times = np.exp(first + step * np.arange(np.ceil((last - first) / step)))
    transform = np.zeros((n_docs, z.size), complex)
    for t in np.array_split(times, max(1, times.size * n_docs * z.size // NODES_AT_ONCE)):
        x = np.outer(weights, t)
        factors = np.exp(-x)[:, :, np.newaxis] - np.expm1(-x)[:, :, np.newaxis] * z
        before = np.ones_like(factors)
        np.cumprod(factors[:-1], axis=0, out=before[1:])
        after = np.ones((t.size, z.size), complex)
        for d in range(n_docs - 1, -1, -1):
            density = step * x[d] * np.exp(-x[d])
            transform[d] += density @ (before[d] * after)
            after *= factors[d]
    return np.fft.irfft(transform, n_docs, axis=1)[:, :cutoff]
