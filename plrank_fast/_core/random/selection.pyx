"""Introselect and sort over (key, item) pairs, smallest key first.

Quickselect takes as its pivot the median of keys at scattered positions, so that no order of the input is special. If
partitions are unbalanced nevertheless, the median of medians of five replaces it and keeps the total at O(n) (Musser
1997; Blum et al. 1973). Partitions are three-way and free of branches: equal keys cost one pass. Short lists are sorted
by counting, in vector registers.
"""

from libc.math cimport INFINITY, ceil, sqrt

from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t, uint64_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "random/selection.h" nogil:
    ctypedef struct selection_kernels:
        size_t (*keep_below)(
            const double *keys, size_t n, double pivot, double *kept_keys, int32_t *kept_items) noexcept nogil
        size_t (*keep_from)(
            const double *values, size_t n, double pivot, double *kept_keys, int32_t *kept_items) noexcept nogil
        void (*sort_short)(double *keys, int32_t *items, size_t n) noexcept nogil
    const selection_kernels *selection_kernels_at(int level)

cdef const selection_kernels *kernels = selection_kernels_at(simd_level())

cdef intp_t SHORT_SELECTION = 32  # sorting all of a longer list takes longer than to partition it
cdef intp_t WORTH_A_SAMPLE = 64    # sorting all of a shorter list takes no longer than to guess a pivot


# ---------------------------------------------------------------------------------------------------------------------
# Pairs
# ---------------------------------------------------------------------------------------------------------------------

cdef inline void swap(double *keys, int32_t *items, intp_t i, intp_t j) noexcept nogil:
    cdef double key = keys[i]
    cdef int32_t item = items[i]
    keys[i] = keys[j]
    items[i] = items[j]
    keys[j] = key
    items[j] = item


cdef inline intp_t partition(double *keys, int32_t *items, intp_t n, double pivot, bint or_equal) noexcept nogil:
    """Move keys < or <= pivot to the front; return their number. Every step writes, so the loop is branch-free."""
    cdef intp_t i, stored = 0
    for i in range(n):
        swap(keys, items, i, stored)
        stored += keys[stored] <= pivot if or_equal else keys[stored] < pivot
    return stored


cdef inline double median_of_3(double a, double b, double c) noexcept nogil:
    return max(min(a, b), min(max(a, b), c))


# ---------------------------------------------------------------------------------------------------------------------
# Pivots
# ---------------------------------------------------------------------------------------------------------------------

cdef inline double scattered_key(const double *keys, intp_t n, uint64_t *state) noexcept nogil:
    state[0] = state[0] * <uint64_t>6364136223846793005 + <uint64_t>1442695040888963407
    return keys[(state[0] >> 33) % <uint64_t>n]


cdef inline double scattered_median(const double *keys, intp_t n, uint64_t *state) noexcept nogil:
    """Return the median of three keys at scattered positions, or of three such medians for long input."""
    cdef double medians[3]
    cdef intp_t i
    if n < 128:
        return median_of_3(
            scattered_key(keys, n, state), scattered_key(keys, n, state), scattered_key(keys, n, state))
    for i in range(3):
        medians[i] = median_of_3(
            scattered_key(keys, n, state), scattered_key(keys, n, state), scattered_key(keys, n, state))
    return median_of_3(medians[0], medians[1], medians[2])


cdef double early_key(const double *values, intp_t n, intp_t k, double sign) noexcept nogil:
    """Return a key that is probably above the k-th smallest of ``n``, but below most others, by a sample of 32 keys.

    Keys are the values times the sign. The result is two standard deviations above where the k-th smallest is expected,
    which fails in about one case of thirty. Returns infinity if such a key would leave most keys below it.
    """
    cdef double sample[32]
    cdef int32_t places[32]
    cdef double share = <double>k / <double>n
    cdef double wanted = ceil(33.0 * (share + 2.0 * sqrt(share * (1.0 - share) / 32.0)))
    cdef intp_t i
    if not wanted <= 24.0:
        return INFINITY
    for i in range(32):
        sample[i] = sign * values[(i * n) >> 5]
        places[i] = <int32_t>i
    kernels.sort_short(sample, places, 32)
    return sample[<intp_t>wanted - 1]


