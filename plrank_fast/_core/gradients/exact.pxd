"""Exact expectations of one query by quadrature: metric, gradient, Hessian diagonal, rank probabilities."""

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef size_t exact_workspace(intp_t n_items, intp_t cutoff, bint probabilities) noexcept nogil
cdef bint solve(
    const double *scores, const double *relevance, const double *stop, intp_t n_items, const double *rank_weights,
    intp_t cutoff, double rtol, double *gradient, double *hessian, double *value, char *workspace) noexcept nogil
cdef void find_rank_probabilities(
    const double *scores, intp_t n_items, intp_t cutoff, double *probabilities, char *workspace) noexcept nogil
