"""The stable Cython interface: Plackett-Luce rankings and gradients of one query per call, without the GIL.

``from plrank_fast.cython_plrank cimport plrank_pl_rank_3`` needs neither headers nor libraries. The functions are
declared and described in ``include/plrank.h``; docs/embedding.md states the rules that apply to them.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef enum:
    PLRANK_ABI_VERSION = 1
    PLRANK_STREAM_SIZE = 64

cdef enum:  # status
    PLRANK_OK = 0
    PLRANK_NULL_POINTER = -1
    PLRANK_BAD_N_ITEMS = -2
    PLRANK_BAD_CUTOFF = -3
    PLRANK_BAD_N_SAMPLES = -4
    PLRANK_SCORES_NOT_FINITE = -5
    PLRANK_BAD_RELEVANCE = -6
    PLRANK_BAD_RANK_WEIGHTS = -7
    PLRANK_WORKSPACE_TOO_SMALL = -8
    PLRANK_BAD_STREAM = -9
    PLRANK_BAD_QUERY = -10
    PLRANK_BAD_SAMPLER = -11
    PLRANK_BAD_RTOL = -12
    PLRANK_BAD_NOISE = -13
    PLRANK_BAD_SIGMA = -14
    PLRANK_BAD_RANKINGS = -15
    PLRANK_RTOL_NOT_HELD = -16
    PLRANK_BAD_STOP = -17

cdef enum:  # sampler
    PLRANK_AUTO = 0
    PLRANK_INTROSELECT = 1
    PLRANK_NETWORK = 2
    PLRANK_ALIAS = 3
    PLRANK_THRESHOLD = 4

cdef enum:  # noise
    PLRANK_GUMBEL = 0
    PLRANK_NORMAL = 1

cdef const char *plrank_strerror(int32_t status) noexcept nogil

cdef int64_t plrank_stream_size() noexcept nogil
cdef int32_t plrank_stream_init(
    void *stream, int64_t stream_size, uint64_t key0, uint64_t key1, int64_t query) noexcept nogil
cdef int32_t plrank_stream_seek(void *stream, int64_t query, int64_t block) noexcept nogil
cdef int64_t plrank_samples_per_block(int64_t n_items) noexcept nogil

cdef int64_t plrank_top_k_workspace(int64_t n_items, int64_t cutoff) noexcept nogil
cdef int32_t plrank_top_k(
    const double *scores, int64_t n_items, int64_t cutoff, int32_t *ranking, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_sample_rankings_workspace(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil
cdef int32_t plrank_sample_rankings(
    void *stream, const double *scores, int64_t n_items, int64_t cutoff, int64_t n_samples, int32_t sampler,
    int32_t *rankings, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_ranking_log_prob_workspace(int64_t n_items, int64_t length) noexcept nogil
cdef int32_t plrank_ranking_log_prob(
    const double *scores, int64_t n_items, const int32_t *rankings, int64_t n_rankings, int64_t length,
    double *log_prob, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_pl_rank_3_workspace(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil
cdef int32_t plrank_pl_rank_3(
    void *stream, const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
    int64_t cutoff, int64_t n_samples, int32_t sampler, const int32_t *rankings, int64_t length, double *gradient,
    double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_pl_rank_cmc_workspace(int64_t n_items, int64_t cutoff, int64_t n_samples) noexcept nogil
cdef int32_t plrank_pl_rank_cmc(
    void *stream, const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
    int64_t cutoff, int64_t n_samples, int32_t sampler, const int32_t *rankings, int64_t length, double *gradient,
    double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_pl_rank_exact_workspace(int64_t n_items, int64_t cutoff) noexcept nogil
cdef int32_t plrank_pl_rank_exact(
    const double *scores, const double *relevance, int64_t n_items, const double *rank_weights, int64_t cutoff,
    double rtol, double *value, double *gradient, double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_rank_probabilities_workspace(int64_t n_items, int64_t cutoff) noexcept nogil
cdef int32_t plrank_rank_probabilities(
    const double *scores, int64_t n_items, int64_t cutoff, double *probabilities,
    void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_stochastic_rank_workspace(int64_t n_items, int64_t cutoff) noexcept nogil
cdef int32_t plrank_stochastic_rank(
    void *stream, const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
    int64_t cutoff, int64_t n_samples, int32_t noise, double sigma, double *gradient,
    void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_dcg_workspace(int64_t n_items, int64_t cutoff) noexcept nogil
cdef int32_t plrank_dcg(
    const double *scores, const double *relevance, int64_t n_items, const double *rank_weights, int64_t cutoff,
    double *value, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_bucket_log_prob_workspace(int64_t n_items) noexcept nogil
cdef int32_t plrank_bucket_log_prob(
    const double *scores, int64_t n_items, const int32_t *buckets, double *log_prob, double *gradient,
    double *hessian, void *workspace, int64_t workspace_size
) noexcept nogil

cdef int64_t plrank_pl_rank_exact_stop_workspace(int64_t n_items, int64_t cutoff) noexcept nogil
cdef int32_t plrank_pl_rank_exact_stop(
    const double *scores, const double *relevance, const double *stop, int64_t n_items, const double *rank_weights,
    int64_t cutoff, double rtol, double *value, double *gradient, double *hessian, void *workspace,
    int64_t workspace_size
) noexcept nogil
