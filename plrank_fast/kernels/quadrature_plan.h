/* Where to put the quadrature nodes of an integral over arrival times.
 *
 * Item j has a clock that rings at an Exp(w_j) time, p_j = 1 - exp(-w_j t) being the chance that it has rung by t and
 * q_j = 1 - p_j. The integrands live where the first K arrivals happen: Lambda(t) = sum p_j arrivals are expected by t,
 * with variance V = sum p_j q_j. On a logarithmic axis of t they turn from "not yet" to "already" over a width of
 * sqrt(V) / Lambda', Lambda' = dLambda / d ln t, so nodes have to be that dense: b, the largest Lambda' / sqrt(V).
 *
 *     t = t0 + (b sinh v)^2 / S,   0 <= v <= asinh(sqrt(S (t1 - t0)) / b),   S = sum of the weights
 *
 * runs like sqrt(t) at the start, where arrivals are Poisson (sqrt makes their width constant), and like log(t) later.
 * Everything is read off a histogram of -f with linearly split counts, so that planning costs as much per distinct
 * score and not per item.
 *
 * What is lost after the end T of the integral. N items have rung by T, and the gains still to come, with their ranks, are
 * M = sum of theta_k rho over the ranks k > N: what is lost is E[M] and its derivatives. Clocks have no memory, so given
 * the silent items A, E[M | A] is the value of the list A alone, ranked from N + 1 on. Let R = sum |theta_k - theta_(k+1)|
 * times the range of rho (theta_(K+1) = 0; 0 lies in the range). By partial summation M changes by R at most if one silent
 * item more or less goes before the others, or if two items are exchanged. Item j is silent with chance q_j = e^-x,
 * x = w_j T, and
 *
 *     dE[M]/df_j = E_A [dE[M | A]/df_j] - x q_j (E[M | j silent] - E[M | j has rung]).
 *
 * A ranking of A by successive choices has derivative sum over choices of pi_j (c_j - mean c), where c_j is what follows
 * from choosing j: its absolute values sum to R per choice, of which there are K - N. The second term is R x q_j times the
 * chance that a rank is left open for j. Together
 *
 *     sum_j |dE[M]/df_j| <= R { sum_j x_j q_j P(N_without_j < K) + E[(K - N)+] },
 *
 * the flux of the arrivals of rank <= K per unit of ln t, and the number of ranks left open. Differentiating again gives
 * x |x - 1| q_j, twice x q_j times a derivative of E[M | A], which is R / e at most, and per choice pi_j (1 + 2 / e) R:
 * less than 2 R { sum_j x_j (1 + x_j / 2) q_j P(N_without_j < K) + E[(K - N)+] } for the diagonal of the Hessian. The value
 * loses R E[(K - N)+] at most. None of it cancels, whatever the signs of relevance and rank weights.
 */
#ifndef PLR_QUADRATURE_PLAN_H
#define PLR_QUADRATURE_PLAN_H

#include <math.h>

#include "vector_math.h"

#define BINS_PER_NAT 2
#define MOST_BINS 640
#define MOST_NODES 512
#define PROFILE_TABLE (4 * MOST_BINS)
#define WITHIN_BINS (1 / 1.0315) /* splitting counts between bins makes e^-k larger by cosh(1 / 4) at most */

/* For all k that a bin and a time can be apart (the time is k bins before the clock's place): the chance p that the clock
 * has rung, q = 1 - p, and its hazard, the density of ringing now over q. */
typedef struct {
    int settled; /* bins that a clock lies back when it has rung for certain */
    double hazard[PROFILE_TABLE], p[PROFILE_TABLE], q[PROFILE_TABLE];
    double lost[2][PROFILE_TABLE]; /* hazard times what a clock's derivatives lose with it: gradient, Hessian diagonal */
} clock_table;

/* Exponential clocks on the axis ln t: w t = exp(-k / BINS_PER_NAT) is the hazard too, and e^5 settles it. */
static clock_table exponential_clocks = {.settled = 5 * BINS_PER_NAT};

/* Allowed errors, absolute: of the quadrature, for an integral of order 1, and what may be lost after the end of time, in
 * units of R (see above). */
typedef struct {
    double nodes, cut;
    int derivatives; /* that are asked for: 0 of the value alone, 2 with the Hessian diagonal */
    int single_ranks; /* whether rank weights that go up and down let single ranks be seen, narrower in time than sums */
} tolerances;

