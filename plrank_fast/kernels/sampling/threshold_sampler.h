/* Rankings by arrival times, of which only the early ones are computed. */
#ifndef PLR_THRESHOLD_SAMPLER_H
#define PLR_THRESHOLD_SAMPLER_H

#include "sampling/arrival_keys.h"
#include "random/random_stream.h"

#define PLR_THRESHOLD_CANDIDATES 1024 /* most candidates of a ranking that the sorting network sorts */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;  /* of each item, 1 at most */
    double deadline;        /* enough items arrive before it in all but one of some thousand rankings */
    size_t most_candidates; /* a multiple of 16 */
    uint32_t *thresholds;   /* (n_items rounded up to 32,) see threshold_sampler.c */
    float *means;           /* likewise, 1 / weight, scaled for the keys */
    key_format format;
    uint32_t *found;        /* (16, most_candidates + 64) the candidates of each ranking */
    uint32_t *words;        /* likewise, words of 32 bits */
    int32_t *items;         /* likewise, and 1024 more, for the padding after the candidates */
    int32_t *keys;          /* (most_candidates rounded up to a power of two, 16) */
    double *exact;          /* (max(most_candidates, cutoff),) */
    int32_t *order;         /* likewise */
} threshold_sampler;

typedef struct {
    /* Compute the other numbers from n_items, cutoff, weights, deadline and most_candidates. */
    void (*prepare)(threshold_sampler *sampler);
    /* Draw sixteen rankings into columns (cutoff, 16). */
    void (*draw_group)(threshold_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample,
                       int32_t *columns);
} threshold_kernels;

PLR_DECLARE_KERNELS(threshold_kernels)

/* Return the mean number of candidates of a ranking; there is room for six standard deviations more. */
static inline double plr_mean_candidates(size_t cutoff)
{
    return (double)cutoff + 3.3 * __builtin_sqrt((double)cutoff) + 2.0;
}

static inline size_t plr_most_candidates(size_t cutoff)
{
    double mean = plr_mean_candidates(cutoff);
    return ((size_t)(mean + 6.0 * __builtin_sqrt(mean)) + 15) / 16 * 16;
}

#endif
