#include "gradients/exact/quadrature_plan.h"

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/tail_bound.h"

/* Nodes at the ends of a piece: so many for every nat of accuracy, but no fewer than for few ranks, and more with K up
 * to 60. */
#define EDGES 0.25
#define LEAST_EDGES 2.0
#define MORE_EDGES 2.5
#define MANY_DIGITS 14.0 /* beyond which one rank takes twice as many for every nat, as do two and three */
#define SPARE_DIGITS 4.0 /* nats more than asked for that the nodes are trusted to have: they come in eights */
/* Errors over those by which nodes are counted: so much where single items decide how dense they are, up to this b;
 * where many arrive together 1 for the gradient, and this for the diagonal of the Hessian, or that where half of the
 * items are placed, or nearly all. */
#define NEARLY_ALL 0.8 /* share of the items that are placed */
#define OF_SINGLE_ITEMS 16.0
#define SINGLE_ITEMS 2.5
#define HESSIAN_OF_MANY 2.0
#define HESSIAN_OF_HALF 4.0
#define HESSIAN_OF_ALL 6.0
/* At least, of a panel that is not the only one: all its items may be alike, and other items may not. */
#define OF_ONE_OF_SEVERAL 6.0
/* At most, where rank weights fall at one rank: an eighth of that where they fall at each. */
#define OF_ONE_STEP 8.0
#define RANKS_BEFORE_STEP 8.0 /* up to these it makes no difference, and from then on a third more for each */
/* The norm of the diagonal of the Hessian for which its nodes are planned, over max |theta| max |rho|: of lists that are
 * not peaked, of those that are, and of these where all items are placed. */
#define NORM_OF_HESSIAN 0.05
#define NORM_OF_PEAKED 0.015
#define NORM_OF_PEAKED_AND_PLACED 0.005

/* On the axis ln t: w t = exp(-k / BINS_PER_NAT) is the hazard too, and at w t = e^5 an item has arrived for certain.
 * Filled by prepare_exponential_table, then only read. */
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

/* Where between two neighbouring steps, in steps after the first, the loss falls to log_cut: it is above at the first
 * and below at the second. Where it is concave it lies below both tangents, else below the chord. */
PLR_INLINE double crossing(tail_bound before, tail_bound after, double log_cut)
{
    const double chord = (before.log_loss - log_cut) / (before.log_loss - after.log_loss);
    const double left = (before.log_loss - log_cut) * BINS_PER_NAT / before.slope;
    const double right = 1 - (log_cut - after.log_loss) * BINS_PER_NAT / after.slope;
    const double tangents = smaller(left, right);
    return smaller(1, larger(chord, tangents));
}

/* Walk along the axis ln t from the first arrivals to where what is lost falls below tolerance.cut. Returns ln of the
 * end of the integral; *steepest_slope: the largest Lambda'^2 / V on the way. Of the plan, sets
 * `ended`. */
static double find_end(const score_histogram *histogram, double log_S, double K, double t0, double t1,
                       tolerances tolerance, double *steepest_slope, quadrature_plan *plan)
{
    const double log_cut = log(tolerance.cut), earlier = K - 1;
    int step = (int)floor((-log_S - 1) * BINS_PER_NAT);
    const int last = histogram->bins + 6 * BINS_PER_NAT;
    if (t0 > 0) {
        int begin = (int)floor(log(t0) * BINS_PER_NAT);
        step = begin > step ? begin : step;
    }
    const double log_t1 = log(t1);
    double log_end = log_t1, log_z = 0, steepest = 0;
    tail_bound before = {0, 0};
    int ended = 0, dead_before = 0, dead_since = 0; /* dead: a step after which less is lost than may be */
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
            double squared = at.slope * at.slope / (at.variance > 1e-300 ? at.variance : 1e-300);
            steepest = squared > steepest ? squared : steepest;
        }
        dead_before = dead;
        before = loss;
    }
    if (log_end >= log_t1) {
        log_end = log_t1;
        ended = 0;
    }
    *steepest_slope = steepest;
    plan->ended = ended;
    return log_end;
}

