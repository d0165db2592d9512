#include "gradients/exact/quadrature_plan.h"

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/tail_bound.h"

/* Constants of the map and of the ellipse on which errors are bounded. The bound holds for any; these need nearly the
 * least nodes (docs/numerics.md). */
#define STEEPNESS 1.8
#define LEAST_B2 2.0
#define LARGEST_ETA 1.1
#define ETA_OF_GROWTH 2.0
#define ETA_OF_PHASE 2.4

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

/* The part of the axis ln t from the first arrivals to where the loss falls below a tolerance. */
typedef struct {
    double log_end;
    double steepest; /* largest 1 / s^2, where s is the width of arrivals, times the share of digits that matter then */
    panel_flux flux;
    int ended;       /* no rank is left open at its end */
} live_time;

static live_time find_live_time(const score_histogram *histogram, double log_S, double K, double t0, double t1,
                                const tolerances *tolerance)
{
    const double log_cut = log(tolerance->cut), earlier = K - 1, log_t1 = log(t1);
    int step = (int)floor((log(K) - log_S - 1) * BINS_PER_NAT); /* K arrivals take S t >= K */
    const int last = histogram->bins + 6 * BINS_PER_NAT;
    if (t0 > 0) {
        int begin = (int)floor(log(t0) * BINS_PER_NAT);
        step = begin > step ? begin : step;
    }
    live_time live = {.log_end = log_t1};
    double inverse_z = 1;
    tail_bound before = {0, 0};
    for (; step <= last && step < log_t1 * BINS_PER_NAT + 1; step++) {
        arrival_profile at = profile_at(&exponential_table, histogram, step);
        const double ahead = at.arrivals - earlier;
        tail_bound loss = {0, 0};
        if (ahead > 0.5 && (ahead * ahead > -log_cut * at.variance || at.slope < tolerance->cut)) {
            loss = tail_bound_at(&exponential_table, histogram, step, earlier, tolerance->derivatives, &inverse_z);
        }
        if (loss.log_loss < log_cut) {
            const double share = before.log_loss < 0 ? crossing(before, loss, log_cut) : 1;
            live.log_end = (step - 1 + share) / BINS_PER_NAT;
            live.ended = live.log_end < log_t1;
            break;
        }
        live.log_end = (double)step / BINS_PER_NAT;
        const double late = larger(ahead, 0), share_of_nats = late * late / (-2 * log_cut * at.arrivals);
        const double steepness = at.slope * at.slope / larger(at.variance, DBL_MIN);
        live.steepest = larger(live.steepest, steepness * (1 - share_of_nats));
        include_flux(&live.flux, at, step, ahead);
        before = loss;
    }
    live.log_end = smaller(live.log_end, log_t1);
    return live;
}

/* Return the eta that needs about the least nodes on a piece of this length in v: the growth of Gaussian integrands is
 * that of the nats wanted, and phases of t turn less than a right angle. */
PLR_INLINE double best_eta(double b, double v_length, double nats)
{
    const double growth = b * v_length / ETA_OF_GROWTH, phase = v_length / ETA_OF_PHASE;
    return 1 / sqrt(1 / (LARGEST_ETA * LARGEST_ETA) + growth * growth / nats + phase * phase);
}

/* Divide the plan into so few pieces that their nodes suffice, and set its errors. */
static void choose_nodes(const score_histogram *histogram, const panel_gains *gains, const double *allowed, double nats,
                         quadrature_plan *plan)
{
    double wanted = 0, eta = 0, worst[INTEGRALS];
    for (plan->pieces = 1;; plan->pieces += (int)(plan->pieces * wanted / MOST_NODES)) {
        const double pieces = plan->pieces, v_length = plan->v_end / pieces;
        eta = best_eta(plan->b, v_length, nats);
        wanted = 0;
        for (int piece = 0; piece < plan->pieces; piece++) {
            const time_map map = {plan->t0, plan->b * plan->b / plan->S, piece * v_length, v_length};
            double log_error[INTEGRALS];
            bound_rule(histogram, gains, &map, eta, log_error);
            for (int i = 0; i <= gains->derivatives; i++) {
                log_error[i] += log(pieces);
                worst[i] = piece ? larger(worst[i], log_error[i]) : log_error[i];
                wanted = larger(wanted, (worst[i] - log(allowed[i])) / (2 * eta));
            }
        }
        if (!(wanted > MOST_NODES))
            break;
    }
    plan->nodes = rounded_nodes(wanted);
    for (int i = 0; i <= gains->derivatives; i++)
        plan->error[i] = exp(worst[i] - 2 * plan->nodes * eta);
}

void plan_quadrature(const score_histogram *histogram, const panel_gains *gains, double S, double t0, double t1,
                     const tolerances *tolerance, quadrature_plan *plan)
{
    const live_time live = find_live_time(histogram, log(S), (double)gains->K, t0, t1, tolerance);
    const double flux = gradient_flux(&exponential_table, histogram, live.flux.last_step, gains->exposure);
    double allowed[INTEGRALS], accuracy = exp(-1);
    for (int i = 0; i <= gains->derivatives; i++) {
        allowed[i] = allowed_error(tolerance, flux, i);
        const double largest = i ? larger(live.flux.largest, DBL_MIN) : 1;
        accuracy = smaller(accuracy, allowed[i] / (tolerance->unit * largest));
    }
    const double nats = -log(accuracy);
    const double end = larger(exp(live.log_end) - t0, 1e-3 * t0);
    plan->ended = live.ended;
    plan->accuracy = accuracy;
    plan->t0 = t0;
    plan->S = S;
    plan->b = sqrt(STEEPNESS * live.steepest + LEAST_B2);
    plan->v_end = asinh(sqrt(S * end) / plan->b);
    choose_nodes(histogram, gains, allowed, nats, plan);
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
