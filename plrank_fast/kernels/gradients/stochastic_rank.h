/* StochasticRank: noise on the scores, and the contribution of each noisy ranking to all items, or to nodes between
 * which items are interpolated. */
#ifndef PLR_STOCHASTIC_RANK_H
#define PLR_STOCHASTIC_RANK_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_LISTS 8 /* lists that are sorted side by side */

/* Representation of an item's score and of its noisy score u, by kind of noise:
 *
 *                       location            arrival             the higher u, the
 *     GUMBEL            w = exp(f)          t = exp(-u)         earlier it arrives
 *     GUMBEL_WIDE       f                   -u
 *     NORMAL            f                   -u
 */
enum { PLR_GUMBEL, PLR_GUMBEL_WIDE, PLR_NORMAL };

/* The ranks of a noisy ranking that count. Rank k (from 0) has the drop c_k = theta_k - theta_{k+1}. */
typedef struct {
    size_t n_ranks;
    const double *arrivals;
    const double *relevance;    /* of the item at each rank */
    const double *drops;        /* c_k */
    const double *drop_changes; /* c_{k-1} - c_k, 0 at rank 0 */
    double *factors;            /* scratch of 5 numbers for each rank; this and all the others have room for n_ranks
                                   rounded up to a multiple of 8 */
} noisy_ranking;

typedef struct {
    /* Set arrivals[i] of all items from their locations (for GUMBEL 1 / w) and new noise; n is a multiple of 8. */
    void (*arrivals)(int noise, plr_stream *stream, const double *locations, double *arrivals, size_t n);
    /* Copy arrivals before the pivot and their items, in the order of the items; return their number. Inputs and
     * outputs have room for n rounded up to a multiple of 8. */
    size_t (*keep_before)(const double *arrivals, size_t n, double pivot, double *kept, int32_t *items);
    /* For GUMBEL: set the random words from which on each of n items may arrive before the pivot; and draw the arrivals
     * of a sample before it, equal to those of `arrivals` with the same words. thresholds has the room of arrivals. */
    void (*early_words)(const double *locations, size_t n, double pivot, uint64_t *thresholds);
    size_t (*early_arrivals)(plr_stream *stream, const double *locations, const uint64_t *thresholds, size_t n,
                             double pivot, double *kept, int32_t *items);
    /* Add to gradient[i] the sum over ranks k of density c (rho_i - rho_k) for n items (rounded up to a multiple of 8),
     * with c the drop of the rank that the item at k has without item i. own_ranks[i] is -1 if i is not placed. */
    void (*items)(int noise, const noisy_ranking *ranking, const double *locations, const double *relevance,
                  const double *own_ranks, double *gradient, size_t n);
    /* Add for n nodes density c to sums[0..n) and density c rho_k to sums[n..2n), as for an unplaced item. The extra
     * contribution to the item placed at k is added to row rows[k] of corrections (n per row), unless that is
     * negative. */
    void (*nodes)(int noise, const noisy_ranking *ranking, const double *locations, const int32_t *rows, double *sums,
                  double *corrections, size_t n);
    /* Return the gradient of an item between Chebyshev nodes: the sum over nodes of its coefficient times (rho sums -
     * sums + correction). */
    double (*interpolate)(double at, double relevance, const double *node_locations, const double *node_weights,
                          const double *sums, const double *correction, size_t n);
    /* Sort PLR_LISTS lists of n keys. keys[k * PLR_LISTS + list] gets the key at rank k, with its low bits (those of
     * position_bits) replaced by its position in the list. */
    void (*sort_together)(const double *const *lists, size_t n, uint64_t position_bits, double *keys);
} stochastic_rank_kernels;

PLR_DECLARE_KERNELS(stochastic_rank_kernels)

#endif
