/* StochasticRank: the contribution of each noisy ranking to nodes, which are items or interpolate them. */
#ifndef PLR_STOCHASTIC_RANK_H
#define PLR_STOCHASTIC_RANK_H

#include "simd/isa.h"
#include "sampling/arrival_times.h"

/* The ranks of a noisy ranking that count. Rank k (from 0) has the drop c_k = theta_k - theta_{k+1}. */
typedef struct {
    size_t n_ranks;
    const double *arrivals;
    double *relevance;    /* of the item at each rank */
    const double *drops;  /* c_k */
    const double *drop_changes; /* c_{k-1} - c_k, 0 at rank 0 */
    double *factors;      /* scratch of 5 numbers for each rank; this and all the others have room for n_ranks rounded
                             up to a multiple of 8 */
} noisy_ranking;

typedef struct {
    /* Add for n nodes (a multiple of 8), with c the drop of the rank that the item at k has without item d, density c
     * to sums[0..n) and density c rho_k to sums[n..2n), as for an unplaced item d at each node. The extra contribution
     * to the item placed at k is added to row rows[k] of corrections (n per row), unless that is negative. Densities
     * err by 1e-7 of the largest unless `exactly`. */
    void (*nodes)(int noise, int exactly, const noisy_ranking *ranking, const double *locations, const int32_t *rows,
                  double *sums, double *corrections, size_t n);
    /* Return the gradient of an item between Chebyshev nodes: the sum over nodes of its coefficient times (rho sums -
     * sums + correction). */
    double (*interpolate)(double at, double relevance, const double *node_locations, const double *node_weights,
                          const double *sums, const double *correction, size_t n);
} stochastic_rank_kernels;

PLR_DECLARE_KERNELS(stochastic_rank_kernels)

#endif
