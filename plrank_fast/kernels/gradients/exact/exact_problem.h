/* State and workspace of one query in the exact kernel. */
#ifndef PLR_EXACT_PROBLEM_H
#define PLR_EXACT_PROBLEM_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/list_blocks.h"
#include "gradients/exact/normal_plan.h"
#include "gradients/exact/rank_probabilities.h"

#define SHARE_OF_SERIES 0.01 /* of the error bound: truncated series and rounding */
#define LONGEST_SIDE_BY_SIDE ((intptr_t)1 << 17) /* items; each node workspace takes at least 64 bytes an item */

typedef struct {
    double least, most;
} range;

typedef struct {
    exact_query *query;
    double highest, lowest;       /* scores */
    range relevance;
    double common;                /* relevance that is subtracted from all items, which changes no gradient */
    intptr_t K;                   /* ranks up to the last whose weight differs from those after it */
    double *theta, *delta;        /* rank weights minus that of the rank after the last, and their differences */
    tolerances tolerance;         /* of this attempt */
    double value;                 /* integral so far, */
    double error[INTEGRALS];      /* and bounds of the errors of the quadrature */
    int plans;                    /* number of plans in this attempt */

    intptr_t longest, most_ranks; /* that the workspace has room for */
    int purpose;                  /* of the workspace: exact_query.h */
    char *room;                   /* memory of the arrays that are as long as a panel */
    parallel_loop loop_of_panel;  /* the query's loop, with at most as many threads as there are of these: */
    node_workspace side_by_side[MOST_SIDE_BY_SIDE];
    block_sums *of_block;         /* sums of a pass over the list */

    double *f, *w, *rho;          /* of the panel's items in input order: score minus the highest, weight, relevance */
    intptr_t *query_item;         /* likewise: index of the item in the query */
    double *key, *key_buffer;     /* of the items, for sorting */
    intptr_t *rank_order, *order_buffer; /* all items by descending score, only if there are gaps */
    double *panel_theta, *panel_delta; /* K entries from the first rank of the panel, MARGIN zeros on either side */
    score_histogram *histogram;   /* of the panel's scores */
    octave_sums *octaves;         /* moments of the query's weights; in long lists, of each block of items */
    double *proxy_zeroth, *proxy_first; /* derivatives at the proxies */
    proxy_polynomials *polynomials; /* interpolants of these, */
    double *returned;             /* and the output to which they are added */
    const double *checked;        /* entries to be summed */
    kept_nodes kept;              /* only for rank probabilities */
    panel panel;
} exact_problem;

typedef struct {
    double total, irrelevant; /* irrelevant: number of items */
} relevance_sums;

#define lay_out_problem ISA(lay_out_problem)
#define lay_out_panel ISA(lay_out_panel)
#define exact_workspace_bytes ISA(exact_workspace_bytes)
#define set_ranks ISA(set_ranks)
#define gains_of_panel ISA(gains_of_panel)
#define tolerances_of_plan ISA(tolerances_of_plan)
#define add_errors ISA(add_errors)
#define sort_scores ISA(sort_scores)
#define sum_relevance ISA(sum_relevance)
#define pass_over_list ISA(pass_over_list)
#define sum_over_list ISA(sum_over_list)

/* Lay out the workspace of a problem of D items and K ranks in `memory` (on a cache line), for one of the purposes of
 * exact_query.h and the threads of the loop; clear all other members. Returns the size of the workspace. */
size_t lay_out_problem(exact_problem *problem, char *memory, intptr_t D, intptr_t K, int purpose, parallel_loop loop);
size_t exact_workspace_bytes(intptr_t D, intptr_t K, int purpose, int n_threads);
/* Lay out the arrays that are as long as a panel again, for panels of up to n of the D items, so that the used memory
 * is contiguous. Returns its end. */
char *lay_out_panel(exact_problem *problem, intptr_t n);
/* Set the panel's ranks: K ranks after the first `arrived`, for n items, and the accuracy of the panel's plan. */
void set_ranks(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K, double accuracy);
/* Return the rank weights of a panel with K ranks after the first `arrived`. */
panel_gains gains_of_panel(const exact_problem *problem, intptr_t arrived, intptr_t K);
/* Return the errors allowed in the next plan of the attempt. Those of the value add up over the plans: each may take
 * half of what is left, the last one all of it, less a hundredth for what its end adds (normal_plan.c). */
tolerances tolerances_of_plan(const exact_problem *problem, int last);
/* Add the errors of a plan to those of the attempt. */
void add_errors(exact_problem *problem, const double error[INTEGRALS]);
/* Sort all items by descending score; return their scores, and leave their indices in problem->rank_order. */
const double *sort_scores(exact_problem *problem);
/* Sum over all items their relevance minus the common part, and count those for which it is 0. */
relevance_sums sum_relevance(exact_problem *problem);
/* Run body(problem, block, thread) for each block of the list. */
void pass_over_list(exact_problem *problem, loop_body body);
/* Run a pass whose body fills problem->of_block; return the sums over all blocks. */
block_sums sum_over_list(exact_problem *problem, loop_body body);

#endif
