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
 * The sum of these means is at least W / (v + W), the mean that the lightest item, of weight v, would have alone:
 * each further factor grows with s and moves h to the right. The tolerance of the means is a share of that, which is
 * small if P is nearly 1. d2 ln P / d (ln W)2 is the variance of tau less 1. |tau^2| is tau(r)^2 / cos(theta)^2, ln
 * tau^2 h is concave too, and the tolerance of its mean is a share of tau at the mode, which is about 1 plus the sum
 * of all g. */
#include "losses/tied_bucket.h"

#include <math.h>

#include "simd/vector_math.h"

#define TOLERANCE 1e-11   /* of P and of the largest derivative; also of each of the two tails */
#define FARTHEST 600.0    /* |ln(w / W)| beyond which 1 - exp(-x) is x or 1 */
#define LARGEST_X 700.0   /* exp of it does not overflow */
#define POINTS 8          /* at which the integrand is evaluated before nodes are placed */
#define MOST_PLACES (2 * POINTS)
#define MOST_NODES 4096
#define LOOK_AFTER 16384  /* items between checks for interrupts: their derivatives take a few milliseconds */
#define PRODUCT 16        /* factors whose product stays in the range of a double, see log_integrand */

typedef struct {
    intptr_t n;
    double *weight;    /* w_i / W, at most e^FARTHEST and at least e^-FARTHEST */
    double *inverse;   /* 1 / (1 - exp(-x_i)) at the mode */
    double log_lighter; /* sum of what ln(w / W) lacks to -FARTHEST; 1 - exp(-x) is x there */
    double lightest;   /* the least ln(w / W) */
    double least_sum_g; /* lower bound of the mean of the sum of all g */
    double mode;
    double *node;      /* tau of each node */
    double *mass;      /* share of the integral at each node */
    int nodes;
} integral;

/* Return x / (exp(x) - 1), the derivative of ln(1 - exp(-x)) with respect to ln x. */
PLR_INLINE lanes slope_of(lanes x)
{
    const lanes e = vec_expm1(-x);
    return -x * (1.0 + e) / e;
}

PLR_INLINE lanes exponent_at(lanes weight, lanes tau)
{
    return vec_min_f64(weight * tau, vec_all(LARGEST_X));
}

/* Return ln of h over its value at the mode; set the sums of all g and q unless they are NULL. Each factor is divided
 * by its value at the mode: to the right of it the quotient is at most 1 / that value, and to the left all factors
 * together fall by less than h does, so products of a few neither overflow nor vanish. */
