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
 * d ln P / d ln w_i is the mean of g_i = x_i / (exp(x_i) - 1) under h, and minus their sum is d ln P / d ln W. Off the
 * axis |g_i(s + i theta)| is at most g_i(r) / cos(theta), and g falls, so the same argument bounds its integral. The
 * sum of these means is at least W / (v + W), the mean that the lightest item, of weight v, would have alone: each
 * further factor grows with s and moves h to the right. The tolerance of the means is a share of that, which is small
 * if P is nearly 1. */
#include "losses/tied_bucket.h"

#include <math.h>

#include "simd/vector_math.h"

#define TOLERANCE 1e-11   /* of P and of the largest derivative; also of each of the two tails */
#define FARTHEST 600.0    /* -ln(w / W) beyond which 1 - exp(-x) is x */
#define CERTAIN 52.0      /* ln of a weight over the lightest, or over W, from which on x > 40 wherever h matters */
#define LARGEST_X 700.0   /* exp of it does not overflow */
#define POINTS 8          /* at which the integrand is evaluated before nodes are placed */
#define MOST_PLACES (2 * POINTS)
#define MOST_NODES 4096
#define LOOK_AFTER 16384  /* items between checks for interrupts: their derivatives take a few milliseconds */
#define PRODUCT 16        /* factors whose product stays in the range of a double, see log_integrand */

typedef struct {
    intptr_t n;        /* items whose factor has to be computed */
    double *weight;    /* w_i / W of these */
    double *inverse;   /* 1 / (1 - exp(-x_i)) at the mode */
    double n_linear;   /* number of items so light that 1 - exp(-x) is x */
    double log_linear; /* sum of their ln(w / W) */
    double lightest;   /* the least ln(w / W) */
    double certain;    /* items whose ln(w / W) is at least this have a factor of 1 */
    double least_sum_g; /* lower bound of the mean of the sum of all g */
    double mode;
    double *node;      /* tau of each node */
    double *mass;      /* share of the integral at each node */
    int nodes;
} integral;

/* Return x / (exp(x) - 1), the derivative of ln(1 - exp(-x)) with respect to ln x. */
PLR_INLINE lanes slope_of(lanes x)
{
    x = vec_min_f64(x, vec_all(LARGEST_X));
    const lanes e = vec_expm1(-x);
    return -x * (1.0 + e) / e;
}

/* Compute the sum of all g at each of the places. */
static void sum_slopes(const integral *of, const double *s, int places, double *sums)
{
    for (int k = 0; k < places; k += PLR_LANES) {
        const lanes tau = vec_exp(vec_load(s + k));
        lanes sum = vec_all(of->n_linear);
        for (intptr_t i = 0; i < of->n; i++)
            sum += slope_of(of->weight[i] * tau);
        vec_store(sums + k, sum);
    }
}

/* Compute the sum of all q at each of the places. */
static void sum_growth(const integral *of, const double *s, int places, double *sums)
{
    for (int k = 0; k < places; k += PLR_LANES) {
        const lanes tau = vec_exp(vec_load(s + k));
        lanes sum = vec_all(of->n_linear);
        for (intptr_t i = 0; i < of->n; i++) {
            const lanes x = vec_min_f64(of->weight[i] * tau, vec_all(LARGEST_X)), e = vec_expm1(-x);
            sum += (x / e) * (x / e) * (1.0 + e);
        }
        vec_store(sums + k, sum);
    }
}

/* Return ln of h over its value at the mode. Each factor is divided by its value there: to the right of the mode the
 * quotient is at most 1 / that value, and to the left all factors together fall by less than h does, so products of a
 * few neither overflow nor vanish. */
PLR_INLINE lanes log_integrand(const integral *of, lanes s)
{
    const lanes tau = vec_exp(s);
    lanes sum = (1 + of->n_linear) * (s - of->mode) - (tau - exp(of->mode));
    for (intptr_t i = 0; i < of->n; i += PRODUCT) {
        const intptr_t end = i + PRODUCT < of->n ? i + PRODUCT : of->n;
        lanes product = vec_all(1);
        for (intptr_t j = i; j < end; j++)
            product *= -vec_expm1(-vec_min_f64(of->weight[j] * tau, vec_all(LARGEST_X))) * of->inverse[j];
        sum += vec_log(product);
    }
    return sum;
}

