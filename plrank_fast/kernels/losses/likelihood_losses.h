/* Inner loops of the losses that are likelihoods: pointwise logistic, softmax cross-entropy, ListMLE. */
#ifndef PLR_LIKELIHOOD_LOSSES_H
#define PLR_LIKELIHOOD_LOSSES_H

#include "simd/isa.h"

typedef struct {
    /* Set gradient[i] to the derivative of (f_i - y_i)^2; return the sum of these terms. */
    double (*squared)(const double *scores, const double *labels, double *gradient, size_t n);
    /* Set gradient[i] to the derivative of log(1 + exp(f_i)) - y_i f_i; return the sum of these terms. */
    double (*logistic)(const double *scores, const double *labels, double *gradient, size_t n);
    /* Set gradient[i] to the derivative by f_i of the sum of p_i (log sum exp f - f_i), with p the labels over their
     * sum, and return that sum. If all labels are 0, return 0 and leave the gradient as it is. */
    double (*softmax)(const double *scores, const double *labels, double *gradient, size_t n);
    /* Set out[i] = exp(x[i] - shift), where no difference is above 0; return their sum. */
    double (*exponentials)(const double *x, double shift, double *out, size_t n);
    /* Return the sum of log(x[i]), x positive. */
    double (*sum_of_logarithms)(const double *x, size_t n);
} likelihood_kernels;

PLR_DECLARE_KERNELS(likelihood_kernels)

#endif
