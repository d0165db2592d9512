"""The plain sampler: exponential arrival times, introselect, sort."""

from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.ranking.weights cimport Weights
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t

cdef extern from "sampling/arrival_times.h" nogil:
    ctypedef struct arrival_times_kernels:
        void (*linear)(plr_stream *stream, const double *inverse_weights, double *arrivals, size_t n) noexcept nogil
        void (*logarithmic)(plr_stream *stream, const double *scores, double *arrivals, size_t n) noexcept nogil
        void (*normal)(plr_stream *stream, const double *scores, double *arrivals, size_t n) noexcept nogil

cdef const arrival_times_kernels *arrival_times

cdef struct Introselect:
    intp_t n_items
    intp_t cutoff               # ranks to draw, at most n_items
    bint logarithmic            # arrival times in log-space: the weights exceed the range of a double
    double pivot                # of ``sort_smallest``
    double *rates               # 1 / weight of each item, or its score; padded to a whole step of the stream
    double *arrivals            # padded likewise
    double *keys                # keys of the items that arrive early
    int32_t *items

cdef size_t introselect_workspace(intp_t n_items) noexcept nogil
cdef void prepare_introselect(
    Introselect *sampler, const Weights *weights, intp_t cutoff, char *workspace
) noexcept nogil
cdef void shorten_gaps(
    const double *scores, intp_t n_items, double scale, double widest, double *keys, int32_t *order, double *levels
) noexcept nogil
cdef void draw_ranking(Introselect *sampler, plr_stream *stream, int32_t *ranking, intp_t stride) noexcept nogil
