"""PL-Rank-3 over groups of sixteen rankings: which of its passes may run, and its two ends around the kernel."""

from plrank_fast._typedefs cimport int32_t, intp_t
from plrank_fast._weights cimport Weights

cdef extern from "pl_rank_groups.h" nogil:
    enum:
        PLR_GROUP_SIZE
    ctypedef struct pl_rank_groups:
        size_t n_items
        size_t cutoff
        size_t depth
        const double *rank_weights
        const double *baseline
        double *records
        double total_weight
        double[PLR_GROUP_SIZE] total_reward
        double[PLR_GROUP_SIZE] total_direct
        double[PLR_GROUP_SIZE] first_reward
        double *states
        size_t flush_after
        size_t since_flush
        bint inexact

# which pass serves a query
cdef enum:
    PLAIN = 0      # none: one ranking after another, ``_plrank``
    BACKWARD = 1
    FORWARD = 2

cdef size_t pass_workspace(intp_t n_items, intp_t cutoff) noexcept nogil
cdef int begin_pass(
    pl_rank_groups *columns_pass, const Weights *weights, const double *relevance, const double *rank_weights,
    const double *baseline, intp_t cutoff, intp_t n_samples, bint can_complete, bint first_attempt,
    double *gradient, char *workspace
) noexcept nogil
cdef void accumulate_columns(
    pl_rank_groups *columns_pass, int kind, int32_t *columns, intp_t n_rankings, double *gradient
) noexcept nogil
cdef bint finish_pass(pl_rank_groups *columns_pass, int kind, intp_t n_samples, double *gradient) noexcept nogil
cdef void pack_columns(
    const int32_t *rankings, intp_t n_rankings, intp_t stride, intp_t depth, int32_t *columns
) noexcept nogil
