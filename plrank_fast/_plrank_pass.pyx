"""PL-Rank-3 over rankings in lockstep: which of its passes may run, and its two ends around the kernel.

The kernel (``kernels/plrank_pass.c``) takes sixteen rankings at once and is six times faster than the plain estimator
of ``_plrank``, which remains for scores and rank weights where it could not hold the same 1e-12.
"""

from libc.math cimport sqrt
from libc.string cimport memset

from plrank_fast._samplers cimport LOCKSTEP, PLR_NETWORK_ITEMS
from plrank_fast._simd cimport simd_level
from plrank_fast._typedefs cimport int32_t, intp_t
from plrank_fast._weights cimport Weights

cdef extern from "plrank_pass.h" nogil:
    ctypedef struct plrank_pass_kernels:
        void (*backward)(plrank_pass *columns_pass, const int32_t *columns, size_t n_lanes) noexcept nogil
        void (*forward)(plrank_pass *columns_pass, const int32_t *columns, size_t n_lanes) noexcept nogil
    const plrank_pass_kernels *plrank_pass_kernels_at(int level)
    const int PLR_COPIED_ITEMS
    size_t plr_pass_copies(size_t n_items)

cdef const plrank_pass_kernels *kernels = plrank_pass_kernels_at(simd_level())


# ---------------------------------------------------------------------------------------------------------------------
# Whether the backward pass is exact enough
# ---------------------------------------------------------------------------------------------------------------------
#
# Its final difference leaves, of sums over whole rankings, the part up to an item's rank. In no ranking is that part
# less than the first rank's, [PR_1, theta_1] / S_1, nor the whole more than [PR_1, theta_1] times the sum of 1 / S_k,
# if relevance and rank weights are not negative and theta_1 is the greatest: ``most_draws`` bounds the amplification of
# rounding.

cdef inline double largest_amplification(double n_samples, bint drawn) noexcept nogil:
    """Amplification that leaves 1e-12 of the sum of absolute terms, measured with a margin of 5.

    Rounding in sums over N rankings grows like sqrt(N) where they differ and like N where all are the same, as given
    ones may be; those drawn from equal weights all have the same S.
    """
    return min(3e4 / sqrt(n_samples), 1e6 / n_samples) if drawn else 3e5 / n_samples


cdef bint is_descending_reward(const plrank_pass *columns_pass, const double *relevance) noexcept nogil:
    """Whether rank weights and relevance are such that ``most_draws`` bounds the amplification."""
    cdef intp_t d, k
    for k in range(<intp_t>columns_pass.cutoff):
        if not 0.0 <= columns_pass.rank_weights[k] <= columns_pass.rank_weights[0]:
            return False
    for d in range(<intp_t>columns_pass.n_items):
        if relevance[d] < 0.0:
            return False
    return True


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t pass_workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Bytes that ``begin_pass`` carves out."""
    cdef size_t deepest = max(min(cutoff, n_items), min(n_items, <intp_t>PLR_NETWORK_ITEMS))
    cdef size_t states = 16 * (min(n_items, <intp_t>PLR_NETWORK_ITEMS) + 1)
    cdef size_t sums = 4 * max(
        <size_t>n_items + 1, 4 * (min(n_items, <intp_t>PLR_COPIED_ITEMS) + 1))  # of this or any shorter query
    return (sums + 2 * (<size_t>n_items + 1) + deepest + states) * sizeof(double) + 64


cdef int begin_pass(
    plrank_pass *columns_pass, const Weights *weights, const double *relevance, const double *rank_weights,
    intp_t cutoff, intp_t n_samples, bint drawn, bint can_complete, char *workspace
) noexcept nogil:
    """Prepare the sums of one query; returns which pass may run. O(D + K).

    ``depth`` comes out as the ranks that the pass wants: more than the cutoff only if the rankings can be completed.
    """
    cdef intp_t d, k, n_items = weights.n_items
    cdef size_t copies = plr_pass_copies(n_items)
    cdef double *theta
    cdef int kind
    if not weights.representable:
        return PLAIN
    can_complete = can_complete and n_items <= PLR_NETWORK_ITEMS
    columns_pass.n_items = n_items
    columns_pass.cutoff = cutoff
    columns_pass.total_reward = 0.0
    columns_pass.total_direct = 0.0
    columns_pass.sums = <double *>workspace
    columns_pass.items = columns_pass.sums + 4 * copies * (n_items + 1)
    columns_pass.states = columns_pass.items + 2 * (n_items + 1)
    theta = columns_pass.states + 16 * (min(n_items, <intp_t>PLR_NETWORK_ITEMS) + 1)
    columns_pass.rank_weights = theta

    columns_pass.total_weight = weights.total
    for d in range(n_items):
        columns_pass.items[2 * d] = relevance[d]
        columns_pass.items[2 * d + 1] = weights.relative[d]
    columns_pass.items[2 * n_items] = 0.0
    columns_pass.items[2 * n_items + 1] = 0.0
    for k in range(cutoff):
        theta[k] = rank_weights[k]

    if weights.most_draws <= largest_amplification(n_samples, drawn) and is_descending_reward(columns_pass, relevance):
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
    memset(columns_pass.sums, 0, 4 * copies * (n_items + 1) * sizeof(double))
    return kind


cdef void accumulate_columns(
    plrank_pass *columns_pass, int kind, int32_t *columns, intp_t n_rankings
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


cdef void finish_pass(
    const plrank_pass *columns_pass, int kind, intp_t n_samples, double *gradient
) noexcept nogil:
    """gradient = mean over the rankings. O(D)."""
    cdef intp_t d, i, copies = plr_pass_copies(columns_pass.n_items)
    cdef double relevance, weight, reward, direct, own
    cdef const double *sums
    cdef double sign = 1.0 if kind == FORWARD else -1.0
    cdef double total_reward = columns_pass.total_reward, total_direct = columns_pass.total_direct
    for d in range(<intp_t>columns_pass.n_items):
        relevance = columns_pass.items[2 * d]
        weight = columns_pass.items[2 * d + 1]
        reward = 0.0
        direct = 0.0
        own = 0.0
        for i in range(copies):
            sums = columns_pass.sums + 4 * (copies * d + i)
            reward += sums[0]
            direct += sums[1]
            own += sums[2]
        # sums over the ranks up to the item's own, or what the ranks after it leave of the total
        reward = total_reward + sign * reward
        direct = total_direct + sign * direct
        gradient[d] = (own + weight * (relevance * direct - reward)) / n_samples


cdef void pack_columns(
    const int32_t *rankings, intp_t n_rankings, intp_t stride, intp_t depth, int32_t *columns
) noexcept nogil:
    """Rows to columns, at most LOCKSTEP of them."""
    cdef intp_t i, k
    for i in range(n_rankings):
        for k in range(depth):
            columns[k * LOCKSTEP + i] = rankings[i * stride + k]
