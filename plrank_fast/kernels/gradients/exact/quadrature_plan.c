#include "gradients/exact/quadrature_plan.h"

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/tail_bound.h"

#define EDGES 0.25          /* nodes at the ends of a piece for each nat of accuracy, */
#define LEAST_EDGES 3.0     /* but no fewer than these */
#define WIDEST_STEP 1.6     /* 1 / s where single items dominate; one item alone has 0.8 */
#define CENTRE_SPACING 1.193 /* pi / 2 times the slope of the arcsine polynomial at 0: more nodes than an even rule */

#define LIVE_STEPS (4 * MOST_BINS)

/* The table on the axis ln t: w t = exp(-k / BINS_PER_NAT) is also the hazard, and by w t = e^5 an item has certainly
 * arrived. prepare_exponential_table fills it; it is read-only afterwards. */
static arrival_table exponential_table = {.certain = 5 * BINS_PER_NAT};

void prepare_exponential_table(void)
{
    arrival_table *table = &exponential_table;
    for (int k = 0; k < PROFILE_TABLE; k++) {
        double log_wt = -(double)(k - PROFILE_TABLE / 2) / BINS_PER_NAT;
        double wt = exp(log_wt > -700 ? (log_wt < 7 ? log_wt : 7) : -700);
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
    double ratio[LIVE_STEPS]; /* 1 / s^2, s being the width in ln t over which arrivals come about */
    double log_left[LIVE_STEPS]; /* ln of a bound of the integrand there: at most 0 */
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
    double log_end = log_t1, log_z = 0;
    tail_bound before = {0, 0};
    int ended = 0, dead_before = 0, dead_since = 0; /* dead: a step after which the loss is within the tolerance */
    live->first = step;
    live->count = 0;
    for (; step <= last && step < log_t1 * BINS_PER_NAT + 1; step++) {
        arrival_profile at = profile_at(&exponential_table, histogram, step);
        const double ahead = at.arrivals - earlier;
        tail_bound loss = {0, 0};
        int dead = 0;
        if (ahead > 0.5 && (ahead * ahead > -log_cut * at.variance || at.slope < tolerance.cut)) {
            log_z = first_log_z(log_z, ahead, at.variance);
            loss = tail_bound_at(&exponential_table, histogram, step, earlier, tolerance.derivatives, &log_z);
            dead = loss.log_loss < log_cut;
        }
        if (dead) {
            if (!dead_before) {
                const double share = before.log_loss < 0 ? crossing(before, loss, log_cut) : 1;
                log_end = (step - 1 + share) / BINS_PER_NAT;
                ended = 1;
            }
            dead_since++;
            if (ahead > 1 && dead_since >= 2)
                break;
        } else {
            ended = 0;
            log_end = (double)step / BINS_PER_NAT;
            dead_since = 0;
            const double early = log(larger(smaller(at.slope, 1), 1e-300));
            const double late = ahead > 0 ? -ahead * ahead / (2 * at.arrivals) : 0; /* upper bound of ln P(N < K) */
            const int i = step - live->first;
            live->ratio[i] = at.slope * at.slope / larger(at.variance, 1e-300);
            live->log_left[i] = smaller(early, late);
            live->count = i + 1;
        }
        if (dead)
            live->ratio[step - live->first] = live->log_left[step - live->first] = 0;
        dead_before = dead;
        before = loss;
    }
    if (log_end >= log_t1) {
        log_end = log_t1;
        ended = 0;
    }
    plan->ended = ended;
    return log_end;
}

/* Return the nodes per nat of an even rule on the axis ln t that errs by e^-wanted, by its bound at ln t + i phi:
 * e^(-2 pi phi nodes) times a growth of e^(ratio phi^2 / 2), for the best phi up to 1, above which single items grow
 * faster. */
PLR_INLINE double nodes_per_nat(double wanted, double ratio)
{
    return 2 * wanted > ratio ? (wanted + 0.5 * ratio) / (2 * M_PI) : sqrt(0.5 * wanted * ratio) / M_PI;
}

/* Return -ln of that bound for the given nodes per nat. */
PLR_INLINE double nats_of_nodes(double nodes, double ratio)
{
    const double x = 2 * M_PI * nodes;
    return x > ratio ? x - 0.5 * ratio : 0.5 * x * x / ratio;
}

void plan_quadrature(const score_histogram *histogram, double S, double K, double t0, double t1, tolerances tolerance,
                     quadrature_plan *plan)
{
    live_steps live;
    const double log_end = find_end(histogram, log(S), K, t0, t1, tolerance, &live, plan);
    const double digits = nats_wanted(tolerance);
    double steepest = 0, densest = 0;
    for (int i = 0; i < live.count; i++)
        steepest = larger(steepest, live.ratio[i] * larger(0, digits + live.log_left[i]));
    const double b2 = steepest / digits + WIDEST_STEP * WIDEST_STEP, b = sqrt(b2);
    double inverse_St = exp(-(double)live.first / BINS_PER_NAT) / S;
    for (int i = 0; i < live.count; i++) {
        const double wanted = larger(0, digits + live.log_left[i]);
        const double ratio = live.ratio[i] * (1 + b2 * inverse_St), nodes = nodes_per_nat(wanted, ratio);
        if (nodes > densest) {
            densest = nodes;
            plan->order = order_of_errors(nats_of_nodes(nodes, ratio), nats_of_nodes(0.5 * nodes, ratio));
        }
        inverse_St *= exp(-1.0 / BINS_PER_NAT);
    }
    const double end = larger(exp(log_end) - t0, 1e-3 * t0), v_end = asinh(sqrt(S * end) / b);
    const double edges = larger(EDGES * digits, LEAST_EDGES);
    const double wanted = CENTRE_SPACING * 2 * v_end * densest;
    plan->pieces = wanted + edges > MOST_NODES ? (int)(wanted / (MOST_NODES - 2 * edges)) + 1 : 1;
    plan->nodes = rounded_nodes((plan->pieces > 1 ? 2 : 1) * edges + wanted / plan->pieces);
    plan->t0 = t0;
    plan->b = b;
    plan->S = S;
    plan->v_end = v_end;
}

void place_nodes(quadrature_plan *plan, int piece)
{
    const quadrature_rule rule = gauss_legendre(plan->nodes);
    memcpy(plan->finest, rule.finest, plan->nodes * sizeof(double));
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
