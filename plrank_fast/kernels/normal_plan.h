/* Where to put the quadrature nodes when the clocks are normal: item j rings at -u_j, u_j ~ N(f_j, 1).
 *
 * All integrands are entire functions that fall off like a normal density at both ends, where the trapezoid rule
 * converges geometrically: of a bump of standard deviation s it errs by 2 exp(-2 (pi s / h)^2) at spacing h. On the axis
 * of time s is that of the number of arrivals over its slope, sqrt(V) / Lambda', combined with the width of the densities
 * that stand before it, about 1 / sqrt(3) (measured: a product of two or three of them and of polynomials). That is the
 * start only: many digits from few items are decided by how fast the integrand grows off the real axis, where it is no
 * Gaussian bump. At t + i y the coefficients of P are at most prod_j (|p_j| + |q_j|) in sum, a density grows by e^(y^2 / 2),
 * and the rule errs by exp(-2 pi y / h) of that for any y; the y that is best for Gaussian bumps will do. Late and early,
 * where a share of the integral is left that is small already, less is asked. So each half unit of time has its own
 * spacing, and the map from steps of the rule to time is their sum with steps smoothed to logistic functions: analytic in
 * a strip, and so the rule converges on it as well.
 */
#ifndef PLR_NORMAL_PLAN_H
#define PLR_NORMAL_PLAN_H

#include "quadrature_plan.h"

#define SECTIONS (MOST_BINS + 80)
#define DENSITIES 3.0     /* 1 / s^2 where arrivals are few */
#define MARGIN_NATS 8.0   /* more digits than asked for: with it 1 of 100 problems needs a second plan, without 1 of 7 */
#define SINGLE_RANK_NATS 5.0 /* more for rank weights that go up and down */
#define STEEPEST 0.2      /* by how much the spacing may grow per unit of time */
#define TAIL_OF_PLAN 0.03 /* what may be lost before the first and after the last node, of what the caller allows */
#define EARLY_NODES (-40.0)

/* Normal clocks, on the axis of time itself; p = 1 - 1e-23 settles one. */
static clock_table normal_clocks = {.settled = 10 * BINS_PER_NAT};

/* ln(|p| + |q|) of a clock at t + i y, for y = GROWTH_STEP, 2 GROWTH_STEP, .. */
#define GROWTH_STEP 0.5
#define GROWTHS 12
#define REACH_OF_GROWTH 14.0 /* beyond this many sigmas a clock is real and certain to 1e-26 even there */
static double normal_growth[GROWTHS][PROFILE_TABLE];

/* p(x + i y) = Phi(x) + i int_0^y phi(x + i u) du, phi(x + i u) = phi(x) e^(u^2 / 2) (cos x u - i sin x u); Simpson's rule. */
static void fill_normal_growth(int k, double x)
{
    enum { PARTS = 4 };
    const double density = 0.3989422804014326779 * exp(-0.5 * x * x), part = GROWTH_STEP / PARTS;
    double real = 0.5 * erfc(-x * M_SQRT1_2), imaginary = 0;
    for (int i = 0; i < GROWTHS * PARTS; i++) {
        for (int point = 0; point < 3; point++) {
            const double u = (i + 0.5 * point) * part, weight = (point == 1 ? 4 : 1) * part / 6;
            const double size = weight * density * exp(0.5 * u * u);
            real += size * sin(x * u);
            imaginary += size * cos(x * u);
        }
        if ((i + 1) % PARTS == 0)
            normal_growth[i / PARTS][k] = log(hypot(real, imaginary) + hypot(1 - real, imaginary));
    }
}

PLR_INLINE double normal_growth_at(const histogram *h, int step, double y, double *at_y)
{
    int i = (int)(y / GROWTH_STEP + 0.5) - 1;
    i = i < 0 ? 0 : i < GROWTHS ? i : GROWTHS - 1;
    *at_y = (i + 1) * GROWTH_STEP;
    const double *growth = normal_growth[i] + PROFILE_TABLE / 2 - step;
    lanes sum = {0};
    for (int bin = first_unsettled(&normal_clocks, h, step); bin < h->bins; bin += PLR_LANES)
        sum += vec_load(h->count + bin) * vec_load(growth + bin);
    return vec_sum(sum);
}

static void prepare_normal_clocks(void)
{
    for (int k = 0; k < PROFILE_TABLE; k++) {
        const double x = -(double)(k - PROFILE_TABLE / 2) / BINS_PER_NAT, y = x < -20 ? -20 : x > 20 ? 20 : x;
        normal_clocks.p[k] = x < -20 ? 0 : 0.5 * erfc(-y * M_SQRT1_2);
        normal_clocks.q[k] = 0.5 * erfc(y * M_SQRT1_2);
        normal_clocks.hazard[k] = x < -20 ? 0 : 0.3989422804014326779 * exp(-0.5 * y * y) / normal_clocks.q[k];
        if (fabs(x) < REACH_OF_GROWTH)
            fill_normal_growth(k, x);
        normal_clocks.lost[0][k] = normal_clocks.hazard[k];
        normal_clocks.lost[1][k] = normal_clocks.hazard[k] * (1 + 0.5 * fabs(y));
    }
}