/* Set the weights, and the sums over items that need no factor of their own; `solve` identifies those items again. */
static void sort_items(const tied_bucket *bucket, integral *of)
{
    of->lightest = FARTHEST;
    for (intptr_t i = 0; i < bucket->n; i++)
        of->lightest = smaller(of->lightest, bucket->log_odds[i]);
    of->certain = smaller(larger(of->lightest, 0) + CERTAIN, FARTHEST);
    of->least_sum_g = 1 / (1 + exp(of->lightest));
    of->n = 0;
    of->n_linear = of->log_linear = 0;
    for (intptr_t i = 0; i < bucket->n; i++) {
        const double log_odds = bucket->log_odds[i];
        if (log_odds < -FARTHEST) {
            of->n_linear++;
            of->log_linear += log_odds;
        } else if (log_odds < of->certain) {
            of->weight[of->n++] = log_odds;
        }
    }
    for (intptr_t i = 0; i < of->n; i += PLR_LANES)
        vec_store_some(of->weight + i, vec_exp(vec_load_some(of->weight + i, of->n - i, 0)), of->n - i);
}

/* Set the mode, to within a standard deviation; return -(ln h)'' there. At the mode, tau is 1 + the sum of all g, each
 * of which is at most 1. */
static double find_mode(integral *of)
{
    double s[POINTS], slope[POINTS], low = 0, high = log(1 + of->n_linear + (double)of->n), curvature;
    int k;
    do {
        for (k = 0; k < POINTS; k++)
            s[k] = low + (high - low) * k / (POINTS - 1);
        sum_slopes(of, s, POINTS, slope);
        for (k = 0; k < POINTS; k++)
            slope[k] += 1 - exp(s[k]);
        for (k = 0; k + 2 < POINTS && slope[k + 1] > 0;)
            k++;
        low = s[k];
        high = s[k + 1];
        curvature = (slope[k] - slope[k + 1]) / (high - low);
    } while (curvature * (high - low) * (high - low) > 1);
    of->mode = low + slope[k] / curvature;
    return curvature;
}

/* Set the inverses of the factors at the mode; return ln h there. */
static double begin_at_mode(integral *of)
{
    const double tau = exp(of->mode);
    lanes sum = vec_all(0);
    for (intptr_t i = 0; i < of->n; i += PLR_LANES) {
        const lanes x = vec_load_some(of->weight + i, of->n - i, LARGEST_X) * tau;
        const lanes factor = -vec_expm1(-vec_min_f64(x, vec_all(LARGEST_X)));
        sum += vec_log(factor);
        vec_store_some(of->inverse + i, 1.0 / factor, of->n - i);
    }
    return of->mode - tau + of->n_linear * of->mode + of->log_linear + vec_sum(sum);
}

/* Values and slopes of h at increasing places, from which the bounds are computed. */
typedef struct {
    int places;
    double s[MOST_PLACES], log_h[MOST_PLACES], slope[MOST_PLACES]; /* slope: of ln h */
    double sum_g[MOST_PLACES], growth[MOST_PLACES];                /* growth: the sum of all q */
    double least; /* lower bound of the integral of h */
} survey;

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
    for (int k = 0; k < at->places; k += PLR_LANES)
        vec_store(at->log_h + k, log_integrand(of, vec_load(at->s + k)));
    sum_slopes(of, at->s, at->places, at->sum_g);
    sum_growth(of, at->s, at->places, at->growth);
    at->least = 0; /* the logarithmic mean of the ends of a chord is at least their geometric mean */
    for (int k = 0; k < at->places; k++) {
        at->slope[k] = 1 - exp(at->s[k]) + at->sum_g[k];
        at->least += k > 0 ? (at->s[k] - at->s[k - 1]) * exp(0.5 * (at->log_h[k - 1] + at->log_h[k])) : 0;
    }
}

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

/* Return the longest step for which theta proves the tolerances; growth is a sum over so many `items`. */
static double longest_step(const integral *of, const survey *at, double theta, double items)
{
    const double squared = tan(theta) * tan(theta), inverse = 1 / cos(theta);
    const double before = exp(at->log_h[0] + 0.5 * items * log1p(squared));
    double of_h = before / at->slope[0], of_g = before * items; /* times h: h sum_g is at most h' where tau < 1 */
    for (int k = 0; k < at->places; k++) {
        const double area = most_from(at, k) * exp(0.5 * items * log1p(squared * at->growth[k] / items));
        of_h += area;
        of_g += area * at->sum_g[k];
    }
    const double wanted = TOLERANCE * at->least;
    return 2 * M_PI * theta / larger(log1p(2 * of_h * inverse / wanted),
                                     log1p(2 * of_g * inverse * inverse / (wanted * of->least_sum_g)));
}

