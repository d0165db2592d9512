"""Two calls timed in turn, and an epoch of gradients beside NumPy's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast.data import PROFILES
from plrank_fast.data.generated import list_lengths
from plrank_fast.validation import FloatArray, IntArray

ONE_ANSWER = {"pl_rank_cmc": 1, "pl_rank_exact": 0}  # methods whose answer does not need N, and the samples they take
TWIN_QUERIES = 2  # the twin is slow; its cost per query is steady


def fastest_in_turn(
    first: Callable[[], object], second: Callable[[], object], seconds: float, repeat: int = 1
) -> tuple[float, float]:
    """Seconds of the fastest call of each, tried for about ``seconds``; of ``repeat`` calls in a row the mean."""
    fastest = [np.inf, np.inf]
    begin = time.perf_counter()
    while True:
        for i, run in enumerate((first, second)):
            start = time.perf_counter()
            for _ in range(repeat):
                run()
            fastest[i] = min(fastest[i], (time.perf_counter() - start) / repeat)
        if time.perf_counter() - begin > seconds:
            return fastest[0], fastest[1]


@dataclass(frozen=True)
class Workload:
    """A batch with the list lengths of a public set, and how many of its kind make an epoch."""

    scores: FloatArray
    relevance: FloatArray
    offsets: IntArray
    batches_per_epoch: float

    @classmethod
    def of(cls, shape: str, n_queries: int, spread: float) -> Workload:
        """Draw a batch: normal scores with standard deviation ``spread``, the label shares of the profile."""
        profile = PROFILES[shape]
        rng = np.random.default_rng(0)
        offsets = plr.offsets_from_group(list_lengths(rng, profile, n_queries))
        labels = rng.choice(len(profile.label_shares), p=profile.label_shares, size=offsets[-1])
        scores = spread * rng.normal(size=offsets[-1])
        return cls(scores, plr.gains(labels), offsets, profile.n_queries / n_queries)


def seconds_per_epoch(
    method: str, n_samples: int, cutoff: int, workload: Workload, seconds: float
) -> tuple[float, float]:
    """Of a method, and of NumPy's PL-Rank-3 with the same N and K."""
    weights = plr.dcg_weights(cutoff)
    options = {"offsets": workload.offsets, "n_threads": 1}
    if method != "pl_rank_exact":
        options |= {"n_samples": ONE_ANSWER.get(method, n_samples), "rng": 0}
    rng = np.random.default_rng(0)
    typical = np.argsort(np.abs(np.diff(workload.offsets) - np.diff(workload.offsets).mean()))[:TWIN_QUERIES]
    docs = np.diff(workload.offsets)

    def ours() -> None:
        getattr(plr, method)(workload.scores, workload.relevance, weights, **options)

    def twin() -> None:
        for q in typical:
            part = slice(workload.offsets[q], workload.offsets[q + 1])
            scores, relevance = workload.scores[part], workload.relevance[part]
            rankings = reference.sample_rankings(scores, n_samples, cutoff, rng)
            reference.pl_rank_3(scores, relevance, weights, rankings)

    own, other = fastest_in_turn(ours, twin, seconds)
    return (
        own * workload.batches_per_epoch,
        # the twin's cost is proportional to the number of documents, so it is scaled by them
        other * docs.sum() / docs[typical].sum() * workload.batches_per_epoch,
    )


def ratio_to_numpy(method: str, n_samples: int, cutoff: int, workload: Workload, seconds: float) -> float:
    """How many times faster than NumPy's PL-Rank-3."""
    ours, numpy_seconds = seconds_per_epoch(method, n_samples, cutoff, workload, seconds)
    return numpy_seconds / ours