/* The rule read backwards: the d for which so many nodes are edges d + length max(share sqrt(d / 8), 0.2 d / b). */
PLR_INLINE double digits_of(double nodes, double edges, double length, double share, double b)
{
    const double half = 0.5 * length * share / sqrt(8), root = (sqrt(half * half + edges * nodes) - half) / edges;
    return smaller(root * root, nodes / (edges + 0.2 * length / b));
}

/* Errors over those by which nodes are counted. */
typedef struct {
    double gradient, hessian;
} errors_over_rule;

/* K ranks for n items, in one panel of several or the only one; `fourth` is 1 where single items decide how dense the
 * nodes are, and falls with the fourth power of the density that many ask for. */
static errors_over_rule find_errors_over_rule(double K, double n, double fourth, int several, tolerances tolerance)
{
    const double of_steps = tolerance.one_step ? smaller(OF_ONE_STEP, larger(1, (K - RANKS_BEFORE_STEP) / 3)) : 1;
    const double of_any = larger(of_steps, several ? OF_ONE_OF_SEVERAL : 1);
    const double of_many = K > NEARLY_ALL * n ? HESSIAN_OF_ALL : K > 0.5 * n ? HESSIAN_OF_HALF : HESSIAN_OF_MANY;
    return (errors_over_rule){
        .gradient = larger(of_any, OF_SINGLE_ITEMS * fourth * fourth),
        .hessian = larger(larger(of_any, of_many), OF_SINGLE_ITEMS * larger(fourth, 1 / (K * K))),
    };
}

void plan_quadrature(const score_histogram *histogram, double S, double K, double t0, double t1, tolerances tolerance,
                     quadrature_plan *plan)
{
    double steepest;
    const double log_end = find_end(histogram, log(S), K, t0, t1, tolerance, &steepest, plan);
    const double b = sqrt(steepest + 1.6 * 1.6), end = larger(exp(log_end) - t0, 1e-3 * t0);
    const double v_end = asinh(sqrt(S * end) / b), length = 2 * b * v_end;
    const double few = smaller(1, SINGLE_ITEMS / b), fourth = few * few * few * few;
    const int several = t0 > 0 || t1 < INFINITY;
    const errors_over_rule over = find_errors_over_rule(K, histogram->above[histogram->bins], fourth, several, tolerance);
    const int all_placed = K > NEARLY_ALL * histogram->above[histogram->bins];
    const double norm_of_peaked = all_placed ? NORM_OF_PEAKED_AND_PLACED : NORM_OF_PEAKED;
    const double norm_of_hessian = NORM_OF_HESSIAN - (NORM_OF_HESSIAN - norm_of_peaked) * fourth;
    const double over_rule = tolerance.derivatives > 1   ? over.hessian / norm_of_hessian
                             : tolerance.derivatives > 0 ? over.gradient
                                                         : 1;
    const double digits = log(over_rule / tolerance.nodes);
    /* Measured: what each unit of length needs grows a little with K, and falls by a ninth where all items arrive. */
    const int complete = K > 0.97 * histogram->above[histogram->bins];
    const double plain = tolerance.single_ranks ? 0.8 : complete ? 0.64 : 0.72;
    const double share = plain + 0.2 * (K < 120 ? K / 120 : 1);
    const double per_length = sqrt(digits / 8) * share, least = 0.2 * digits / b;
    const double beyond = EDGES * smaller(1, 3 / K), many_digits = larger(0, digits - MANY_DIGITS);
    const double edges = larger(EDGES * digits + beyond * many_digits, LEAST_EDGES + MORE_EDGES * smaller(1, K / 60));
    const double wanted = length * larger(per_length, least);
    plan->pieces = wanted + edges > MOST_NODES ? (int)(wanted / (MOST_NODES - 2 * edges)) + 1 : 1;
    const double ends = plan->pieces > 1 ? 2 : 1;
    plan->nodes = rounded_nodes(ends * edges + wanted / plan->pieces);
    plan->wide = least > per_length;
    double digits_left = digits_of(plan->nodes, ends * EDGES, length / plan->pieces, share, b);
    if (digits_left > MANY_DIGITS)
        digits_left = digits_of(plan->nodes + ends * beyond * MANY_DIGITS, ends * (EDGES + beyond),
                                length / plan->pieces, share, b);
    const double error = exp(-smaller(digits_left, digits + SPARE_DIGITS));
    plan->error = over.gradient * error;
    plan->hessian_error = over.hessian * error;
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
