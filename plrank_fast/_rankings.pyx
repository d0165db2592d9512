"""Checks of rankings made elsewhere, before a kernel trusts them as indices."""

import numpy as np

from plrank_fast._typedefs cimport int32_t, int64_t, intp_t

# what is wrong with an entry
OUT_OF_RANGE = 1
DUPLICATE = 2


cdef int first_fault(
    const int32_t[:, :, ::1] rankings, const int64_t[::1] offsets, intp_t cutoff, int64_t[::1] last_seen, int64_t *where
) noexcept nogil:
    """Find the first entry among the ranks in use that is no item of its query or is there twice; 0 if all are good."""
    cdef intp_t q, i, k, n_items, used
    cdef int64_t number = 0
    cdef int32_t item
    for q in range(rankings.shape[0]):
        n_items = offsets[q + 1] - offsets[q]
        used = min(min(rankings.shape[2], n_items), cutoff)
        for i in range(rankings.shape[1]):
            number += 1
            for k in range(used):
                item = rankings[q, i, k]
                where[0], where[1], where[2] = q, i, k
                if item < 0 or item >= n_items:
                    return 1
                if last_seen[item] == number:
                    return 2
                last_seen[item] = number
    return 0


def find_fault(const int32_t[:, :, ::1] rankings, const int64_t[::1] offsets, intp_t cutoff):
    """``(fault, (query, sample, rank))`` of the first bad entry; fault is 0 if there is none. O(D + N K)."""
    cdef int64_t[3] where
    cdef int fault
    cdef intp_t longest = max(1, int(np.diff(offsets).max(initial=1)))
    cdef int64_t[::1] last_seen = np.zeros(longest, dtype=np.int64)
    where[0] = where[1] = where[2] = 0
    with nogil:
        fault = first_fault(rankings, offsets, cutoff, last_seen, where)
    return fault, (where[0], where[1], where[2])
