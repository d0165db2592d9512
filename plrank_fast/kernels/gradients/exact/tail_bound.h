/* A bound of the error from ending an integral over arrival times at T.
 *
 * N items have arrived by T, and the gains of later arrivals are M = sum of theta_k rho over the ranks k > N, so the
 * integral loses E[M] and its derivatives. Exponential arrival times are memoryless, so given the items A that have not
 * arrived, E[M | A] is the value of the list A alone, ranked from N + 1 on. Let R = sum |theta_k - theta_(k+1)| times
 * the range of rho (theta_(K+1) = 0; the range includes 0). By partial summation, adding or removing an item of A ahead
 * of the others, or exchanging two items, changes M by at most R. Item j has not arrived with probability q_j = e^-x, x
 * = w_j T, and
 *
 *     dE[M]/df_j = E_A [dE[M | A]/df_j] - x q_j (E[M | j in A] - E[M | j not in A]).
 *
 * A ranking of A by successive choices has the derivative sum over choices of pi_j (c_j - mean c), where c_j is the
 * expected gain after choosing j. Its absolute values sum to at most R per choice, and there are K - N choices. The
 * second term is at most R x q_j times the probability that a rank is left open for j. Together
 *
 *     sum_j |dE[M]/df_j| <= R { sum_j x_j q_j P(N_without_j < K) + E[(K - N)+] },
 *
 * the rate of arrivals of rank <= K per unit of ln t, and the expected number of ranks left open. Second derivatives
 * add terms x |x - 1| q_j, twice x q_j times a derivative of E[M | A], which is at most R / e, and pi_j (1 + 2 / e) R
 * per choice: less than 2 R { sum_j x_j (1 + x_j / 2) q_j P(N_without_j < K) + E[(K - N)+] } for the diagonal of the
 * Hessian. The value loses at most R E[(K - N)+]. With n = (K - N)+, the product of the Hessian with a vector of
 * entries of at most 1 loses, in sum of magnitudes, at most
 *
 *     R { E[n (n + 1) / 2] + 2 sum_j x_j q_j E[n without j] + 2 sum_(i != j) x_i q_i x_j q_j P(N_without_i_and_j < K)
 *         + sum_j x_j |x_j - 1| q_j P(N_without_j < K) }:
 *
 * a sum over the entries with signs u is E[M (s_u s_v - sum of covariances of u and v in the choices)] for M given A,
 * where s_u sums u_c - mean u over choices c; a choice's gain differs by at most R, so two choices contribute at most
 * R / 2, one with itself R. Chernoff's factors for n <= K and for each item left out bound all of this by 2 (K + 1 +
 * rate) times the bound of the gradient with x (1 + x / 2) in place of x, `rate` being its sum over items. The
 * bounds sum absolute values, so they hold for any signs of
 * relevance and rank weights. The histogram keeps sums of weights, and ln E[z^N] is a sum of convex functions of them,
 * ln(z + (1 - z) e^-(w T)), so splitting items between bins can only raise it.
 *
 * Where readers stop at item j with probability R_j = 1 - s_j, the loss is E[S M]: S = prod s_j over the items that
 * have arrived, the share of readers who read on, and M the gains of later arrivals for these. Let R be twice a bound
 * of all gains (exact.c), so that no change of a ranking changes M by more. The proofs above then hold with the factor
 * S in all expectations: E[S z^N] = prod L_j with L_j = q_j + s_j p_j z takes the place of E[z^N]. Its logarithm is
 * concave in the s_j, so that their mean over the items of a bin can only raise it; and a sum of convex functions of
 * the weights, those above for s_j z in place of z. An item that is left out takes the factor 1 / L_j, which is convex
 * in s_j and so at most 1 - s_j times 1 / q_j plus s_j times 1 / (q_j + p_j z).
 */
#ifndef PLR_TAIL_BOUND_H
#define PLR_TAIL_BOUND_H

#include <math.h>

#include "gradients/exact/arrival_profile.h"

typedef struct {
    double log_loss, slope; /* ln of a bound of the loss, in units of R, and how fast it falls */
    double rate;            /* rate of arrivals in that bound */
} tail_bound;

/* The bins from `first` on at some time, when all items before have certainly arrived. */
typedef struct {
    int first;
    const double *p, *q, *hazard, *lost; /* as in arrival_table, by bin */
} tail_bins;

PLR_INLINE tail_bins tail_bins_at(const arrival_table *table, const score_histogram *histogram, int step,
                                  int derivatives)
{
    const int shift = PROFILE_TABLE / 2 - step;
    return (tail_bins){first_uncertain(table, histogram, step), table->p + shift, table->q + shift,
                       table->hazard + shift, table->lost[derivatives > 1] + shift};
}

