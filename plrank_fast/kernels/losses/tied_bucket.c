/* With tau = W t, s = ln tau, x_i = tau w_i / W:
 *
 *     P = integral of h(s) ds,    h(s) = exp(s - tau) prod_i (1 - exp(-x_i))
 *
 * ln h is concave, so that h has one mode, lies below each of its tangents and above each of its chords. h is entire,
 * and
 *
 *     |h(s + i theta)| <= h(r) G(r) / cos(theta),    r = s + ln cos(theta),
 *     G(r)^2 = prod_i (1 + tan(theta)^2 q(x_i(r))),  q(x) = (x / 2 / sinh(x / 2))^2
 *
 * because |1 - exp(-z)|^2 <= (1 - exp(-Re z))^2 + exp(-Re z) (Im z)^2. So the rule with equal steps d errs by at most 2
 * N / (exp(2 pi theta / d) - 1), where N is the integral of h G / cos(theta), for any theta below pi / 2. Values,
 * slopes and the sum of q at eight points bound N, the integral and both tails. The plan takes the theta that allows
 * the longest step. The mean of q bounds G, as ln is concave.
 *
 * d ln P / d ln w_i is the mean of g_i = x_i / (exp(x_i) - 1) under h, and minus their sum is d ln P / d ln W. Off
 * the axis |g_i(s + i theta)| is at most g_i(r) / cos(theta), and g falls, so the same argument bounds its integral.
 * The tolerance of the means is a share of the sum of them all. d2 ln P / d (ln W)2 is the variance of tau less 1.
 * |tau^2| is tau(r)^2 / cos(theta)^2, ln tau^2 h is concave too, and the tolerance of its mean is a share of tau at the
 * mode, which is about 1 plus the sum of all g.
 *
 * If all items are much heavier than W, P is nearly 1, and its derivatives come from times at which h is small. With
 * tau = v t, v the weight of the lightest item, a = W / v, and H(s) = exp(s) prod_i (1 - exp(-x_i)), x_i = tau w_i / v,
 *
 *     1 - P         = a integral of H (sum of all g) (1 - exp(-a tau)) / (a tau) ds
 *     d P / d ln w_i = a integral of H g_i exp(-a tau) ds
 *
 * (by parts, because the derivative of the product is itself times the sum of all g), and d2 ln P / d (ln W)2 is
 * a^2 / P times the integral of H (sum of all g) tau exp(-a tau), less the square of the sum of all d ln P / d ln w_i.
 * No scale but a is left, and each integral has the relative accuracy of the others. H has the bounds of h, and off the
 * axis the factors with a are at most what they are at r. Beyond a place at which the lightest item has x, H g_i falls
 * at least like exp(-s (x / (1 - exp(-x)) - 1 - (ln H)')). */
#include "losses/tied_bucket.h"

#include <float.h>
#include <math.h>

#include "simd/vector_math.h"

#define TOLERANCE 1e-11   /* of P and of the largest derivative; also of each of the two tails */
#define FARTHEST 600.0    /* |ln of a weight| beyond which 1 - exp(-x) is x or 1 */
#define LIKELY 2.0        /* ln(w / W) of the lightest item, above which P is nearly 1; it is above .07 then */
#define LARGEST_X 700.0   /* exp of it does not overflow */
#define PLACES 8          /* points at which the integrand is evaluated before nodes are placed */
#define MOST_NODES 4096
#define LOOK_AFTER 16384  /* items between checks for interrupts: their derivatives take a few milliseconds */
#define PRODUCT 16        /* factors whose product stays in the range of a double, see log_integrand */

typedef struct {
    intptr_t n;
    int likely;         /* P is nearly 1: the integrand is H, and the unit of weights is the lightest; else W */
    double later;       /* W in this unit: a if likely, else 1 */
    double *weight;     /* weight of each item in this unit, from e^-FARTHEST to e^FARTHEST */
    double *inverse;    /* 1 / (1 - exp(-x_i)) at the mode */
    double log_lighter; /* sum of what ln(w / W) lacks to -FARTHEST; 1 - exp(-x) is x there */
    double lightest;    /* the least weight */
    double mode;        /* mode of h, in either unit */
    double *node;       /* tau of each node */
    double *mass;       /* mass of each node: a function's mean is the sum of its products with these, times scale */
    double scale;
    int nodes;
} integral;

