/* The integrands of one item, from Y_j and X_j (exact_panel.h). */
#ifndef PLR_ITEM_INTEGRAND_H
#define PLR_ITEM_INTEGRAND_H

#include "gradients/exact/exact_panel.h"

/* Requested outputs: the value alone, the exposure or gradient too, or also the Hessian diagonal or a product
 * of the Hessian (hessian_product.h). */
typedef enum { VALUE_ALONE, EXPOSURE, GRADIENT, HESSIAN, PRODUCT } integrands;

/* Add the integrands of one item; qY = q_j Y_j, qX = q_j X_j. An irrelevant item (rho = 0) needs no Y. */
PLR_INLINE void add_item(panel *p, intptr_t j, const node_vector *node, lanes qY, lanes qX, const int relevant,
                         const integrands wanted, const int normal)
{
    const double w = p->items.w[j], rho = p->items.rho[j];
    const lanes t = node->factor, dt = node->weight;
    lanes gradient, hessian;
    if (normal) {
        const lanes y = p->items.position[j] + t, weight = p->at.hazard[j] * dt;
        gradient = weight * (relevant ? qX - rho * y * qY : qX);
        hessian = weight * (relevant ? rho * (y * y - 1.0) * qY - y * qX : -y * qX);
    } else {
        const lanes x = w * t, weight = w * dt, X = t * qX, rest = (1.0 - x) * X;
        gradient = weight * (relevant ? rho * (1.0 - x) * qY + X : X);
        hessian = weight * (relevant ? rho * ((1.0 - x) * (1.0 - x) - x) * qY + rest : rest);
    }
    p->sums.gradient[j] += gradient;
    if (wanted == HESSIAN)
        p->sums.hessian[j] += hessian;
}

#endif
