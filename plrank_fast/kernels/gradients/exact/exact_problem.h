/* One query on its way through the exact kernel: what has been found out about it, and its workspace. */
#ifndef PLR_EXACT_PROBLEM_H
#define PLR_EXACT_PROBLEM_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/list_blocks.h"
#include "gradients/exact/normal_plan.h"
#include "gradients/exact/rank_probabilities.h"

#define LONGEST_SIDE_BY_SIDE ((intptr_t)1 << 17) /* items; each workspace takes 64 bytes or more for each */

typedef struct {
    double least, most;
} range;

typedef struct {
    exact_query *query;
    double highest, lowest;       /* score */
    range relevance;
    double common;                /* relevance that all items share, which moves no gradient */
    intptr_t K;                   /* ranks up to the last whose weight differs from those after it */
    double *theta, *delta;        /* rank weights less that of the rank after the last, and their differences */
    tolerances tolerance;         /* of this attempt */
    double value;                 /* integral so far */

    intptr_t longest, most_ranks; /* for which there is room */
    int purpose;                  /* of the room: exact.h */
    char *room;                   /* for whatever is as long as a panel */
    parallel_loop loop_of_panel;  /* the query's, with no more threads than there is room for: */
    node_workspace side_by_side[MOST_SIDE_BY_SIDE];
    block_sums *of_block;         /* of a pass over the list */

    double *f, *w, *rho;          /* of the panel's items as they come: score less the highest, weight, relevance */
    intptr_t *query_item;         /* likewise: item of the query */
    double *key, *key_buffer;     /* of the items, for sorting */
    intptr_t *rank_order, *order_buffer; /* all items by falling score, only where there are gaps */
    double *panel_theta, *panel_delta; /* the K from the first rank of the panel, MARGIN zeros on either side */
    score_histogram *histogram;   /* of the panel's scores */
    octave_sums *octaves;         /* of the query's weights, in long lists: of each block of items */
    double *proxy_zeroth, *proxy_first; /* what proxies get back */
    proxy_polynomials *polynomials; /* through that, */
    double *returned;             /* and where it goes */
    const double *checked;        /* entries whose sums are wanted */
    normal_plan *normal;
    kept_nodes kept;              /* only for rank probabilities */
    panel panel;
} exact_problem;

typedef struct {
    double total, absolute, irrelevant; /* irrelevant: how many */
} relevance_sums;

#define lay_out_problem ISA(lay_out_problem)
#define lay_out_panel ISA(lay_out_panel)
#define exact_workspace_bytes ISA(exact_workspace_bytes)
#define set_ranks ISA(set_ranks)
#define sort_scores ISA(sort_scores)
#define sum_relevance ISA(sum_relevance)
#define pass_over_list ISA(pass_over_list)
#define sum_over_list ISA(sum_over_list)

/* Cut the workspace of a problem of D items and K ranks out of `memory` (on a cache line), for one of the purposes of
 * exact.h and the threads of the loop; clears all else. Returns its size. */
size_t lay_out_problem(exact_problem *problem, char *memory, intptr_t D, intptr_t K, int purpose, parallel_loop loop);
size_t exact_workspace_bytes(intptr_t D, intptr_t K, int purpose, int n_threads);
/* Lay out the part of it that is as long as a panel anew, for panels of up to n of the D items, so that what is used
 * lies together. Returns the end of it. */
char *lay_out_panel(exact_problem *problem, intptr_t n);
/* The panel's ranks are the K after the first `arrived`, for n items. */
void set_ranks(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K);
/* All items by falling score: their scores, and themselves in problem->rank_order. */
const double *sort_scores(exact_problem *problem);
/* Sums over all items of relevance less what they share, of its magnitude, and of those of which nothing is left. */
relevance_sums sum_relevance(exact_problem *problem);
/* A pass over the list: body(problem, block, thread) for each of its blocks. */
void pass_over_list(exact_problem *problem, loop_body body);
/* The same for one that fills problem->of_block; returns the sums over all blocks. */
block_sums sum_over_list(exact_problem *problem, loop_body body);

#endif
