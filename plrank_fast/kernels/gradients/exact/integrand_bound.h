/* A bound of the integrands at complex times, and by it of the error of a Gauss-Legendre rule.
 *
 * A rule of n nodes on [-1, 1] errs by an integral around the ellipse whose semi-axes sum to e^eta, |E| <= (1 / 2 pi)
 * int |f(x)| |k_n(x)| |dx|, where the kernel k_n is at most 2 pi e^(-(2n + 1) eta) if n eta is at least 2.4
 * (docs/numerics.md). At a complex time |q_j| and |p_j| replace q_j and p_j, so P is at most C = prod_j (|p_j| + |q_j|)
 * times the distribution of the number N of arrivals with probabilities u_j = |p_j| / (|p_j| + |q_j|).
 * With h_j = |w_j q_j| / (|p_j| + |q_j|) and partial summation over ranks,
 *
 *     |w_j q_j Y_j| <= C h_j sum_k |delta_k| P(N without j < k),
 *     |w_j q_j X_j| <= C h_j sum_i |rho_i| h_i sum_k |delta_k| P(N without i and j = k - 1).
 *
 * The inequalities of Chernoff and Bernstein bound both. The second is also at most e^-V I_0(V), where V is the
 * variance of N without i and j: by Cauchy's formula it is at most the mean of prod_i |1 - u_i + u_i e^(i (x + a_i))|
 * over all x, where the a_i are phases; each factor is at most exp(-u_i (1 - u_i) (1 - cos(x + a_i))), and by Hoelder's
 * inequality their mean is largest for equal phases.
 *
 * Where items have no rate (law.h), their density takes the place of w_j q_j.
 *
 * Where readers stop, p_j z has a factor s_j <= 1 in all products, and the coefficients of prod (|q_j| + s_j |p_j| z)
 * are at most those with s_j = 1. X_j has the weights s_j theta_(k+1) - theta_k in place of delta_k, which are at most
 * the larger of |delta_k| and |theta_k| for any s_j.
 */
#ifndef PLR_INTEGRAND_BOUND_H
#define PLR_INTEGRAND_BOUND_H

#include <float.h>
#include <math.h>

#include "gradients/exact/gauss_legendre.h"
#include "gradients/exact/law.h"
#include "gradients/exact/score_histogram.h"
#include "simd/vector_math.h"

enum { OF_VALUE, OF_GRADIENT, OF_HESSIAN, INTEGRALS };

/* The rank weights of a panel, and the integrals over it. */
typedef struct {
    intptr_t K;
    const double *theta, *delta; /* NULL for rank probabilities: the value then bounds a column of them */
    const double *moves;         /* it replaces delta for pairs of items; NULL if it is that */
    double sum_theta;            /* sum of magnitudes */
    int derivatives;             /* 0 for the value alone, 1 with the gradient, 2 with the Hessian diagonal */
    int exposure;                /* whether derivatives are by relevance */
    int product;                 /* whether the Hessian is multiplied by a vector of entries of at most 1 */
} panel_gains;

#define POINTS 16 /* on half of a wide ellipse, more on a narrow one; the other half has the conjugate values */

/* Points of the ellipse: times, and the magnitude of dt / d angle. */
typedef struct {
    complex_lanes t;
    lanes slope;
} ellipse_points;

/* Place the vector of points from the given one on, of `count`. */
PLR_INLINE ellipse_points place_points(const time_map *map, double eta, int first, int count)
{
    const double wide = cosh(eta), high = sinh(eta);
    lanes turns, cosine;
    for (int lane = 0; lane < PLR_LANES; lane++)
        turns[lane] = (first + lane + 0.5) / (2 * count);
    const lanes sine = vec_sin_cos(turns, &cosine);
    const complex_lanes x = {wide * cosine, high * sine}, along = {high * cosine, wide * sine};
    const complex_lanes x2 = times(x, x);
    const complex_lanes x4 = times(x2, x2);
    const complex_lanes even = {SPREAD_1 + SPREAD_3 * x2.real + SPREAD_5 * x4.real,
                                SPREAD_3 * x2.imaginary + SPREAD_5 * x4.imaginary};
    const complex_lanes slope = {SPREAD_1 + 3 * SPREAD_3 * x2.real + 5 * SPREAD_5 * x4.real,
                                 3 * SPREAD_3 * x2.imaginary + 5 * SPREAD_5 * x4.imaginary};
    const complex_lanes spread = times(x, even);
    const lanes v = map->v_begin + 0.5 * map->v_length * (1.0 + spread.real);
    lanes cos_y, sin_y = vec_sin_cos(0.25 / M_PI * map->v_length * spread.imaginary, &cos_y);
    const lanes grow = vec_exp(v), shrink = 1.0 / grow;
    const lanes sinh_v = 0.5 * (grow - shrink), cosh_v = 0.5 * (grow + shrink);
    const complex_lanes sine_of = {sinh_v * cos_y, cosh_v * sin_y}, cosine_of = {cosh_v * cos_y, sinh_v * sin_y};
    const complex_lanes shape = arrives_at_rate(map->law) ? times(sine_of, sine_of) : sine_of;
    const lanes dv2 = square_of(slope) * square_of(along);
    const lanes dt2 = square_of(cosine_of) * (arrives_at_rate(map->law) ? square_of(sine_of) : vec_all(0.25)) * dv2;
    return (ellipse_points){{map->t0 + map->scale * shape.real, map->scale * shape.imaginary},
                            map->scale * map->v_length * vec_rough_sqrt(dt2)};
}

