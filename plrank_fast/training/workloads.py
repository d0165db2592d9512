"""Batches with the list lengths of the public sets, and their factors to a whole epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import plrank_fast as plr
from plrank_fast.data import PROFILES
from plrank_fast.data.generated import list_lengths
from plrank_fast.validation import FloatArray, IntArray

DRAWN = 20_000  # lengths, of which a few quantiles are used


@dataclass(frozen=True)
class Workload:
    """Scores and gains of a few queries, and how many times their documents an epoch has."""

    scores: FloatArray
    relevance: FloatArray
    offsets: IntArray
    per_epoch: float

    @classmethod
    def of_profile(cls, name: str, n_queries: int, spread: float = 1.0) -> Workload:
        """Draw queries whose lengths represent all of a set: short, middling and long ones.

        The scores are normal with standard deviation ``spread``.
        """
        profile = PROFILES[name]
        lengths = np.sort(list_lengths(np.random.default_rng(0), profile, DRAWN))
        few = lengths[(DRAWN * (np.arange(n_queries) + 0.5) / n_queries).astype(int)]
        return cls._of(few, profile.label_shares, profile.n_queries * profile.mean_length / few.sum(), spread)

    @classmethod
    def of_length(cls, length: int, n_queries: int) -> Workload:
        """Draw queries of one length; the epoch is one query."""
        return cls._of(np.full(n_queries, length), PROFILES["mslr"].label_shares, 1 / n_queries)

    @classmethod
    def _of(cls, lengths: IntArray, shares: tuple[float, ...], per_epoch: float, spread: float = 1.0) -> Workload:
        rng = np.random.default_rng(1)
        offsets = plr.offsets_from_group(lengths)
        labels = rng.choice(len(shares), p=shares, size=offsets[-1])
        return cls(spread * rng.normal(size=offsets[-1]), plr.gains(labels), offsets, float(per_epoch))

    def rank_weights(self, cutoff: int) -> FloatArray:
        """Return the rank weights of DCG at a cutoff, at most as many as the longest query has ranks."""
        return plr.dcg_weights(min(cutoff, int(np.diff(self.offsets).max())))

    @property
    def typical_per_epoch(self) -> float:
        """The ratio of the documents of an epoch to those of the typical query."""
        return self.scores.size * self.per_epoch / (self.typical.stop - self.typical.start)

    @property
    def typical(self) -> slice:
        """The documents of the query whose length is nearest to the mean."""
        lengths = np.diff(self.offsets)
        q = int(np.argmin(np.abs(lengths - lengths.mean())))
        return slice(int(self.offsets[q]), int(self.offsets[q + 1]))