/* -------------------------------------------------------------------------------------- Gauss-Legendre rules */

/* Nodes come in multiples of 8 up to 128 and of 32 up to 512, whatever the SIMD level. */
#define RULES (16 + 12)
static double *rule_node[RULES], *rule_weight[RULES], *rule_mark[RULES];
static double rule_storage[3 * (8 * 16 * 17 / 2 + 32 * (5 + 16) * 12 / 2)];

PLR_INLINE int rounded_nodes(double wanted)
{
    int nodes = wanted < MOST_NODES ? (int)ceil(wanted) : MOST_NODES;
    if (nodes <= 128)
        return nodes <= 8 ? 8 : (nodes + 7) / 8 * 8;
    return (nodes + 31) / 32 * 32;
}

PLR_INLINE int rule_index(int nodes)
{
    return nodes <= 128 ? nodes / 8 - 1 : 15 + (nodes - 128) / 32;
}

/* Nodes on [0, 1], ascending. Gauss-Legendre crowds its nodes at both ends; the truncated arcsine polynomial
 * x -> sum c_k x^(2k+1) / sum c_k (degree 9) spreads them nearly evenly, which saves a fifth of them. */
static void fill_rule(int nodes, double *node, double *weight, double *mark)
{
    double spread[5], term = 1, total = 0;
    for (int k = 0; k < 5; k++) {
        spread[k] = term / (2 * k + 1);
        total += spread[k];
        term *= (2 * k + 1.0) / (2 * k + 2);
    }
    for (int i = 0; i < nodes; i++) {
        double z = cos(M_PI * (i + 0.75) / (nodes + 0.5)), slope = 1;
        for (int step = 0; step < 20; step++) {
            double p1 = 1, p2 = 0;
            for (int j = 0; j < nodes; j++) {
                double p3 = p2;
                p2 = p1;
                p1 = ((2.0 * j + 1) * z * p2 - j * p3) / (j + 1);
            }
            slope = nodes * (z * p1 - p2) / (z * z - 1);
            double change = p1 / slope;
            z -= change;
            if (fabs(change) < 1e-15)
                break;
        }
        double x = 0, dx = 0, power = 1;
        for (int k = 0; k < 5; k++) {
            x += spread[k] / total * power * z;
            dx += spread[k] / total * power * (2 * k + 1);
            power *= z * z;
        }
        node[nodes - 1 - i] = (1 + x) / 2;
        weight[nodes - 1 - i] = dx / ((1 - z * z) * slope * slope);
        mark[nodes - 1 - i] = (1 - z * z) * slope / nodes * sqrt(0.5 * M_PI * nodes);
    }
}

static void prepare_quadrature(void)
{
    double *free_storage = rule_storage;
    for (int i = 0; i < RULES; i++) {
        int nodes = i < 16 ? 8 * (i + 1) : 128 + 32 * (i - 15);
        rule_node[i] = free_storage;
        rule_weight[i] = free_storage + nodes;
        rule_mark[i] = free_storage + 2 * nodes;
        free_storage += 3 * nodes;
        fill_rule(nodes, rule_node[i], rule_weight[i], rule_mark[i]);
    }
    for (int k = 0; k < PROFILE_TABLE; k++) {
        double log_wt = -(double)(k - PROFILE_TABLE / 2) / BINS_PER_NAT;
        double wt = exp(log_wt > -700 ? (log_wt < 7 ? log_wt : 7) : -700);
        exponential_clocks.hazard[k] = wt;
        exponential_clocks.p[k] = -expm1(-wt);
        exponential_clocks.q[k] = exp(-wt);
        exponential_clocks.lost[0][k] = wt;
        exponential_clocks.lost[1][k] = wt * (1 + 0.5 * wt);
    }
}

/* --------------------------------------------------------------------------------- profile of the arrivals */

typedef struct {
    int bins;                                /* used ones; the rest of a vector is zero */
    double count[MOST_BINS + PLR_LANES];     /* items with -f around bin / BINS_PER_NAT, linearly split */
    double above[MOST_BINS + PLR_LANES + 1]; /* items in the bins before this one */
} histogram;

/* The first bin that has not rung for certain. */
PLR_INLINE int first_unsettled(const clock_table *clock, const histogram *h, int step)
{
    const int first = step > clock->settled ? step - clock->settled : 0;
    return first < h->bins ? first : h->bins;
}

