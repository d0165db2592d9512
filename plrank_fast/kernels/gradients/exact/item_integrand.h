/* The integrands of one item, from Y_j and X_j (exact_panel.h). */
#ifndef PLR_ITEM_INTEGRAND_H
#define PLR_ITEM_INTEGRAND_H

#include "gradients/exact/exact_panel.h"

/* Requested outputs: the value alone, the exposure or gradient too, that of average precision (average_precision.h),
 * or also the Hessian diagonal or a product of the Hessian (hessian_product.h). */
typedef enum { VALUE_ALONE, EXPOSURE, GRADIENT, PRECISION, HESSIAN, PRODUCT } integrands;

/* Add the integrands of one item; qY = q_j Y_j, qX = q_j X_j. An irrelevant item (rho = 0) needs no Y. */
PLR_INLINE void add_item(panel *p, intptr_t j, const node_vector *node, lanes qY, lanes qX, const int relevant,
                         const integrands wanted, const int law)
{
    const double rho = p->items.rho[j];
    const item_slopes slopes = slopes_at(law, p->items.w[j], node->factor);
    const lanes weight = hazard_of(p, j, law) * node->weight, X = slopes.moving * qX, rest = slopes.first * X;
    const lanes gradient = weight * (relevant ? rho * slopes.first * qY + X : X);
    const lanes hessian = weight * (relevant ? rho * slopes.second * qY + rest : rest);
    p->sums.gradient[j] += gradient;
    if (wanted == HESSIAN)
        p->sums.hessian[j] += hessian;
}

#endif
