/* The C interface of plrank-fast: Plackett-Luce rankings and gradients of one query per call.
 *
 * Every function may run on any thread, without Python, and allocates nothing: the caller owns the memory of streams
 * and workspaces. docs/embedding.md describes how to import the table from C, C++, Cython, Numba and cffi, and the
 * rules that apply to it.
 *
 * scores (n_items,), relevance (n_items,) and rank_weights (cutoff,) are the arguments of the Python functions of the
 * same names for a single query, and the outputs have the same bits. Outputs and the workspace must not overlap any
 * other argument. A function returns PLRANK_OK or a negative status. After a negative status other than
 * PLRANK_RTOL_NOT_HELD no output has been written, and the stream has not moved.
 */
#ifndef PLRANK_H
#define PLRANK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------------------------------------- declarations */

#define PLRANK_ABI_VERSION 1
#define PLRANK_STREAM_SIZE 64 /* bytes that suffice for a stream in all of this ABI version */

enum { /* status */
    PLRANK_OK = 0,
    PLRANK_NULL_POINTER = -1,
    PLRANK_BAD_N_ITEMS = -2,
    PLRANK_BAD_CUTOFF = -3,
    PLRANK_BAD_N_SAMPLES = -4,
    PLRANK_SCORES_NOT_FINITE = -5,
    PLRANK_BAD_RELEVANCE = -6,
    PLRANK_BAD_RANK_WEIGHTS = -7,
    PLRANK_WORKSPACE_TOO_SMALL = -8,
    PLRANK_BAD_STREAM = -9,
    PLRANK_BAD_QUERY = -10,
    PLRANK_BAD_SAMPLER = -11,
    PLRANK_BAD_RTOL = -12,
    PLRANK_BAD_NOISE = -13,
    PLRANK_BAD_SIGMA = -14,
    PLRANK_BAD_RANKINGS = -15,
    PLRANK_RTOL_NOT_HELD = -16, /* the outputs are written, but miss the requested tolerance */
    PLRANK_BAD_STOP = -17
};

enum { /* sampler */
    PLRANK_AUTO = 0,        /* the fastest for the query */
    PLRANK_INTROSELECT = 1, /* Gumbel noise, selection, sort: serves every query, unlike those below */
    PLRANK_NETWORK = 2,     /* Gumbel noise, sixteen rankings at once in a sorting network */
    PLRANK_ALIAS = 3,       /* draws from a table, repeats skipped */
    PLRANK_THRESHOLD = 4    /* the network, for items that pass a threshold */
};

enum { /* noise */
    PLRANK_GUMBEL = 0,
    PLRANK_NORMAL = 1
};

