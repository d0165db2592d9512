"""PL-Rank-3 over groups of sixteen rankings: which of its passes may run, and its two ends around the kernel.

The kernel (``kernels/pl_rank_groups.c``) takes sixteen rankings at once: at D = 120 it is 7 times faster than the plain
estimator of ``_plrank`` with K = 10 and 30 times with K = 100. That one remains
for scores and rank weights where it could not hold the same 1e-12.
"""

from libc.math cimport sqrt
from libc.string cimport memset

from plrank_fast._samplers cimport LOCKSTEP, LOCKSTEP_RANKS, PLR_NETWORK_ITEMS, deepest
from plrank_fast._simd cimport simd_level
from plrank_fast._typedefs cimport int32_t, intp_t
from plrank_fast._weights cimport Weights

cdef extern from "pl_rank_groups.h" nogil:
    ctypedef struct pl_rank_groups_kernels:
        void (*backward)(pl_rank_groups *columns_pass, int32_t *columns, size_t n_lanes) noexcept nogil
        void (*forward)(pl_rank_groups *columns_pass, int32_t *columns, size_t n_lanes) noexcept nogil
    const pl_rank_groups_kernels *pl_rank_groups_kernels_at(int level)
    const int PLR_CACHED_ITEMS
    size_t plr_record_length(size_t n_items)

cdef const pl_rank_groups_kernels *kernels = pl_rank_groups_kernels_at(simd_level())


# ---------------------------------------------------------------------------------------------------------------------
# Whether the backward pass is exact enough
# ---------------------------------------------------------------------------------------------------------------------
#
# Its final difference leaves, of sums over whole rankings, the part up to an item's rank. In every ranking that part is
# at least the first rank's, [PR_1, theta_1] / S_1, if neither relevance nor rank weights are negative. So the totals
# over that bound by how much rounding is amplified. It is known at the end: the bound that ``most_draws`` gives in
# advance is some ten times larger (it takes the worst order, and all rank weights and rewards as large as the first),
# so a query below ten times the limit is tried, and done again by another pass as soon as it comes out above it, which
# is after FLUSH_AFTER rankings. Trying is worth while even where complete rankings cost little more: D = 120, K = 100
# takes 18.6 us for 96 rankings of scores with deviation 2, and 21.6 if it is not tried.

# Sums are moved on to the gradient every so many rankings, which keeps their own rounding small.

cdef double HOPELESS = 10.0
cdef double LARGEST_SPREAD = 300.0  # nats
cdef intp_t FLUSH_AFTER = 128  # rankings, or as many as place four items for each one of the query


cdef inline double largest_amplification(double n_rankings) noexcept nogil:
    """Amplification that leaves 1e-12 of the sum of absolute terms, measured with a margin of 4 on drawn rankings.

    Rounding in sums over n rankings grows like sqrt(n) where they differ and like n where all are the same.
    """
    return min(1e4 / sqrt(n_rankings), 1e5 / n_rankings)


cdef bint is_exact(const pl_rank_groups *columns_pass, double total_reward, double total_direct) noexcept nogil:
    """Whether the backward pass has amplified rounding within the limit since the sums were flushed last."""
    cdef double limit = largest_amplification(columns_pass.since_flush) / columns_pass.total_weight
    return columns_pass.baseline != NULL or (
        total_direct <= limit * columns_pass.since_flush * columns_pass.rank_weights[0]
        and total_reward <= limit * sum_of_lanes(columns_pass.first_reward))


cdef bint is_not_negative(const pl_rank_groups *columns_pass, const double *relevance) noexcept nogil:
    """Whether rank weights and relevance are such that the totals bound the amplification."""
    cdef intp_t d, k
    for k in range(<intp_t>columns_pass.cutoff):
        if columns_pass.rank_weights[k] < 0.0:
            return False
    for d in range(<intp_t>columns_pass.n_items):
        if relevance[d] < 0.0:
            return False
    return True


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline double sum_of_lanes(const double *lanes) noexcept nogil:
    cdef double total = 0.0
    cdef intp_t i
    for i in range(LOCKSTEP):
        total += lanes[i]
    return total


