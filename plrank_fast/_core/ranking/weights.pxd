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
    int n_threads               # as many may share a pass over the items
    weight_octaves *of_ranges   # what a pass finds in each range of items

cdef double relative_weights_of(
    const double *scores, double highest, double sign, double *out, intp_t n_items) noexcept nogil
cdef double effective_items(const Weights *weights) noexcept nogil
cdef const weight_octaves *sort_weights(const Weights *weights) noexcept nogil
cdef arrivals expected_arrivals(const weight_octaves *octaves, double wanted, double latest) noexcept nogil
cdef size_t weights_workspace(intp_t n_items) noexcept nogil
cdef char *weigh(
    Weights *weights, const double *scores, intp_t n_items, char *workspace, int n_threads=*) noexcept nogil
cdef char *weigh_by_team(
    Weights *weights, const double *scores, intp_t n_items, char *workspace, int n_threads) noexcept
