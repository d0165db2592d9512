/* Arrival times: item d arrives at an Exp(w_d) time, and the order of arrival is a Plackett-Luce ranking. */
#ifndef PLR_ARRIVAL_TIMES_H
#define PLR_ARRIVAL_TIMES_H

#include "simd/isa.h"
#include "random/random_stream.h"

/* Representation of an item's score f and of its noisy score u, by kind of noise:
 *
 *                       location            arrival             the higher u, the
 *     GUMBEL            w = exp(f)          t = exp(-u)         earlier it arrives
 *     GUMBEL_WIDE       f                   -u
 *     NORMAL            f                   -u
 */
enum { PLR_GUMBEL, PLR_GUMBEL_WIDE, PLR_NORMAL };

typedef struct {
    /* Set arrivals[i] = E_i * inverse_weights[i], E_i ~ Exp(1). Both arrays hold n rounded up to a multiple of 8. */
    void (*linear)(plr_stream *stream, const double *inverse_weights, double *arrivals, size_t n);
    /* Set arrivals[i] = log E_i - scores[i], the negated Gumbel perturbation: the same order at any gap of the
     * scores. */
    void (*logarithmic)(plr_stream *stream, const double *scores, double *arrivals, size_t n);
    /* Set arrivals[i] = -(scores[i] + Z_i), Z_i standard normal. */
    void (*normal)(plr_stream *stream, const double *scores, double *arrivals, size_t n);
} arrival_times_kernels;

PLR_DECLARE_KERNELS(arrival_times_kernels)

#endif