/* Return x / (exp(x) - 1), the derivative of ln(1 - exp(-x)) with respect to ln x. */
PLR_INLINE lanes slope_of(lanes x)
{
    lanes q;
    const lanes e = vec_expm1_and_exp(-x, &q);
    return -x * q / e;
}

PLR_INLINE lanes exponent_at(lanes weight, lanes tau)
{
    return vec_min_f64(weight * tau, vec_all(LARGEST_X));
}

/* Return ln of the integrand over its value at the mode; set the sums of all g and q unless they are NULL. Each factor
 * is divided by its value at the mode: to the right of it the quotient is at most 1 / that value, and to the left all
 * factors together fall by less than h does, so products of a few neither overflow nor vanish. */
PLR_INLINE lanes log_integrand(const integral *of, lanes s, lanes *sum_g, lanes *sum_q)
{
    const lanes tau = vec_exp(s);
    lanes sum = s - of->mode - (of->likely ? 0.0 * tau : tau - exp(of->mode)), all_g = {0}, all_q = {0};
    for (intptr_t i = 0; i < of->n; i += PRODUCT) {
        const intptr_t end = i + PRODUCT < of->n ? i + PRODUCT : of->n;
        lanes product = vec_all(1);
        for (intptr_t j = i; j < end; j++) {
            lanes q;
            const lanes x = exponent_at(vec_all(of->weight[j]), tau), e = vec_expm1_and_exp(-x, &q);
            product *= -e * of->inverse[j];
            if (sum_g) {
                const lanes ratio = -x / e, g = ratio * q;
                all_g += g;
                all_q += ratio * g;
            }
        }
        sum += vec_log(product);
    }
    if (sum_g) {
        *sum_g = all_g;
        *sum_q = all_q;
    }
    return sum;
}

static void set_weights(const tied_bucket *bucket, integral *of)
{
    double lightest = DBL_MAX;
    for (intptr_t i = 0; i < of->n; i++)
        lightest = smaller(lightest, bucket->log_odds[i]);
    of->likely = lightest > LIKELY;
    const double log_unit = of->likely ? lightest : 0;
    of->later = exp(-log_unit);
    of->lightest = exp(larger(lightest - log_unit, -FARTHEST));
    for (intptr_t i = 0; i < of->n; i++) {
        const double log_weight = smaller(bucket->log_odds[i], DBL_MAX) - log_unit; /* not inf - inf */
        of->weight[i] = smaller(larger(log_weight, -FARTHEST), FARTHEST);
        of->log_lighter += smaller(log_weight + FARTHEST, 0);
    }
    for (intptr_t i = 0; i < of->n; i += PLR_LANES)
        vec_store_some(of->weight + i, vec_exp(vec_load_some(of->weight + i, of->n - i, 0)), of->n - i);
}

/* Set the mode, to within a tenth of a standard deviation; return -(ln h)'' there. At the mode, tau is 1 + the sum of
 * all g. This sum falls and is convex in tau, so Newton's method ascends to the mode from 1. */
static double find_mode(integral *of)
{
    double tau = 1, step, curvature;
    do {
        lanes sum = {0}, fall = {0};
        for (intptr_t i = 0; i < of->n; i += PLR_LANES) {
            const lanes x = exponent_at(vec_load_some(of->weight + i, of->n - i, LARGEST_X), vec_all(tau));
            const lanes g = slope_of(x);
            sum += g;
            fall += g * (x + g - 1.0);
        }
        curvature = tau + vec_sum(fall);
        step = (1 + vec_sum(sum) - tau) / curvature;
        tau += step * tau;
    } while (step * step * curvature > 0.01);
    of->mode = log(tau);
    return curvature;
}

/* Set the inverses of the factors at the mode; return ln of the integrand there. What the sum loses to rounding is
 * added up too, because equal terms are rounded the same way. */
