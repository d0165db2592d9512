"""Distributions over the same number of items, rows of scores: their rankings, and log-probabilities of rankings."""

from __future__ import annotations

import numpy as np

from plrank_fast._adapters.layouts import offsets_of_rows
from plrank_fast.bucket_order import of_orders
from plrank_fast.sampling import ranking_log_prob, ranking_log_prob_vjp, sample_rankings
from plrank_fast.validation import FloatArray, IntArray, RandomState, RankingArray


def sample_rows(scores: FloatArray, n_samples: int, cutoff: int, rng: RandomState) -> RankingArray:
    """Draw rankings, (n_queries, n_samples, cutoff), by rows of scores, (n_queries, n_items).

    A ranking ends, with -1, after the items with a score above -inf.
    """
    drawn = sample_rankings(scores.reshape(-1), n_samples, cutoff, offsets=offsets_of_rows(scores.shape), rng=rng)
    rankings = np.full((*drawn.shape[:2], cutoff), -1, dtype=np.int32)
    rankings[:, :, : drawn.shape[2]] = drawn
    return rankings


def log_prob_of_rows(
    scores: FloatArray, rankings: IntArray, tied: bool, cotangent: FloatArray | None = None
) -> FloatArray:
    """Compute log-probabilities, (n_queries, n_rankings), of rankings by rows of scores, (n_queries, n_items).

    Rankings that are ``tied`` are the buckets of all items. With a ``cotangent`` of the shape of the result, compute
    the gradient of the sum of the products by the scores.
    """
    if tied:
        values = of_orders(scores[:, np.newaxis], rankings, cotangent)
        return values if cotangent is None else values.sum(axis=1)
    rows, offsets = scores.reshape(-1), offsets_of_rows(scores.shape)
    if cotangent is None:
        return ranking_log_prob(rows, rankings, offsets=offsets)
    return ranking_log_prob_vjp(rows, rankings, cotangent, offsets=offsets).reshape(scores.shape)