/* Sums over items. */
typedef struct {
    lanes log_C, arrivals, variance;
    lanes relevant;               /* sum of |rho| h */
    lanes own[INTEGRALS], others[INTEGRALS]; /* sums of the squared factors of Y and X in the derivatives */
    lanes all, moving;            /* sums of h and of |rho (1 - x)| h, for a product with the Hessian alone */
} item_sums;

PLR_INLINE item_sums sum_items(const score_histogram *histogram, complex_lanes t, int derivatives, int exposure,
                               int product, int law)
{
    item_sums sums = {{0}};
    double w = 1;
    for (int bin = 0; bin < histogram->bins; bin++, w *= exp(-1.0 / BINS_PER_NAT)) {
        const double count = histogram->count[bin], square = histogram->squares[bin];
        if (count == 0)
            continue;
        const double f = bin * (-1.0 / BINS_PER_NAT);
        if (certain_at(law, f, t)) {
            sums.arrivals += vec_keep(f + t.real > 0.0, vec_all(count));
            continue;
        }
        const item_magnitudes item = magnitudes_at(law, w, f, t);
        const lanes inverse = vec_rough_inverse(item.both), u = item.p * inverse, h = item.density * inverse;
        sums.log_C += count * vec_rough_log(item.both);
        sums.arrivals += count * u;
        sums.variance += count * u * (1.0 - u);
        sums.relevant += histogram->magnitudes[bin] * h;
        if (derivatives == 0)
            continue;
        const lanes h2 = h * h;
        sums.own[OF_GRADIENT] += square * h2 * (exposure ? vec_all(1) : item.first);
        sums.others[OF_GRADIENT] += count * h2;
        if (derivatives == 1)
            continue;
        sums.own[OF_HESSIAN] += square * h2 * item.second;
        sums.others[OF_HESSIAN] += count * h2 * item.first;
        if (product) {
            sums.all += count * h;
            sums.moving += histogram->magnitudes[bin] * h * vec_rough_sqrt(item.first);
        }
    }
    return sums;
}

/* Return a bound of the largest probability of a number of arrivals, where two items, or three for a product, each of
 * variance 1/4 or less are left out: e^-V I_0(V) <= 1 / sqrt(max(1 + 2 V, 2 pi V - 2.2)). */
PLR_INLINE lanes largest_chance(lanes variance, int product)
{
    const lanes V = vec_max_f64(variance - (product ? 0.75 : 0.5), (lanes){0});
    return vec_rough_inverse_sqrt(vec_max_f64(1.0 + 2.0 * V, 2 * M_PI * V - 2.2));
}

/* Sums over ranks of |delta_k| times bounds of P(N without j < k), a sum of probabilities of single numbers, and of
 * P(N without i and j = k - 1). For a product a third item is left out, and k - 2 counts too: |epsilon_(k-1)| <=
 * |delta_k| + |delta_(k-1)| (hessian_product.h). */
typedef struct {
    lanes open, next;
} rank_sums;

/* The number of arrivals is off its mean by d or more, on one side, with a probability of at most exp(-d^2 / 2 s),
 * where s is the variance plus d / 3 (Bernstein), or the mean if the number is below it (Chernoff). Both are proved by
 * tilting the probabilities u of items by a factor of e^(d / s). So the probability of a single number is also at most
 * the largest one at the tilted probabilities, whose variances u (1 - u) are at least e^(-d / s) times as large. */