cdef double median_of_medians(double *keys, int32_t *items, intp_t n) noexcept nogil:
    """Return a key with at least 3/10 of all keys on either side. O(n)."""
    cdef intp_t group, groups = n // 5
    if groups == 0:
        return keys[0]
    for group in range(groups):
        kernels.sort_short(keys + 5 * group, items + 5 * group, 5)
    for group in range(groups):
        swap(keys, items, group, 5 * group + 2)
    select_with_budget(keys, items, groups, groups // 2, 0)
    return keys[groups // 2]


# ---------------------------------------------------------------------------------------------------------------------
# Select and sort
# ---------------------------------------------------------------------------------------------------------------------

cdef void select_with_budget(double *keys, int32_t *items, intp_t n, intp_t k, intp_t budget) noexcept nogil:
    """Bring the k-th smallest (from 0) into place, with smaller ones before it.

    ``budget`` counts the keys that partitions by scattered pivots may still read, before ``median_of_medians`` is used.
    """
    cdef uint64_t state = <uint64_t>n
    cdef intp_t below, equal
    cdef double pivot
    while n > SHORT_SELECTION:
        if budget > 0:
            pivot = scattered_median(keys, n, &state)
        else:
            pivot = median_of_medians(keys, items, n)
        budget -= n
        below = partition(keys, items, n, pivot, False)
        if k < below:
            n = below
            continue
        equal = partition(keys + below, items + below, n - below, pivot, True)
        if k < below + equal:
            return
        keys += below + equal
        items += below + equal
        n -= below + equal
        k -= below + equal
    kernels.sort_short(keys, items, n)


cdef void select_smallest(double *keys, int32_t *items, intp_t n, intp_t k) noexcept nogil:
    """Bring the k pairs with the smallest keys to the front, in no particular order. O(n)."""
    if 0 < k < n:
        select_with_budget(keys, items, n, k - 1, 8 * n)


cdef void sort_pairs(double *keys, int32_t *items, intp_t n) noexcept nogil:
    """Sort pairs by key. O(n log n): a part that fails to shrink is halved by its median."""
    cdef uint64_t state = <uint64_t>n
    cdef intp_t below, equal
    cdef double pivot
    while n > PLR_SHORT_LIST:
        pivot = scattered_median(keys, n, &state)
        below = partition(keys, items, n, pivot, False)
        equal = partition(keys + below, items + below, n - below, pivot, True)
        if below > n - n // 8 or equal + below < n // 8:
            select_smallest(keys, items, n, n // 2)
            below = n // 2
            equal = 0
        # recurse into the shorter side, so that the stack stays logarithmic
        if below < n - below - equal:
            sort_pairs(keys, items, below)
            keys += below + equal
            items += below + equal
            n -= below + equal
        else:
            sort_pairs(keys + below + equal, items + below + equal, n - below - equal)
            n = below
    kernels.sort_short(keys, items, n)


cdef void sort_smallest(
    const double *keys, intp_t n, intp_t k, double *pivot, double *kept_keys, int32_t *kept_items
) noexcept nogil:
    """Copy the pairs (keys[i], i) with the k smallest keys, in order; the copies have room for n. O(n + k log k).

    ``pivot`` is a hint carried between calls on similar keys; pass NaN first. It follows the k-th smallest key: it
    rises at once and decays slowly, so that few other keys are below it.
    """
    cdef intp_t kept = 0
    if pivot[0] == pivot[0]:
        kept = kernels.keep_below(keys, n, pivot[0], kept_keys, kept_items)
    if kept < k and n > SHORT_SELECTION:
        kept = kernels.keep_below(keys, n, early_key(keys, n, k, 1.0), kept_keys, kept_items)
    if kept < k:
        kept = kernels.keep_below(keys, n, INFINITY, kept_keys, kept_items)
    if kept > 2 * k + PLR_SHORT_LIST:
        select_smallest(kept_keys, kept_items, kept, k)
        kept = k
    sort_pairs(kept_keys, kept_items, kept)
    if not kept_keys[k - 1] < pivot[0]:
        pivot[0] = kept_keys[k - 1]
    pivot[0] -= (pivot[0] - kept_keys[k - 1]) / 64.0


cdef intp_t keep_highest(const double *values, intp_t n, intp_t k, double *keys, int32_t *items) noexcept nogil:
    """Copy the pairs (-values[i], i) of the k highest values, those that equal one of them, and some others, in order.

    Returns their number; the copies have room for n. O(n).
    """
    cdef intp_t kept = 0
    if n > WORTH_A_SAMPLE and k > 0:
        kept = kernels.keep_from(values, n, -early_key(values, n, k, -1.0), keys, items)
    return kept if kept >= k > 0 else kernels.keep_from(values, n, -INFINITY, keys, items)


cdef void sort_short(double *keys, int32_t *items, intp_t n) noexcept nogil:
    """Sort at most ``PLR_SHORT_LIST`` pairs by key; equal keys stay in order."""
    kernels.sort_short(keys, items, n)


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

def smallest(double[::1] keys, int32_t[::1] items, intp_t k, bint only_guaranteed=False):
    """Select and sort the ``k`` smallest in place; ``only_guaranteed`` uses no pivot but the median of medians."""
    cdef intp_t n = keys.shape[0]
    if n == 0 or k <= 0:
        return
    with nogil:
        if only_guaranteed and k < n:
            select_with_budget(&keys[0], &items[0], n, k - 1, 0)
        else:
            select_smallest(&keys[0], &items[0], n, k)
        sort_pairs(&keys[0], &items[0], min(k, n))
