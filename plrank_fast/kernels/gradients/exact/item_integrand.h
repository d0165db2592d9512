/* The integrands of one item, from Y_j and X_j (exact_panel.h). */
#ifndef PLR_ITEM_INTEGRAND_H
#define PLR_ITEM_INTEGRAND_H

#include "gradients/exact/exact_panel.h"

/* Add the integrands of one item; qY = q_j Y_j, qX = q_j X_j. An irrelevant item (rho = 0) needs no Y.
 *
 * Where readers stop (exact_panel.h), the evaluators' qX is q_j <delta, G_j>, without those whom the item itself keeps
 * from reading on. With z = (1 + r_j z + z - 1) / (1 + r_j) and L_j = q_j (1 + r_j z) these are
 *
 *     R_j q_j <theta, z G_j> = R_j / (1 + r_j) (<theta, B> - rho_j h_j q_j Y_j + q_j <delta, G_j>). */
PLR_INLINE void add_item(panel *p, intptr_t j, const node_vector *node, lanes qY, lanes qX, const int relevant,
                         const integrands wanted, const int law)
{
    const double rho = p->items.rho[j];
    const item_slopes slopes = slopes_at(law, p->items.w[j], node->factor);
    const lanes hazard = hazard_of(p, j, law), weight = hazard * node->weight;
    if (p->stops) {
        const lanes following = (relevant ? node->value - rho * hazard * qY : node->value) + qX;
        qX -= p->items.stop[j] / (1.0 + p->at->odds[j]) * following;
    }
    const lanes X = slopes.moving * qX, rest = slopes.first * X;
    const lanes gradient = weight * (relevant ? rho * slopes.first * qY + X : X);
    const lanes hessian = weight * (relevant ? rho * slopes.second * qY + rest : rest);
    p->sums.gradient[j] += gradient;
    if (wanted == HESSIAN)
        p->sums.hessian[j] += hessian;
}

#endif
