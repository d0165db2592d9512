/* P and B of light items from their power sums. They are cheaper than a product if the odds are small, since few powers
 * matter and all items share them. */
#ifndef PLR_POWER_SUMS_H
#define PLR_POWER_SUMS_H

#include "gradients/exact/exact_panel.h"

/* Items in whole quartets. `mass` is NULL if all are 1. The share of an item in B is rho times its hazard, or rho_mass
 * if that is given. */
typedef struct {
    intptr_t count;
    const lanes *odds, *hazard;
    const double *w, *rho, *mass, *rho_mass;
} summed_items;

/* Add power_sum_i = sum mass (-r)^i and, for relevant items, share_sum_i = sum share (-r)^i; returns the number of
 * terms that matter. */
PLR_INLINE intptr_t add_power_sums(const panel *p, const summed_items items, const int relevant, const int law,
                                   intptr_t most, lanes *power_sum, lanes *share_sum)
{
    intptr_t longest = 1;
    for (intptr_t j = 0; j < items.count; j += QUARTET) {
        const intptr_t terms = series_terms(largest_of_quartet(items.odds + j), p->ranks.bits, most);
        longest = terms > longest ? terms : longest;
        lanes power[QUARTET], ratio[QUARTET], share[QUARTET];
        double number[QUARTET];
        for (int n = 0; n < QUARTET; n++) {
            ratio[n] = -items.odds[j + n];
            power[n] = ratio[n];
            number[n] = items.mass ? items.mass[j + n] : 1;
            if (relevant)
                share[n] = !arrives_at_rate(law) ? items.rho[j + n] * items.hazard[j + n]
                           : items.rho_mass      ? vec_all(items.rho_mass[j + n])
                                                 : vec_all((items.rho[j + n] * items.w[j + n]));
        }
        if (relevant)
            share_sum[0] += (share[0] + share[1]) + (share[2] + share[3]);
        for (intptr_t i = 1; i < terms; i++) {
            if (items.mass)
                power_sum[i] += (number[0] * power[0] + number[1] * power[1]) +
                                (number[2] * power[2] + number[3] * power[3]);
            else
                power_sum[i] += (power[0] + power[1]) + (power[2] + power[3]);
            if (relevant)
                share_sum[i] += (share[0] * power[0] + share[1] * power[1]) +
                                (share[2] * power[2] + share[3] * power[3]);
            for (int n = 0; n < QUARTET; n++)
                power[n] *= ratio[n];
        }
    }
    return longest;
}

/* Multiply P, so far a constant, by prod (1 + r z) from the power sums of r (Newton's identities): m P_m = -sum_i s_i
 * P_(m-i). */
PLR_INLINE void multiply_by_power_sums(lanes *P, const lanes *s, intptr_t terms, intptr_t coefficients)
{
    for (intptr_t m = 1; m < coefficients; m++) {
        lanes sum0 = {0}, sum1 = {0};
        intptr_t most = m < terms - 1 ? m : terms - 1, i = most;
        for (; i > 1; i -= 2) {
            sum0 += s[i] * P[m - i];
            sum1 += s[i - 1] * P[m - i + 1];
        }
        if (i == 1)
            sum1 += s[1] * P[m - 1];
        P[m] = (sum0 + sum1) * (-1.0 / (double)m);
    }
}

/* Add to B the product of P and sum_j share_j / (1 + r_j z), whose series has the coefficients b, from low to high. */
PLR_INLINE void add_shares(lanes *restrict B, const lanes *restrict P, const lanes *b, intptr_t terms, intptr_t low,
                           intptr_t high)
{
    for (intptr_t m = high - 1; m >= low && terms > 0; m--) {
        lanes sum = {0};
        const intptr_t most = m < terms - 1 ? m : terms - 1;
        for (intptr_t i = 0; i <= most; i++)
            sum += b[i] * P[m - i];
        B[m] += sum;
    }
}

#endif
