"""The weight not yet placed before each rank of a ranking, exact at every gap of the scores.

Every Plackett-Luce formula divides by S_k, the sum of exp(score) over the items not placed before rank k. Computed as
"all minus placed" it cancels, and exp underflows at gaps over 745. The sums here avoid cancellation, and none is small
in its unit:

- The K + 1 items of highest score in a query are its *leading* items. A ranking places at most K items, so the
  highest-scored item that it leaves over is always a leading one.
- The weight left over after rank K is the direct sum over the leading items left over, plus the total of the other
  items minus the placed ones among them. If t others are placed, t + 1 leading items are left over, each at least
  as heavy as any of the placed others, so this difference cannot cancel against the sum.
- Adding placed weights from the tail then gives S_K, ..., S_1.
- If the scores span so much that squares of weights might leave a double's range, each rank has its own unit: the
  weight of the highest-scored item not placed before it. S_k is at least 1 in that unit, and every change of units
  multiplies by a factor <= 1.

Per ranking this is O(K); per query O(D), as the leading items come from introselect.
"""

from libc.math cimport INFINITY, exp
from libc.string cimport memcpy

from plrank_fast._core.random.selection cimport select_smallest, sort_pairs
from plrank_fast._core.ranking.weights cimport PLR_LARGEST_SPREAD, relative_weights_of
from plrank_fast._core.runtime.compensated cimport Sum, add, value_of
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t


