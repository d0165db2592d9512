/* Long lists: a few proxy items replace many items of low weight, so that the cost is per item and not per item and
 * rank.
 *
 * Low-weight items enter the integrands only through sums over items of functions of w, and their derivatives are
 * functions of w (plus rho times another), all of them entire and dominated by their low powers while r = expm1(w t) is
 * small. Weights are sorted into octaves by their exponent. In an octave, sum_j m_j f(w_j) is about that of the
 * polynomial through f at 8 Chebyshev nodes, so proxies at those nodes, with masses that have the same first 8 moments,
 * replace the items, and the derivatives at the proxies are interpolated to the items. On [1, 2] the error is 1.2e-7 of
 * the eighth-power term, which is at most r^8 of the first. Items whose r at the last time is above a limit are
 * therefore not compressed.
 */
#ifndef PLR_MOMENT_COMPRESSION_H
#define PLR_MOMENT_COMPRESSION_H

#include "gradients/exact/score_histogram.h"
#include "simd/vector_math.h"

#define COMPRESSED_FROM 220 /* items, and more for each rank (compressed_panel.c) */
#define OCTAVES 100 /* items lighter than 2^-100 of the heaviest have no influence and no gradient */
#define PROXIES_OF_OCTAVE 8
#define MOST_PROXIES (OCTAVES * PROXIES_OF_OCTAVE)
#define COPIES 4 /* of the sums, so that neighbours in the same octave do not wait for each other */

typedef double moments __attribute__((vector_size(8 * PROXIES_OF_OCTAVE))); /* coefficients or sums of u^0 .. u^7 */

/* The moments of each octave: sums of u^k and of rho w u^k over its items, and of |rho| and rho^2. */
typedef struct {
    moments plain[OCTAVES * COPIES], relevant[OCTAVES * COPIES];
    double magnitudes[OCTAVES * COPIES], squares[OCTAVES * COPIES];
} octave_sums;

/* The proxies of the octaves from the first on: a multiple of 8, usually none. */
typedef struct {
    intptr_t count;
    double *w, *mass, *rho_mass;     /* rho_mass includes the factor w */
    double weight;                   /* sum of w over the items they replace */
    int first_octave, first_proxy[OCTAVES]; /* of each octave, -1 for empty ones */
} proxy_items;

typedef struct {
    double heaviest; /* compressed weights are below this */
    moments zeroth[OCTAVES], first[OCTAVES];
} proxy_polynomials;

#define prepare_interpolation ISA(prepare_interpolation)
#define sum_octaves ISA(sum_octaves)
#define histogram_of_octaves ISA(histogram_of_octaves)
#define place_proxies ISA(place_proxies)
#define merge_octaves ISA(merge_octaves)
#define interpolate_proxies ISA(interpolate_proxies)
#define return_to_items ISA(return_to_items)

/* Compute Chebyshev nodes and the polynomials between them, once per process. */
void prepare_interpolation(void);
/* Compute the moments of n items, with relevance relative to `common`. */
void sum_octaves(octave_sums *sums, intptr_t n, const double *w, const double *relevance, double common);
/* Add moments to those of other items. */
void merge_octaves(octave_sums *to, const octave_sums *sums);
/* Fill the histogram of -f from the octaves, with their items at both ends, so that the sum of weights is kept. */
void histogram_of_octaves(score_histogram *histogram, const octave_sums *sums);
/* Place proxies for the items of the octaves from first_octave on. */
void place_proxies(const octave_sums *sums, int first_octave, proxy_items *proxies);
/* Compute the polynomials in u, one for each octave, through values at the proxies. */
void interpolate_proxies(const proxy_items *proxies, const double *zeroth, const double *first,
                         proxy_polynomials *polynomials);
/* Set to_j = w_j (zeroth(w_j) + rho_j first(w_j)) for those of the n items that were compressed. */
void return_to_items(const proxy_polynomials *polynomials, intptr_t n, const double *w, const double *relevance,
                     double common, double *to);

#endif
