#include "gradients/exact/normal_plan.h"

#include "gradients/exact/tail_bound.h"

#define DENSITIES 3.0        /* 1 / s^2 where arrivals are few */
#define STEEPEST 0.5         /* radians by which a step of the rule may turn i y, for the y with the best bound */
#define DENSITY_AT_0 (0.5 * M_2_SQRTPI * M_SQRT1_2) /* 1 / sqrt(2 pi) */

#define LEAST_NATS 8.0 /* of accuracy: a bound of larger errors says little */
#define OF_OTHERS 16   /* times as large as that for the gradient are the bounds for value and Hessian diagonal */

#define PHASES 4             /* sections of a bin, where nodes are dense enough to resolve it */

/* A table of ln(|p| + |q|) of an item's arrival at t + i y, for y = LEAST_Y 2^(i / 2). */
#define LEAST_Y 0.0625
#define GROWTHS 14

/* The tables on the axis of time itself, at 0 to PHASES - 1 sections after the bins; p = 1 - 1e-23 counts as certain.
 * prepare_normal_tables fills both tables; they are read-only afterwards. */
static arrival_table normal_table[PHASES];
static double normal_growth[PHASES][GROWTHS][PROFILE_TABLE];

/* Fill the growth at x by Simpson's rule: p(x + i y) = Phi(x) + i int_0^y phi(x + i u) du, phi(x + i u) = phi(x)
 * e^(u^2 / 2) (cos x u - i sin x u). */
static void fill_normal_growth(int phase, int k, double x)
{
    const double density = DENSITY_AT_0 * exp(-0.5 * x * x);
    double real = 0.5 * erfc(-x * M_SQRT1_2), imaginary = 0, from = 0;
    for (int i = 0; i < GROWTHS; i++) {
        const double y = LEAST_Y * exp2(0.5 * i);
        const int parts = 1 + (int)(8 * (y - from));
        const double part = (y - from) / parts;
        for (int point = 0; point <= 2 * parts; point++) {
            const double u = from + 0.5 * point * part;
            const double weight = (point % 2 ? 4 : point == 0 || point == 2 * parts ? 1 : 2) * part / 6;
            const double size = weight * density * exp(0.5 * u * u);
            real += size * sin(x * u);
            imaginary += size * cos(x * u);
        }
        from = y;
        normal_growth[phase][i][k] = log(hypot(real, imaginary) + hypot(1 - real, imaginary));
    }
}

/* Return the sum of the items' growth at entry i of the table. */
PLR_INLINE double growth_of_items(const score_histogram *histogram, int phase, int step, int i)
{
    const double *growth = normal_growth[phase][i] + PROFILE_TABLE / 2 - step;
    lanes sum = {0};
    for (int bin = first_uncertain(normal_table, histogram, step); bin < histogram->bins; bin += PLR_LANES)
        sum += vec_load(histogram->count + bin) * vec_load(growth + bin);
    return vec_sum(sum);
}

/* Return the spacing at which the rule errs by e^-wanted, by the bound of the best y. The search runs downwards from
 * the entry of the table that is best for a Gaussian bump, as many items may grow faster; below the table, growth falls
 * like y^2. (Above that entry the phase of p turns so far that growth differs from one time to the next.) */
PLR_INLINE double spacing_at(const score_histogram *histogram, int phase, int step, double wanted, double y)
{
    int i = 0;
    double at_y = LEAST_Y, widest = 0;
    for (; i < GROWTHS - 1 && at_y * 1.19 < y; i++)
        at_y *= M_SQRT2;
    if (i == 0 && y < at_y) {
        const double share = y / at_y, growth = growth_of_items(histogram, phase, step, 0) * share * share;
        return 2 * M_PI * y / (wanted + growth + 0.5 * DENSITIES * y * y);
    }
    for (; i >= 0; i--, at_y *= M_SQRT1_2) {
        const double growth = growth_of_items(histogram, phase, step, i) + 0.5 * DENSITIES * at_y * at_y;
        const double spacing = 2 * M_PI * at_y / (wanted + growth);
        if (spacing < widest)
            break;
        widest = spacing;
    }
    return widest;
}

static void fill_normal_table(int phase)
{
    arrival_table *table = normal_table + phase;
    table->certain = REACH * BINS_PER_NAT;
    for (int k = 0; k < PROFILE_TABLE; k++) {
        const double x = ((double)phase / PHASES - (k - PROFILE_TABLE / 2)) / BINS_PER_NAT;
        const double y = x < -20 ? -20 : x > 20 ? 20 : x;
        table->p[k] = x < -20 ? 0 : 0.5 * erfc(-y * M_SQRT1_2);
        table->q[k] = 0.5 * erfc(y * M_SQRT1_2);
        table->hazard[k] = x < -20 ? 0 : DENSITY_AT_0 * exp(-0.5 * y * y) / table->q[k];
        if (fabs(x) < REACH) /* beyond it p is real, and certain to 1e-15, even there */
            fill_normal_growth(phase, k, x);
        table->lost[0][k] = table->hazard[k];
        table->lost[1][k] = table->hazard[k] * (1 + 0.5 * fabs(y));
    }
}

void prepare_normal_tables(void)
{
    for (int phase = 0; phase < PHASES; phase++)
        fill_normal_table(phase);
}

