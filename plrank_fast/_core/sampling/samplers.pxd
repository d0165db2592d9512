"""Samplers of Plackett-Luce rankings: prepared once per query, they then draw blocks of rankings."""

from plrank_fast._core.random.stream cimport block_size, plr_stream
from plrank_fast._core.ranking.weights cimport Weights, weight_octaves
from plrank_fast._core.runtime.layout cimport padded
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t, uint64_t
from plrank_fast._core.runtime.teams cimport parallel_loop
from plrank_fast._core.runtime.threads cimport cancellation
from plrank_fast._core.sampling.introselect cimport Introselect
from plrank_fast._core.sampling.noise cimport Gaps, NoisyScores

cdef extern from "sampling/groups/group_samplers.h" nogil:
    ctypedef struct group_query:
        size_t n_items
        size_t cutoff
        const double *weights
        double total
        parallel_loop loop
        double mean_draws
        double deviation
        double draws_per_item
        double deadline

# rankings drawn and used side by side
cdef extern from "sampling/groups.h" nogil:
    enum:
        GROUP_SIZE "PLR_GROUP_SIZE"

cdef enum:
    GROUP_RANKS = 4096       # most ranks of rankings in groups; each rank takes 64 bytes

cdef enum:
    AUTO
    INTROSELECT
    NETWORK
    TABLE
    THRESHOLD
    GUIDE
    N_SAMPLERS

cdef dict SAMPLERS              # the kinds that callers can request, by name

cdef struct Sampler:
    int method
    double ns_per_ranking       # rough cost, for the length of a round; set where there is a ``stop``
    intp_t n_items
    intp_t cutoff               # ranks to draw, at most n_items
    Introselect introselect
    const weight_octaves *octaves  # of the weights, where a sampler has asked for them
    group_query query
    void *in_groups             # the state of any other sampler
    int32_t *columns            # (cutoff, GROUP_SIZE) the group drawn last
    const NoisyScores *noisy    # or NULL: rankings have no arrivals
    Gaps gaps                   # between arrivals
    cancellation *stop          # or NULL
    # the following belong to the current block
    plr_stream stream
    uint64_t salt               # salt of the random bits that only near ties use
    uint64_t n_drawn

cdef struct Draw:
    # the rankings to draw for one query
    int sampler
    intp_t cutoff
    intp_t n_samples
    const uint64_t *key
    uint64_t query
    uint64_t first_block         # blocks of the query's stream that earlier calls have used up
    const NoisyScores *noisy     # rankings come with arrivals of these scores; or NULL


cdef inline Draw draw_of(const Draw *first, intp_t query, intp_t cutoff) noexcept nogil:
    """Return the draw for a query of a batch, given that for the first one."""
    return Draw(
        first.sampler, cutoff, first.n_samples, first.key, first.query + <uint64_t>query, first.first_block, NULL)


cdef inline intp_t row_length(intp_t cutoff, bint noisy) noexcept nogil:
    """Return the length of a drawn row: the ranking, and the arrivals at its ranks as doubles if the scores are noisy.
    """
    return padded(cutoff) * <intp_t>(1 + sizeof(double) // sizeof(int32_t)) if noisy else cutoff


cdef inline double *arrivals_of(const int32_t *row, intp_t cutoff) noexcept nogil:
    """Return the arrivals in a row, padded to whole vectors."""
    return <double *>(row + padded(cutoff))


cdef inline intp_t number_of_blocks(const Draw *draw, intp_t n_items) noexcept nogil:
    return (draw.n_samples + block_size(n_items) - 1) // block_size(n_items)


cdef inline intp_t samples_in_block(const Draw *draw, intp_t n_items, intp_t block) noexcept nogil:
    return min(block_size(n_items), draw.n_samples - block * block_size(n_items))


cdef double NS_PER_ITEM  # rough cost of one item in one ranking, for the length of a round

cdef size_t sampler_workspace(intp_t n_items, intp_t cutoff, bint noisy) noexcept nogil
cdef void prepare_sampler(
    Sampler *sampler, const Draw *draw, const Weights *weights, cancellation *stop, char *workspace
) noexcept nogil
cdef size_t group_bytes(intp_t n_items, intp_t cutoff) noexcept nogil
cdef void start_block(Sampler *sampler, const Draw *draw, uint64_t block) noexcept nogil
cdef int32_t *draw_group(Sampler *sampler, intp_t n_rankings) noexcept nogil
cdef void draw_rows(Sampler *sampler, intp_t n_rankings, int32_t *rankings, intp_t stride) noexcept nogil
cdef void draw_query(
    const Draw *draw, const double *scores, intp_t n_items, char *workspace, int32_t *rankings
) noexcept nogil

# Use the rankings of a round, in rows; so many passes over all rankings have ended.
ctypedef int (*round_function)(void *user, int passed, const int32_t *rankings, intp_t n_rankings) except -1

cdef int draw_long(
    const Draw *draw, const Weights *weights, int n_threads, int32_t *rankings, round_function use, void *user,
    int n_passes) except -1