PLR_INLINE lanes log_integrand(const integral *of, lanes s, lanes *sum_g, lanes *sum_q)
{
    const lanes tau = vec_exp(s);
    lanes sum = s - of->mode - (tau - exp(of->mode)), all_g = {0}, all_q = {0};
    for (intptr_t i = 0; i < of->n; i += PRODUCT) {
        const intptr_t end = i + PRODUCT < of->n ? i + PRODUCT : of->n;
        lanes product = vec_all(1);
        for (intptr_t j = i; j < end; j++) {
            const lanes x = exponent_at(vec_all(of->weight[j]), tau), e = vec_expm1(-x);
            product *= -e * of->inverse[j];
            if (sum_g) {
                const lanes ratio = -x / e, g = ratio * (1.0 + e);
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
    of->lightest = FARTHEST;
    for (intptr_t i = 0; i < of->n; i++) {
        const double log_odds = bucket->log_odds[i];
        of->weight[i] = smaller(larger(log_odds, -FARTHEST), FARTHEST);
        of->log_lighter += smaller(log_odds + FARTHEST, 0);
        of->lightest = smaller(of->lightest, of->weight[i]);
    }
    of->least_sum_g = 1 / (1 + exp(of->lightest));
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

/* Set the inverses of the factors at the mode; return ln h there. */
static double begin_at_mode(integral *of)
{
    const double tau = exp(of->mode);
    lanes sum = vec_all(0);
    for (intptr_t i = 0; i < of->n; i += PLR_LANES) {
        const lanes x = exponent_at(vec_load_some(of->weight + i, of->n - i, LARGEST_X), vec_all(tau));
        const lanes factor = -vec_expm1(-x);
        sum += vec_log(factor);
        vec_store_some(of->inverse + i, 1.0 / factor, of->n - i);
    }
    return of->mode - tau + of->log_lighter + vec_sum(sum);
}

/* Values and slopes of h at increasing places, from which the bounds are computed. */
typedef struct {
    int places;
    double s[MOST_PLACES], log_h[MOST_PLACES], slope[MOST_PLACES]; /* slope: of ln h */
    double sum_g[MOST_PLACES], sum_q[MOST_PLACES];
    double most[MOST_PLACES]; /* upper bound of the integral of h from a place to the next, or beyond the last */
    double most_squares[MOST_PLACES]; /* of that of tau^2 h */
    double least; /* lower bound of the integral of h */
} survey;

/* Return an upper bound of the integral of h from place k to the next, or beyond the last: ln h lies below its
 * tangents. */
static double most_from(const survey *at, int k)
{
    if (k == at->places - 1)
        return exp(at->log_h[k]) / -at->slope[k];
    const double width = at->s[k + 1] - at->s[k], left = at->slope[k], right = at->slope[k + 1];
    if (left > 0 && right < 0)
        return width * exp(at->log_h[k] + left * (at->log_h[k + 1] - at->log_h[k] - right * width) / (left - right));
    const int higher = left > 0 ? k + 1 : k;
    return exp(at->log_h[higher]) * smaller(width, 1 / larger(fabs(at->slope[higher]), 1e-300));
}

/* Survey places around the mode, and where the lightest item arrives: if P is nearly 1, its derivative comes from
 * there. */
static void look_around(const integral *of, double curvature, survey *at)
{
    static const double deviations[POINTS] = {-24, -9, -5, -2.5, -0.7, 0.7, 3, 7};
    static const double of_lightest[POINTS] = {-16, -9, -6, -4, -2, 0, 2, 4};
    at->places = 0;
    for (int k = 0; k < POINTS; k++)
        at->s[at->places++] = of->mode + deviations[k] / sqrt(curvature);
    for (int k = 0; k < POINTS && of->lightest > 2; k++) {
        const double s = of_lightest[k] - of->lightest;
        int place = at->places++;
        for (; place > 0 && at->s[place - 1] > s; place--)
            at->s[place] = at->s[place - 1];
        at->s[place] = s;
    }
    for (int k = 0; k < at->places; k += PLR_LANES) {
        lanes sum_g, sum_q;
        vec_store(at->log_h + k, log_integrand(of, vec_load(at->s + k), &sum_g, &sum_q));
        vec_store(at->slope + k, 1.0 - vec_exp(vec_load(at->s + k)) + sum_g);
        vec_store(at->sum_g + k, sum_g);
        vec_store(at->sum_q + k, sum_q);
    }
    at->least = 0; /* the logarithmic mean of the ends of a chord is at least their geometric mean */
    for (int k = 0; k < at->places; k++) {
        const int last = k == at->places - 1;
        at->most[k] = most_from(at, k);
        at->most_squares[k] = last ? exp(at->log_h[k] + 2 * at->s[k]) / -(at->slope[k] + 2)
                                   : at->most[k] * exp(2 * at->s[k + 1]);
        at->least += k > 0 ? (at->s[k] - at->s[k - 1]) * exp(0.5 * (at->log_h[k - 1] + at->log_h[k])) : 0;
    }
}

/* Return the longest step for which theta proves the tolerances. */
static double longest_step(const integral *of, const survey *at, double theta)
{
    const double squared = tan(theta) * tan(theta), inverse = 1 / cos(theta), items = (double)of->n;
    const double before = exp(at->log_h[0] + 0.5 * items * log1p(squared));
    lanes most_h = {0}, most_g = {0}; /* g: times h; before the first place, h sum_g is at most h' */
    lanes most_squares = {0};
    for (int k = 0; k < at->places; k += PLR_LANES) {
        const lanes growth = 0.5 * items * vec_log(1.0 + squared / items * vec_load(at->sum_q + k));
        const lanes grown = vec_exp(vec_min_f64(growth, vec_all(LARGEST_X))), most = vec_load(at->most + k) * grown;
        most_h += most;
        most_g += most * vec_load(at->sum_g + k);
        most_squares += vec_load(at->most_squares + k) * grown;
    }
    const double of_h = before / at->slope[0] + vec_sum(most_h), of_g = before * items + vec_sum(most_g);
    const double wanted = TOLERANCE * at->least;
    const double of_squares = before / at->slope[0] * exp(2 * at->s[0]) + vec_sum(most_squares);
    const double nats = larger(log1p(2 * of_h * inverse / wanted),
                               log1p(2 * of_g * inverse * inverse / (wanted * of->least_sum_g)));
    return 2 * M_PI * theta /
           larger(nats, log1p(2 * of_squares * inverse * inverse * inverse / (wanted * exp(of->mode))));
}

/* Set the nodes; return their spacing on the axis s. */
static double place_nodes(integral *of, double curvature)
{
    survey at;
    look_around(of, curvature, &at);
    const double log_lost = log(TOLERANCE * of->least_sum_g * at.least);
    const double squares_lost = log(TOLERANCE * at.least) + of->mode;
    double begin = -INFINITY, end = INFINITY, end_of_squares = INFINITY;
    for (int k = 0; k < at.places; k++) {
        if (at.slope[k] > 0)
            begin = larger(begin, at.s[k] + (log_lost + log(smaller(1, at.slope[k])) - at.log_h[k]) / at.slope[k]);
        if (at.slope[k] < 0) /* a tangent at the mode bounds neither end */
            end = smaller(end, at.s[k] + (log_lost + log(-at.slope[k]) - at.log_h[k]) / at.slope[k]);
        const double slope = at.slope[k] + 2;
        if (slope < 0)
            end_of_squares = smaller(
                end_of_squares, at.s[k] + (squares_lost + log(-slope) - at.log_h[k] - 2 * at.s[k]) / slope);
    }
    end = larger(end, end_of_squares);
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

/* Convert nodes to times and set their shares of the integral; return the sum of h over all nodes. */
static double weigh_nodes(const tied_bucket *bucket, integral *of)
{
    lanes sum = vec_all(0);
    for (int k = 0; k < of->nodes && !interrupted(bucket); k += PLR_LANES) {
        const lanes s = vec_load(of->node + k), h = vec_exp_flush(log_integrand(of, s, NULL, NULL));
        sum += h;
        vec_store(of->mass + k, h);
        vec_store(of->node + k, vec_exp(s));
    }
    const double total = vec_sum(sum);
    for (int k = 0; k < of->nodes; k++)
        of->mass[k] /= total;
    return total;
}

static double variance_of_tau(const integral *of)
{
    double mean = 0, variance = 0;
    for (int k = 0; k < of->nodes; k++)
        mean += of->mass[k] * of->node[k];
    for (int k = 0; k < of->nodes; k++)
        variance += of->mass[k] * (of->node[k] - mean) * (of->node[k] - mean);
    return variance;
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
    bucket->slope[i] = vec_sum(slope);
    if (bucket->curvature)
        bucket->curvature[i] = vec_sum(second) - bucket->slope[i] * bucket->slope[i];
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
    bucket->log_prob = smaller(0, log_peak + log(step * weigh_nodes(bucket, &of)));
    bucket->slope_later = 0;
    bucket->curvature_later = variance_of_tau(&of) - 1;
    for (intptr_t i = 0; bucket->slope && i < n && (i % LOOK_AFTER || !interrupted(bucket)); i++) {
        differentiate_item(bucket, i, &of);
        bucket->slope_later -= bucket->slope[i];
    }
}

const tied_bucket_kernels ISA(tied_bucket_kernels) = {bucket_workspace, solve_bucket};
