/* The product of the Hessian with a vector d: the derivative of the gradient when score j moves at the speed d_j.
 *
 * Time and nodes do not move, so the integrands of exact_panel.h are differentiated. With x_i = w_i t and
 *
 *     V = sum_i d_i x_i q_i P / L_i,     A = sum_i rho_i d_i w_i (1 - x_i) q_i P / L_i,
 *     W = sum_(i != k) a_i d_k x_k q_k P / (L_i L_k),
 *
 * the derivatives of P and B are (z - 1) V and A + (z - 1) W. Without item j, V, A and W stand for the same sums over
 * the other items, and <theta, (z - 1) V> = <delta, V>. So with epsilon_m = delta_(m+1) - delta_m
 *
 *     (Hd)_j = integral of w_j q_j { d_j [rho_j ((1 - x)^2 - x) Y_j + t (1 - x) X_j]
 *                                    + rho_j (1 - x) <delta, V> + t (<delta, A> + <epsilon, W>) } dt,     x = x_j.
 *
 * An item is divided out of the five polynomials in the order P, B, V, W, A, or is light and has a series in its odds.
 */
#ifndef PLR_HESSIAN_PRODUCT_H
#define PLR_HESSIAN_PRODUCT_H

#include "gradients/exact/exact_panel.h"

#define prepare_product ISA(prepare_product)
#define add_product ISA(add_product)

/* Compute V, W and A and the series of light items at a vector of nodes at which P and B are known. */
void prepare_product(panel *p, const node_vector *node);
/* Add the integrands of quartets [begin, end): those of the gradient, and in place of the Hessian diagonal those of the
 * product. */
void add_product(panel *p, const node_vector *node, intptr_t begin, intptr_t end);

#endif
