/* StochasticRank: noise on the scores, and what each noisy ranking gives to all items or to nodes that stand for
 * them. */
#ifndef PLR_STOCHASTIC_RANK_H
#define PLR_STOCHASTIC_RANK_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_LISTS 8 /* sorted side by side */

/* Where an item's score stands, and where its noisy score u falls, by kind of noise:
 *
 *                       location            arrival             the higher u, the
 *     GUMBEL            w = exp(f)          t = exp(-u)         earlier it arrives
 *     GUMBEL_WIDE       f                   -u
 *     NORMAL            f                   -u
 */
enum { PLR_GUMBEL, PLR_GUMBEL_WIDE, PLR_NORMAL };

/* A noisy ranking, as far as it counts. Rank k (from 0) has the drop c_k = theta_k - theta_{k+1}. */
typedef struct {
    size_t n_ranks;
    const double *arrivals;
    const double *relevance;    /* of the item at each rank */
    const double *drops;        /* c_k */
    const double *drop_changes; /* c_{k-1} - c_k, 0 at rank 0 */
    double *factors;            /* room to work in, of 5 numbers to a rank; this and all the others have room for n_ranks
                                   rounded up to a multiple of 8 */
} noisy_ranking;

typedef struct {
    /* arrivals[i] of all items from their locations (for GUMBEL 1 / w) and new noise; n a multiple of 8. */
    void (*arrivals)(int noise, plr_stream *stream, const double *locations, double *arrivals, size_t n);
    /* Arrivals before the pivot and their items, in the order of the items; returns how many. Both have room for n
     * rounded up to a multiple of 8, and so have the arrivals. */
    size_t (*keep_before)(const double *arrivals, size_t n, double pivot, double *kept, int32_t *items);
    /* For GUMBEL: the random words from which on an item may arrive before the pivot, for n items; and the arrivals
     * before it of a sample, as those of `arrivals` with the same words. thresholds like arrivals. */
    void (*early_words)(const double *locations, size_t n, double pivot, uint64_t *thresholds);
    size_t (*early_arrivals)(plr_stream *stream, const double *locations, const uint64_t *thresholds, size_t n,
                             double pivot, double *kept, int32_t *items);
    /* gradient[i] += sum over ranks k of density c (rho_i - rho_k) for n items (rounded up to a multiple of 8), with c
     * that of the rank which the item at k has if item i is left out. own_ranks[i] is -1 if i is not placed. */
    void (*items)(int noise, const noisy_ranking *ranking, const double *locations, const double *relevance,
                  const double *own_ranks, double *gradient, size_t n);
    /* The same for n nodes, of which sums[0..n) and sums[n..2n) get density c and density c rho_k as for an item that
     * is not placed. What a placed item gets besides goes to row rows[k] of corrections (n per row), if not
     * negative. */
    void (*nodes)(int noise, const noisy_ranking *ranking, const double *locations, const int32_t *rows, double *sums,
                  double *corrections, size_t n);
    /* Of an item between Chebyshev nodes: sum over nodes of its coefficient times (rho sums - sums + correction). */
    double (*interpolate)(double at, double relevance, const double *node_locations, const double *node_weights,
                          const double *sums, const double *correction, size_t n);
    /* Sorts PLR_LISTS lists of n keys. keys[k * PLR_LISTS + list] is what stands at rank k, its low bits (all that
     * position_bits has) replaced by its position in the list. */
    void (*sort_together)(const double *const *lists, size_t n, uint64_t position_bits, double *keys);
} stochastic_rank_kernels;

PLR_DECLARE_KERNELS(stochastic_rank_kernels)

#endif
