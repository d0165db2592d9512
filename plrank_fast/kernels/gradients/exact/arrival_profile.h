/* The expected number Lambda of arrivals by a time, its slope and its variance V.
 *
 * Each is a sum over the bins of a histogram of scores. The terms are functions of the distance between bin and time,
 * which are tabulated.
 */
#ifndef PLR_ARRIVAL_PROFILE_H
#define PLR_ARRIVAL_PROFILE_H

#include <float.h>
#include <math.h>

#include "gradients/exact/law.h"
#include "gradients/exact/score_histogram.h"
#include "simd/vector_math.h"

#define PROFILE_TABLE (4 * MOST_BINS)

/* For each distance k of a bin and a time (the time is k bins before the item is due): the probability p that the item
 * has arrived, q = 1 - p, and its hazard. Entry k has the index k + PROFILE_TABLE / 2. */
typedef struct {
    int law;
    int certain; /* bins after it is due by which an item has certainly arrived */
    double hazard[PROFILE_TABLE], p[PROFILE_TABLE], q[PROFILE_TABLE];
    double lost[2][PROFILE_TABLE]; /* hazard times the loss of derivatives per item: gradient, Hessian diagonal */
} arrival_table;

typedef struct {
    double arrivals, slope, variance; /* Lambda, its derivative on the axis of the bins, V */
    double norm;                      /* root of the sum over items of their squared shares of the slope */
} arrival_profile;

static arrival_table arrival_tables[ALL_LAWS]; /* filled by prepare_arrival_tables, read-only afterwards */

/* Fill the tables of all laws, once per process. */
static void prepare_arrival_tables(void)
{
    for (int law = 0; law < ALL_LAWS; law++) {
        arrival_table *table = arrival_tables + law;
        table->law = law;
        table->certain = (int)(laws[law]->certain * BINS_PER_NAT);
        for (int k = 0; k < PROFILE_TABLE; k++) {
            const arrival item = laws[law]->at((double)(PROFILE_TABLE / 2 - k) / BINS_PER_NAT);
            table->p[k] = item.p;
            table->q[k] = item.q;
            table->hazard[k] = table->lost[0][k] = item.hazard;
            table->lost[1][k] = item.hazard * (1 + 0.5 * item.slope);
        }
    }
}

/* Return the first bin whose items have not certainly arrived by this step of time. */
PLR_INLINE int first_uncertain(const arrival_table *table, const score_histogram *histogram, int step)
{
    const int first = step > table->certain && !histogram->stops ? step - table->certain : 0;
    return first < histogram->bins ? first : histogram->bins;
}

PLR_INLINE arrival_profile profile_at(const arrival_table *table, const score_histogram *histogram, int step)
{
    const int first = first_uncertain(table, histogram, step);
    const int shift = PROFILE_TABLE / 2 - step;
    lanes arrivals = {0}, slope = {0}, variance = {0}, squares = {0};
    for (int i = first; i < histogram->bins; i += PLR_LANES) {
        lanes count = vec_load(histogram->count + i), p = vec_load(table->p + shift + i);
        lanes q = vec_load(table->q + shift + i), hazard = vec_load(table->hazard + shift + i);
        arrivals += count * p;
        lanes share = q * hazard, shares = count * share;
        slope += shares;
        squares += shares * share;
        variance += count * p * q;
    }
    return (arrival_profile){histogram->above[first] + vec_sum(arrivals), vec_sum(slope), vec_sum(variance),
                             sqrt(vec_sum(squares))};
}

/* Return ln of a bound of the chance that a reader reads on after all arrivals. */
static double log_reading(const arrival_table *table, const score_histogram *histogram, int step)
{
    const double *p = table->p + PROFILE_TABLE / 2 - step, *q = table->q + PROFILE_TABLE / 2 - step;
    lanes sum = {0};
    for (int i = 0; i < histogram->bins; i += PLR_LANES) {
        const lanes chance = vec_load(q + i) + vec_load(p + i) * vec_load(histogram->reads + i);
        sum += vec_load(histogram->count + i) * vec_rough_log(vec_max_f64(chance, vec_all(DBL_MIN)));
    }
    return vec_sum(sum);
}

/* Return about the norm of the gradient's integrand at this step, if the K-th of the items arrives now and gains 1:
 * each item's share of the slope times its relevance above the mean by these shares, or times 1 for the exposure. */
PLR_INLINE double norm_of_slope(const arrival_table *table, const score_histogram *histogram, int step, int exposure)
{
    const int first = first_uncertain(table, histogram, step);
    const int shift = PROFILE_TABLE / 2 - step;
    lanes slope = {0}, gains = {0}, shares = {0}, cross = {0}, squares = {0};
    for (int i = first; i < histogram->bins; i += PLR_LANES) {
        const lanes share = vec_load(table->q + shift + i) * vec_load(table->hazard + shift + i);
        const lanes count = vec_load(histogram->count + i), relevance = vec_load(histogram->relevance + i);
        slope += count * share;
        gains += relevance * share;
        shares += count * share * share;
        cross += relevance * share * share;
        squares += vec_load(histogram->squares + i) * share * share;
    }
    if (exposure)
        return sqrt(vec_sum(shares));
    const double mean = vec_sum(gains) / larger(vec_sum(slope), DBL_MIN);
    return sqrt(larger(0, vec_sum(squares) - 2 * mean * vec_sum(cross) + mean * mean * vec_sum(shares)));
}

#endif
