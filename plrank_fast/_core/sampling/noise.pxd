"""Noise on the scores of a query: its kinds, the levels that it is added to, and arrival times."""

from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.runtime.layout cimport Layout
from plrank_fast._core.runtime.scalar_types cimport int8_t, int32_t, intp_t

cdef extern from "sampling/arrival_times.h" nogil:
    int PLR_GUMBEL
    int PLR_GUMBEL_WIDE
    int PLR_NORMAL

cdef dict NOISES                # kinds that callers can request, by name

cdef struct Noise:
    # as the caller describes it
    int kind
    double inverse_sigma
    const double *given         # (n_samples, n_items) of a single query, or NULL: it is drawn

cdef struct NoisyScores:
    # of one query
    int kind
    bint by_order               # whether a sampler draws rankings and their gaps, not the noise of all items
    double *levels              # (n_items,) scores over sigma, relative to the highest, with shortened gaps
    int32_t *order              # items by descending score
    const double *given

cdef struct Gaps:
    # how a thread draws the arrival times of rankings
    plr_stream stream
    double *inverse_sums        # (n_ranks,) of the weights that remain, padded to a whole step of the stream
    int8_t *placed              # (n_items,) marks, 0 between two rankings

cdef void draw_arrivals(
    int kind, plr_stream *stream, const double *rates, double *arrivals, intp_t n_items) noexcept nogil
cdef void shorten_gaps(
    const double *scores, intp_t n_items, double scale, double widest, double *keys, int32_t *order, double *levels
) noexcept nogil
cdef size_t noise_workspace(intp_t n_items) noexcept nogil
cdef char *prepare_noise(
    NoisyScores *noisy, const Noise *noise, const double *scores, intp_t n_items, char *workspace) noexcept nogil
cdef void take_gaps(Gaps *gaps, intp_t n_items, intp_t n_ranks, Layout *layout) noexcept nogil
cdef void draw_gaps(
    Gaps *gaps, const double *weights, double total, intp_t n_items, const int32_t *ranking, intp_t n_ranks,
    double *arrivals) noexcept nogil
