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
 * Hessian. The value loses at most R E[(K - N)+]. The bounds sum absolute values, so they hold for any signs of
 * relevance and rank weights.
 */
#ifndef PLR_TAIL_BOUND_H
#define PLR_TAIL_BOUND_H

#include <math.h>

#include "gradients/exact/arrival_profile.h"

#define ENOUGH 0.1        /* nats by which Newton's next step must be expected to lower the bound */
#define MOST_STEPS 7
#define LARGEST_STEP 2.0
#define LOWEST_LOG_Z -60.0
#define FIRST_LOG_Z -2.5
#define GROWTH 1.5        /* of ln z from one step of time to the next: 1.4 to 1.8 */

typedef struct {
    double log_loss, slope; /* ln of a bound of the loss, in units of R, and how fast it falls */
} tail_bound;

/* Return ln of the first z, from the last z of the previous step of time (0 at the first step) and the number of
 * arrivals by this one, which is K - 1 + ahead. */
PLR_INLINE double first_log_z(double last_log_z, double ahead, double variance)
{
    if (last_log_z < 0)
        return larger(GROWTH * last_log_z, LOWEST_LOG_Z);
    return ahead < -FIRST_LOG_Z * variance ? -ahead / variance : FIRST_LOG_Z;
}

/* Return a bound of the loss if time ends at this step, where `earlier` + 1 = K. By Chernoff, P(N < K) <= E[z^N]
 * z^(1-K) for any 0 < z <= 1, and (K - N)+ is at most z^(N+1-K) max_(y >= 1) y z^(y-1). Every z gives a bound. Newton's
 * method lowers it from *log_z on and leaves the last z there; it solves for a zero of the derivative of E[z^N] z^-K,
 * since the factor of P(N < K) falls about as 1 / z. */
PLR_INLINE tail_bound tail_bound_at(const arrival_table *table, const score_histogram *histogram, int step,
                                    double earlier, int derivatives, double *log_z)
{
    const int first = first_uncertain(table, histogram, step);
    const int shift = PROFILE_TABLE / 2 - step;
    const double *lost_table = table->lost[derivatives > 1];
    const double certain = histogram->above[first], target = earlier + 1;
    double z, rate, log_moments;
    for (int steps_left = MOST_STEPS;; steps_left--) {
        z = exp(*log_z);
        lanes log_moment = {0}, mean = {0}, spread = {0}, lost = {0};
        for (int i = first; i < histogram->bins; i += PLR_LANES) {
            lanes count = vec_load(histogram->count + i), p = vec_load(table->p + shift + i);
            lanes q = vec_load(table->q + shift + i);
            lanes factor = q + p * z, inverse = 1.0 / factor, share = count * p * z * inverse;
            log_moment += count * vec_rough_log(factor);
            mean += share;
            spread += share * q * inverse;
            lost += count * vec_load(lost_table + shift + i) * q * inverse;
        }
        rate = vec_sum(lost);
        log_moments = WITHIN_BINS * vec_sum(log_moment);
        const double off = certain + WITHIN_BINS * vec_sum(mean) - target;
        const double curvature = WITHIN_BINS * vec_sum(spread) + 0.02 * target;
        const double next = *log_z - smaller(off / curvature, LARGEST_STEP);
        const double bounded = smaller(0, larger(next, LOWEST_LOG_Z));
        if (off * off < 2 * ENOUGH * curvature || bounded == *log_z || steps_left == 0)
            break;
        *log_z = bounded;
    }
    const double most_open = *log_z > -1 ? smaller(earlier + 1, 1 / (M_E * z * larger(-*log_z, 1e-300))) : 1;
    const double log_chance = log_moments + (certain - earlier) * *log_z;
    return (tail_bound){log_chance + log(rate + most_open), (1 - z) * rate};
}

#endif
