"""Battles of items i < j: numbered by pair and result, and counts of these with their slopes and information.

The results are that i won, that j won, and a draw. A draw has slopes by its log delta and by half the difference of
scores, as in Davidson's model, and none where the chance of a draw is 0.
"""

import numpy as np

from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t, uint32_t


cdef inline int64_t number_of(
    const int64_t *items, const int64_t *places, int64_t n_items, int64_t rest
) noexcept nogil:
    """Return 3 * (i * n_items + j) + result, or 3 * n_items**2 if ``rest`` is the place of both: no result."""
    cdef int64_t number = 3 * (min(items[0], items[1]) * n_items + max(items[0], items[1]))
    if places[0] != places[1]:
        return number + ((items[0] < items[1]) != (places[0] < places[1]))
    return number + 2 if places[0] != rest else 3 * n_items * n_items


def results_of(const int64_t[::1] items, const int64_t[::1] places, int64_t n_items, int64_t rest):
    """Return the number of each battle by pair and result. Two ``places`` stand for every battle."""
    cdef intp_t n_battles = items.shape[0] // 2, step = 2 * (places.shape[0] > 2), k
    results = np.empty(n_battles, dtype=np.int64)
    cdef int64_t[::1] numbers = results
    for k in range(n_battles):
        numbers[k] = number_of(&items[2 * k], &places[step * k], n_items, rest)
    return results


def table_of(
    const int64_t[::1] items, const int64_t[::1] places, int64_t n_items, int64_t rest, const double[:] weights
):
    """Return the sum of weights for each of these numbers."""
    cdef intp_t n_battles = items.shape[0] // 2, step = 2 * (places.shape[0] > 2), k
    table = np.zeros(3 * n_items * n_items + 1)
    cdef double[::1] sums = table
    for k in range(n_battles):
        sums[number_of(&items[2 * k], &places[step * k], n_items, rest)] += weights[k]
    return table


def slopes(
    const int64_t[::1] i, const int64_t[::1] j, const double[:, ::1] counts, const double[::1] half,
    const double[::1] log_z, const double[:, ::1] chances, double log_delta, double[::1] of_pairs,
    double[::1] of_items
):
    """Write the slopes of pairs by the score of i, add them up for items, and return the value and the draws' slope."""
    cdef intp_t pair
    cdef double won, lost, drawn, above, below, draw, slope, value = 0.0, of_draws = 0.0
    with nogil:
        for pair in range(i.shape[0]):
            won, lost, drawn = counts[pair, 0], counts[pair, 1], counts[pair, 2]
            above, below, draw = chances[0, pair], chances[1, pair], chances[2, pair]
            # no 1 - p, which would cancel
            slope = won * below - lost * above + 0.5 * ((won - lost) * draw - drawn * (above - below))
            of_draws += drawn * (above + below) - (won + lost) * draw
            value += won * (half[pair] - log_z[pair]) - lost * (half[pair] + log_z[pair])
            if drawn > 0.0:
                value += drawn * (log_delta - log_z[pair])
            of_pairs[pair] = slope
            of_items[i[pair]] += slope
            of_items[j[pair]] -= slope
    return value, of_draws


def information(
    const int64_t[::1] i, const int64_t[::1] j, const double[:, ::1] counts, const double[:, ::1] chances,
    double[::1] of_pairs, double[::1] with_draws, double[:, ::1] links
):
    """Write the information of pairs about the difference of scores, and about it and the log delta of draws.

    Add the links of items up, and return the information about the log delta. With margin q = p_win - p_loss, the
    information about the difference is (p_win + p_loss - q**2) / 4.
    """
    cdef intp_t pair
    cdef double total, above, below, draw, own, of_draws = 0.0
    with nogil:
        for pair in range(i.shape[0]):
            total = counts[pair, 0] + counts[pair, 1] + counts[pair, 2]
            above, below, draw = chances[0, pair], chances[1, pair], chances[2, pair]
            own = total * (above * below + 0.25 * draw * (above + below))
            with_draws[pair] = -0.5 * total * (above - below) * draw
            of_draws += total * draw * (above + below)
            of_pairs[pair] = own
            links[i[pair], j[pair]] += own
            links[j[pair], i[pair]] += own
    return of_draws


def drawn_again(const int32_t[::1] labels, const uint32_t[::1] drawn, int64_t[::1] counts):
    """Count the labels of what was drawn."""
    cdef intp_t k
    with nogil:
        for k in range(drawn.shape[0]):
            counts[labels[drawn[k]]] += 1
