/* Exact expected metric under Plackett-Luce, its gradient and Hessian diagonal, by quadrature over arrival times.
 *
 * The kernel is one translation unit, exact.c, which includes all other files; their functions are static.
 * The files of the kernel in reading order, from scores to nodes to sums over nodes (docs/numerics.md explains them):
 *
 *     exact_query           inputs and outputs of one query
 *     score_histogram       counts of items by score
 *     law                   of arrival: all that the other files know of the noise
 *     law_terms, exponential_law, normal_law    odds, hazard, derivatives, magnitudes at complex times, limits
 *     arrival_profile       expected number of arrivals and its variance at a time, from the histogram
 *     tail_bound            bound of the error from ending the integral
 *     gauss_legendre        rules on [0, 1]
 *     integrand_bound       bound of the error of such a rule, by the integrands at complex times
 *     quadrature_plan       nodes
 *     item_block            items of a panel, in the order of the evaluators
 *     exact_panel           data that the evaluators share: items, rank weights, nodes, workspace
 *     truncated_product     P and B by multiplication
 *     power_sums            P by Newton's identities
 *     average_precision     their counterparts that count relevant items, and the division of such an item
 *     arrival_polynomials   P and B at a vector of nodes, by these
 *     leave_one_out_series, leave_one_out_division, item_integrand    from P and B to each item's integrand
 *     hessian_product       or, for the product of the Hessian with a vector, all of these differentiated
 *     lane_sums, panel_integrals    their sums over all nodes of a panel
 *     rank_probabilities    sums for the probability of each rank
 *     moment_compression    a few proxies in place of many items of low weight
 *     list_blocks           a long list in blocks, for threads
 *     exact_problem         state and workspace of one query
 *     compressed_panel      the panel of a long list
 *     panels                from a query to panels
 *     error_check           estimate of the error, by which an attempt is repeated
 *     exact.c               one query from start to end
 */
#ifndef PLR_EXACT_H
#define PLR_EXACT_H

#include "gradients/exact/exact_query.h"
#include "simd/isa.h"

typedef struct {
    void (*prepare)(void);                         /* tables of this level, once per process */
    /* Return the bytes of workspace for queries of at most so many items, which the most threads may share, otherwise
     * like this one. */
    size_t (*workspace)(const exact_query *query, intptr_t longest, int n_threads);
    /* Solve a query, or find its rank probabilities. The error bound holds for sigma times the gradient. */
    void (*solve)(exact_query *query, void *workspace);
    const char *(*noise)(int law);                 /* its name; NULL if there are not so many laws of arrival */
} exact_kernels;

PLR_DECLARE_KERNELS(exact_kernels)

#endif