cdef size_t pass_workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Bytes that ``begin_pass`` carves out."""
    cdef size_t states = 16 * (min(n_items, <intp_t>PLR_NETWORK_ITEMS) + 1)
    cdef size_t records = max(
        4 * (<size_t>n_items + 1), 8 * (min(<size_t>n_items, <size_t>PLR_CACHED_ITEMS) + 1))  # of any shorter query too
    return (records + states + deepest(n_items, cutoff)) * sizeof(double)


cdef int begin_pass(
    pl_rank_groups *columns_pass, const Weights *weights, const double *relevance, const double *rank_weights,
    const double *baseline, intp_t cutoff, intp_t n_samples, bint can_complete, bint first_attempt,
    double *gradient, char *workspace
) noexcept nogil:
    """Prepare the sums of one query; returns which pass may run. O(D + K).

    ``depth`` comes out as the ranks that the pass wants: more than the cutoff only if the rankings can be completed.
    """
    cdef intp_t d, k, n_items = weights.n_items
    cdef intp_t length = plr_record_length(n_items)
    cdef double *record = <double *>workspace
    cdef double *theta
    cdef double limit
    cdef int kind
    if not weights.representable or cutoff > LOCKSTEP_RANKS:
        return PLAIN
    # two remaining weights are multiplied, and must not leave a double's range
    can_complete = can_complete and n_items <= PLR_NETWORK_ITEMS and weights.spread <= LARGEST_SPREAD
    columns_pass.n_items = n_items
    columns_pass.cutoff = cutoff
    columns_pass.flush_after = max(FLUSH_AFTER, 4 * n_items // cutoff // FLUSH_AFTER * FLUSH_AFTER)
    columns_pass.inexact = False
    columns_pass.baseline = baseline
    limit = largest_amplification(min(n_samples, <intp_t>columns_pass.flush_after))
    if baseline == NULL:
        limit *= HOPELESS  # with a baseline the bound known in advance is all there is
    columns_pass.records = record
    columns_pass.states = record + length * (n_items + 1)
    theta = columns_pass.states + 16 * (min(n_items, <intp_t>PLR_NETWORK_ITEMS) + 1)
    columns_pass.rank_weights = theta

    columns_pass.total_weight = weights.total
    memset(record, 0, length * (n_items + 1) * sizeof(double))
    for d in range(n_items):
        record[0] = relevance[d]
        record[1] = weights.relative[d]
        record += length
    for k in range(cutoff):
        theta[k] = rank_weights[k]

    if (
        first_attempt
        and weights.most_draws <= limit
        and is_not_negative(columns_pass, relevance)
    ):
        kind = BACKWARD
        # the weight left over is cheaper to sum from the ranks past the cutoff if these are few
        columns_pass.depth = n_items if can_complete and 2 * cutoff > n_items else cutoff
    elif can_complete:
        kind = FORWARD
        columns_pass.depth = n_items
    else:
        return PLAIN
    for k in range(cutoff, <intp_t>columns_pass.depth):
        theta[k] = 0.0
    clear_totals(columns_pass)
    memset(gradient, 0, n_items * sizeof(double))
    return kind


cdef void clear_totals(pl_rank_groups *columns_pass) noexcept nogil:
    memset(columns_pass.total_reward, 0, sizeof(columns_pass.total_reward))
    memset(columns_pass.total_direct, 0, sizeof(columns_pass.total_direct))
    memset(columns_pass.first_reward, 0, sizeof(columns_pass.first_reward))
    columns_pass.since_flush = 0


cdef void flush(pl_rank_groups *columns_pass, int kind, double *gradient) noexcept nogil:
    """Move the sums over the rankings so far on to the gradient. O(D)."""
    cdef intp_t d, length = plr_record_length(columns_pass.n_items)
    cdef double reward = sum_of_lanes(columns_pass.total_reward)
    cdef double direct = sum_of_lanes(columns_pass.total_direct)
    cdef double own
    cdef double *record = columns_pass.records
    columns_pass.inexact |= kind == BACKWARD and not is_exact(columns_pass, reward, direct)
    for d in range(<intp_t>columns_pass.n_items):
        own = record[2] + record[3]
        record[2] = 0.0
        record[3] = 0.0
        if length > 4:
            own += record[4] + record[5]
            record[4] = 0.0
            record[5] = 0.0
        gradient[d] += own + record[1] * (record[0] * direct - reward)
        record += length
    clear_totals(columns_pass)


cdef void accumulate_columns(
    pl_rank_groups *columns_pass, int kind, int32_t *columns, intp_t n_rankings, double *gradient
) noexcept nogil:
    """Add the first ``n_rankings`` of a group; the others are overwritten with the dummy."""
    cdef intp_t k, i
    if n_rankings < LOCKSTEP:
        for k in range(<intp_t>columns_pass.depth):
            for i in range(n_rankings, LOCKSTEP):
                columns[k * LOCKSTEP + i] = <int32_t>columns_pass.n_items
    if kind == FORWARD:
        kernels.forward(columns_pass, columns, n_rankings)
    else:
        kernels.backward(columns_pass, columns, n_rankings)
    columns_pass.since_flush += n_rankings
    if columns_pass.since_flush >= columns_pass.flush_after:
        flush(columns_pass, kind, gradient)


cdef bint finish_pass(pl_rank_groups *columns_pass, int kind, intp_t n_samples, double *gradient) noexcept nogil:
    """gradient = mean over the rankings; False if it is not exact enough. O(D)."""
    cdef intp_t d
    if columns_pass.since_flush > 0:
        flush(columns_pass, kind, gradient)
    for d in range(<intp_t>columns_pass.n_items):
        gradient[d] /= n_samples
    return not columns_pass.inexact


cdef void pack_columns(
    const int32_t *rankings, intp_t n_rankings, intp_t stride, intp_t depth, int32_t *columns
) noexcept nogil:
    """Rows to columns, at most LOCKSTEP of them."""
    cdef intp_t i, k
    for i in range(n_rankings):
        for k in range(depth):
            columns[k * LOCKSTEP + i] = rankings[i * stride + k]