/* Return the bins at `later` steps, at most one, after a step. Hazards and losses rise with time (like e^time if items
 * arrive at a rate), so q falls by a factor of e^(-hazard) or more per nat. There is room for p and q. */
PLR_INLINE tail_bins tail_bins_after(const arrival_table *table, const score_histogram *histogram, int step,
                                     double later, int derivatives, double *p, double *q)
{
    const tail_bins before = tail_bins_at(table, histogram, step, derivatives);
    tail_bins between = tail_bins_at(table, histogram, step + 1, derivatives);
    const double nats = later / BINS_PER_NAT, hazards = arrives_at_rate(table->law) ? expm1(nats) : nats;
    for (int i = between.first; i < histogram->bins; i += PLR_LANES) {
        const lanes left = vec_load(before.q + i) * vec_exp(-hazards * vec_load(before.hazard + i));
        vec_store(q + i, left);
        vec_store(p + i, 1.0 - left);
    }
    between.p = p;
    between.q = q;
    return between;
}

/* Return a bound of the loss if time ends now, where `earlier` + 1 = K. By Chernoff, P(N < K) <= E[z^N] z^(1-K) for
 * any 0 < z <= 1, and (K - N)+ is at most z^(N+1-K) max_(y >= 1) y z^(y-1). Every z gives a bound. Newton's method
 * lowers it until its next step promises less than half a nat. It solves for a zero of the derivative of E[z^N]
 * z^(1/2-K), since the factor of P(N < K) is constant or falls as 1 / z: sum r / (r + 1 / z) = K - 1/2 with the odds
 * r = p / q. The inverse of this sum over the items that have not certainly arrived is a concave, rising function of
 * 1 / z (a parallel sum of linear ones). So Newton's method for the inverses, from any 1 / z below the solution,
 * rises to it without passing it. *inverse_z is such a start, 1 or what an earlier time has left, since the solution
 * rises with time. */
PLR_INLINE tail_bound bound_tail(const score_histogram *histogram, tail_bins bins, double earlier, double *inverse_z,
                                 const int stops)
{
    const double certain = histogram->above[bins.first], left = earlier + 0.5 - certain; /* ranks */
    const double most = 1 / DBL_MIN; /* 1 / z beyond which the loss is negligible at once, or nothing is lost */
    for (;;) {
        const double z = 1 / *inverse_z;
        lanes log_moment = {0}, mean = {0}, spread = {0}, lost = {0}, fall = {0};
        for (int i = bins.first; i < histogram->bins; i += PLR_LANES) {
            const lanes count = vec_load(histogram->count + i), p = vec_load(bins.p + i), q = vec_load(bins.q + i);
            const lanes reads = stops ? vec_load(histogram->reads + i) : vec_all(1), read = p * z * reads;
            const lanes factor = stops ? vec_max_f64(q + read, vec_all(DBL_MIN)) : q + read;
            const lanes inverse = 1.0 / factor, share = count * read * inverse;
            log_moment += count * vec_rough_log(factor);
            mean += share;
            spread += share * q * inverse;
            const lanes uncertain = stops ? count * ((1.0 - reads) + reads * (q / (q + p * z))) : count * q * inverse;
            lost += vec_load(bins.lost + i) * uncertain;
            fall += vec_load(bins.hazard + i) * uncertain * (1.0 - z * reads);
        }
        const double arrivals = vec_sum(mean), variance = vec_sum(spread);
        const double off = arrivals - left;
        if (off > 0 && off * off > variance && *inverse_z < most) {
            const double factor = 1 + off / variance * arrivals / left;
            *inverse_z = left > 0 ? smaller(*inverse_z * factor, most) : most;
            continue;
        }
        const double rate = vec_sum(lost), log_inverse = log(*inverse_z);
        const double most_open = log_inverse < 1 ? smaller(earlier + 1, *inverse_z / (M_E * log_inverse)) : 1;
        const double log_chance = vec_sum(log_moment) - (certain - earlier) * log_inverse;
        return (tail_bound){log_chance + log(rate + most_open), vec_sum(fall), rate};
    }
}

static tail_bound tail_bound_of(const score_histogram *histogram, tail_bins bins, double earlier, double *inverse_z)
{
    return histogram->stops ? bound_tail(histogram, bins, earlier, inverse_z, 1)
                            : bound_tail(histogram, bins, earlier, inverse_z, 0);
}

#endif
