"""The weight not yet placed before each rank of a ranking, exact at every gap of the scores."""

from libc.math cimport exp

from plrank_fast._core.runtime.layout cimport Layout
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t

cdef struct Remaining:
    intp_t n_items
    intp_t cutoff              # ranks in use, at most n_items; may be lowered for a ranking that ends early
    bint wide                  # weights span more than a double: every rank has its own unit
    const double *scores
    double *weights            # exp(score - highest score), (n_items,); 0 where that underflows
    intp_t n_leading           # min(cutoff + 1, n_items)
    int32_t *leading           # the n_leading items of highest score, in descending order
    int32_t *position          # position of each item among the leading ones; n_leading for the others
    double *leading_weights    # weights of the leading items
    double *step               # exp(score[leading[p]] - score[leading[p - 1]]) if wide, else 1
    double *keys               # (n_items,) scratch of the selection, then weights of the items that do not lead, else 0
    double other_weight        # sum over the items that do not lead, in units of the last leading item
    # the following describe the ranking last analysed
    int64_t *stamp             # number of the last ranking that placed each leading position
    int64_t ranking_number
    intp_t first_unplaced      # leading position of the highest-scored item left over; n_leading if there is none
    intp_t *unit_position      # (cutoff + 1,) leading position that is the unit before each rank
    double *sums               # (cutoff + 1,) weight not placed before each rank, in that rank's unit; and one more

cdef void take_remaining(Layout *layout, Remaining *remaining, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void lay_out_remaining(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void prepare_remaining(Remaining *remaining, const double *scores, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void analyse_ranking(Remaining *remaining, const int32_t *ranking) noexcept nogil
cdef void sum_remaining(Remaining *remaining, const int32_t *ranking) noexcept nogil
cdef void hand_out_sums(
    const Remaining *remaining, double *sums, const double *factors, double sign, double *gradient) noexcept nogil


cdef inline intp_t ranks_placed(const int32_t *ranking, intp_t cutoff) noexcept nogil:
    """Return the number of ranks before the end of a ranking, the first -1, or ``cutoff`` if there is none."""
    cdef intp_t k = 0
    while k < cutoff and ranking[k] >= 0:
        k += 1
    return k


cdef inline double weight_in_unit(const Remaining *remaining, intp_t item, intp_t unit_position) noexcept nogil:
    """Return the weight of an item in the unit of a leading position (all units are equal unless ``wide``)."""
    if not remaining.wide:
        return remaining.weights[item]
    return exp(remaining.scores[item] - remaining.scores[remaining.leading[unit_position]])


cdef inline double unit_ratio(const Remaining *remaining, intp_t position, intp_t earlier) noexcept nogil:
    """Return the factor (<= 1) that converts a sum of reciprocals to a later unit, or one of weights to an earlier."""
    if not remaining.wide or position == earlier:
        return 1.0
    return exp(remaining.scores[remaining.leading[position]] - remaining.scores[remaining.leading[earlier]])
