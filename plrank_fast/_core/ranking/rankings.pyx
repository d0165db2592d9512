"""Checks of rankings from outside, before a kernel trusts them as indices."""

import numpy as np

from plrank_fast._core.runtime.buffers cimport data_of
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t

# faults of an entry
OUT_OF_RANGE = 1
DUPLICATE = 2
AFTER_THE_END = 3


cdef int fault_in_query(
    const int32_t *rankings, intp_t n_rankings, intp_t length, intp_t used, intp_t n_items, bint prefixes,
    int64_t *last_seen, int64_t *number, int64_t *where
) noexcept nogil:
    """Find the first entry in the first ``used`` ranks that is no item of the query, or a repeated one; 0 if none.

    With ``prefixes``, a ranking may end earlier, and is -1 from there on. ``number`` counts rankings, and ``last_seen``
    (n_items,) holds the last ranking with each item; all are initially 0. ``where`` becomes (ranking, rank).
    """
    cdef intp_t i, k
    cdef int32_t item
    cdef bint ended
    for i in range(n_rankings):
        number[0] += 1
        ended = False
        for k in range(used):
            item = rankings[i * length + k]
            where[0], where[1] = i, k
            if prefixes and item == -1:
                ended = True
                continue
            if item < 0 or item >= n_items:
                return 1
            if ended:
                return 3
            if last_seen[item] == number[0]:
                return 2
            last_seen[item] = number[0]
    return 0


cdef int first_fault(
    const int32_t *rankings, const intp_t *shape, const int64_t *offsets, intp_t cutoff, bint prefixes,
    int64_t *last_seen, int64_t *where
) noexcept nogil:
    """Return the first fault of a batch; ``where`` becomes (query, ranking, rank)."""
    cdef intp_t q, n_items, used
    cdef int64_t number = 0
    cdef int fault = 0
    for q in range(shape[0]):
        n_items = offsets[q + 1] - offsets[q]
        used = min(min(shape[2], n_items), cutoff)
        where[0] = q
        if used > 0 and shape[1] > 0:
            fault = fault_in_query(
                rankings + q * shape[1] * shape[2], shape[1], shape[2], used, n_items, prefixes,
                last_seen, &number, where + 1)
        if fault:
            break
    return fault


def find_fault(rankings, offsets, intp_t cutoff, bint prefixes=False):
    """Return ``(fault, (query, sample, rank))`` of the first bad entry; fault is 0 if there is none. O(D + N K).

    With ``prefixes``, a ranking may end early, with -1 after its last item.
    """
    cdef int64_t[3] where
    cdef int fault
    cdef intp_t longest = max(1, int(np.diff(offsets).max(initial=1)))
    cdef const int32_t *given = <const int32_t *>data_of(rankings)
    cdef const int64_t *starts = <const int64_t *>data_of(offsets)
    cdef intp_t[3] shape = rankings.shape
    seen = np.zeros(longest, dtype=np.int64)
    cdef int64_t *last_seen = <int64_t *>data_of(seen)
    where[0] = where[1] = where[2] = 0
    with nogil:
        fault = first_fault(given, shape, starts, cutoff, prefixes, last_seen, where)
    return fault, (where[0], where[1], where[2])
