"""Checks of rankings from outside, before a kernel trusts them as indices."""

import numpy as np

from libc.string cimport memcpy, memset

from plrank_fast._core.runtime.batch cimport Batch, new_batch, run_batch
from plrank_fast._core.runtime.buffers cimport integers
from plrank_fast._core.runtime.queries cimport longest_query
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef int fault_in_query(
    const int32_t *rankings, intp_t n_rankings, intp_t length, intp_t used, intp_t n_items, bint prefixes,
    int64_t *last_seen, int64_t *where
) noexcept nogil:
    """Find the first entry in the first ``used`` ranks that is no item of the query, or a repeated one.

    Return 0 if there is none, 1 for a number that is no item, 2 for a repeated one, 3 for one after the end of its
    ranking. With ``prefixes``, a ranking may end earlier, and is -1 from there on. ``last_seen`` (n_items,) is memory
    for the last ranking with each item. ``where`` becomes (ranking, rank).
    """
    cdef intp_t i, k
    cdef int32_t item
    cdef bint ended
    memset(last_seen, 0, n_items * sizeof(int64_t))
    for i in range(n_rankings):
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
            if last_seen[item] == i + 1:
                return 2
            last_seen[item] = i + 1
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Call:
    const void *given           # (n_queries, n_rankings, length)
    bint is_narrow              # int32; otherwise int64
    int32_t *rankings           # the same, where every number beyond int32 has become one that is no item
    const int64_t *offsets
    intp_t n_rankings, length, cutoff
    bint prefixes
    int64_t *faults             # (n_queries, 3), kind of the first fault or 0, its ranking and rank


cdef void copy_and_check(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef intp_t n_items = call.offsets[q + 1] - call.offsets[q], n = call.n_rankings * call.length, i
    cdef int32_t *rankings = call.rankings + q * n
    cdef const int64_t *wide = <const int64_t *>call.given + q * n
    if call.is_narrow:
        memcpy(rankings, <const int32_t *>call.given + q * n, n * sizeof(int32_t))
    else:
        for i in range(n):
            rankings[i] = <int32_t>min(max(wide[i], <int64_t>-2), <int64_t>0x7FFFFFFF)
    call.faults[3 * q] = fault_in_query(
        rankings, call.n_rankings, call.length, min(min(call.length, n_items), call.cutoff), n_items, call.prefixes,
        <int64_t *>workspace, call.faults + 3 * q + 1)


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

def checked(given, const int64_t[::1] offsets, intp_t cutoff, bint prefixes, n_threads):
    """Return a copy in int32 of rankings, (n_queries, n_rankings, length) in int32 or int64, and their first fault.

    The fault is ``(kind, (query, ranking, rank))``; its kind is 0 if there is none. With ``prefixes``, a ranking may
    end early, with -1 after its last item. O(D + N K).
    """
    cdef Batch batch = new_batch(integers(offsets), given.shape[0])
    cdef Call call
    cdef const int32_t[::1] narrow = None
    cdef const int64_t[::1] wide = None
    cdef int32_t[::1] copies
    cdef int64_t[:, ::1] of_queries
    rankings, faults, flat = np.empty(given.shape, np.int32), np.zeros((given.shape[0] + 1, 3), np.int64), given.ravel()
    query = kind = ranking = rank = 0
    if given.size > 0:
        copies, of_queries = rankings.ravel(), faults
        if given.itemsize == 4:
            narrow = flat
            call.given, call.is_narrow = &narrow[0], True
        else:
            wide = flat
            call.given, call.is_narrow = &wide[0], False
        call.rankings, call.offsets, call.faults = &copies[0], batch.offsets, &of_queries[0, 0]
        call.n_rankings, call.length, call.cutoff, call.prefixes = given.shape[1], given.shape[2], cutoff, prefixes
        batch.call = &call
        batch.query = copy_and_check
        batch.fewest_items = 0
        batch.workspace = longest_query(offsets) * sizeof(int64_t)
        batch.ns_per_item = 1.0 + call.n_rankings
        run_batch(&batch, n_threads)
        query = int((faults[:, 0] > 0).argmax())
        kind, ranking, rank = faults[query].tolist()
    return rankings, (kind, (query, ranking, rank))


def at_places(
    const double[:, ::1] table, const int64_t[::1] offsets, const int32_t[:, :, ::1] rankings, double otherwise
):
    """Return the entry of ``table`` (n_docs, length) for the item at each rank of checked rankings; in their shape.

    Past the end of a ranking it is ``otherwise``.
    """
    cdef intp_t q, i, k
    values = np.empty((rankings.shape[0], rankings.shape[1], rankings.shape[2]))
    cdef double[:, :, ::1] found = values
    for q in range(rankings.shape[0]):
        for i in range(rankings.shape[1]):
            for k in range(rankings.shape[2]):
                found[q, i, k] = table[offsets[q] + rankings[q, i, k], k] if rankings[q, i, k] >= 0 else otherwise
    return values
