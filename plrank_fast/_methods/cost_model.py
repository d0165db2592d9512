"""Measured costs of gradients by list length and cutoff, and the choice between exact gradient and sampling.

The tables hold nanoseconds per document of one thread at scores of standard deviation 1; only their ratios matter.
``python asv_benchmarks/cost_tables.py`` measures them again, on an otherwise idle machine, and prints them as source.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from plrank_fast.validation import FloatArray, IntArray

LENGTHS = (8, 24, 120, 316, 1000, 10_000)
CUTOFFS = (1, 5, 10, 25, 50, 100)
NANOSECONDS = {
    "exact": (
        (428, 688, 855, 853, 852, 854),
        (171, 197, 309, 598, 596, 598),
        (80, 92, 120, 304, 544, 917),
        (63, 76, 89, 179, 353, 713),
        (37, 40, 43, 56, 111, 342),
        (27, 27, 27, 28, 26, 28),
    ),
    "cmc": (
        (87, 97, 102, 103, 103, 103),
        (43, 47, 54, 77, 77, 78),
        (16, 18, 20, 29, 62, 119),
        (13, 14, 15, 21, 33, 65),
        (11, 12, 13, 17, 32, 39),
        (11, 12, 13, 17, 29, 31),
    ),
}
# A sample of pl_rank_cmc errs by a few per cent, so the exact gradient may take longer, which is little beside a
# model's time. With this factor the usual cutoff of 10 is trained exactly at every length from 24 on.
WORTH_OF_EXACTNESS = 8.0


def nanoseconds(method: str, lengths: IntArray, cutoff: int) -> FloatArray:
    """Estimate the cost per query, (n_queries,), linearly in the logarithms of length, cutoff and cost."""
    table = np.log(np.asarray(NANOSECONDS[method], dtype=np.float64))
    known = np.log(np.asarray(LENGTHS, dtype=np.float64))
    at = np.log(np.maximum(lengths, 1.0))
    column = np.interp(np.log(max(cutoff, 1)), np.log(CUTOFFS), np.arange(len(CUTOFFS)))
    low = min(int(column), len(CUTOFFS) - 2)
    lower, upper = (np.interp(at, known, logarithms) for logarithms in table.T[low : low + 2])
    return lengths * np.exp((low + 1 - column) * lower + (column - low) * upper)


def choose_method(offsets: IntArray, cutoff: int) -> str:
    """Choose between ``pl_rank_exact`` and one sample of ``pl_rank_cmc`` for training on these queries.

    The exact gradient is chosen unless it costs more than ``WORTH_OF_EXACTNESS`` times as much.
    """
    if len(offsets) == 2:
        return _choose_for_one(int(offsets[1]), cutoff)
    lengths = np.diff(offsets)
    if lengths.size > 0 and lengths.min() == lengths.max():
        return _choose_for_one(int(lengths[0]), cutoff)
    return _choose(lengths, cutoff)


def _choose(lengths: IntArray, cutoff: int) -> str:
    lengths, counts = np.unique(lengths, return_counts=True)  # in a batch, lengths repeat
    methods = "exact", "cmc"
    exact, sampled = ((counts * nanoseconds(method, lengths, cutoff)).sum() for method in methods)
    return "exact" if exact <= WORTH_OF_EXACTNESS * sampled else "cmc"


@lru_cache(maxsize=4096)
def _choose_for_one(length: int, cutoff: int) -> str:
    """Choose for queries of one length; the cache serves rows, and loops over queries, whose lengths repeat."""
    return _choose(np.array([length]), cutoff)
