"""The stable C-level interface: the kernels of one query behind checks of their arguments.

``cython_plrank.pxd`` is the interface for Cython, ``include/plrank.h`` the interface for other languages;
docs/embedding.md describes both. The functions here check arguments, divide the caller's memory and call the kernels
that serve the Python functions. They compute nothing themselves.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from plrank_fast._core.gradients.conditional cimport conditional_estimator
from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, estimate_of
from plrank_fast._core.gradients.exact cimport exact_workspace, find_rank_probabilities, solve
from plrank_fast._core.gradients.hessian cimport hessian_estimator
from plrank_fast._core.gradients.pl_rank_groups cimport pl_rank_3_in_groups
from plrank_fast._core.gradients.sampled cimport estimate_query, query_workspace
from plrank_fast._core.gradients.stochastic_rank cimport stochastic_rank_estimator
from plrank_fast._core.losses.bucket_order cimport bucket_order_rows, lay_out_buckets
from plrank_fast._core.losses.loss cimport LossQuery
from plrank_fast._core.random.stream cimport block_size
from plrank_fast._core.ranking.metrics cimport dcg_of_query, log_prob_of_query, rank_query, ranking_workspace
from plrank_fast._core.ranking.rankings cimport fault_in_query
from plrank_fast._core.ranking.remaining cimport lay_out_remaining
from plrank_fast._core.ranking.weights cimport weights_workspace
from plrank_fast._core.runtime.layout cimport bytes_of, state_at
from plrank_fast._core.runtime.magnitudes cimport (
    PLR_LARGEST_COUNT, PLR_LIMIT_EXPONENT, PLR_SMALLEST_TOLERANCE, are_finite, are_within_limits,
)
from plrank_fast._core.sampling.noise cimport PLR_GUMBEL, PLR_NORMAL, Noise
from plrank_fast._core.sampling.samplers cimport Draw, draw_query, sampler_workspace

cdef extern from "plrank.h":
    ctypedef struct plrank_api:
        pass

# The table of the C header. Each function is declared under the name that Cython gives it in C, with its type in the
# header: a function that differs from the header does not compile.
cdef extern from *:
    """
    #define PLR_FUNCTIONS(F)                                                                                           \
        F(strerror) F(stream_size) F(stream_init) F(stream_seek) F(samples_per_block) F(top_k_workspace) F(top_k)      \
        F(sample_rankings_workspace) F(sample_rankings) F(ranking_log_prob_workspace) F(ranking_log_prob)              \
        F(pl_rank_3_workspace) F(pl_rank_3) F(pl_rank_cmc_workspace) F(pl_rank_cmc)                                    \
        F(pl_rank_exact_workspace) F(pl_rank_exact) F(rank_probabilities_workspace) F(rank_probabilities)              \
        F(stochastic_rank_workspace) F(stochastic_rank) F(dcg_workspace) F(dcg)                                        \
        F(bucket_log_prob_workspace) F(bucket_log_prob)                                                                \
        F(pl_rank_exact_stop_workspace) F(pl_rank_exact_stop)
    #define PLR_DECLARE(name) static __typeof__(*((plrank_api *)0)->name) PLR_NAME(name);
    #define PLR_FILL(name) .name = PLR_NAME(name),
    #define PLR_NAME(name) __pyx_f_11plrank_fast_13cython_plrank_plrank_##name
    PLR_FUNCTIONS(PLR_DECLARE)
    static const plrank_api plr_api = {
        .abi_version = PLRANK_ABI_VERSION, .size = sizeof(plrank_api), PLR_FUNCTIONS(PLR_FILL)};
    """
    const plrank_api plr_api

cdef struct Stream:
    # the content of the opaque bytes of a stream
    uint64_t mark               # tells a stream from memory that was never initialised
    uint64_t[2] key
    int64_t query
    int64_t block               # the first unused block

cdef enum:
    ALIGNMENT = 64  # the kernels load whole cache lines

cdef uint64_t MARK = <uint64_t>0x706c72616e6b0001
cdef double LARGEST_SIGMA = 2.0**PLR_LIMIT_EXPONENT


# ---------------------------------------------------------------------------------------------------------------------
# Checks
# ---------------------------------------------------------------------------------------------------------------------

cdef inline int32_t check_sizes(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil:
    if not 0 <= n_items <= INT32_MAX:
        return PLRANK_BAD_N_ITEMS
    if not 0 <= cutoff <= PLR_LARGEST_COUNT:
        return PLRANK_BAD_CUTOFF
    if not 0 < n_samples <= PLR_LARGEST_COUNT:
        return PLRANK_BAD_N_SAMPLES
    return PLRANK_OK


cdef inline int32_t check_array(const void *array, int64_t n) noexcept nogil:
    return PLRANK_NULL_POINTER if array == NULL and n > 0 else PLRANK_OK


cdef inline int32_t check_scores(const double *scores, int64_t n_items) noexcept nogil:
    if check_array(scores, n_items) != PLRANK_OK:
        return PLRANK_NULL_POINTER
    return PLRANK_OK if are_finite(scores, n_items) else PLRANK_SCORES_NOT_FINITE


cdef inline int32_t check_metric(
    const double *scores, const double *relevance, int64_t n_items, const double *rank_weights, int64_t cutoff
) noexcept nogil:
    cdef int32_t status = (
        check_scores(scores, n_items) or check_array(relevance, n_items) or check_array(rank_weights, cutoff))
    if status != PLRANK_OK:
        return status
    if not are_within_limits(relevance, n_items):
        return PLRANK_BAD_RELEVANCE
    if not are_finite(rank_weights, cutoff) or not are_within_limits(rank_weights, min(cutoff, n_items)):
        return PLRANK_BAD_RANK_WEIGHTS
    return PLRANK_OK


cdef inline int32_t check_stop(const double *stop, int64_t n_items) noexcept nogil:
    cdef int64_t i
    if check_array(stop, n_items) != PLRANK_OK:
        return PLRANK_NULL_POINTER
    for i in range(n_items):
        if not 0.0 <= stop[i] <= 1.0:
            return PLRANK_BAD_STOP
    return PLRANK_OK


cdef inline int32_t check_stream(const void *stream, Stream *content) noexcept nogil:
    """Read a stream, which may have any alignment."""
    if stream == NULL:
        return PLRANK_NULL_POINTER
    memcpy(content, stream, sizeof(Stream))
    return PLRANK_OK if content.mark == MARK else PLRANK_BAD_STREAM


cdef inline int32_t check_workspace(const void *workspace, int64_t size, int64_t needed) noexcept nogil:
    if needed < 0:
        return <int32_t>needed
    if workspace == NULL and needed > 0:
        return PLRANK_NULL_POINTER
    return PLRANK_OK if size >= needed else PLRANK_WORKSPACE_TOO_SMALL


cdef inline int64_t with_alignment(size_t size) noexcept nogil:
    return <int64_t>size + ALIGNMENT


cdef inline char *aligned_memory(void *workspace) noexcept nogil:
    return <char *>((<uintptr_t>workspace + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)


cdef inline size_t seen_bytes(int64_t n_items) noexcept nogil:
    """Return the bytes of scratch memory of ``check_rankings``."""
    return n_items * sizeof(int64_t)


cdef inline int32_t check_rankings(
    const int32_t *rankings, int64_t n_rankings, int64_t length, int64_t used, int64_t n_items, char *workspace
) noexcept nogil:
    """Check the first ``used`` ranks of each ranking. O(D + N K)."""
    cdef int64_t[2] where
    if length < used:
        return PLRANK_BAD_RANKINGS
    if length > PLR_LARGEST_COUNT // n_rankings:
        return PLRANK_BAD_N_SAMPLES
    if used == 0:
        return PLRANK_OK
    if rankings == NULL:
        return PLRANK_NULL_POINTER
    if fault_in_query(rankings, n_rankings, length, used, n_items, False, <int64_t *>workspace, where):
        return PLRANK_BAD_RANKINGS
    return PLRANK_OK


cdef inline void clear(double *values, int64_t n) noexcept nogil:
    if n > 0 and values != NULL:
        memset(values, 0, n * sizeof(double))


cdef inline void negate(double *values, int64_t n) noexcept nogil:
    cdef int64_t i
    if values != NULL:
        for i in range(n):
            values[i] = 0.0 - values[i]


# ---------------------------------------------------------------------------------------------------------------------
# Status
# ---------------------------------------------------------------------------------------------------------------------

ctypedef const char *text

cdef text[18] MESSAGES = [  # for statuses 0, -1, -2, ...
    "success",
    "a pointer is NULL that must not be",
    "n_items must be 0 to 2**31 - 1",
    "cutoff must not be negative, and its arrays must be addressable",
    "n_samples must be at least 1, and its arrays must be addressable",
    "scores must be finite",
    "relevance must be finite, and 0 or of magnitudes of which the largest is from 2**-200 to 2**200",
    "rank_weights must be finite, and 0 or of magnitudes of which the largest is from 2**-200 to 2**200",
    "the workspace, or the memory for a stream, is smaller than the function that returns its size says",
    "the stream has not been initialised",
    "query and block must be 0 to 2**59",
    "there is no such sampler",
    "rtol must be at least 1e-10 and below 1",
    "there is no such noise",
    "sigma must be from 2**-200 to 2**200",
    "rankings must reach the cutoff and hold items of the query, none of them twice",
    "rtol could not be held: ask for a larger one",
    "stop must be from 0 to 1",
]


cdef const char *plrank_strerror(int32_t status) noexcept nogil:
    if PLRANK_BAD_STOP <= status <= PLRANK_OK:
        return MESSAGES[-status]
    return "unknown status"


# ---------------------------------------------------------------------------------------------------------------------
# Streams
# ---------------------------------------------------------------------------------------------------------------------

cdef int64_t plrank_stream_size() noexcept nogil:
    return sizeof(Stream)


cdef int32_t plrank_stream_init(
    void *stream, int64_t stream_size, uint64_t key0, uint64_t key1, int64_t query
) noexcept nogil:
    cdef Stream content
    if stream == NULL:
        return PLRANK_NULL_POINTER
    if stream_size < <int64_t>sizeof(Stream):
        return PLRANK_WORKSPACE_TOO_SMALL
    if not 0 <= query <= PLR_LARGEST_COUNT:
        return PLRANK_BAD_QUERY
    content.mark = MARK
    content.key[0] = key0
    content.key[1] = key1
    content.query = query
    content.block = 0
    memcpy(stream, &content, sizeof(Stream))
    return PLRANK_OK


cdef int32_t plrank_stream_seek(void *stream, int64_t query, int64_t block) noexcept nogil:
    cdef Stream content
    cdef int32_t status = check_stream(stream, &content)
    if status != PLRANK_OK:
        return status
    if not (0 <= query <= PLR_LARGEST_COUNT and 0 <= block <= PLR_LARGEST_COUNT):
        return PLRANK_BAD_QUERY
    content.query = query
    content.block = block
    memcpy(stream, &content, sizeof(Stream))
    return PLRANK_OK


cdef int64_t plrank_samples_per_block(int64_t n_items) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, 0, 1)
    return block_size(n_items) if status == PLRANK_OK else status


cdef inline void advance(void *stream, Stream *content, int64_t n_items, int64_t n_samples) noexcept nogil:
    """Advance the stream past the blocks of ``n_samples``."""
    content.block += (n_samples - 1) // block_size(n_items) + 1
    memcpy(stream, content, sizeof(Stream))


# ---------------------------------------------------------------------------------------------------------------------
# Rankings
# ---------------------------------------------------------------------------------------------------------------------

cdef int64_t plrank_top_k_workspace(int64_t n_items, int64_t cutoff) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, cutoff, 1)
    if status != PLRANK_OK or n_items == 0 or cutoff == 0:
        return status
    return with_alignment(ranking_workspace(n_items))


cdef int32_t plrank_top_k(
    const double *scores, int64_t n_items, int64_t cutoff, int32_t *ranking, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef int64_t needed = plrank_top_k_workspace(n_items, cutoff)
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed) or check_scores(scores, n_items)
        or check_array(ranking, needed))
    cdef double *keys = <double *>aligned_memory(workspace)
    cdef int32_t *items = <int32_t *>(keys + n_items)
    if status != PLRANK_OK or needed == 0:
        return status
    cutoff = min(cutoff, n_items)
    rank_query(scores, n_items, cutoff, keys, items)
    memcpy(ranking, items, cutoff * sizeof(int32_t))
    return PLRANK_OK


cdef int64_t plrank_sample_rankings_workspace(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, cutoff, n_samples)
    if status != PLRANK_OK or n_items == 0 or cutoff == 0:
        return status
    cutoff = min(cutoff, n_items)
    if n_samples > PLR_LARGEST_COUNT // cutoff:
        return PLRANK_BAD_N_SAMPLES
    return with_alignment(weights_workspace(n_items) + sampler_workspace(n_items, cutoff, False))


cdef int32_t plrank_sample_rankings(
    void *stream, const double *scores, int64_t n_items, int64_t cutoff, int64_t n_samples, int32_t sampler,
    int32_t *rankings, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef int64_t needed = plrank_sample_rankings_workspace(n_items, cutoff, n_samples)
    cdef Stream content
    cdef Draw draw
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed) or check_stream(stream, &content)
        or check_scores(scores, n_items))
    if status == PLRANK_OK and not PLRANK_AUTO <= sampler <= PLRANK_THRESHOLD:
        status = PLRANK_BAD_SAMPLER
    status = status or check_array(rankings, needed)
    if status != PLRANK_OK:
        return status
    if needed > 0:
        draw = Draw(sampler, min(cutoff, n_items), n_samples, &content.key[0], content.query, content.block, NULL)
        draw_query(&draw, scores, n_items, aligned_memory(workspace), rankings)
    advance(stream, &content, n_items, n_samples)
    return PLRANK_OK


cdef int64_t plrank_ranking_log_prob_workspace(int64_t n_items, int64_t length) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, length, 1)
    if status == PLRANK_BAD_CUTOFF:
        return PLRANK_BAD_RANKINGS
    if status != PLRANK_OK or n_items == 0 or length == 0:
        return status
    return with_alignment(max(seen_bytes(n_items), bytes_of(lay_out_remaining, n_items, min(length, n_items))))


cdef int32_t plrank_ranking_log_prob(
    const double *scores, int64_t n_items, const int32_t *rankings, int64_t n_rankings, int64_t length,
    double *log_prob, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef int64_t needed = plrank_ranking_log_prob_workspace(n_items, length)
    cdef int64_t used = min(length, n_items)
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed)
        or check_sizes(n_items, length, n_rankings)
        or check_scores(scores, n_items)
        or check_array(log_prob, 1)
        or check_rankings(rankings, n_rankings, length, used, n_items, aligned_memory(workspace)))
    if status != PLRANK_OK:
        return status
    clear(log_prob, n_rankings)
    if needed > 0:
        log_prob_of_query(
            scores, n_items, used, rankings, n_rankings, length, aligned_memory(workspace), False, log_prob)
    return PLRANK_OK


# ---------------------------------------------------------------------------------------------------------------------
# Sampled gradients
# ---------------------------------------------------------------------------------------------------------------------

cdef inline Estimator estimator_of(bint conditional, bint with_hessian) noexcept nogil:
    if conditional:
        return conditional_estimator()
    return hessian_estimator() if with_hessian else pl_rank_3_in_groups()


cdef int64_t estimator_size(bint conditional, int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil:
    """Return the workspace of an estimator, with or without Hessian; its totals are longer than ``seen_bytes``."""
    cdef int32_t status = check_sizes(n_items, cutoff, n_samples)
    cdef Estimator alone = estimator_of(conditional, False)
    cdef Estimator with_hessian = estimator_of(conditional, True)
    if status != PLRANK_OK or n_items == 0 or cutoff == 0:
        return status
    cutoff = min(cutoff, n_items)
    return with_alignment(max(
        query_workspace(&alone, n_items, cutoff), query_workspace(&with_hessian, n_items, cutoff)))


cdef int32_t estimate_gradient(
    const Estimator *estimator, const Noise *noise, int64_t needed, void *stream, const double *scores,
    const double *relevance, int64_t n_items, const double *rank_weights, int64_t cutoff, int64_t n_samples,
    int32_t sampler, const int32_t *rankings, int64_t length, double *gradient, double *hessian, void *workspace,
    int64_t workspace_size
) noexcept nogil:
    """Estimate from rankings that are drawn from the stream, or from those given; there may be no ``noise``."""
    cdef bint drawn = stream != NULL or noise != NULL
    cdef Stream content
    cdef Estimate query
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed)
        or check_sizes(n_items, cutoff, n_samples)
        or (check_stream(stream, &content) if drawn else PLRANK_OK)
        or check_metric(scores, relevance, n_items, rank_weights, cutoff)
        or check_array(gradient, n_items))
    if status == PLRANK_OK and not PLRANK_AUTO <= sampler <= PLRANK_THRESHOLD:
        status = PLRANK_BAD_SAMPLER
    if drawn:
        rankings = NULL
    elif status == PLRANK_OK:
        status = check_rankings(rankings, n_samples, length, min(cutoff, n_items), n_items, aligned_memory(workspace))
    if status != PLRANK_OK:
        return status
    if n_items > 1 and cutoff > 0:
        query = estimate_of(
            scores, relevance, n_items, rank_weights, cutoff,
            Draw(sampler, 0, n_samples, &content.key[0], content.query, content.block, NULL), gradient, hessian)
        query.given, query.length, query.noise = rankings, length, noise
        estimate_query(estimator, &query, aligned_memory(workspace))
    else:
        # a single item has no gradient, and rounding must not give it one
        clear(gradient, n_items)
        clear(hessian, n_items)
    if drawn:
        advance(stream, &content, n_items, n_samples)
    return PLRANK_OK


cdef int64_t plrank_pl_rank_3_workspace(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil:
    return estimator_size(False, n_items, cutoff, n_samples)


cdef int32_t plrank_pl_rank_3(
    void *stream, const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
    int64_t cutoff, int64_t n_samples, int32_t sampler, const int32_t *rankings, int64_t length, double *gradient,
    double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef Estimator estimator = estimator_of(False, hessian != NULL)
    return estimate_gradient(
        &estimator, NULL, estimator_size(False, n_items, cutoff, n_samples), stream, scores, relevance, n_items,
        rank_weights, cutoff, n_samples, sampler, rankings, length, gradient, hessian, workspace, workspace_size)


cdef int64_t plrank_pl_rank_cmc_workspace(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil:
    return estimator_size(True, n_items, cutoff, n_samples)


cdef int32_t plrank_pl_rank_cmc(
    void *stream, const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
    int64_t cutoff, int64_t n_samples, int32_t sampler, const int32_t *rankings, int64_t length, double *gradient,
    double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef Estimator estimator = estimator_of(True, hessian != NULL)
    return estimate_gradient(
        &estimator, NULL, estimator_size(True, n_items, cutoff, n_samples), stream, scores, relevance, n_items,
        rank_weights, cutoff, n_samples, sampler, rankings, length, gradient, hessian, workspace, workspace_size)


cdef int64_t plrank_stochastic_rank_workspace(int64_t n_items, int64_t cutoff) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, cutoff, 1)
    cdef Estimator estimator = stochastic_rank_estimator()
    if status != PLRANK_OK or n_items == 0 or cutoff == 0:
        return status
    return with_alignment(query_workspace(&estimator, n_items, min(cutoff, n_items)))


cdef int32_t plrank_stochastic_rank(
    void *stream, const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
    int64_t cutoff, int64_t n_samples, int32_t noise, double sigma, double *gradient,
    void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef Estimator estimator = stochastic_rank_estimator()
    cdef Noise of_query
    if noise != PLRANK_GUMBEL and noise != PLRANK_NORMAL:
        return PLRANK_BAD_NOISE
    if not 1.0 / LARGEST_SIGMA <= sigma <= LARGEST_SIGMA:
        return PLRANK_BAD_SIGMA
    of_query = Noise(PLR_GUMBEL if noise == PLRANK_GUMBEL else PLR_NORMAL, 1.0 / sigma, NULL)
    return estimate_gradient(
        &estimator, &of_query, plrank_stochastic_rank_workspace(n_items, cutoff), stream, scores, relevance, n_items,
        rank_weights, cutoff, n_samples, PLRANK_AUTO, NULL, 0, gradient, NULL, workspace, workspace_size)


# ---------------------------------------------------------------------------------------------------------------------
# Without sampling
# ---------------------------------------------------------------------------------------------------------------------

cdef int64_t plrank_pl_rank_exact_workspace(int64_t n_items, int64_t cutoff) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, cutoff, 1)
    if status != PLRANK_OK or n_items == 0 or cutoff == 0:
        return status
    return with_alignment(exact_workspace(n_items, cutoff, False))


cdef int32_t exact(
    const double *scores, const double *relevance, const double *stop, int64_t n_items, const double *rank_weights,
    int64_t cutoff, double rtol, double *value, double *gradient, double *hessian, void *workspace,
    int64_t workspace_size
) noexcept nogil:
    """``stop`` may be NULL."""
    cdef int64_t needed = plrank_pl_rank_exact_workspace(n_items, cutoff)
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed)
        or check_metric(scores, relevance, n_items, rank_weights, cutoff))
    cdef bint held
    if status != PLRANK_OK:
        return status
    if gradient == NULL and n_items > 0 and (value == NULL or hessian != NULL):
        return PLRANK_NULL_POINTER
    if not PLR_SMALLEST_TOLERANCE <= rtol < 1.0:
        return PLRANK_BAD_RTOL
    if needed > 0:
        held = solve(
            scores, relevance, stop, n_items, rank_weights, cutoff, rtol, gradient, hessian, value,
            aligned_memory(workspace))
        return PLRANK_OK if held else PLRANK_RTOL_NOT_HELD
    clear(value, 1)
    clear(gradient, n_items)
    clear(hessian, n_items)
    return PLRANK_OK


cdef int32_t plrank_pl_rank_exact(
    const double *scores, const double *relevance, int64_t n_items, const double *rank_weights, int64_t cutoff,
    double rtol, double *value, double *gradient, double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil:
    return exact(
        scores, relevance, NULL, n_items, rank_weights, cutoff, rtol, value, gradient, hessian, workspace,
        workspace_size)


cdef int64_t plrank_pl_rank_exact_stop_workspace(int64_t n_items, int64_t cutoff) noexcept nogil:
    return plrank_pl_rank_exact_workspace(n_items, cutoff)


cdef int32_t plrank_pl_rank_exact_stop(
    const double *scores, const double *relevance, const double *stop, int64_t n_items, const double *rank_weights,
    int64_t cutoff, double rtol, double *value, double *gradient, double *hessian, void *workspace,
    int64_t workspace_size
) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, cutoff, 1) or check_stop(stop, n_items)
    return status or exact(
        scores, relevance, stop, n_items, rank_weights, cutoff, rtol, value, gradient, hessian, workspace,
        workspace_size)


cdef int64_t plrank_rank_probabilities_workspace(int64_t n_items, int64_t cutoff) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, cutoff, 1)
    if status != PLRANK_OK or n_items == 0 or cutoff == 0:
        return status
    if cutoff > PLR_LARGEST_COUNT // n_items:
        return PLRANK_BAD_CUTOFF
    return with_alignment(exact_workspace(n_items, cutoff, True))


cdef int32_t plrank_rank_probabilities(
    const double *scores, int64_t n_items, int64_t cutoff, double *probabilities,
    void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef int64_t needed = plrank_rank_probabilities_workspace(n_items, cutoff)
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed) or check_scores(scores, n_items)
        or check_array(probabilities, needed))
    if status != PLRANK_OK or needed == 0:
        return status
    find_rank_probabilities(scores, n_items, cutoff, probabilities, aligned_memory(workspace))
    return PLRANK_OK


cdef int64_t plrank_dcg_workspace(int64_t n_items, int64_t cutoff) noexcept nogil:
    return plrank_top_k_workspace(n_items, cutoff)


cdef int32_t plrank_dcg(
    const double *scores, const double *relevance, int64_t n_items, const double *rank_weights, int64_t cutoff,
    double *value, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef int64_t needed = plrank_dcg_workspace(n_items, cutoff)
    cdef double *keys = <double *>aligned_memory(workspace)
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed)
        or check_metric(scores, relevance, n_items, rank_weights, cutoff)
        or check_array(value, 1))
    if status != PLRANK_OK:
        return status
    value[0] = 0.0
    if needed > 0:
        value[0] = dcg_of_query(
            scores, relevance, rank_weights, n_items, min(cutoff, n_items), keys, <int32_t *>(keys + n_items))
    return PLRANK_OK


cdef int64_t plrank_bucket_log_prob_workspace(int64_t n_items) noexcept nogil:
    cdef int32_t status = check_sizes(n_items, 0, 1)
    if status != PLRANK_OK or n_items == 0:
        return status
    return with_alignment(n_items * sizeof(double) + bytes_of(lay_out_buckets, n_items, n_items))


cdef int32_t plrank_bucket_log_prob(
    const double *scores, int64_t n_items, const int32_t *buckets, double *log_prob, double *gradient,
    double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil:
    cdef int64_t needed = plrank_bucket_log_prob_workspace(n_items), i
    cdef int32_t status = (
        check_workspace(workspace, workspace_size, needed)
        or check_scores(scores, n_items)
        or check_array(log_prob, 1)
        or check_array(buckets, n_items)
        or check_array(gradient, n_items if hessian != NULL else 0))
    cdef char *memory = aligned_memory(workspace)
    cdef double *labels = <double *>(memory + needed - ALIGNMENT) - n_items
    cdef double value = 0.0
    cdef LossQuery query
    if status != PLRANK_OK:
        return status
    clear(gradient, n_items)
    clear(hessian, n_items)
    if needed > 0:
        for i in range(n_items):
            labels[i] = -<double>buckets[i]
        memset(&query, 0, sizeof(LossQuery))
        query.n_items = query.cutoff = n_items
        query.scores = scores
        query.labels = labels
        query.gradient = gradient
        query.hessian = hessian
        query.value = &value
        query.state = state_at(memory, lay_out_buckets, n_items, n_items)
        bucket_order_rows(&query, 0, 1)
        negate(gradient, n_items)
        negate(hessian, n_items)
    log_prob[0] = 0.0 - value
    return PLRANK_OK


# ---------------------------------------------------------------------------------------------------------------------
# For Python
# ---------------------------------------------------------------------------------------------------------------------

_C_API = PyCapsule_New(<void *>&plr_api, "plrank_fast.cython_plrank._C_API", NULL)


def table_address():
    """Return the address of the table of functions that ``include/plrank.h`` declares, ``const plrank_api *``."""
    return <uintptr_t>&plr_api


def exported_functions():
    """Return the address and the C signature of each function by its name."""
    cdef const char *signature
    functions = {}
    for name, capsule in globals()["__pyx_capi__"].items():
        signature = PyCapsule_GetName(capsule)
        functions[name] = (<uintptr_t>PyCapsule_GetPointer(capsule, signature), signature.decode())
    return functions
