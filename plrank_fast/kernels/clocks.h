/* Exponential clocks: item d rings at an Exp(w_d) time, and the order of ringing is a Plackett-Luce ranking. */
#ifndef PLR_CLOCKS_H
#define PLR_CLOCKS_H

#include "isa.h"
#include "random_stream.h"

typedef struct {
    /* clocks[i] = E_i * inverse_weights[i], E_i ~ Exp(1). Both arrays hold n rounded up to a multiple of 8. */
    void (*linear)(plr_stream *stream, const double *inverse_weights, double *clocks, size_t n);
    /* clocks[i] = log E_i - scores[i], the negated Gumbel perturbation: the same order at any gap of the scores. */
    void (*logarithmic)(plr_stream *stream, const double *scores, double *clocks, size_t n);
} clocks_kernels;

PLR_DECLARE_KERNELS(clocks_kernels)

#endif
