/* One query on its way through the exact kernel: what has been found out about it, and its workspace. */
#ifndef PLR_EXACT_PROBLEM_H
#define PLR_EXACT_PROBLEM_H

#include "gradients/exact/exact.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/normal_plan.h"
#include "gradients/exact/rank_probabilities.h"

typedef struct {
    exact_query *query;
    double highest, lowest;       /* score */
    double inverse_sigma;         /* of normal arrival times, or 0 for exponential ones */
    double common;                /* relevance that all items share, which moves no gradient */
    intptr_t K;                   /* ranks up to the last whose weight differs from those after it */
    double *theta, *delta;        /* rank weights less that of the rank after the last, and their differences */
    tolerances tolerance;         /* of this attempt */
    double value;                 /* integral so far */

    double *f, *w, *rho;          /* of the panel's items as they come: score less the highest, weight, relevance */
    intptr_t *query_item;         /* likewise: item of the query */
    double *key, *key_buffer;     /* of the items, for sorting */
    intptr_t *rank_order, *order_buffer; /* all items by falling score, only where there are gaps */
    double *panel_theta, *panel_delta; /* the K from the first rank of the panel, MARGIN zeros on either side */
    score_histogram *histogram;   /* of the panel's scores */
    octave_sums *octaves;         /* of the query's weights, in long lists */
    double *proxy_zeroth, *proxy_first; /* what proxies get back */
    normal_plan *normal;
    kept_nodes kept;              /* only for rank probabilities */
    panel panel;
} exact_problem;

#define lay_out_problem ISA(lay_out_problem)
#define exact_workspace_bytes ISA(exact_workspace_bytes)
#define set_ranks ISA(set_ranks)
#define sort_scores ISA(sort_scores)

/* Cut the workspace of a problem of D items and K ranks out of `memory` (on a cache line), for one of the purposes of
 * exact.h; clears all else. Returns its size. */
size_t lay_out_problem(exact_problem *problem, char *memory, intptr_t D, intptr_t K, int purpose);
size_t exact_workspace_bytes(intptr_t D, intptr_t K, int purpose);
/* The panel's ranks are the K after the first `arrived`, for n items; single: in floats. */
void set_ranks(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K, int single);
/* All items by falling score: their scores, and themselves in problem->rank_order. */
const double *sort_scores(exact_problem *problem);

#endif
