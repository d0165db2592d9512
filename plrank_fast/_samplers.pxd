"""Samplers of Plackett-Luce rankings: prepared once per query, then asked for blocks of rankings."""

from plrank_fast._random cimport plr_stream
from plrank_fast._typedefs cimport int32_t, intp_t, uint64_t

cdef struct Sampler:
    intp_t n_items
    intp_t cutoff               # ranks to draw, at most n_items
    bint logarithmic            # clocks in log-space: the weights span more than a double does
    double first_pivot          # a time before which about cutoff + 3 sqrt(cutoff) clocks ring; 0 where not worth it
    double *rates               # 1 / weight of each item, or its score; padded to a whole step of the stream
    double *clocks              # padded likewise
    double *keys                # survivors of the first pivot
    int32_t *items

cdef double NS_PER_ITEM  # rough cost of one item in one ranking, for the length of a round

cdef size_t sampler_workspace(intp_t n_items) noexcept nogil
cdef void prepare_sampler(
    Sampler *sampler, const double *scores, intp_t n_items, intp_t cutoff, intp_t n_samples, char *workspace
) noexcept nogil
cdef void draw_block(
    Sampler *sampler, const uint64_t *key, uint64_t query, uint64_t block, intp_t n_rankings,
    int32_t *rankings, intp_t stride
) noexcept nogil
cdef void draw_query(
    const double *scores, intp_t n_items, intp_t cutoff, intp_t n_samples, const uint64_t *key, uint64_t query,
    intp_t first_block, intp_t last_block, char *workspace, int32_t *rankings
) noexcept nogil