/* Set the nodes; return their spacing on the axis s. */
static double place_nodes(integral *of, double curvature)
{
    survey at;
    look_around(of, curvature, &at);
    const double log_lost = log(TOLERANCE * of->least_sum_g * at.least);
    double begin = -INFINITY, end = INFINITY;
    for (int k = 0; k < at.places; k++) {
        if (at.slope[k] > 0)
            begin = larger(begin, at.s[k] + (log_lost + log(smaller(1, at.slope[k])) - at.log_h[k]) / at.slope[k]);
        if (at.slope[k] < 0) /* a tangent at the mode bounds neither end */
            end = smaller(end, at.s[k] + (log_lost + log(-at.slope[k]) - at.log_h[k]) / at.slope[k]);
    }
    const double items = of->n_linear + (double)of->n;
    double step = 0, theta = smaller(1.5, 20 / sqrt(curvature));
    for (;;) {
        const double other = longest_step(of, &at, theta, items);
        if (other < step)
            break;
        step = other;
        theta *= 0.8;
    }
    const double wanted = ceil((end - begin) / step) + 1;
    of->nodes = wanted < MOST_NODES ? ((int)wanted + PLR_LANES - 1) / PLR_LANES * PLR_LANES : MOST_NODES;
    step = larger(step, (end - begin) / (MOST_NODES - 1));
    for (int k = 0; k < of->nodes; k++)
        of->node[k] = begin + k * step;
    return step;
}

static int stopped(const tied_bucket *bucket)
{
    return bucket->look && bucket->look();
}

/* Convert nodes to times and set their shares of the integral; return the sum of h over all nodes. */
static double weigh_nodes(const tied_bucket *bucket, integral *of)
{
    lanes sum = vec_all(0);
    for (int k = 0; k < of->nodes && !stopped(bucket); k += PLR_LANES) {
        const lanes s = vec_load(of->node + k), h = vec_exp_flush(log_integrand(of, s));
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
static void differentiate_item(tied_bucket *bucket, intptr_t i, const integral *of, double weight)
{
    lanes slope = vec_all(0), second = vec_all(0);
    for (int k = 0; k < of->nodes; k += PLR_LANES) {
        const lanes x = weight * vec_load(of->node + k), part = vec_load(of->mass + k) * slope_of(x);
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
    const double log_odds = bucket->log_odds[0], e = exp(-fabs(log_odds)), before = log_odds > 0 ? 1 / (1 + e) : e / (1 + e);
    const double after = log_odds > 0 ? e / (1 + e) : 1 / (1 + e);
    bucket->log_prob = smaller(log_odds, 0) - log1p(e);
    if (bucket->slope)
        bucket->slope[0] = after;
    bucket->slope_later = -after;
    bucket->curvature_later = after * after;
    if (bucket->curvature)
        bucket->curvature[0] = -before * after;
    bucket->nodes = 0;
}

static size_t workspace_of(intptr_t n)
{
    return 2 * (size_t)n + 2 * MOST_NODES;
}

static void solve(tied_bucket *bucket, double *workspace)
{
    if (bucket->n == 1) {
        solve_one(bucket);
        return;
    }
    integral of = {.weight = workspace, .inverse = workspace + bucket->n, .node = workspace + 2 * bucket->n,
                   .mass = workspace + 2 * bucket->n + MOST_NODES};
    sort_items(bucket, &of);
    bucket->log_prob = bucket->slope_later = bucket->curvature_later = 0;
    if (of.n > 0 || of.n_linear > 0) {
        const double curvature = find_mode(&of), log_peak = begin_at_mode(&of), step = place_nodes(&of, curvature);
        bucket->log_prob = smaller(0, log_peak + log(step * weigh_nodes(bucket, &of)));
        bucket->curvature_later = variance_of_tau(&of) - 1;
    }
    bucket->nodes = of.nodes;
    intptr_t next = 0;
    for (intptr_t i = 0; bucket->slope && i < bucket->n && (i % LOOK_AFTER || !stopped(bucket)); i++) {
        const double log_odds = bucket->log_odds[i];
        bucket->slope[i] = log_odds < -FARTHEST;
        if (bucket->curvature)
            bucket->curvature[i] = 0;
        if (log_odds >= -FARTHEST && log_odds < of.certain)
            differentiate_item(bucket, i, &of, of.weight[next++]);
        bucket->slope_later -= bucket->slope[i];
    }
}

const tied_bucket_kernels ISA(tied_bucket_kernels) = {workspace_of, solve};
