/* The integrands of one item, from Y_j and X_j (exact_panel.h). */
#ifndef PLR_ITEM_INTEGRAND_H
#define PLR_ITEM_INTEGRAND_H

#include "gradients/exact/exact_panel.h"

/* Add the integrands of a quartet; qY = q_j Y_j, qX = q_j X_j. Irrelevant items (rho = 0) need no Y.
 *
 * Where readers stop (exact_panel.h), the evaluators' qX is q_j <delta, G_j>, without those whom the item itself keeps
 * from reading on. With z = (1 + r_j z + z - 1) / (1 + r_j) and L_j = q_j (1 + r_j z) these are
 *
 *     R_j q_j <theta, z G_j> = R_j / (1 + r_j) (<theta, B> - rho_j h_j q_j Y_j + q_j <delta, G_j>). */
PLR_INLINE void add_items_of_quartet(panel *p, intptr_t quartet, const node_vector *node, const lanes *qY, lanes *qX,
                                     const int relevant, const integrands wanted, const int law)
{
    const intptr_t j = QUARTET * quartet;
    const double *w = p->items.w + j, *rho = p->items.rho + j;
    lanes *gradient = p->sums.gradient + j, *hessian = p->sums.hessian + j;
    for (int n = 0; n < QUARTET && p->stops; n++) {
        const lanes own = relevant ? rho[n] * hazard_of(p, j + n, law) * qY[n] : (lanes){0};
        qX[n] -= p->items.stop[j + n] / (1.0 + p->at->odds[j + n]) * (node->value - own + qX[n]);
    }
    for (int n = 0; n < QUARTET; n++) {
        const item_slopes slopes = slopes_at(law, w[n], node->factor);
        const lanes weight = hazard_of(p, j + n, law) * node->weight, X = slopes.moving * qX[n];
        const lanes rest = slopes.first * X;
        gradient[n] += weight * (relevant ? rho[n] * slopes.first * qY[n] + X : X);
        if (wanted == HESSIAN)
            hessian[n] += weight * (relevant ? rho[n] * slopes.second * qY[n] + rest : rest);
    }
}

#endif
