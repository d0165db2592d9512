"""Samplers of Plackett-Luce rankings: prepared once per query, they then draw blocks of rankings."""

from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.ranking.weights cimport Weights
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t, uint32_t, uint64_t
from plrank_fast._core.runtime.threads cimport Workspaces, cancellation
from plrank_fast._core.sampling.introselect cimport Introselect

cdef extern from "sampling/network_sampler.h" nogil:
    const int PLR_NETWORK_ITEMS
    const double PLR_FLOAT_SPREAD
    ctypedef struct network_sampler:
        size_t n_items
        size_t cutoff
        const double *weights
        float *means
        uint32_t *words
        int32_t *keys
        double *exact
        int32_t *order

cdef extern from "sampling/slot_table.h" nogil:
    const int PLR_SLOT_ITEMS
    const int PLR_SLOTS_AT_ONCE
    const int PLR_MOST_COMPARED
    const int PLR_FEW_ROWS
    int plr_slot_bits(size_t n_items, bint peaked)
    ctypedef struct slot_table:
        size_t n_items
        size_t cutoff
        const double *weights
        double total
        double mean_draws
        double deviation
        double draws_per_item
        int slot_bits
        uint32_t *slots
        double *ends
        uint32_t *draws
        uint32_t *twins
        double *arrivals

cdef extern from "sampling/guide_table.h" nogil:
    int plr_bits_for(size_t n)
    const int PLR_ENDS_AT_ONCE
    ctypedef struct guide_table:
        size_t n_items
        size_t cutoff
        const double *weights
        double total
        uint64_t *ends
        int guide_bits
        uint32_t *guide
        uint64_t *seen
        int seen_bits
        double *arrivals

cdef extern from "sampling/threshold_sampler.h" nogil:
    const int PLR_THRESHOLD_CANDIDATES
    size_t plr_most_candidates(size_t cutoff)
    double plr_mean_candidates(size_t cutoff)
    ctypedef struct threshold_sampler:
        size_t n_items
        size_t cutoff
        const double *weights
        double deadline
        size_t most_candidates
        float *means
        uint32_t *thresholds
        uint32_t *found
        uint32_t *words
        int32_t *items
        int32_t *keys
        double *exact
        int32_t *order

# rankings drawn and used side by side
cdef extern from "sampling/groups.h" nogil:
    enum:
        GROUP_SIZE "PLR_GROUP_SIZE"

cdef enum:
    GROUP_RANKS = 4096       # most ranks of rankings in groups; each rank takes 64 bytes

cpdef enum SamplerKind:
    AUTO
    INTROSELECT
    NETWORK
    TABLE
    THRESHOLD
    GUIDE                       # TABLE for longer lists; callers cannot request it by name

cdef dict SAMPLERS              # the kinds that callers can request, by name

cdef struct Sampler:
    int method
    double ns_per_ranking       # rough cost, for the length of a round
    intp_t n_items
    intp_t cutoff               # ranks to draw, at most n_items
    Introselect introselect
    network_sampler network
    slot_table table
    threshold_sampler threshold
    guide_table guide
    int32_t *columns            # (cutoff, GROUP_SIZE) the group drawn last
    cancellation *stop          # or NULL
    # the following belong to the current block
    plr_stream stream
    uint64_t salt               # of the random bits that only near ties use
    uint64_t n_drawn

cdef struct Draw:
    # the rankings to draw for one query
    int sampler
    intp_t cutoff
    intp_t n_samples
    const uint64_t *key
    uint64_t query
    uint64_t first_block         # blocks of the query's stream that earlier calls have used up

cdef double NS_PER_ITEM  # rough cost of one item in one ranking, for the length of a round

cdef size_t sampler_workspace(intp_t n_items, intp_t cutoff) noexcept nogil
cdef bint asks_for_spread(const Draw *draw, intp_t n_items) noexcept nogil
cdef char *prepare_sampler(
    Sampler *sampler, const Draw *draw, const Weights *weights, cancellation *stop, char *workspace
) noexcept nogil
cdef size_t group_bytes(intp_t n_items, intp_t cutoff) noexcept nogil
cdef void start_block(Sampler *sampler, const Draw *draw, uint64_t block) noexcept nogil
cdef int32_t *draw_group(Sampler *sampler, intp_t n_rankings) noexcept nogil
cdef void draw_rows(Sampler *sampler, intp_t n_rankings, int32_t *rankings, intp_t stride) noexcept nogil
cdef void draw_row_blocks(
    Sampler *sampler, const Draw *draw, intp_t first_block, intp_t last_block, int32_t *rankings, intp_t stride
) noexcept nogil
cdef void draw_query(
    const Draw *draw, const double *scores, intp_t n_items, char *workspace, int32_t *rankings
) noexcept nogil

cdef struct LongDraw:
    # a round of drawing for one long query
    const Draw *draw
    const Weights *weights
    intp_t first_block
    intp_t last_block
    intp_t blocks_per_task
    int32_t *rankings            # OUT, rows of ``stride`` items from the first block on
    intp_t stride

cdef size_t thread_sampler_workspace(intp_t n_items, intp_t cutoff) noexcept nogil
cdef void begin_thread_samplers(Workspaces workspaces) noexcept
cdef Sampler *thread_sampler(const Draw *draw, const Weights *weights, char *workspace) noexcept nogil
cdef int draw_round(const LongDraw *drawing, int n_threads, Workspaces thread_samplers) except -1
