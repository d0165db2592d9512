/* Long lists: a crowd of light items stands in as a few nodes, so that the cost is per item and not per item and rank.
 *
 * Light items enter the integrands only through sums over items of functions of w, and get back functions of w (and
 * rho times another), all of them entire and dominated by their low powers while r = expm1(w t) is small. Weights are
 * sorted into octaves by their exponent. In an octave, sum_j m_j f(w_j) is that of the polynomial through f at 8 Chebyshev
 * nodes, so the items are replaced by nodes with masses that have the same first 8 moments, and what the nodes get
 * back is interpolated to the items. On [1, 2] the error is 1.2e-7 of the eighth-power term, which is r^8 of the first
 * at most: an item with r above some r_cut at the last time must not be in the crowd.
 */
#ifndef PLR_CROWD_H
#define PLR_CROWD_H

#include <math.h>

#include "vector_math.h"

#define OCTAVES 100 /* lighter items than 2^-100 of the heaviest neither matter nor are moved */
#define CROWD_NODES 8
#define COPIES 4 /* of the sums, so that neighbours in the same octave do not wait for each other */

typedef double moments __attribute__((vector_size(8 * CROWD_NODES))); /* coefficients or sums of u^0 .. u^7 */
typedef int64_t moments_mask __attribute__((vector_size(8 * CROWD_NODES)));

static double crowd_position[CROWD_NODES];  /* mantissa of each node, in (1, 2) */
static moments crowd_lagrange[CROWD_NODES]; /* coefficients of the polynomial that is 1 there and 0 at the others */

static void prepare_crowd(void)
{
    double x[CROWD_NODES];
    for (int c = 0; c < CROWD_NODES; c++)
        x[c] = cos(M_PI * (c + 0.5) / CROWD_NODES);
    for (int c = 0; c < CROWD_NODES; c++) {
        double p[CROWD_NODES + 1] = {1}, scale = 1;
        int degree = 0;
        for (int d = 0; d < CROWD_NODES; d++) {
            if (d == c)
                continue;
            p[++degree] = 0;
            for (int k = degree; k > 0; k--)
                p[k] = p[k - 1] - x[d] * p[k];
            p[0] *= -x[d];
            scale *= x[c] - x[d];
        }
        for (int k = 0; k < CROWD_NODES; k++)
            crowd_lagrange[c][k] = p[k] / scale;
        crowd_position[c] = 1.5 + 0.5 * x[c];
    }
}

/* w = 2^-octave m with 1 <= m < 2; returns u = 2 m - 3. Octaves past the last are cut off there. */
PLR_INLINE double split_weight(double w, int64_t *octave)
{
    int64_t word;
    memcpy(&word, &w, sizeof word);
    *octave = 1023 - (word >> 52);
    word = (word & 0xfffffffffffff) | ((int64_t)1023 << 52);
    double mantissa;
    memcpy(&mantissa, &word, sizeof mantissa);
    return 2 * mantissa - 3;
}

/* 1, u, .. u^7 */
PLR_INLINE moments powers(double u)
{
    const moments one = {1, 1, 1, 1, 1, 1, 1, 1};
    const moments_mask first = {0, -1, 0, -1, 0, -1, 0, -1}, second = {0, 0, -1, -1, 0, 0, -1, -1};
    const moments_mask third = {0, 0, 0, 0, -1, -1, -1, -1};
    const double u2 = u * u;
    const moments a = u - (moments){0}, b = u2 - (moments){0}, c = u2 * u2 - (moments){0};
    moments x = (moments)((first & (moments_mask)a) | (~first & (moments_mask)one));
    moments y = (moments)((second & (moments_mask)b) | (~second & (moments_mask)one));
    moments z = (moments)((third & (moments_mask)c) | (~third & (moments_mask)one));
    return x * y * z;
}

PLR_INLINE double sum_moments(moments x)
{
    lanes part[CROWD_NODES / PLR_LANES];
    memcpy(part, &x, sizeof x);
    for (int i = 1; i < CROWD_NODES / PLR_LANES; i++)
        part[0] += part[i];
    return vec_sum(part[0]);
}

/* What is known of each octave: sums of u^k and of rho w u^k over its items. */
typedef struct {
    moments plain[OCTAVES * COPIES], relevant[OCTAVES * COPIES];
} octave_sums;

static void add_to_octaves(octave_sums *sums, intptr_t n, const double *w, const double *relevance, double common)
{
    memset(sums, 0, sizeof *sums);
    for (intptr_t j = 0; j < n; j++) {
        int64_t octave;
        const moments u = powers(split_weight(w[j], &octave));
        if (octave >= OCTAVES)
            continue;
        octave = COPIES * octave + j % COPIES;
        sums->plain[octave] += u;
        sums->relevant[octave] += ((relevance[j] - common) * w[j]) * u;
    }
    for (int octave = 0; octave < OCTAVES; octave++)
        for (int copy = 1; copy < COPIES; copy++) {
            sums->plain[COPIES * octave] += sums->plain[COPIES * octave + copy];
            sums->relevant[COPIES * octave] += sums->relevant[COPIES * octave + copy];
        }
}

/* Nodes of the octaves from first_octave on; returns their number, a multiple of 8. */
static intptr_t place_crowd(const octave_sums *sums, int first_octave, double *w, double *mass, double *rho_mass, int *octaves)
{
    intptr_t n = 0;
    for (int octave = first_octave; octave < OCTAVES; octave++) {
        const moments plain = sums->plain[COPIES * octave], relevant = sums->relevant[COPIES * octave];
        octaves[octave] = -1;
        if (plain[0] == 0)
            continue;
        octaves[octave] = (int)n;
        for (int c = 0; c < CROWD_NODES; c++) {
            w[n] = ldexp(crowd_position[c], -octave);
            mass[n] = sum_moments(crowd_lagrange[c] * plain);
            rho_mass[n] = sum_moments(crowd_lagrange[c] * relevant);
            n++;
        }
    }
    return n;
}

/* Polynomial of an octave in u through the values at its nodes. */
PLR_INLINE moments through_nodes(const double *value)
{
    moments polynomial = {0};
    for (int c = 0; c < CROWD_NODES; c++)
        polynomial += value[c] * crowd_lagrange[c];
    return polynomial;
}

/* to_j = w_j (zeroth(w_j) + rho_j first(w_j)) for the items of the crowd, from the values at the nodes. */
static void return_to_items(int first_octave, const int *octaves, const double *zeroth, const double *first, intptr_t n,
                            const double *w, const double *relevance, double common, double *to)
{
    moments plain[OCTAVES], relevant[OCTAVES];
    for (int octave = 0; octave < OCTAVES; octave++) {
        plain[octave] = relevant[octave] = (moments){0};
        if (octave < first_octave || octaves[octave] < 0)
            continue;
        plain[octave] = through_nodes(zeroth + octaves[octave]);
        relevant[octave] = through_nodes(first + octaves[octave]);
    }
    for (intptr_t j = 0; j < n; j++) {
        int64_t octave;
        const moments u = powers(split_weight(w[j], &octave));
        if (octave < first_octave)
            continue;
        octave = octave < OCTAVES ? octave : OCTAVES - 1;
        to[j] = w[j] * sum_moments((plain[octave] + (relevance[j] - common) * relevant[octave]) * u);
    }
}

#endif
