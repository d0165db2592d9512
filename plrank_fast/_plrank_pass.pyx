"""PL-Rank-3 over rankings in lockstep: which of its passes may run, and its two ends around the kernel.

The kernel (``kernels/plrank_pass.c``) takes sixteen rankings at once: at D = 120 it is 7 times faster than the plain
estimator of ``_plrank`` with K = 10 and 30 times with K = 100. That one remains
for scores and rank weights where it could not hold the same 1e-12.
"""

from libc.math cimport sqrt
from libc.string cimport memset

from plrank_fast._samplers cimport LOCKSTEP, LOCKSTEP_RANKS, PLR_NETWORK_ITEMS, deepest
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
# Its final difference leaves, of sums over whole rankings, the part up to an item's rank. In every ranking that part is
# at least the first rank's, [PR_1, theta_1] / S_1, if neither relevance nor rank weights are negative. So the totals
# over that bound by how much rounding is amplified. It is known at the end: the bound that ``most_draws`` gives in
# advance is some ten times larger (it takes the worst order, and all rank weights and rewards as large as the first),
# so a query below ten times the limit is tried, and done again by another pass if it comes out above it.

# Sums are moved on to the gradient every so many rankings, which keeps their own rounding small.

cdef double HOPELESS = 10.0
cdef intp_t SETTLE_AFTER = 128  # rankings, or as many as place four items for each one of the query


cdef inline double largest_amplification(double n_rankings) noexcept nogil:
    """Amplification that leaves 1e-12 of the sum of absolute terms, measured with a margin of 4 on drawn rankings.

    Rounding in sums over n rankings grows like sqrt(n) where they differ and like n where all are the same.
    """
    return min(1e4 / sqrt(n_rankings), 1e5 / n_rankings)


cdef bint is_exact(const plrank_pass *columns_pass) noexcept nogil:
    """Whether the backward pass has amplified rounding within the limit since the sums were settled last."""
    cdef double limit = largest_amplification(columns_pass.unsettled) / columns_pass.total_weight
    return columns_pass.baseline != NULL or (
        columns_pass.total_direct <= limit * columns_pass.unsettled * columns_pass.rank_weights[0]
        and columns_pass.total_reward <= limit * columns_pass.first_reward)


cdef bint is_not_negative(const plrank_pass *columns_pass, const double *relevance) noexcept nogil:
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

cdef size_t pass_workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Bytes that ``begin_pass`` carves out."""
    cdef size_t states = 16 * (min(n_items, <intp_t>PLR_NETWORK_ITEMS) + 1)
    cdef size_t sums = 4 * max(
        n_items + 1, 4 * (min(n_items, <intp_t>PLR_COPIED_ITEMS) + 1))  # of this or any shorter query
    return (sums + 2 * (<size_t>n_items + 1) + deepest(n_items, cutoff) + states) * sizeof(double) + 64


cdef void clear_sums(plrank_pass *columns_pass) noexcept nogil:
    cdef size_t n_items = columns_pass.n_items
    memset(columns_pass.sums, 0, 4 * plr_pass_copies(n_items) * (n_items + 1) * sizeof(double))
    columns_pass.total_reward = 0.0
    columns_pass.total_direct = 0.0
    columns_pass.first_reward = 0.0
    columns_pass.unsettled = 0


cdef int begin_pass(
    plrank_pass *columns_pass, const Weights *weights, const double *relevance, const double *rank_weights,
    const double *baseline, intp_t cutoff, intp_t n_samples, bint can_complete, bint first_attempt,
    double *gradient, char *workspace
) noexcept nogil:
    """Prepare the sums of one query; returns which pass may run. O(D + K).

    ``depth`` comes out as the ranks that the pass wants: more than the cutoff only if the rankings can be completed.
    """
    cdef intp_t d, k, n_items = weights.n_items
    cdef intp_t copies = plr_pass_copies(n_items)
    cdef double *theta
    cdef double limit
    cdef int kind
    if not weights.representable or cutoff > LOCKSTEP_RANKS:
        return PLAIN
    can_complete = can_complete and n_items <= PLR_NETWORK_ITEMS
    columns_pass.n_items = n_items
    columns_pass.cutoff = cutoff
    columns_pass.settle_after = max(SETTLE_AFTER, 4 * n_items // cutoff // SETTLE_AFTER * SETTLE_AFTER)
    columns_pass.inexact = False
    columns_pass.baseline = baseline
    limit = largest_amplification(min(n_samples, <intp_t>columns_pass.settle_after))
    if baseline == NULL:
        limit *= HOPELESS  # with a baseline the bound known in advance is all there is
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
    clear_sums(columns_pass)
    memset(gradient, 0, n_items * sizeof(double))
    return kind


cdef void settle(plrank_pass *columns_pass, int kind, double *gradient) noexcept nogil:
    """Move the sums over the rankings so far on to the gradient. O(D)."""
    cdef intp_t d, _, copies = plr_pass_copies(columns_pass.n_items)
    cdef double relevance, weight, reward, direct, own
    cdef const double *sums = columns_pass.sums
    cdef double sign = 1.0 if kind == FORWARD else -1.0
    columns_pass.inexact |= kind == BACKWARD and not is_exact(columns_pass)
    for d in range(<intp_t>columns_pass.n_items):
        relevance = columns_pass.items[2 * d]
        weight = columns_pass.items[2 * d + 1]
        reward = 0.0
        direct = 0.0
        own = 0.0
        for _ in range(copies):
            reward += sums[0]
            direct += sums[1]
            own += sums[2]
            sums += 4
        # sums over the ranks up to the item's own, or what the ranks after it leave of the total
        reward = columns_pass.total_reward + sign * reward
        direct = columns_pass.total_direct + sign * direct
        gradient[d] += own + weight * (relevance * direct - reward)
    clear_sums(columns_pass)


cdef void accumulate_columns(
    plrank_pass *columns_pass, int kind, int32_t *columns, intp_t n_rankings, double *gradient
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
    columns_pass.unsettled += n_rankings
    if columns_pass.unsettled >= columns_pass.settle_after:
        settle(columns_pass, kind, gradient)


cdef bint finish_pass(plrank_pass *columns_pass, int kind, intp_t n_samples, double *gradient) noexcept nogil:
    """gradient = mean over the rankings; False if it is not exact enough. O(D)."""
    cdef intp_t d
    if columns_pass.unsettled > 0:
        settle(columns_pass, kind, gradient)
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
