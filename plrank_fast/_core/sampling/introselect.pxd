"""The plain sampler: exponential arrival times, introselect, sort."""

from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.ranking.weights cimport Weights
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.sampling.noise cimport NoisyScores

cdef struct Introselect:
    intp_t n_items
    intp_t cutoff               # ranks to draw, at most n_items
    int kind                    # of the noise; Plackett-Luce's is Gumbel noise
    const double *given         # noise of the next ranking, or NULL
    double pivot                # of ``sort_smallest``
    double *rates               # 1 / weight of each item if PLR_GUMBEL, else its score; padded to a step of the stream
    double *arrivals            # padded likewise
    double *keys                # keys of the items that arrive early
    int32_t *items

cdef size_t introselect_workspace(intp_t n_items) noexcept nogil
cdef void prepare_introselect(
    Introselect *sampler, const Weights *weights, intp_t cutoff, const NoisyScores *noisy, char *workspace
) noexcept nogil
cdef void draw_ranking(Introselect *sampler, plr_stream *stream, int32_t *ranking, intp_t stride) noexcept nogil
