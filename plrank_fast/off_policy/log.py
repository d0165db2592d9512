"""The rankings that a logging policy has shown, checked, and their probabilities."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._core.gradients.policy_gradient import LOG_PROB
from plrank_fast._core.gradients.sampled import log_prob_gradient
from plrank_fast._core.ranking.metrics import log_prob_of_checked
from plrank_fast.bucket_order import of_orders
from plrank_fast.gradients import pl_rank_exact
from plrank_fast.validation import FloatArray, IntArray, RankingArray

ENTRIES_AT_ONCE = 1 << 20  # the array of slates and items is processed in parts
ACCURACY = 1e-8  # rtol of exact expectations and of their gradients


class Log(NamedTuple):
    """Checked rankings of a log, and which rows of them are sessions."""

    scores: FloatArray
    offsets: IntArray
    rankings: RankingArray  # (n_queries, n_rows, K), -1 past the end of each
    shown: NDArray[np.bool_]  # (n_queries, n_rows)
    complete: bool  # whether every row is a session of K ranks
    batch: bool
    n_threads: int | None
    ordered: bool  # whether rows are rankings, not sets of items that come first in any order

    @property
    def n_sessions(self) -> int:
        """Number of rows that are sessions."""
        return int(self.shown.sum())

    def of_rows(self, values: ArrayLike, name: str) -> FloatArray:
        """Return one number per ranking, (n_queries, n_rows); 0 where there is no session."""
        checked = validation.like_rankings(values, name, self.shown.shape, self.batch)
        return checked if self.complete else np.where(self.shown, checked, 0.0)

    def of_ranks(self, values: ArrayLike, name: str) -> FloatArray:
        """Return one number per rank, (n_queries, n_rows, K); 0 past the end of a ranking."""
        array = validation.like_rankings(values, name, self.rankings.shape, self.batch)
        return array if self.complete else np.where(self.rankings >= 0, array, 0.0)

    def of_sessions(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of an array, (n_queries, n_rows, ...), that are sessions."""
        return values.reshape(-1, *values.shape[2:]) if self.complete else values[self.shown]

    def log_prob(self, scores: FloatArray, of_prefixes: bool = False) -> FloatArray:
        """Compute the log-probability of each row, or of the ranks down to each, (n_queries, n_rows, K).

        Past the end of a row it is 0.
        """
        if not self.ordered:
            return self._of_sets(scores)
        values: FloatArray = log_prob_of_checked(scores, self.offsets, self.rankings, of_prefixes, self.n_threads)
        return values

    def log_prob_gradient(self, cotangent: FloatArray, n_ranks: int | None = None) -> FloatArray:
        """Compute the gradient of the new policy's log-probabilities, weighted with ``cotangent`` and summed."""
        if not self.ordered:
            return self._of_sets(self.scores, cotangent)
        rankings = self.rankings if n_ranks is None else np.ascontiguousarray(self.rankings[:, :, :n_ranks])
        return log_prob_gradient(
            LOG_PROB, self.scores, self.offsets, rankings, np.ascontiguousarray(cotangent), self.n_threads
        )

    def _of_sets(self, scores: FloatArray, cotangent: FloatArray | None = None) -> FloatArray:
        """Compute the log-probability of each set, or the gradient of their sum weighted by ``cotangent``."""
        result = np.zeros(self.shown.shape if cotangent is None else scores.shape)
        for query, (first, last) in enumerate(pairwise(self.offsets.tolist())):
            at_once = max(1, ENTRIES_AT_ONCE // max(1, last - first))
            for rows in (slice(i, i + at_once) for i in range(0, self.shown.shape[1], at_once)):
                items = self.rankings[query, rows]
                buckets = np.ones((len(items), last - first + 1), dtype=np.int64)  # -1 is the last column, which goes
                np.put_along_axis(buckets, items, 0, axis=1)
                of_rows = None if cotangent is None else cotangent[query, rows]
                values = of_orders(scores[first:last], buckets[:, :-1], of_rows, self.n_threads)
                if cotangent is None:
                    result[query, rows] = values
                else:
                    result[first:last] += values.sum(axis=0)
        return result

    def rank_probabilities_vjp(self, cotangent: FloatArray) -> FloatArray:
        """Compute the gradient of sum_dk C_dk P(rank of d = k) under the new policy: a sum of expected metrics over k.

        C are rewards over probabilities of the log.
        """
        gradient = np.zeros(self.scores.size)
        exact: dict[str, Any] = {"offsets": self.offsets, "rtol": ACCURACY, "n_threads": self.n_threads}
        for k in range(cotangent.shape[1]):
            only = np.zeros(k + 1)
            only[k] = 1.0
            if cotangent[:, k].any():
                vjp = partial(pl_rank_exact, self.scores, rank_weights=only, **exact)
                gradient += validation.homogeneous(vjp, cotangent[:, k], self.offsets)
        return gradient

    def documents(self) -> IntArray:
        """Return the index among all documents of the item at each rank, (n_queries, n_rows, K); 0 past the end."""
        documents: IntArray = self.offsets[:-1, np.newaxis, np.newaxis] + self.rankings.astype(np.int64)
        return np.where(self.rankings >= 0, documents, 0)


def read_log(
    scores: ArrayLike, rankings: ArrayLike, offsets: ArrayLike | None, n_threads: int | None, ordered: bool = True
) -> Log:
    """Check the arguments that describe a log and the new policy's scores."""
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size, shown=True)
    batch = offsets is not None
    threads = validation.threads(n_threads)
    rankings_ = validation.given_rankings(rankings, offsets_, None, batch, True, threads)
    lengths, n_ranks = np.diff(offsets_), rankings_.shape[2]
    if lengths.min(initial=n_ranks) < n_ranks:
        beyond = np.arange(n_ranks) >= lengths[:, np.newaxis, np.newaxis]
        np.copyto(rankings_, -1, where=beyond)
    shown = np.atleast_2d((rankings_[:, :, :1] >= 0).any(axis=2))
    validation.count(int(np.count_nonzero(shown)), "the number of rankings that are not empty", 1)
    complete = bool((rankings_[:, :, -1] >= 0).all())
    return Log(scores_, offsets_, rankings_, shown, complete, batch, threads, validation.flag(ordered, "ordered"))


def scores_of_logging_policy(log: Log, logging_scores: ArrayLike) -> FloatArray:
    """Check the scores of the policy that made the log."""
    name = "logging_scores"
    return validation.of_documents(logging_scores, name, log.scores, scores_first=False)