typedef struct {
    double arrivals, slope, variance; /* Lambda, Lambda' (by the axis of the bins), V */
} profile;

PLR_INLINE profile profile_at(const clock_table *clock, const histogram *h, int step)
{
    const int first = first_unsettled(clock, h, step);
    const int shift = PROFILE_TABLE / 2 - step;
    lanes arrivals = {0}, slope = {0}, variance = {0};
    for (int i = first; i < h->bins; i += PLR_LANES) {
        lanes count = vec_load(h->count + i), p = vec_load(clock->p + shift + i);
        lanes q = vec_load(clock->q + shift + i), hazard = vec_load(clock->hazard + shift + i);
        arrivals += count * p;
        slope += count * q * hazard;
        variance += count * p * q;
    }
    return (profile){h->above[first] + vec_sum(arrivals), vec_sum(slope), vec_sum(variance)};
}

typedef struct {
    double log_loss, slope; /* ln of a bound on what is lost in units of R, if time ends here, and how fast that falls */
} late_loss;

/* What is lost if time ends at this step (Chernoff: P(N < K) <= E[z^N] z^(1-K) for any 0 < z <= 1, and (K - N)+ is at most
 * z^(N+1-K) max_(y >= 1) y z^(y-1)), minimised over z by Newton's method from *log_z, which is left at the last z. */
PLR_INLINE late_loss late_loss_at(const clock_table *clock, const histogram *h, int step, double earlier, int derivatives,
                                  double *log_z)
{
    const int first = first_unsettled(clock, h, step);
    const int shift = PROFILE_TABLE / 2 - step;
    const double *lost_table = clock->lost[derivatives > 1];
    late_loss best = {INFINITY, 0};
    for (int iteration = 0; iteration < 8; iteration++) {
        const double z = exp(*log_z);
        lanes log_moment = {0}, mean = {0}, spread = {0}, lost = {0};
        for (int i = first; i < h->bins; i += PLR_LANES) {
            lanes count = vec_load(h->count + i), p = vec_load(clock->p + shift + i);
            lanes q = vec_load(clock->q + shift + i);
            lanes factor = q + p * z, inverse = 1.0 / factor, share = count * p * z * inverse;
            log_moment += count * vec_rough_log(factor);
            mean += share;
            spread += share * q * inverse;
            lost += count * vec_load(lost_table + shift + i) * q * inverse;
        }
        const double settled = h->above[first], centre = settled + vec_sum(mean), target = larger(earlier, 0.5);
        const double most_open = *log_z > -1 ? smaller(earlier + 1, 1 / (M_E * z * larger(-*log_z, 1e-300))) : 1;
        const double rate = vec_sum(lost);
        const double log_chance = WITHIN_BINS * vec_sum(log_moment) + (settled - earlier) * *log_z;
        const late_loss here = {log_chance + log(rate + most_open), (1 - z) * rate};
        const int converged = here.log_loss > best.log_loss - 0.05;
        if (here.log_loss < best.log_loss)
            best = here;
        if (converged)
            break;
        double change = (centre - target) / (vec_sum(spread) + 0.1 * target);
        *log_z -= change > 2 ? 2 : change;
        if (*log_z > 0)
            *log_z = 0;
        if (*log_z < -60)
            *log_z = -60;
    }
    return best;
}

/* ------------------------------------------------------------------------------------------------ the plan */

typedef struct {
    int pieces, nodes;                     /* pieces of equal length in v, each of so many nodes */
    int ended;                             /* no rank <= K is left open after the last node */
    int wide;                              /* nodes are as dense as single clocks need them, not many arrivals together */
    double t0, b, S, v_end;                /* of the map */
    double time[MOST_NODES], weight[MOST_NODES], mark[MOST_NODES]; /* of one piece */
} quadrature;

/* Where between two neighbouring steps, in steps after the first, the loss falls to log_cut: it is above at the first and
 * below at the second. Where it is concave it lies below both tangents, else below the chord. */
PLR_INLINE double crossing(late_loss before, late_loss after, double log_cut)
{
    const double chord = (before.log_loss - log_cut) / (before.log_loss - after.log_loss);
    const double left = (before.log_loss - log_cut) * BINS_PER_NAT / before.slope;
    const double right = 1 - (log_cut - after.log_loss) * BINS_PER_NAT / after.slope;
    const double tangents = smaller(left, right);
    return smaller(1, larger(chord, tangents));
}