static double begin_at_mode(integral *of)
{
    const double tau = exp(of->mode);
    lanes sum = {0}, lost = {0};
    for (intptr_t i = 0; i < of->n; i += PLR_LANES) {
        const lanes x = exponent_at(vec_load_some(of->weight + i, of->n - i, LARGEST_X), vec_all(tau));
        lanes q;
        const lanes factor = -vec_expm1_and_exp(-x, &q), rounded = vec_keep(x > 1.0, ((1.0 - factor) - q) / factor);
        const lanes term = vec_log(factor) + rounded, total = sum + term;
        lost += vec_select(vec_abs(sum) > vec_abs(term), (sum - total) + term, (term - total) + sum);
        sum = total;
        vec_store_some(of->inverse + i, 1.0 / factor, of->n - i);
    }
    return of->mode - (of->likely ? 0 : tau) + of->log_lighter + (vec_sum(sum) + vec_sum(lost));
}

/* Values and slopes of the integrand at increasing places, from which the bounds are computed. */
typedef struct {
    double s[PLACES], log_h[PLACES], slope[PLACES]; /* slope belongs to ln h */
    double sum_g[PLACES], sum_q[PLACES];
    double fall[PLACES];         /* how fast ln(h g) falls from a place on, for every item */
    double most[PLACES];         /* upper bound of the integral of h from a place to the next, or beyond the last */
    double most_g[PLACES];       /* that for h times the sum of all g */
    double most_squares[PLACES]; /* that for tau^2 h */
    double least, least_g;       /* lower bounds of the integral of h, and of h times the sum of all g */
} survey;

/* Return an upper bound of the integral of h from place k to the next: ln h lies below its tangents. */
static double most_from(const survey *at, int k)
{
    const double width = at->s[k + 1] - at->s[k], left = at->slope[k], right = at->slope[k + 1];
    if (left > 0 && right < 0)
        return width * exp(at->log_h[k] + left * (at->log_h[k + 1] - at->log_h[k] - right * width) / (left - right));
    const int higher = left > 0 ? k + 1 : k;
    return exp(at->log_h[higher]) * smaller(width, 1 / larger(fabs(at->slope[higher]), 1e-300));
}

static void look_around(const integral *of, double curvature, survey *at)
{
    static const double deviations[PLACES] = {-24, -9, -5, -2.5, -0.7, 0.7, 3, 7};
    const double rate = of->likely ? 0 : 1, rest = of->later - rate; /* exp(-tau): powers in the integrand, left out */
    for (int k = 0; k < PLACES; k++)
        at->s[k] = of->mode + deviations[k] / sqrt(curvature);
    for (int k = 0; k < PLACES; k += PLR_LANES) {
        lanes sum_g, sum_q;
        const lanes s = vec_load(at->s + k), tau = vec_exp(s), x = exponent_at(vec_all(of->lightest), tau);
        const lanes slope = 1.0 - rate * tau;
        vec_store(at->log_h + k, log_integrand(of, s, &sum_g, &sum_q));
        vec_store(at->slope + k, slope + sum_g);
        vec_store(at->fall + k, -x / vec_expm1(-x) - 1.0 - (slope + sum_g));
        vec_store(at->sum_g + k, sum_g);
        vec_store(at->sum_q + k, sum_q);
    }
    at->least = at->least_g = 0;
    for (int k = 0; k < PLACES; k++) {
        const double h = exp(at->log_h[k]);
        if (k == PLACES - 1) {
            at->most[k] = h / -at->slope[k];
            at->most_g[k] = h * at->sum_g[k] / at->fall[k];
            at->most_squares[k] = h * exp(2 * at->s[k]) / -(at->slope[k] + 2);
        } else {
            at->most[k] = most_from(at, k);
            at->most_g[k] = at->most[k] * at->sum_g[k];
            at->most_squares[k] = at->most[k] * exp(2 * at->s[k + 1]);
        }
        if (k > 0) { /* the logarithmic mean of the ends of a chord is at least their geometric mean, and g falls */
            const double taus = exp(at->s[k - 1]) + exp(at->s[k]);
            const double chord = exp(0.5 * (at->log_h[k - 1] + at->log_h[k] - rest * taus));
            at->least += (at->s[k] - at->s[k - 1]) * chord;
            at->least_g += (at->s[k] - at->s[k - 1]) * chord * at->sum_g[k];
        }
    }
}