PLR_INLINE rank_sums sum_ranks(const panel_gains *gains, const item_sums *sums)
{
    rank_sums all = {{0}, {0}};
    const int product = gains->product;
    const lanes zero = {0}, mean = sums->arrivals, variance = sums->variance + DBL_MIN;
    lanes open = zero; /* the probabilities of all numbers so far */
    for (intptr_t k = 1; k <= gains->K; k++) {
        const double weight = fabs(k < gains->K ? gains->delta[k - 1] : gains->theta[k - 1]);
        const double moves = gains->moves ? gains->moves[k - 1] : weight;
        const lanes above = (double)(k - 1 - product) - mean, below = (product ? -4.0 : -2.0) - above;
        const lanes d = vec_max_f64(vec_max_f64(below, above), zero), bernstein = variance + d * (1.0 / 3);
        const lanes s = vec_select(below > zero, vec_min_f64(bernstein, mean), bernstein);
        const lanes tilt = d * vec_rough_inverse(s);
        const lanes next = vec_rough_exp2((-0.5 * M_LOG2E) * d * tilt) *
                           largest_chance(sums->variance * vec_rough_exp2(-M_LOG2E * tilt), product);
        open += next;
        all.open += weight * vec_min_f64(open, vec_all(1));
        all.next += moves * next;
    }
    return all;
}

/* The sum of e^x over points, over e^largest, in each lane. */
typedef struct {
    lanes largest, sum;
} log_sum;

PLR_INLINE void add_logarithm(log_sum *sum, lanes x)
{
    const lanes largest = vec_max_f64(sum->largest, x);
    sum->sum = sum->sum * vec_rough_exp2(M_LOG2E * (sum->largest - largest)) + vec_rough_exp2(M_LOG2E * (x - largest));
    sum->largest = largest;
}

/* Return the logarithm of the sum over all lanes. */
static double log_of_sum(const log_sum *sum)
{
    const double largest = vec_largest(sum->largest);
    return largest + log(vec_sum(sum->sum * vec_rough_exp2(M_LOG2E * (sum->largest - largest))));
}

/* Add the integrands at a vector of points to the sums. */
PLR_INLINE void add_integrands(const score_histogram *histogram, const panel_gains *gains, ellipse_points points,
                               int derivatives, int exposure, int law, log_sum sum[INTEGRALS])
{
    const int product = derivatives > 1 && arrives_at_rate(law) && gains->product;
    const item_sums sums = sum_items(histogram, points.t, derivatives, exposure, product, law);
    const lanes most_likely = largest_chance(sums.variance, product);
    const rank_sums ranks = gains->theta ? sum_ranks(gains, &sums) : (rank_sums){most_likely, most_likely};
    lanes norm[INTEGRALS] = {sums.relevant * vec_min_f64(ranks.open, gains->sum_theta * most_likely)};
    const lanes factor = exposure ? (lanes){0} : moving_at(law, points.t);
    const lanes moving = factor * sums.relevant * ranks.next;
    for (int order = 1; order <= derivatives; order++)
        norm[order] = vec_rough_sqrt(sums.own[order]) * ranks.open + vec_rough_sqrt(sums.others[order]) * moving;
    if (product) {
        const lanes own = vec_rough_sqrt(sums.own[OF_GRADIENT]), others = vec_rough_sqrt(sums.others[OF_GRADIENT]);
        const lanes changes = sums.moving + 2.0 * factor * sums.relevant * sums.all;
        norm[OF_HESSIAN] += factor * ranks.next * (own * sums.all + others * changes);
    }
    for (int order = 0; order <= derivatives; order++) {
        const lanes here = vec_max_f64(norm[order] * points.slope, vec_all(DBL_MIN));
        add_logarithm(sum + order, sums.log_C + vec_rough_log(here));
    }
}

/* Do so, compiled for each kind of integrals. */
PLR_INLINE void add_points(const score_histogram *histogram, const panel_gains *gains, ellipse_points points, int law,
                           log_sum sum[INTEGRALS])
{
    if (gains->derivatives == 0)
        add_integrands(histogram, gains, points, 0, 0, law, sum);
    else if (gains->exposure)
        add_integrands(histogram, gains, points, 1, 1, law, sum);
    else if (gains->derivatives == 1)
        add_integrands(histogram, gains, points, 1, 0, law, sum);
    else
        add_integrands(histogram, gains, points, 2, 0, law, sum);
}

/* Set log_error of each integral to ln of a bound of the norm of a rule's error on the interval, times e^(2 n eta). */
static void bound_rule(const score_histogram *histogram, const panel_gains *gains, const time_map *map, double eta,
                       double log_error[INTEGRALS])
{
    const int derivatives = gains->derivatives, count = POINTS * (int)ceil(laws[map->law]->least_eta / eta);
    log_sum sum[INTEGRALS];
    for (int order = 0; order <= derivatives; order++)
        sum[order] = (log_sum){vec_all(-LARGEST_EXPONENT), {0}};
    for (int first = 0; first < count; first += PLR_LANES) {
        const ellipse_points points = place_points(map, eta, first, count);
        FOR_LAW(map->law, add_points(histogram, gains, points, LAW, sum))
    }
    for (int order = 0; order <= derivatives; order++)
        log_error[order] = log_of_sum(sum + order) + log(2 * M_PI / count) - eta;
}

#endif
