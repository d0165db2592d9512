/* Exact expected metric under Plackett-Luce, its gradient and Hessian diagonal, by quadrature over arrival times.
 *
 * The kernel in reading order, from scores to nodes to sums over nodes (docs/numerics.md walks through it):
 *
 *     exact_query           what is asked, and what is answered
 *     score_histogram       how many items have which score
 *     arrival_profile       expected number of arrivals and its variance at a time, read off the histogram
 *     tail_bound            what is lost where the integral ends
 *     gauss_legendre        rules on [0, 1]
 *     quadrature_plan       nodes for exponential arrival times
 *     normal_plan           nodes for normal ones
 *     item_block            a panel's items, in the order that the evaluators want
 *     exact_panel           what the evaluators share: items, rank weights, nodes, workspace
 *     truncated_product     P and B by multiplication
 *     power_sums            P by Newton's identities
 *     arrival_polynomials   P and B at a vector of nodes, by both
 *     leave_one_out_series, leave_one_out_division, item_integrand    from P and B to each item's integrand
 *     lane_sums, panel_integrals    their sums over all nodes of a panel
 *     rank_probabilities    likewise, for the chance of each rank
 *     moment_compression    a few nodes in place of many items of low weight
 *     list_blocks           a long list in blocks, for threads
 *     exact_problem         one query: what is known of it, its workspace
 *     exact_panels          from a query to panels: what the next three have in common
 *     exponential_panels, compressed_panel, normal_panels    likewise, for lists of each kind
 *     error_check           are the nodes enough?
 *     exact.c               one query from start to end
 */
#ifndef PLR_EXACT_H
#define PLR_EXACT_H

#include "gradients/exact/exact_query.h"
#include "simd/isa.h"

typedef struct {
    void (*prepare)(void);                         /* tables of this level, once per process */
    /* Bytes, for the longest list and the largest K, and as many threads as may share the work. */
    size_t (*workspace)(intptr_t D, intptr_t K, int purpose, int n_threads);
    /* Promises of sigma times the gradient. */
    void (*solve)(exact_query *query, void *workspace);
    void (*rank_probabilities)(exact_query *query, void *workspace);
} exact_kernels;

PLR_DECLARE_KERNELS(exact_kernels)

#endif