/* Reduce spacings that differ from a neighbour's by more than STEEPEST allows, and set the borders of the sections. */
static void smooth_spacing(normal_plan *plan, double nats)
{
    const double steepest = STEEPEST * M_PI / nats * plan->width;
    for (int i = 1; i < plan->sections; i++)
        plan->spacing[i] = smaller(plan->spacing[i], plan->spacing[i - 1] + steepest);
    for (int i = plan->sections - 2; i >= 0; i--)
        plan->spacing[i] = smaller(plan->spacing[i], plan->spacing[i + 1] + steepest);
    plan->border[0] = 0;
    for (int i = 0; i < plan->sections; i++)
        plan->border[i + 1] = plan->border[i] + plan->width / plan->spacing[i];
}

/* Set the spacing of the sections, `parts` to a bin, each around a step of time; return the least of them.
 *
 * Splitting the counts of items between bins makes some of them arrive up to a bin too early, so the last section is
 * one bin after the step at which the loss is within the tolerance. */
static double space_sections(const score_histogram *histogram, double n, double K, const tolerances *tolerance,
                             int parts, double nats, normal_plan *plan)
{
    const double log_cut = log(tolerance->cut), earlier = K - 1;
    const double widest = 1.5 * M_PI * sqrt(2 / (DENSITIES * nats));
    const int first = parts * (int)floor(-sqrt(2 * (log(n * (1 + 2 * K)) - log_cut)) * BINS_PER_NAT);
    int last = parts * (histogram->bins + 12 * BINS_PER_NAT), ended = 0;
    double inverse_z = 1, least = widest;
    plan->width = 1.0 / (parts * BINS_PER_NAT);
    plan->begin = (first - 0.5) * plan->width;
    plan->softness = smaller(1, 1.4 * M_PI * M_PI / nats);
    plan->sections = 0;
    for (int section = first; section <= last && plan->sections < SECTIONS; section++) {
        const int phase = (section - first) % parts * (PHASES / parts);
        const int step = (section - first) / parts + first / parts;
        const arrival_table *table = normal_table + phase;
        const arrival_profile at = profile_at(table, histogram, step);
        const double ahead = at.arrivals - earlier, variance = larger(at.variance, 1e-12);
        double log_flux = log(larger(at.slope, 1e-300));
        if (ahead > 0.5) {
            const tail_bound loss = tail_bound_at(table, histogram, step, earlier, tolerance->derivatives, &inverse_z);
            log_flux = smaller(log_flux, loss.log_loss);
            if (loss.log_loss < log_cut && !ended) {
                ended = 1;
                last = section + parts;
            }
        }
        const double wanted = larger(1, nats + smaller(0, log_flux));
        const double y = sqrt(2 * wanted / (DENSITIES + at.slope * at.slope / variance));
        const double spacing = smaller(widest, spacing_at(histogram, phase, step, wanted, y));
        plan->spacing[plan->sections++] = spacing;
        least = smaller(least, spacing);
    }
    return least;
}

static panel_flux find_normal_flux(const score_histogram *histogram, double K)
{
    panel_flux flux = {0, 0};
    double ahead = 0;
    for (int step = -12 * BINS_PER_NAT; step <= histogram->bins + 12 * BINS_PER_NAT && ahead <= 1; step++) {
        const arrival_profile at = profile_at(normal_table, histogram, step);
        ahead = at.arrivals - (K - 1);
        include_flux(&flux, at, step, ahead);
    }
    return flux;
}

/* Return how many times as large the bound of an integral is as that of the gradient. */
static double over_gradient(int integral)
{
    return integral == OF_GRADIENT ? 1 : OF_OTHERS;
}

void plan_normal(const score_histogram *histogram, double n, double K, const tolerances *tolerance, normal_plan *plan)
{
    const panel_flux flux = find_normal_flux(histogram, K);
    const double of_gradient = gradient_flux(normal_table, histogram, flux.last_step, 0);
    double nats = LEAST_NATS;
    for (int i = 0; i <= tolerance->derivatives; i++) {
        const double allowed = allowed_error(tolerance, of_gradient, i) / tolerance->unit / over_gradient(i);
        nats = larger(nats, log((i ? flux.largest : 1) / allowed));
    }
    /* A bin of four nodes or more is divided: they resolve that arrivals in long lists are denser at its end. */
    if (space_sections(histogram, n, K, tolerance, 1, nats, plan) * 4 * BINS_PER_NAT < 1 &&
        PHASES * plan->sections < SECTIONS)
        space_sections(histogram, n, K, tolerance, PHASES, nats, plan);
    smooth_spacing(plan, nats);
    const double wanted = plan->border[plan->sections] + 1;
    plan->nodes = ((intptr_t)ceil(wanted) + 7) / 8 * 8;
    plan->accuracy = exp(-nats);
    const double error = tolerance->unit * flux.largest * exp(-nats * (double)plan->nodes / wanted);
    for (int i = 0; i < INTEGRALS; i++)
        plan->error[i] = over_gradient(i) * error;
}

void place_normal_nodes(const normal_plan *plan, intptr_t first, int count, double *time, double *weight)
{
    const double step = (plan->border[plan->sections] + 1) / (double)plan->nodes;
    const double reach = -2 * log(plan->accuracy) / plan->softness;
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
