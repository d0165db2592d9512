#include "gradients/exact/moment_compression.h"

#include <math.h>

#include "gradients/exact/node_lanes.h"

typedef int64_t moments_mask __attribute__((vector_size(8 * PROXIES_OF_OCTAVE)));

/* Filled by prepare_interpolation, then only read. */
static double proxy_mantissa[PROXIES_OF_OCTAVE]; /* of the weight of each proxy, in (1, 2) */
static moments lagrange[PROXIES_OF_OCTAVE];      /* coefficients of the polynomials, 1 there and 0 at the others */

void prepare_interpolation(void)
{
    double x[PROXIES_OF_OCTAVE];
    for (int c = 0; c < PROXIES_OF_OCTAVE; c++)
        x[c] = cos(M_PI * (c + 0.5) / PROXIES_OF_OCTAVE);
    for (int c = 0; c < PROXIES_OF_OCTAVE; c++) {
        double p[PROXIES_OF_OCTAVE + 1] = {1}, scale = 1;
        int degree = 0;
        for (int d = 0; d < PROXIES_OF_OCTAVE; d++) {
            if (d == c)
                continue;
            p[++degree] = 0;
            for (int k = degree; k > 0; k--)
                p[k] = p[k - 1] - x[d] * p[k];
            p[0] *= -x[d];
            scale *= x[c] - x[d];
        }
        for (int k = 0; k < PROXIES_OF_OCTAVE; k++)
            lagrange[c][k] = p[k] / scale;
        proxy_mantissa[c] = 1.5 + 0.5 * x[c];
    }
}

/* w = 2^-octave m with 1 <= m < 2; returns u = 2 m - 3, in [-1, 1). */
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
    lanes part[PROXIES_OF_OCTAVE / PLR_LANES];
    memcpy(part, &x, sizeof x);
    for (int i = 1; i < PROXIES_OF_OCTAVE / PLR_LANES; i++)
        part[0] += part[i];
    return vec_sum(part[0]);
}

void add_to_octaves(octave_sums *sums, intptr_t n, const double *w, const double *relevance, double common)
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

void histogram_of_octaves(score_histogram *histogram, const octave_sums *sums)
{
    memset(histogram->count, 0, sizeof histogram->count);
    histogram->bins = 2;
    for (int octave = 0; octave < OCTAVES; octave++) {
        const moments plain = sums->plain[COPIES * octave];
        if (plain[0] == 0)
            continue;
        const double mantissa = 1.5 + 0.5 * plain[1] / plain[0];
        const double x = larger(0, (octave * M_LN2 - log(mantissa)) * BINS_PER_NAT);
        const int i = (int)x;
        histogram->count[i] += plain[0] * (1 - (x - i));
        histogram->count[i + 1] += plain[0] * (x - i);
        histogram->bins = i + 2;
    }
    sum_counts(histogram);
}

void place_proxies(const octave_sums *sums, int first_octave, proxy_items *proxies)
{
    proxies->first_octave = first_octave;
    proxies->weight = 0;
    intptr_t n = 0;
    for (int octave = first_octave; octave < OCTAVES; octave++) {
        const moments plain = sums->plain[COPIES * octave], relevant = sums->relevant[COPIES * octave];
        proxies->first_proxy[octave] = -1;
        if (plain[0] == 0)
            continue;
        proxies->first_proxy[octave] = (int)n;
        for (int c = 0; c < PROXIES_OF_OCTAVE; c++) {
            proxies->w[n] = ldexp(proxy_mantissa[c], -octave);
            proxies->mass[n] = sum_moments(lagrange[c] * plain);
            proxies->rho_mass[n] = sum_moments(lagrange[c] * relevant);
            n++;
        }
    }
    proxies->count = n;
    for (intptr_t c = 0; c < n; c++)
        proxies->weight += proxies->mass[c] * proxies->w[c];
}

/* Polynomial of an octave in u through the values at its proxies. */
PLR_INLINE moments through_proxies(const double *value)
{
    moments polynomial = {0};
    for (int c = 0; c < PROXIES_OF_OCTAVE; c++)
        polynomial += value[c] * lagrange[c];
    return polynomial;
}

void return_to_items(const proxy_items *proxies, const double *zeroth, const double *first, intptr_t n, const double *w,
                     const double *relevance, double common, double *to)
{
    moments plain[OCTAVES], relevant[OCTAVES];
    for (int octave = 0; octave < OCTAVES; octave++) {
        plain[octave] = relevant[octave] = (moments){0};
        if (octave < proxies->first_octave || proxies->first_proxy[octave] < 0)
            continue;
        plain[octave] = through_proxies(zeroth + proxies->first_proxy[octave]);
        relevant[octave] = through_proxies(first + proxies->first_proxy[octave]);
    }
    for (intptr_t j = 0; j < n; j++) {
        int64_t octave;
        const moments u = powers(split_weight(w[j], &octave));
        if (octave < proxies->first_octave)
            continue;
        octave = octave < OCTAVES ? octave : OCTAVES - 1; /* the lightest of all get what the last octave does */
        to[j] = w[j] * sum_moments((plain[octave] + (relevance[j] - common) * relevant[octave]) * u);
    }
}
