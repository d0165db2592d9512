"""Weights of one query's items, which samplers and estimators share, and how they are spread."""

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef extern from "ranking/weights.h" nogil:
    const int PLR_OCTAVES
    const double PLR_LARGEST_SPREAD
    ctypedef struct weight_octaves:
        double count[64]
        double mass[64]
        size_t n
    ctypedef struct arrivals:
        double time
        double rate
        double variance

cdef struct Weights:
    intp_t n_items
    const double *scores
    double highest              # highest score
    double spread               # nats from the highest score to the lowest
    bint representable          # whether the spread fits a double; the following are set only then
    double *relative            # (n_items,) exp(score - highest)
    double total
    double lightest
    bint sorted                 # whether the remaining members are set too
    weight_octaves octaves
    # upper bound on the sum over ranks k of S_1 / S_k in any ranking: this is the mean number of draws with replacement
    # that see ``cutoff`` items, and the factor by which a difference of sums over ranks amplifies rounding
    double most_draws

cdef double relative_weights_of(
    const double *scores, double highest, double sign, double *out, intp_t n_items) noexcept nogil
cdef arrivals expected_arrivals(const Weights *weights, double wanted, double latest) noexcept nogil
cdef size_t weights_workspace(intp_t n_items) noexcept nogil
cdef char *weigh(
    Weights *weights, const double *scores, intp_t n_items, intp_t cutoff, bint sort, char *workspace) noexcept nogil