/* Later versions with the same PLRANK_ABI_VERSION only add functions at the end. */
typedef struct plrank_api {
    int32_t abi_version;
    int32_t size; /* bytes of this struct, which show which functions exist */

    /* Return the meaning of a status in English; never NULL. */
    const char *(*strerror)(int32_t status);

    /* A stream of random numbers: opaque bytes at any address, which may be copied and need no release. */
    int64_t (*stream_size)(void);
    /* Start the stream that the Python functions use for query number `query` under this key. */
    int32_t (*stream_init)(void *stream, int64_t stream_size, uint64_t key0, uint64_t key1, int64_t query);
    /* Move to a block of samples of a query. A call that draws moves on to the first block that it has not used. */
    int32_t (*stream_seek)(void *stream, int64_t query, int64_t block);
    int64_t (*samples_per_block)(int64_t n_items);

    /* Each function takes the size of its workspace, and refuses less than the preceding function returns. A negative
     * size is a status. */

    /* ranking (min(cutoff, n_items),): items by descending score; of equal scores, the lower item comes first. */
    int64_t (*top_k_workspace)(int64_t n_items, int64_t cutoff);
    int32_t (*top_k)(const double *scores, int64_t n_items, int64_t cutoff, int32_t *ranking,
                     void *workspace, int64_t workspace_size);

    /* rankings (n_samples, min(cutoff, n_items)). */
    int64_t (*sample_rankings_workspace)(int64_t n_items, int64_t cutoff, int64_t n_samples);
    int32_t (*sample_rankings)(void *stream, const double *scores, int64_t n_items, int64_t cutoff,
                               int64_t n_samples, int32_t sampler, int32_t *rankings,
                               void *workspace, int64_t workspace_size);

    /* log_prob (n_rankings,): of the first min(length, n_items) items of rankings (n_rankings, length). */
    int64_t (*ranking_log_prob_workspace)(int64_t n_items, int64_t length);
    int32_t (*ranking_log_prob)(const double *scores, int64_t n_items, const int32_t *rankings, int64_t n_rankings,
                                int64_t length, double *log_prob, void *workspace, int64_t workspace_size);

    /* gradient, hessian (n_items,): hessian may be NULL. The stream draws n_samples rankings. If it is NULL, rankings
     * (n_samples, length) are given, of which only the first min(cutoff, n_items) items of each row count: different
     * items of the query. */
    int64_t (*pl_rank_3_workspace)(int64_t n_items, int64_t cutoff, int64_t n_samples);
    int32_t (*pl_rank_3)(void *stream, const double *scores, const double *relevance, int64_t n_items,
                         const double *rank_weights, int64_t cutoff, int64_t n_samples, int32_t sampler,
                         const int32_t *rankings, int64_t length, double *gradient, double *hessian,
                         void *workspace, int64_t workspace_size);

    int64_t (*pl_rank_cmc_workspace)(int64_t n_items, int64_t cutoff, int64_t n_samples);
    int32_t (*pl_rank_cmc)(void *stream, const double *scores, const double *relevance, int64_t n_items,
                           const double *rank_weights, int64_t cutoff, int64_t n_samples, int32_t sampler,
                           const int32_t *rankings, int64_t length, double *gradient, double *hessian,
                           void *workspace, int64_t workspace_size);

    /* value (1,), gradient, hessian: each may be NULL, but not both value and gradient, and hessian requires
     * gradient. */
    int64_t (*pl_rank_exact_workspace)(int64_t n_items, int64_t cutoff);
    int32_t (*pl_rank_exact)(const double *scores, const double *relevance, int64_t n_items,
                             const double *rank_weights, int64_t cutoff, double rtol, double *value,
                             double *gradient, double *hessian, void *workspace, int64_t workspace_size);

    /* probabilities (n_items, cutoff). */
    int64_t (*rank_probabilities_workspace)(int64_t n_items, int64_t cutoff);
    int32_t (*rank_probabilities)(const double *scores, int64_t n_items, int64_t cutoff, double *probabilities,
                                  void *workspace, int64_t workspace_size);

    int64_t (*stochastic_rank_workspace)(int64_t n_items, int64_t cutoff);
    int32_t (*stochastic_rank)(void *stream, const double *scores, const double *relevance, int64_t n_items,
                               const double *rank_weights, int64_t cutoff, int64_t n_samples, int32_t noise,
                               double sigma, double *gradient, void *workspace, int64_t workspace_size);

    /* value (1,): sum over ranks of rank weight times relevance, with items by descending score. */
    int64_t (*dcg_workspace)(int64_t n_items, int64_t cutoff);
    int32_t (*dcg)(const double *scores, const double *relevance, int64_t n_items, const double *rank_weights,
                   int64_t cutoff, double *value, void *workspace, int64_t workspace_size);

    /* log_prob (1,) of a ranking with ties, gradient, hessian (n_items,): the last two may be NULL, and hessian
     * requires gradient. Items of a smaller number in buckets (n_items,) come first; the order of items with the same
     * number is unknown. */
    int64_t (*bucket_log_prob_workspace)(int64_t n_items);
    int32_t (*bucket_log_prob)(const double *scores, int64_t n_items, const int32_t *buckets, double *log_prob,
                               double *gradient, double *hessian, void *workspace, int64_t workspace_size);

    /* pl_rank_exact for readers who stop at each item with the probability stop (n_items,). */
    int64_t (*pl_rank_exact_stop_workspace)(int64_t n_items, int64_t cutoff);
    int32_t (*pl_rank_exact_stop)(const double *scores, const double *relevance, const double *stop, int64_t n_items,
                                  const double *rank_weights, int64_t cutoff, double rtol, double *value,
                                  double *gradient, double *hessian, void *workspace, int64_t workspace_size);
} plrank_api;

/* ---------------------------------------------------------------------------------------------- end of declarations */

#ifdef Py_PYTHON_H /* include Python.h first */
/* Return the functions of the installed plrank-fast, or NULL with an exception set. Call it once, with the GIL. */
static inline const plrank_api *import_plrank(void)
{
    PyObject *module = PyImport_ImportModule("plrank_fast.cython_plrank");
    PyObject *capsule = module ? PyObject_GetAttrString(module, "_C_API") : NULL;
    const plrank_api *api = NULL;
    if (capsule)
        api = (const plrank_api *)PyCapsule_GetPointer(capsule, "plrank_fast.cython_plrank._C_API");
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    if (api && api->abi_version != PLRANK_ABI_VERSION) {
        PyErr_Format(PyExc_ImportError, "compiled for ABI version %d of plrank_fast, but version %d is installed",
                     PLRANK_ABI_VERSION, (int)api->abi_version);
        return NULL;
    }
    if (api && api->size < (int32_t)sizeof(plrank_api)) {
        PyErr_SetString(PyExc_ImportError, "compiled for a newer plrank_fast than the one that is installed");
        return NULL;
    }
    return api;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