cdef void take_remaining(Layout *layout, Remaining *remaining, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Take the arrays."""
    cdef size_t items = n_items * sizeof(double), ranks = (cutoff + 1) * sizeof(double)
    remaining.weights = <double *>take(layout, items)
    remaining.leading_weights = <double *>take(layout, ranks)
    remaining.step = <double *>take(layout, ranks)
    remaining.sums = <double *>take(layout, ranks + sizeof(double))
    remaining.unit_position = <intp_t *>take(layout, (cutoff + 1) * sizeof(intp_t))
    remaining.stamp = <int64_t *>take(layout, (cutoff + 1) * sizeof(int64_t))
    remaining.leading = <int32_t *>take(layout, n_items * sizeof(int32_t))
    remaining.position = <int32_t *>take(layout, n_items * sizeof(int32_t))
    remaining.keys = <double *>take(layout, items)


cdef void lay_out_remaining(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Remaining measured
    take_remaining(layout, <Remaining *>take_state(layout, sizeof(Remaining), &measured), n_items, cutoff)


cdef void prepare_remaining(Remaining *remaining, const double *scores, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Select the leading items of one query, whose arrays have been taken. O(D + K log K)."""
    cdef double *keys = remaining.keys
    cdef double highest, lowest
    cdef Sum others = Sum(0.0, 0.0)
    cdef intp_t d, p
    remaining.n_items = n_items
    remaining.cutoff = cutoff
    remaining.scores = scores
    remaining.n_leading = min(cutoff + 1, n_items)

    for d in range(n_items):
        keys[d] = -scores[d]
        remaining.leading[d] = <int32_t>d
    select_smallest(keys, remaining.leading, n_items, remaining.n_leading)
    sort_pairs(keys, remaining.leading, remaining.n_leading)
    highest = scores[remaining.leading[0]]
    lowest = INFINITY
    for d in range(n_items):
        lowest = min(lowest, scores[d])
        remaining.position[d] = <int32_t>remaining.n_leading
    remaining.wide = not (highest - lowest <= PLR_LARGEST_SPREAD / 3)  # the Hessian has squares of weights
    if remaining.wide:
        for d in range(n_items):
            remaining.weights[d] = exp(scores[d] - highest)
    else:
        relative_weights_of(scores, highest, 1.0, remaining.weights, n_items)

    for p in range(remaining.n_leading):
        d = remaining.leading[p]
        remaining.position[d] = <int32_t>p
        remaining.leading_weights[p] = remaining.weights[d]
        remaining.stamp[p] = 0
        remaining.step[p] = exp(keys[p - 1] - keys[p]) if remaining.wide and p > 0 else 1.0
    remaining.ranking_number = 0
    for p in range(remaining.n_leading, n_items):
        add(&others, weight_in_unit(remaining, remaining.leading[p], remaining.n_leading - 1))
    remaining.other_weight = value_of(&others)
    memcpy(keys, remaining.weights, n_items * sizeof(double))
    for p in range(remaining.n_leading):
        keys[remaining.leading[p]] = 0.0


cdef void analyse_ranking(Remaining *remaining, const int32_t *ranking) noexcept nogil:
    """Fill ``first_unplaced``, ``unit_position`` and ``sums`` for the first ``cutoff`` items of a ranking. O(K)."""
    cdef intp_t cutoff = remaining.cutoff, n_leading = remaining.n_leading
    cdef intp_t k, p, unit = 0
    cdef int64_t number = remaining.ranking_number + 1
    cdef double placed_others = 0.0, left_over = 0.0
    remaining.ranking_number = number
    for k in range(cutoff):
        while remaining.stamp[unit] == number:
            unit += 1
        remaining.unit_position[k] = unit
        p = remaining.position[ranking[k]]
        if p < n_leading:
            remaining.stamp[p] = number
        else:
            placed_others += weight_in_unit(remaining, ranking[k], n_leading - 1)
    while unit < n_leading and remaining.stamp[unit] == number:
        unit += 1
    remaining.first_unplaced = unit
    remaining.unit_position[cutoff] = unit

    if unit < n_leading:
        # from the lightest up, so that in a wide query each change of unit only shrinks the sum so far
        left_over = max(0.0, remaining.other_weight - placed_others)
        for p in range(n_leading - 1, unit - 1, -1):
            if remaining.stamp[p] != number:
                left_over += 1.0 if remaining.wide else remaining.leading_weights[p]
            if p > unit:
                left_over *= remaining.step[p]
    remaining.sums[cutoff] = left_over
    for k in range(cutoff - 1, -1, -1):
        if remaining.unit_position[k + 1] < n_leading:
            left_over *= unit_ratio(remaining, remaining.unit_position[k + 1], remaining.unit_position[k])
        left_over += weight_in_unit(remaining, ranking[k], remaining.unit_position[k])
        remaining.sums[k] = left_over


cdef void sum_remaining(Remaining *remaining, const int32_t *ranking) noexcept nogil:
    """Fill ``sums`` alone, for a query that is not wide: as ``analyse_ranking`` does, but without branches. O(K)."""
    cdef double *sums = remaining.sums
    cdef double placed_others = 0.0, left_over
    cdef intp_t k, p
    memcpy(sums, remaining.leading_weights, remaining.n_leading * sizeof(double))
    for k in range(remaining.cutoff):
        placed_others += remaining.keys[ranking[k]]
        sums[remaining.position[ranking[k]]] = 0.0  # the entry past the leading items is for the others
    left_over = max(0.0, remaining.other_weight - placed_others)
    for p in range(remaining.n_leading - 1, -1, -1):
        left_over += sums[p]
    sums[remaining.cutoff] = left_over
    for k in range(remaining.cutoff - 1, -1, -1):
        left_over += remaining.weights[ranking[k]]
        sums[k] = left_over


cdef void hand_out_sums(
    const Remaining *remaining, double *sums, const double *factors, double sign, double *gradient
) noexcept nogil:
    """Add to all items the ``sums`` over the rankings that leave them out, and clear these. O(D).

    There is a sum for each ``first_unplaced``, in its unit. An item adds its weight, times its factor (if ``factors``
    are not NULL), times the sums of all that do not score below it.
    """
    cdef intp_t d, p, n_leading = remaining.n_leading
    cdef double total = 0.0
    for p in range(n_leading):
        d = remaining.leading[p]
        total = total * remaining.step[p] + sums[p]
        gradient[d] += sign * weight_in_unit(remaining, d, p) * total * (factors[d] if factors != NULL else 1.0)
        sums[p] = 0.0
    for d in range(remaining.n_items):
        if remaining.position[d] == n_leading:
            gradient[d] += sign * weight_in_unit(remaining, d, n_leading - 1) * total * (
                factors[d] if factors != NULL else 1.0)
