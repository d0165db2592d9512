#include "gradients/exact/quadrature_plan.h"

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/tail_bound.h"

#define WIDEST_STEP 1.8
/* More nodes than an even rule has at the centre: pi / 2 times the slope of the arcsine polynomial (gauss_legendre.c). */
#define CENTRE_SPACING (M_PI / 2 / (1 + 1.0 / 6 + 3.0 / 40 + 5.0 / 112 + 35.0 / 1152))
/* Nats by which an error exceeds e^growth of the bound: where single items dominate, and at the start. */
#define SINGLE_NATS (-2 * log(cos(1.0)))
#define START_NATS 4.0
/* The ellipse of n nodes that err by e^(-2 n eta) passes the start at a distance of START_BULGE eta^2 v_end, up to the
 * largest eta. */
#define START_BULGE 0.75
#define LARGEST_ETA 0.75

/* The table on the axis ln t: w t = exp(-k / BINS_PER_NAT) is also the hazard, and by w t = e^5 an item has certainly
 * arrived. prepare_exponential_table fills it; it is read-only afterwards. */
static arrival_table exponential_table = {.certain = 5 * BINS_PER_NAT};

void prepare_exponential_table(void)
{
    arrival_table *table = &exponential_table;
    for (int k = 0; k < PROFILE_TABLE; k++) {
        double log_wt = -(double)(k - PROFILE_TABLE / 2) / BINS_PER_NAT;
        double wt = exp(smaller(7, larger(-LARGEST_EXPONENT, log_wt)));
        table->hazard[k] = wt;
        table->p[k] = -expm1(-wt);
        table->q[k] = exp(-wt);
        table->lost[0][k] = wt;
        table->lost[1][k] = wt * (1 + 0.5 * wt);
    }
}

/* Return where between two neighbouring steps, in steps after the first, the loss falls to log_cut: it is above at the
 * first and below at the second. Where its logarithm is concave it lies below both tangents, elsewhere below the
 * chord. */
PLR_INLINE double crossing(tail_bound before, tail_bound after, double log_cut)
{
    const double chord = (before.log_loss - log_cut) / (before.log_loss - after.log_loss);
    const double left = (before.log_loss - log_cut) * BINS_PER_NAT / before.slope;
    const double right = 1 - (log_cut - after.log_loss) * BINS_PER_NAT / after.slope;
    const double tangents = smaller(left, right);
    return smaller(1, larger(chord, tangents));
}

/* The steps whose part of the integral matters. */
typedef struct {
    int first, count;
    double ratio[PROFILE_TABLE];    /* 1 / s^2, s being the width in ln t over which arrivals come about */
    double log_left[PROFILE_TABLE]; /* ln of a bound of the integrand there, over its largest: at most 0 */
    panel_flux flux;
    double first_log_flux;    /* when the first item is expected */
} live_steps;

/* Step along the axis ln t from the first arrivals to where the loss falls below tolerance.cut. Returns ln of the end
 * of the integral, and sets `ended` of the plan. */
static double find_end(const score_histogram *histogram, double log_S, double K, double t0, double t1,
                       tolerances tolerance, live_steps *live, quadrature_plan *plan)
{
    const double log_cut = log(tolerance.cut), earlier = K - 1;
    int step = (int)floor((-log_S - 1) * BINS_PER_NAT);
    const int last = histogram->bins + 6 * BINS_PER_NAT;
    if (t0 > 0) {
        int begin = (int)floor(log(t0) * BINS_PER_NAT);
        step = begin > step ? begin : step;
    }
    const double log_t1 = log(t1);
    double log_end = log_t1, inverse_z = 1;
    tail_bound before = {0, 0};
    live->first = step;
    live->count = 0;
    plan->ended = 0;
    live->flux = no_flux;
    live->first_log_flux = -LARGEST_EXPONENT;
    for (; step <= last && step < log_t1 * BINS_PER_NAT + 1; step++) {
        arrival_profile at = profile_at(&exponential_table, histogram, step);
        const double ahead = at.arrivals - earlier;
        tail_bound loss = {0, 0};
        if (ahead > 0.5 && (ahead * ahead > -log_cut * at.variance || at.slope < tolerance.cut)) {
            loss = tail_bound_at(&exponential_table, histogram, step, earlier, tolerance.derivatives, &inverse_z);
        }
        if (loss.log_loss < log_cut) {
            const double share = before.log_loss < 0 ? crossing(before, loss, log_cut) : 1;
            log_end = (step - 1 + share) / BINS_PER_NAT;
            plan->ended = log_end < log_t1;
            break;
        }
        log_end = (double)step / BINS_PER_NAT;
        const int i = live->count++;
        live->ratio[i] = at.slope * at.slope / larger(at.variance, DBL_MIN);
        live->log_left[i] = include_flux(&live->flux, at, ahead);
        if (i == 0 || step <= -log_S * BINS_PER_NAT)
            live->first_log_flux = live->log_left[i];
        before = loss;
    }
    return smaller(log_end, log_t1);
}

