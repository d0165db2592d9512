/* The integrands of one item, from Y_j and X_j (exact_panel.h). */
#ifndef PLR_ITEM_INTEGRAND_H
#define PLR_ITEM_INTEGRAND_H

#include "gradients/exact/exact_panel.h"

/* The items that an evaluator is compiled for. */
typedef struct {
    int relevant, stops; /* whether their relevance is not 0, and whether readers stop */
    integrands wanted;
    int law;
} evaluation;

/* Add the integrands of one item; qY = q_j Y_j, qX = q_j X_j. An irrelevant item (rho = 0) needs no Y.
 *
 * Where readers stop (exact_panel.h), the evaluators' qX is q_j <delta, G_j>, without those whom the item itself keeps
 * from reading on. With z = (1 + r_j z + z - 1) / (1 + r_j) and L_j = q_j (1 + r_j z) these are
 *
 *     R_j q_j <theta, z G_j> = R_j / (1 + r_j) (<theta, B> - rho_j h_j q_j Y_j + q_j <delta, G_j>). */
PLR_INLINE void add_item(panel *p, intptr_t j, const node_vector *node, lanes qY, lanes qX, const evaluation of)
{
    const double rho = p->items.rho[j];
    const item_slopes slopes = slopes_at(of.law, p->items.w[j], node->factor);
    const lanes hazard = hazard_of(p, j, of.law), weight = hazard * node->weight;
    if (of.stops) {
        const lanes following = (of.relevant ? node->value - rho * hazard * qY : node->value) + qX;
        qX -= p->items.stop[j] / (1.0 + p->at->odds[j]) * following;
    }
    const lanes X = slopes.moving * qX, rest = slopes.first * X;
    p->sums.gradient[j] += weight * (of.relevant ? rho * slopes.first * qY + X : X);
    if (of.wanted == HESSIAN)
        p->sums.hessian[j] += weight * (of.relevant ? rho * slopes.second * qY + rest : rest);
}

#endif
