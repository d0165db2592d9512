"""The ruler: the cost of an epoch's gradients, here and by the NumPy reference implementation.

Both are timed in turn on one thread, and the fastest of each counts, so that a ratio is one of neighbours in time. The
times of an epoch are seconds of the processor, which other programs on the machine hardly change. Our call takes a
sample of queries with the list lengths of a public set, NumPy's the query of them whose length is nearest to the mean;
both are scaled to the documents of the set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.data import PROFILES
from plrank_fast.data.generated import list_lengths
from plrank_fast.validation import FloatArray, IntArray

CUTOFFS, SAMPLES = (5, 10, 25, 50, 100), (100, 1000)  # as in the papers
# Titles in tables and legends, and colours that the colour-blind can tell apart; other estimators have their names.
LOOKS = {
    "exact": ("exact", "#111111"),
    "cmc": ("conditional MC", "#009E73"),
    "pl_rank_3": ("PL-Rank-3", "#0072B2"),
    "pl_rank_2": ("PL-Rank-2", "#E69F00"),
    "pl_rank_1": ("PL-Rank-1", "#56B4E9"),
    "stochastic_rank": ("StochasticRank", "#D55E00"),
    "policy_gradient": ("policy gradient", "#CC79A7"),
}
DRAWN = 20_000  # lengths, of which a few quantiles are used

Call = Callable[[], object]


@dataclass(frozen=True)
class Workload:
    """Normal scores and gains of a few queries, and how many times their documents an epoch has."""

    scores: FloatArray
    relevance: FloatArray
    offsets: IntArray
    per_epoch: float

    @classmethod
    def of_profile(cls, name: str, n_queries: int) -> Workload:
        """Draw queries whose lengths represent all of a set: short, middling and long ones."""
        profile = PROFILES[name]
        lengths = np.sort(list_lengths(np.random.default_rng(0), profile, DRAWN))
        few = lengths[(DRAWN * (np.arange(n_queries) + 0.5) / n_queries).astype(int)]
        return cls._of(few, name, profile.n_queries * profile.mean_length / few.sum())

    @classmethod
    def of_length(cls, length: int, n_queries: int) -> Workload:
        """Draw queries of one length, with the label shares of MSLR; the epoch is one query."""
        return cls._of(np.full(n_queries, length), "mslr", 1 / n_queries)

    @classmethod
    def _of(cls, lengths: IntArray, name: str, per_epoch: float) -> Workload:
        rng, shares = np.random.default_rng(1), PROFILES[name].label_shares
        offsets = plr.offsets_from_group(lengths)
        labels = rng.choice(len(shares), p=shares, size=offsets[-1])
        return cls(rng.normal(size=offsets[-1]), plr.gains(labels), offsets, float(per_epoch))

    def rank_weights(self, cutoff: int) -> FloatArray:
        """Return the rank weights of DCG at a cutoff, at most as many as the longest query has ranks."""
        return plr.dcg_weights(min(cutoff, int(np.diff(self.offsets).max())))

    @property
    def typical_per_epoch(self) -> float:
        """The ratio of the documents of an epoch to the documents of the typical query."""
        return self.scores.size * self.per_epoch / (self.typical.stop - self.typical.start)

    @property
    def typical(self) -> slice:
        """The documents of the query whose length is nearest to the mean."""
        lengths = np.diff(self.offsets)
        q = int(np.argmin(np.abs(lengths - lengths.mean())))
        return slice(int(self.offsets[q]), int(self.offsets[q + 1]))


@dataclass(frozen=True)
class Method:
    """An estimator with its number of samples; 0 for the one that does not sample."""

    estimator: str
    n_samples: int

    @classmethod
    def of(cls, estimator: str, n_samples: int) -> Method:
        """Return the estimator with this number of samples, or with its own where it takes no other."""
        own = ESTIMATORS[estimator].n_samples
        return cls(estimator, own if own <= 1 else n_samples)

    @property
    def title(self) -> str:
        """Title in tables and legends."""
        title, _ = LOOKS.get(self.estimator, (self.estimator, ""))
        return title + (f", N = {self.n_samples}" if self.n_samples else "")

    @property
    def color(self) -> str:
        """Colour in pictures."""
        return LOOKS.get(self.estimator, ("", "#999999"))[1]

    def call(self, workload: Workload, cutoff: int, seed: int = 0) -> partial[FloatArray]:
        """Return a function that computes the gradient of the queries, on one thread."""
        options = {"n_samples": self.n_samples, "rng": seed} if self.n_samples else {}
        function = partial(ESTIMATORS[self.estimator].function, offsets=workload.offsets, n_threads=1, **options)
        return partial(function, workload.scores, workload.relevance, workload.rank_weights(cutoff))

    def numpy_call(self, workload: Workload, cutoff: int, seed: int = 0) -> Callable[[], FloatArray]:
        """Return a function that computes the gradient of the typical query in NumPy, sampling included."""
        docs, weights, rng = workload.typical, workload.rank_weights(cutoff), np.random.default_rng(seed)
        scores, relevance = workload.scores[docs], workload.relevance[docs]

        def call() -> FloatArray:
            if self.estimator == "stochastic_rank":
                noisy = scores + rng.gumbel(size=(self.n_samples, scores.size))
                return reference.stochastic_rank(scores, relevance, weights, noisy, reference.gumbel_density)
            rankings = reference.sample_rankings(scores, self.n_samples, weights.size, rng)
            result: FloatArray = getattr(reference, ESTIMATORS[self.estimator].function.__name__)(
                scores, relevance, weights, rankings
            )
            return result

        return call


def fastest_in_turn(
    *calls: Call, seconds: float, repeat: int = 1, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Time functions in turn: the fastest mean of ``repeat`` calls in a row, of each.

    Each has its share of ``seconds`` and is called while some of it is left, once at least.
    """
    fastest, left = [np.inf] * len(calls), [seconds / len(calls)] * len(calls)
    while max(left) >= 0:
        for i, call in enumerate(calls):
            if left[i] >= 0:
                start = clock()
                for _ in range(repeat):
                    call()
                took = clock() - start
                fastest[i] = min(fastest[i], took / repeat)
                left[i] -= max(took, 1e-9)
    return fastest


def seconds_per_epoch(
    method: Method, workload: Workload, cutoff: int, seconds: float, in_numpy: Method | None = None, seed: int = 0
) -> tuple[float, float]:
    """Measure the processor seconds of an epoch's gradients by a method, and by another one in NumPy, or 0."""
    calls: list[Call] = [method.call(workload, cutoff, seed)]
    if in_numpy:
        calls.append(in_numpy.numpy_call(workload, cutoff, seed))
    own, *other = fastest_in_turn(*calls, seconds=seconds, clock=time.process_time)
    return own * workload.per_epoch, sum(other) * workload.typical_per_epoch