/* Return the longest step for which theta proves the tolerances. */
static double longest_step(const integral *of, const survey *at, double theta)
{
    const double squared = tan(theta) * tan(theta), inverse = 1 / cos(theta), items = (double)of->n;
    const double before = exp(at->log_h[0] + 0.5 * items * log1p(squared));
    lanes most_h = {0}, most_g = {0}, most_squares = {0};
    for (int k = 0; k < PLACES; k += PLR_LANES) {
        const lanes growth = 0.5 * items * vec_log(1.0 + squared / items * vec_load(at->sum_q + k));
        const lanes grown = vec_exp(vec_min_f64(growth, vec_all(LARGEST_X)));
        most_h += vec_load(at->most + k) * grown;
        most_g += vec_load(at->most_g + k) * grown;
        most_squares += vec_load(at->most_squares + k) * grown;
    }
    const double of_h = before / at->slope[0] + vec_sum(most_h);
    const double of_g = before * items + vec_sum(most_g); /* before the first place, h sum_g is at most n h */
    const double of_squares = before / at->slope[0] * exp(2 * at->s[0]) + vec_sum(most_squares);
    const double allowed = TOLERANCE * at->least;
    double nats = log1p(2 * of_g * inverse * inverse / (TOLERANCE * at->least_g));
    if (!of->likely) {
        nats = larger(nats, log1p(2 * of_h * inverse / allowed));
        nats = larger(nats, log1p(2 * of_squares * inverse * inverse * inverse / (allowed * exp(of->mode))));
    }
    return 2 * M_PI * theta / nats;
}

/* Return the point beyond which the tail integrates to at most exp(log_lost), if it falls from a height at s at a rate
 * or faster. */
static double end_from(double s, double log_height, double rate, double log_lost)
{
    return rate > 0 ? s + (log_height - log(rate) - log_lost) / rate : INFINITY;
}

/* Set the nodes; return their spacing on the axis s. */
static double place_nodes(integral *of, double curvature)
{
    survey at;
    look_around(of, curvature, &at);
    const double lost = log(TOLERANCE * at.least), lost_g = log(TOLERANCE * at.least_g);
    double begin = -INFINITY, end = INFINITY, end_g = INFINITY, end_squares = INFINITY;
    for (int k = 0; k < PLACES; k++) {
        if (at.slope[k] > 0)
            begin = larger(begin, at.s[k] + (smaller(lost, lost_g) + log(smaller(1, at.slope[k])) - at.log_h[k])
                                                / at.slope[k]);
        end = smaller(end, end_from(at.s[k], at.log_h[k], -at.slope[k], lost));
        const double beyond = end_from(at.s[k], at.log_h[k] + log(at.sum_g[k]), at.fall[k], lost_g);
        end_g = smaller(end_g, larger(beyond, at.s[k])); /* before it, heavier items fall faster */
        end_squares = smaller(end_squares, end_from(at.s[k], at.log_h[k] + 2 * at.s[k], -(at.slope[k] + 2),
                                                    lost + of->mode));
    }
    end = of->likely ? end_g : larger(end, end_squares); /* g falls: where h ends, h g does too */
    double step = 0, theta = smaller(1.5, 20 / sqrt(curvature));
    for (double other; (other = longest_step(of, &at, theta)) >= step; theta *= 0.8)
        step = other;
    const double wanted = ceil((end - begin) / step) + 1;
    of->nodes = wanted < MOST_NODES ? ((int)wanted + PLR_LANES - 1) / PLR_LANES * PLR_LANES : MOST_NODES;
    step = larger(step, (end - begin) / (MOST_NODES - 1));
    for (int k = 0; k < of->nodes; k++)
        of->node[k] = begin + k * step;
    return step;
}

static int interrupted(const tied_bucket *bucket)
{
    return bucket->look && bucket->look();
}

static double variance_of_tau(const integral *of)
{
    double mean = 0, variance = 0;
    for (int k = 0; k < of->nodes; k++)
        mean += of->scale * of->mass[k] * of->node[k];
    for (int k = 0; k < of->nodes; k++)
        variance += of->scale * of->mass[k] * (of->node[k] - mean) * (of->node[k] - mean);
    return variance;
}

/* Convert nodes to times, and set their masses and the scale; return ln P, where `log_unit` is ln of the integrand at
 * the mode times the step. */
