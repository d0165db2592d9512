#include "gradients/exact/normal_plan.h"

#include "gradients/exact/tail_bound.h"

#define DENSITIES 3.0        /* 1 / s^2 where arrivals are few */
#define MARGIN_NATS 8.0      /* digits more than asked for: 1 of 100 problems needs a second plan, without 1 of 7 */
#define SINGLE_RANK_NATS 5.0 /* more for rank weights that go up and down */
#define HESSIAN_NATS 1.5     /* more for the diagonal of the Hessian, */
#define HESSIAN_PER_NAT 0.2  /* and so many for every nat that is asked for */
#define STEEPEST 0.2         /* by how much the spacing may grow per unit of time */
#define TAIL_OF_PLAN 0.03    /* what may be lost before the first and after the last node, of what the caller allows */
#define EARLY_NODES (-40.0)
#define DENSITY_AT_0 0.3989422804014326779 /* 1 / sqrt(2 pi) */

/* ln(|p| + |q|) of an item's arrival at t + i y, for y = GROWTH_STEP, 2 GROWTH_STEP, .. */
#define GROWTH_STEP 0.5
#define GROWTHS 12
#define REACH_OF_GROWTH 14.0 /* beyond this many sigmas a chance is real and certain to 1e-26 even there */

/* On the axis of time itself; p = 1 - 1e-23 is certain. Both tables are filled by prepare_normal_tables, then only
 * read. */
static arrival_table normal_table = {.certain = 10 * BINS_PER_NAT};
static double normal_growth[GROWTHS][PROFILE_TABLE];

/* p(x + i y) = Phi(x) + i int_0^y phi(x + i u) du, phi(x + i u) = phi(x) e^(u^2 / 2) (cos x u - i sin x u); Simpson's
 * rule. */
static void fill_normal_growth(int k, double x)
{
    enum { PARTS = 4 };
    const double density = DENSITY_AT_0 * exp(-0.5 * x * x), part = GROWTH_STEP / PARTS;
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

/* Sum of the items' growth at the y of the table that is nearest to this one, which becomes *at_y. */
PLR_INLINE double normal_growth_at(const score_histogram *histogram, int step, double y, double *at_y)
{
    int i = (int)(y / GROWTH_STEP + 0.5) - 1;
    i = i < 0 ? 0 : i < GROWTHS ? i : GROWTHS - 1;
    *at_y = (i + 1) * GROWTH_STEP;
    const double *growth = normal_growth[i] + PROFILE_TABLE / 2 - step;
    lanes sum = {0};
    for (int bin = first_uncertain(&normal_table, histogram, step); bin < histogram->bins; bin += PLR_LANES)
        sum += vec_load(histogram->count + bin) * vec_load(growth + bin);
    return vec_sum(sum);
}

void prepare_normal_tables(void)
{
    arrival_table *table = &normal_table;
    for (int k = 0; k < PROFILE_TABLE; k++) {
        const double x = -(double)(k - PROFILE_TABLE / 2) / BINS_PER_NAT, y = x < -20 ? -20 : x > 20 ? 20 : x;
        table->p[k] = x < -20 ? 0 : 0.5 * erfc(-y * M_SQRT1_2);
        table->q[k] = 0.5 * erfc(y * M_SQRT1_2);
        table->hazard[k] = x < -20 ? 0 : DENSITY_AT_0 * exp(-0.5 * y * y) / table->q[k];
        if (fabs(x) < REACH_OF_GROWTH)
            fill_normal_growth(k, x);
        table->lost[0][k] = table->hazard[k];
        table->lost[1][k] = table->hazard[k] * (1 + 0.5 * fabs(y));
    }
}

/* No spacing may differ from its neighbours' by more than STEEPEST allows; then where each section begins. */
static void smooth_spacing(normal_plan *plan)
{
    for (int i = 1; i < plan->sections; i++)
        plan->spacing[i] = smaller(plan->spacing[i], plan->spacing[i - 1] + STEEPEST / BINS_PER_NAT);
    for (int i = plan->sections - 2; i >= 0; i--)
        plan->spacing[i] = smaller(plan->spacing[i], plan->spacing[i + 1] + STEEPEST / BINS_PER_NAT);
    plan->border[0] = 0;
    for (int i = 0; i < plan->sections; i++)
        plan->border[i + 1] = plan->border[i] + 1.0 / (BINS_PER_NAT * plan->spacing[i]);
}

void plan_normal(const score_histogram *histogram, double n, double K, tolerances tolerance, normal_plan *plan)
{
    const double log_cut = log(TAIL_OF_PLAN * tolerance.cut), earlier = K - 1;
    const double asked = -log(tolerance.nodes);
    const double digits = MARGIN_NATS + asked + (tolerance.single_ranks ? SINGLE_RANK_NATS : 0)
                          + (tolerance.derivatives > 1 ? HESSIAN_NATS + HESSIAN_PER_NAT * asked : 0);
    const double widest = 1.5 * M_PI * sqrt(2 / (DENSITIES * digits)), two_pi2 = 2 * M_PI * M_PI;
    int step = (int)floor(-sqrt(2 * (log(n) - log_cut)) * BINS_PER_NAT);
    const int last = histogram->bins + 12 * BINS_PER_NAT;
    double log_z = 0;
    plan->begin = (step - 0.5) / BINS_PER_NAT;
    plan->softness = smaller(1, 0.7 * two_pi2 / digits);
    plan->sections = plan->ended = 0;
    for (; step <= last && plan->sections < SECTIONS; step++) {
        const arrival_profile at = profile_at(&normal_table, histogram, step);
        const double ahead = at.arrivals - earlier, variance = larger(at.variance, 1e-12);
        double log_flux = log(larger(at.slope, 1e-300));
        if (ahead > 0.5) {
            const int derivatives = tolerance.derivatives;
            log_z = first_log_z(log_z, ahead, variance);
            const tail_bound loss = tail_bound_at(&normal_table, histogram, step, earlier, derivatives, &log_z);
            log_flux = smaller(log_flux, loss.log_loss);
            plan->ended = loss.log_loss < log_cut;
            if (plan->ended)
                break;
        }
        const double wanted = larger(1, digits + smaller(0, log_flux));
        double y = sqrt(2 * wanted / (DENSITIES + at.slope * at.slope / variance));
        const double growth = normal_growth_at(histogram, step, y, &y);
        const double spacing = 2 * M_PI * y / (wanted + growth + 0.5 * DENSITIES * y * y);
        plan->spacing[plan->sections++] = smaller(spacing, widest);
    }
    smooth_spacing(plan);
}

intptr_t count_normal_nodes(const normal_plan *plan)
{
    return ((intptr_t)ceil(plan->border[plan->sections] + 1) + 7) / 8 * 8;
}

void place_normal_nodes(const normal_plan *plan, intptr_t all, intptr_t first, int count, double *time, double *weight)
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
        vec_store(time + i, t);
        vec_store(weight + i, slope);
    }
}
