/* Rankings by exponential clocks of which only those that ring early are looked at. */
#ifndef PLR_THRESHOLD_SAMPLER_H
#define PLR_THRESHOLD_SAMPLER_H

#include "isa.h"
#include "random_stream.h"

#define PLR_THRESHOLD_CANDIDATES 1024 /* most that a ranking may leave to the sorting network */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;  /* of each item, 1 at most */
    float *means;           /* (n_items rounded up to 16,) 1 / weight, scaled for the keys */
    uint32_t *thresholds;   /* (n_items rounded up to 16,) 2^32 exp(-weight * deadline); 2^32 - 1 for the padding */
    double deadline;        /* a time before which enough clocks ring in all but one ranking of some thousand */
    float largest_mean;
    size_t most_candidates; /* a multiple of 16 */
    uint32_t *words;        /* (16, most_candidates + 16) of the candidates of each ranking */
    int32_t *items;         /* likewise, and 1024 more; always items of the query or its padding */
    int32_t *keys;          /* (most_candidates rounded up to a power of two, and 16 more, 16) */
    double *exact;          /* (max(most_candidates, cutoff),) */
    int32_t *order;         /* likewise */
} threshold_sampler;

typedef struct {
    /* From n_items, cutoff, weights and most_candidates: the other numbers. Returns 0 if no deadline is found. */
    int (*prepare)(threshold_sampler *sampler);
    /* Draw sixteen rankings into columns (cutoff, 16). */
    void (*draw_group)(threshold_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample,
                       int32_t *columns);
} threshold_kernels;

PLR_DECLARE_KERNELS(threshold_kernels)

/* Candidates of a ranking: this many on average, and room for six standard deviations more. */
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