typedef struct {
    int sections;
    int ended;                  /* no rank <= K is left open after the last section */
    double begin;               /* time */
    double softness;            /* of the logistic functions, per step of the rule */
    double spacing[SECTIONS];   /* of half a unit of time each */
    double border[SECTIONS + 1]; /* in steps of the rule, of section i and the one before */
} normal_plan;

/* Plan the integral over the times at which arrivals of n items fill ranks 1..K; tolerance and cut as for exponential
 * clocks. */
static void plan_normal(const histogram *h, double n, double K, tolerances tolerance, normal_plan *plan)
{
    const double log_cut = log(TAIL_OF_PLAN * tolerance.cut), earlier = K - 1, digits = MARGIN_NATS - log(tolerance.nodes) + (tolerance.single_ranks ? SINGLE_RANK_NATS : 0);
    const double widest = 1.5 * M_PI * sqrt(2 / (DENSITIES * digits)), two_pi2 = 2 * M_PI * M_PI;
    int step = (int)floor(-sqrt(2 * (log(n) - log_cut)) * BINS_PER_NAT);
    const int last = h->bins + 12 * BINS_PER_NAT;
    double log_z = 0;
    plan->begin = (step - 0.5) / BINS_PER_NAT;
    plan->softness = smaller(1, 0.7 * two_pi2 / digits);
    plan->sections = plan->ended = 0;
    for (; step <= last && plan->sections < SECTIONS; step++) {
        const profile at = profile_at(&normal_clocks, h, step);
        const double ahead = at.arrivals - earlier, variance = larger(at.variance, 1e-12);
        double log_flux = log(larger(at.slope, 1e-300));
        if (ahead > 0.5) {
            const late_loss loss = late_loss_at(&normal_clocks, h, step, earlier, tolerance.derivatives, &log_z);
            log_flux = smaller(log_flux, loss.log_loss);
            plan->ended = loss.log_loss < log_cut;
            if (plan->ended)
                break;
        }
        const double wanted = larger(1, digits + smaller(0, log_flux));
        double y = sqrt(2 * wanted / (DENSITIES + at.slope * at.slope / variance));
        const double growth = normal_growth_at(h, step, y, &y);
        const double spacing = 2 * M_PI * y / (wanted + growth + 0.5 * DENSITIES * y * y);
        plan->spacing[plan->sections++] = smaller(spacing, widest);
    }
    for (int i = 1; i < plan->sections; i++)
        plan->spacing[i] = smaller(plan->spacing[i], plan->spacing[i - 1] + STEEPEST / BINS_PER_NAT);
    for (int i = plan->sections - 2; i >= 0; i--)
        plan->spacing[i] = smaller(plan->spacing[i], plan->spacing[i + 1] + STEEPEST / BINS_PER_NAT);
    plan->border[0] = 0;
    for (int i = 0; i < plan->sections; i++)
        plan->border[i + 1] = plan->border[i] + 1.0 / (BINS_PER_NAT * plan->spacing[i]);
}

/* Nodes of the plan, a multiple of 8 at any SIMD level. */
PLR_INLINE intptr_t count_normal_nodes(const normal_plan *plan)
{
    return ((intptr_t)ceil(plan->border[plan->sections] + 1) + 7) / 8 * 8;
}

/* count nodes from the first on, of all; count is a multiple of 8. */
static void place_normal_nodes(const normal_plan *plan, intptr_t all, intptr_t first, int count, double *time,
                               double *weight)
{
    const double step = (plan->border[plan->sections] + 1) / (double)all, reach = -EARLY_NODES / plan->softness;
    for (int i = 0; i < count; i += PLR_LANES) {
        lanes v;
        for (int lane = 0; lane < PLR_LANES; lane++)
            v[lane] = ((double)(first + i + lane) + 0.5) * step - 0.5;
        lanes t = plan->begin + plan->spacing[0] * v, slope = vec_all(plan->spacing[0]);
        for (int section = 1; section < plan->sections && plan->border[section] < v[PLR_LANES - 1] + reach; section++) {
            const double change = plan->spacing[section] - plan->spacing[section - 1];
            if (change == 0)
                continue;
            const lanes x = plan->softness * (v - plan->border[section]);
            const lanes e = vec_exp_flush(-vec_abs(x)), share = 1.0 / (1.0 + e);
            const lanes softplus = vec_select(x > 0.0, x, (lanes){0}) + vec_log1p_unit(e);
            t += change / plan->softness * softplus;
            slope += change * vec_select(x > 0.0, share, 1.0 - share);
        }
        slope *= step;
        memcpy(time + i, &t, sizeof t);
        memcpy(weight + i, &slope, sizeof slope);
    }
}

#endif