/* Plan the integral over [t0, t1] (t1 may be infinite: the end is then where no arrival of rank <= K is left).
 *
 * h: histogram of -f, f being relative to its maximum; S: sum of the weights; K: ranks still to fill. */
static void plan_quadrature(const histogram *h, double S, double K, double t0, double t1, tolerances tolerance,
                            quadrature *plan)
{
    const double log_S = log(S), log_cut = log(tolerance.cut), earlier = K - 1;
    int step = (int)floor((-log_S - 1) * BINS_PER_NAT);
    const int last = h->bins + 6 * BINS_PER_NAT;
    if (t0 > 0) {
        int begin = (int)floor(log(t0) * BINS_PER_NAT);
        step = begin > step ? begin : step;
    }
    const double log_t1 = log(t1);
    double steepest = 0, log_end = log_t1, log_z = 0;
    late_loss before = {0, 0};
    int dead_before = 0, dead_since = 0;
    plan->ended = 0;
    for (; step <= last && step < log_t1 * BINS_PER_NAT + 1; step++) {
        profile at = profile_at(&exponential_clocks, h, step);
        const double ahead = at.arrivals - earlier;
        late_loss loss = {0, 0};
        int dead = 0;
        if (ahead > 0.5 && (ahead * ahead > -log_cut * at.variance || at.slope < tolerance.cut)) {
            loss = late_loss_at(&exponential_clocks, h, step, earlier, tolerance.derivatives, &log_z);
            dead = loss.log_loss < log_cut;
        }
        if (dead) {
            if (!dead_before) {
                const double share = before.log_loss < 0 ? crossing(before, loss, log_cut) : 1;
                log_end = (step - 1 + share) / BINS_PER_NAT;
                plan->ended = 1;
            }
            dead_since++;
            if (ahead > 1 && dead_since >= 2)
                break;
        } else {
            plan->ended = 0;
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
        plan->ended = 0;
    }
    const double b = sqrt(steepest + 1.6 * 1.6), end = larger(exp(log_end) - t0, 1e-3 * t0);
    const double v_end = asinh(sqrt(S * end) / b), length = 2 * b * v_end, digits = -log(tolerance.nodes);
    /* Measured: what each unit of length needs grows a little with K, and falls by a fifth where all items ring. */
    const double plain = tolerance.single_ranks ? 0.8 : K > 0.8 * h->above[h->bins] ? 0.64 : 0.72;
    const double share = plain + 0.2 * (K < 120 ? K / 120 : 1);
    const double per_length = sqrt(digits / 8) * share, least = 0.2 * digits / b;
    const double edges = digits > 14 ? 0.25 * digits : 3.5, wanted = length * larger(per_length, least);
    plan->pieces = wanted + edges > MOST_NODES ? (int)(wanted / (MOST_NODES - 2 * edges)) + 1 : 1;
    plan->nodes = rounded_nodes((plan->pieces > 1 ? 2 : 1) * edges + wanted / plan->pieces);
    plan->wide = least > per_length;
    plan->t0 = t0;
    plan->b = b;
    plan->S = S;
    plan->v_end = v_end;
}

/* The nodes of one piece. */
static void place_nodes(quadrature *plan, int piece)
{
    const double *node = rule_node[rule_index(plan->nodes)], *weight = rule_weight[rule_index(plan->nodes)];
    memcpy(plan->mark, rule_mark[rule_index(plan->nodes)], plan->nodes * sizeof(double));
    const double v_length = plan->v_end / plan->pieces, v_begin = piece * v_length, scale = plan->b * plan->b / plan->S;
    for (int i = 0; i < plan->nodes; i += PLR_LANES) {
        lanes v = v_begin + vec_load(node + i) * v_length, grow = vec_expm1(v), shrink = -grow / (1.0 + grow);
        lanes sinh_v = 0.5 * (grow - shrink), cosh_v = 1.0 + 0.5 * (grow + shrink);
        lanes t = plan->t0 + scale * (sinh_v * sinh_v);
        lanes dt = (2 * scale * v_length) * (sinh_v * cosh_v) * vec_load(weight + i);
        memcpy(plan->time + i, &t, sizeof t);
        memcpy(plan->weight + i, &dt, sizeof dt);
    }
}

#endif