static double weigh_nodes(tied_bucket *bucket, integral *of, double log_unit)
{
    lanes total = {0}, missed = {0}, all_g = {0}, tau_g = {0};
    for (int k = 0; k < of->nodes && !interrupted(bucket); k += PLR_LANES) {
        const lanes s = vec_load(of->node + k), tau = vec_exp(s);
        lanes sum_g, sum_q, h;
        if (of->likely) {
            const lanes y = vec_max_f64(of->later * tau, vec_all(1e-300));
            h = vec_exp_flush(log_integrand(of, s, &sum_g, &sum_q));
            missed -= h * sum_g * vec_expm1(-y) / y;
            h *= vec_exp(-y);
            all_g += h * sum_g;
            tau_g += h * sum_g * y;
        } else
            h = vec_exp_flush(log_integrand(of, s, NULL, NULL));
        total += h;
        vec_store(of->mass + k, h);
        vec_store(of->node + k, tau);
    }
    if (!of->likely) {
        of->scale = 1 / vec_sum(total);
        bucket->curvature_later = variance_of_tau(of) - 1;
        return smaller(0, log_unit + log(vec_sum(total)));
    }
    const double unit = of->later * exp(log_unit), missing = unit * vec_sum(missed);
    of->scale = unit / (1 - missing);
    bucket->curvature_later = of->scale * vec_sum(tau_g) - of->scale * vec_sum(all_g) * (of->scale * vec_sum(all_g));
    return log1p(-missing);
}

/* Set the slope, the mean of g = x / (exp(x) - 1), and the curvature, the mean of g (1 - x - g) plus the variance of
 * g. */
static void differentiate_item(tied_bucket *bucket, intptr_t i, const integral *of)
{
    lanes slope = vec_all(0), second = vec_all(0);
    for (int k = 0; k < of->nodes; k += PLR_LANES) {
        const lanes x = exponent_at(vec_all(of->weight[i]), vec_load(of->node + k));
        const lanes part = vec_load(of->mass + k) * slope_of(x);
        slope += part;
        second += part * (1.0 - x);
    }
    bucket->slope[i] = of->scale * vec_sum(slope);
    if (bucket->curvature)
        bucket->curvature[i] = of->scale * vec_sum(second) - bucket->slope[i] * bucket->slope[i];
}

/* Solve for a single item in closed form: P = w / (w + W). */
static void solve_one(tied_bucket *bucket)
{
    const double log_odds = bucket->log_odds[0], e = exp(-fabs(log_odds)), less = e / (1 + e), more = 1 / (1 + e);
    const double after = log_odds > 0 ? less : more;
    bucket->log_prob = smaller(log_odds, 0) - log1p(e);
    bucket->slope_later = -after;
    bucket->curvature_later = after * after;
    if (bucket->slope)
        bucket->slope[0] = after;
    if (bucket->curvature)
        bucket->curvature[0] = -less * more;
}

static size_t bucket_workspace(intptr_t n)
{
    return 2 * (size_t)n + 2 * MOST_NODES;
}

static void solve_bucket(tied_bucket *bucket, double *workspace)
{
    if (bucket->n == 1) {
        solve_one(bucket);
        return;
    }
    const intptr_t n = bucket->n;
    integral of = {.n = n, .weight = workspace, .inverse = workspace + n, .node = workspace + 2 * n,
                   .mass = workspace + 2 * n + MOST_NODES};
    set_weights(bucket, &of);
    const double curvature = find_mode(&of), log_peak = begin_at_mode(&of), step = place_nodes(&of, curvature);
    bucket->log_prob = weigh_nodes(bucket, &of, log_peak + log(step));
    double sum = 0, lost = 0; /* rounding is kept: equal slopes are rounded the same way */
    for (intptr_t i = 0; bucket->slope && i < n && (i % LOOK_AFTER || !interrupted(bucket)); i++) {
        differentiate_item(bucket, i, &of);
        const double total = sum + bucket->slope[i], added = total - sum;
        lost += (sum - (total - added)) + (bucket->slope[i] - added);
        sum = total;
    }
    bucket->slope_later = -(sum + lost);
}

const tied_bucket_kernels ISA(tied_bucket_kernels) = {bucket_workspace, solve_bucket};