/* Return the nodes per nat of an even rule on the axis ln t that errs by e^-wanted, by its bound at ln t + i phi:
 * e^(-2 pi phi nodes) times a growth of e^(ratio phi^2 / 2), for the best phi up to 1. At phi = 1 single items have
 * grown more, by SINGLE_NATS where the ratio is 0. */
PLR_INLINE double nodes_per_nat(double wanted, double ratio)
{
    if (2 * wanted <= ratio)
        return sqrt(0.5 * wanted * ratio) / M_PI;
    return (wanted + SINGLE_NATS * (1 - 0.5 * ratio / wanted) + 0.5 * ratio) / (2 * M_PI);
}

/* Return -ln of that bound for the given nodes per nat. */
PLR_INLINE double nats_of_nodes(double nodes, double ratio)
{
    const double x = 2 * M_PI * nodes, nats = x - 0.5 * ratio;
    return x > ratio ? nats - SINGLE_NATS * (1 - 0.5 * ratio / nats) : 0.5 * x * x / ratio;
}

/* The bound at the start, v = 0: n nodes err by e^(growth - 2 n eta), where growth is -S t at v = i START_BULGE eta^2
 * v_end. */
typedef struct {
    double eta, growth;
} start_bound;

PLR_INLINE start_bound bound_at_start(double nats, double b, double v_end)
{
    const double bulge = START_BULGE * v_end;
    const double eta = smaller(LARGEST_ETA, sqrt(sqrt(nats / 3) / (b * bulge)));
    const double height = b * sin(smaller(bulge * eta * eta, M_PI / 2));
    return (start_bound){eta, height * height};
}

void plan_quadrature(const score_histogram *histogram, double S, double K, double t0, double t1, tolerances tolerance,
                     quadrature_plan *plan)
{
    live_steps live;
    const double log_end = find_end(histogram, log(S), K, t0, t1, tolerance, &live, plan);
    const double nats = nats_wanted(tolerance, live.flux);
    double steepest = 0, densest = 0;
    for (int i = 0; i < live.count; i++) {
        live.log_left[i] -= live.flux.log_largest;
        steepest = larger(steepest, live.ratio[i] * larger(0, nats + live.log_left[i]));
    }
    const double b2 = steepest / nats + WIDEST_STEP * WIDEST_STEP, b = sqrt(b2);
    double inverse_St = exp(-(double)live.first / BINS_PER_NAT) / S;
    for (int i = 0; i < live.count; i++) {
        live.ratio[i] *= 1 + b2 * inverse_St;
        densest = larger(densest, nodes_per_nat(larger(0, nats + live.log_left[i]), live.ratio[i]));
        inverse_St *= exp(-1.0 / BINS_PER_NAT);
    }
    const double end = larger(exp(log_end) - t0, 1e-3 * t0), v_end = asinh(sqrt(S * end) / b);
    const start_bound start = bound_at_start(nats, b, v_end);
    const double start_nats = START_NATS + live.first_log_flux - live.flux.log_largest;
    const double per_density = CENTRE_SPACING * 2 * v_end;
    const double wanted = larger(per_density * densest, (nats + start_nats + start.growth) / (2 * start.eta));
    plan->pieces = (int)(wanted / MOST_NODES) + 1;
    plan->nodes = rounded_nodes(wanted / plan->pieces);
    const double nodes = plan->pieces * plan->nodes;
    double reached = 2 * nodes * start.eta - start.growth - start_nats;
    for (int i = 0; i < live.count; i++)
        reached = smaller(reached, nats_of_nodes(nodes / per_density, live.ratio[i]) - live.log_left[i]);
    plan->accuracy = exp(-nats);
    plan->error = exp(live.flux.log_largest - reached);
    plan->t0 = t0;
    plan->b = b;
    plan->S = S;
    plan->v_end = v_end;
}

void place_nodes(quadrature_plan *plan, int piece)
{
    const quadrature_rule rule = gauss_legendre(plan->nodes);
    const double v_length = plan->v_end / plan->pieces, v_begin = piece * v_length, scale = plan->b * plan->b / plan->S;
    for (int i = 0; i < plan->nodes; i += PLR_LANES) {
        lanes v = v_begin + vec_load(rule.node + i) * v_length, grow = vec_expm1(v), shrink = -grow / (1.0 + grow);
        lanes sinh_v = 0.5 * (grow - shrink), cosh_v = 1.0 + 0.5 * (grow + shrink);
        lanes t = plan->t0 + scale * (sinh_v * sinh_v);
        lanes dt = (2 * scale * v_length) * (sinh_v * cosh_v) * vec_load(rule.weight + i);
        vec_store(plan->time + i, t);
        vec_store(plan->weight + i, dt);
    }
}
