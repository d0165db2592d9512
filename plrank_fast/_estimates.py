"""The arguments of estimates, sampled and exact: read, passed on to compiled code, and the results delivered."""

from __future__ import annotations

from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast._core.gradients import exact as _exact
from plrank_fast._core.gradients import sampled as _sampled
from plrank_fast._core.runtime.arguments import CheckedBatch, plain_query


def _batch(
    scores: Any, relevance: Any, rank_weights: Any, offsets: Any, n_threads: Any, over_ideal: bool = False
) -> CheckedBatch:
    lowest = 0.0 if over_ideal else -np.inf
    return validation.batch(scores, relevance, rank_weights, offsets, n_threads, lowest=lowest, why=validation.A_SHARE)


def sampled(
    estimator: Any,
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    offsets: Any,
    n_samples: Any,
    rankings: Any,
    rng: Any,
    sampler: Any,
    n_threads: Any,
    out: Any,
    hessian: Any = False,
    baseline: Any = False,
    noise: Any = "gumbel",
    sigma: Any = 1.0,
) -> Any:
    """Compute an estimate with the arguments of `pl_rank_3`, and with those of some methods alone.

    Relevance may be ``validation.ABSENT``. Compiled code alone reads plain arguments of one query.
    """
    if offsets is None:
        query = plain_query(scores, relevance, rank_weights, n_threads)
        plain = _sampled.estimate_plain(
            estimator, query, n_samples, rankings, rng, sampler, out, hessian, baseline, noise, sigma
        )
        if plain is not None:
            return plain
    return sampled_after_checks(
        estimator, scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out,
        hessian, baseline, noise, sigma,
    )  # fmt: skip


def sampled_after_checks(
    estimator: Any,
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    offsets: Any,
    n_samples: Any,
    rankings: Any,
    rng: Any,
    sampler: Any,
    n_threads: Any,
    out: Any,
    hessian: Any = False,
    baseline: Any = False,
    noise: Any = "gumbel",
    sigma: Any = 1.0,
    *,
    value: bool = False,
    one_per_query: bool = False,
    factors: Any = None,
    over_ideal: bool = False,
    scaled: Any = None,
    given_noise: Any = None,
) -> Any:
    """Compute the estimate of `sampled`, or other results, with arguments of any kind.

    The estimate is one number for each query if ``one_per_query``. It comes after the values of the queries if
    ``value``, and before its Hessian diagonal with ``hessian``. ``_core.gradients.sampled.estimate``
    describes the last four arguments.
    """
    law, width = validation.choice(noise, "noise", validation.Noise), validation.factor(sigma, "sigma")
    with_hessian, with_baseline = validation.flag(hessian, "hessian"), validation.flag(baseline, "baseline")
    batch = _batch(scores, relevance, rank_weights, offsets, n_threads, over_ideal)
    if batch.n_queries > 1 and relevance is not validation.ABSENT and not one_per_query:
        validation.warn_if_nothing_to_learn(batch)
    method = validation.choice(sampler, "sampler", validation.Sampler)
    first, given = validation.first_query_of(rng), None
    if rankings is not None:
        cutoff, of_batch = min(batch.n_ranks, batch.longest), offsets is not None
        given = validation.given_rankings(rankings, batch.offsets_array(), cutoff, of_batch, n_threads=batch.n_threads)
        n_samples = given.shape[1]
    number = validation.count(n_samples, "n_samples", 2 if with_baseline else 1)  # a leave-one-out mean needs two
    shape = (batch.n_queries if one_per_query else batch.n_items,)
    outputs = validation.output_pair(out, shape) if with_hessian else (validation.output(out, shape), None)
    source = validation.source_of_keys(rng) if given is None else validation.check_random_state(rng)
    values, result, diagonal = _sampled.estimate(
        estimator, batch, number, method, source, first, given, with_hessian, with_baseline, law, width, given_noise,
        value, factors, over_ideal, scaled,
    )  # fmt: skip
    if factors is not None:
        return values
    if value:
        return values, result
    result = validation.deliver(result, outputs[0])
    return (result, validation.deliver(diagonal, outputs[1])) if with_hessian else result


def exact(
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    offsets: Any,
    rtol: Any,
    n_threads: Any,
    out: Any,
    value: bool = False,
    gradient: bool = False,
    hessian: Any = False,
    noise: Any = "gumbel",
    sigma: Any = 1.0,
    stop: Any = None,
    exposure: bool = False,
    direction: Any = None,
) -> Any:
    """Compute expectations: the value, the gradient, or both, and the Hessian diagonal; ``out`` is for the results.

    ``exposure`` takes no relevance, and is returned in place of the gradient. With a ``direction`` the Hessian's
    product with it takes the place of the Hessian diagonal.
    """
    if offsets is None:
        query = plain_query(scores, relevance, rank_weights, n_threads)
        plain = _exact.expectations_plain(
            query, rtol, out, value, gradient, hessian, noise, sigma, stop, exposure, direction
        )
        if plain is not None:
            return plain
    with_hessian = validation.flag(hessian, "hessian")
    batch = _batch(scores, validation.ABSENT if exposure else relevance, rank_weights, offsets, n_threads)
    if batch.n_queries > 1 and gradient and not exposure and direction is None:
        validation.warn_if_nothing_to_learn(batch)
    chances = None if stop is None else validation.chances_to_stop(stop, batch.n_items)
    tolerance = validation.relative_tolerance(rtol)
    law, width = validation.choice(noise, "noise", validation.Noise), validation.factor(sigma, "sigma")
    shape = (batch.n_items if gradient else batch.n_queries,)
    outputs = validation.output_pair(out, shape) if with_hessian else (validation.output(out, shape), None)
    values, slopes, diagonal, missed = _exact.expectations(
        batch, tolerance, law, width, value, gradient, with_hessian, exposure, direction, chances
    )
    validation.tolerance_held(missed, tolerance)
    if value and gradient:
        return values, slopes
    result = validation.deliver(slopes if gradient else values, outputs[0])
    return (result, validation.deliver(diagonal, outputs[1])) if with_hessian else result


def exact_scaled(
    scores: Any, relevance: Any, rank_weights: Any, offsets: Any, stop: Any, rtol: Any, factors: Any, over_ideal: bool,
    n_threads: Any, gradient: Any,
) -> Any:  # fmt: skip
    """Compute the values times ``factors``, and write the gradient times these: ``exact.scaled_expectations``."""
    batch = _batch(scores, relevance, rank_weights, offsets, n_threads, over_ideal)
    chances = None if stop is None else validation.chances_to_stop(stop, batch.n_items)
    tolerance = validation.relative_tolerance(rtol)
    values, missed = _exact.scaled_expectations(batch, tolerance, chances, factors, over_ideal, gradient)
    validation.tolerance_held(missed, tolerance)
    return values
