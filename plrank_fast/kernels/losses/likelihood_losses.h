/* Inner loops of the losses that are likelihoods: pointwise logistic, softmax cross-entropy, ListMLE. */
#ifndef PLR_LIKELIHOOD_LOSSES_H
#define PLR_LIKELIHOOD_LOSSES_H

#include "simd/isa.h"

typedef struct {
    /* gradient[i] = derivative of log(1 + exp(f_i)) - y_i f_i; returns the sum of these */
    double (*logistic)(const double *scores, const double *labels, double *gradient, size_t n);
    /* out[i] = exp(x[i] - shift), where no difference is above 0; returns their sum */
    double (*exponentials)(const double *x, double shift, double *out, size_t n);
    /* sum of log(x[i]), x positive */
    double (*sum_of_logarithms)(const double *x, size_t n);
} likelihood_kernels;

PLR_DECLARE_KERNELS(likelihood_kernels)

#endif
