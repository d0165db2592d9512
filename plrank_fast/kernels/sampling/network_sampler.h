/* Rankings of up to 1024 items by their arrival times and a sorting network, a group of sixteen samples at a time. */
#ifndef PLR_NETWORK_SAMPLER_H
#define PLR_NETWORK_SAMPLER_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_NETWORK_ITEMS 1024
#define PLR_FLOAT_SPREAD 72.0 /* nats from the lightest to the heaviest item whose times fit a float32: 104 octaves */

typedef struct {
    size_t n_items;
    size_t cutoff;        /* ranks to return, at most n_items */
    size_t n_sorted;      /* rows that the network sorts: all, or a power of two above the cutoff */
    const double *weights; /* of each item, 1 at most */
    float *means;          /* 1 / weight, scaled for the keys */
    float largest_mean;
    uint32_t *words;      /* (n_items, 16) random words of the group */
    int32_t *keys;        /* (n_items rounded up to a power of two, 16) */
    double *exact;        /* (n_items,) */
    int32_t *order;       /* (n_items,) */
} network_sampler;

typedef struct {
    /* Compute the other numbers from n_items, cutoff and weights. */
    void (*prepare)(network_sampler *sampler);
    /* Draw sixteen rankings of samples first_sample, ... of a block into columns (cutoff, 16). */
    void (*draw_group)(network_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample,
                       int32_t *columns);
} network_kernels;

PLR_DECLARE_KERNELS(network_kernels)

#endif
