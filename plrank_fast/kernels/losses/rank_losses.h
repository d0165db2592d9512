/* Inner loops of the losses that make ranks smooth: ApproxNDCG and SoftRank. */
#ifndef PLR_RANK_LOSSES_H
#define PLR_RANK_LOSSES_H

#include "simd/isa.h"

/* Number of documents that SoftRank handles together at most, in one register. */
#define PLR_SOFT_RANK_TARGETS 8

/* All rank distributions are kept if they fit in this many bytes, about a second-level cache; otherwise the
 * distributions of one segment fit in it. */
#define PLR_SOFT_RANK_KEPT ((size_t)1 << 20)

/* Return the number of items in a segment: all, if their distributions fit in PLR_SOFT_RANK_KEPT, and at least the
 * square root of their number, which takes the least memory. */
static inline size_t plr_soft_rank_segment(size_t n, size_t cutoff)
{
    size_t length = PLR_SOFT_RANK_KEPT / (PLR_SOFT_RANK_TARGETS * sizeof(double) * (cutoff > 0 ? cutoff : 1));
    if (length > n)
        return n;
    while (length == 0 || length < (n - 1) / length + 1)
        length++;
    return length;
}

/* Return the number of doubles of memory that soft_rank needs. */
static inline double plr_soft_rank_memory(size_t n, size_t cutoff)
{
    const double length = (double)plr_soft_rank_segment(n, cutoff), firsts = (double)((n - 1) / (size_t)length);
    return PLR_SOFT_RANK_TARGETS * (2.0 * (double)n + (firsts + length + 1.0) * (double)cutoff);
}

typedef struct {
    const double *scores;
    size_t n;
    const double *discounts;
    size_t cutoff;
    double *value;
    double *gradient;
    double *memory;        /* plr_soft_rank_memory(n, cutoff) doubles */
    int (*cancellation_requested)(void); /* called every steps_per_question steps; or NULL */
    double steps_per_question; /* a step is one item and rank */
} soft_rank_task;

typedef struct {
    /* Set slopes[j] to the derivative of logistic(f_j - f); return the sum of logistic(f_j - f) over j. */
    double (*logistic_rank)(double score, const double *scores, double *slopes, size_t n);
    /* Add factor * slopes[j] to gradient[j]; return the sum of what was added. */
    double (*add_slopes)(double factor, const double *slopes, double *gradient, size_t n);
    /* For documents, `targets` among the n scores, and normal noise of unit variance on every difference of scores:
     * subtract factors[t] times the sum over ranks of discount times the probability of the rank from the value, and
     * its derivatives from the gradient. Returns 1 if cancelled, else 0. */
    int (*soft_rank)(const soft_rank_task *task, const int32_t *targets, size_t n_targets, const double *factors);
} rank_kernels;

PLR_DECLARE_KERNELS(rank_kernels)

#endif
