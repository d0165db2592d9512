/* Long lists: a few proxy items replace many items of low weight, so that the cost is per item and not per item and
 * rank.
 *
 * Low-weight items enter the integrands only through sums over items of functions of w, and their derivatives are
 * functions of w (plus rho times another), all of them entire and dominated by their low powers while r = expm1(w t) is
 * small. Weights are sorted into octaves by their exponent. In an octave, f is nearly the polynomial through its values
 * at 8 Chebyshev nodes, so proxies at these nodes, with masses that have the same first 8 moments, replace the items,
 * and the derivatives at the proxies are interpolated to the items. On [1, 2] the error is 1.2e-7 of the eighth power,
 * which is at most r^8 of the first term. Items whose r at the last time is above a limit are therefore not compressed.
 */
#ifndef PLR_MOMENT_COMPRESSION_H
#define PLR_MOMENT_COMPRESSION_H

#include <float.h>
#include <math.h>

#include "gradients/exact/item_block.h"
#include "gradients/exact/lane_sums.h"
#include "gradients/exact/score_histogram.h"
#include "simd/vector_math.h"

#define COMPRESSED_FROM 220 /* items, and more for each rank (compressed_panel.h) */
#define OCTAVES 100 /* items lighter than 2^-100 of the heaviest have no influence and no gradient */
#define PROXIES_OF_OCTAVE 8

typedef double moments __attribute__((vector_size(8 * PROXIES_OF_OCTAVE))); /* coefficients or sums of u^0 .. u^7 */

/* The moments of each octave: sums of u^k and of rho w u^k over its items, and of |rho| and rho^2. Each sum is added up
 * in a quartet of parts, so that neighbours in the same octave do not wait for each other. */
typedef struct {
    moments plain[OCTAVES * QUARTET], relevant[OCTAVES * QUARTET];
    double magnitudes[OCTAVES * QUARTET], squares[OCTAVES * QUARTET];
    intptr_t stopping; /* items at which readers may stop, which are not among these */
    int used;          /* octaves down to the lightest item; the others are not filled */
} octave_sums;

/* The proxies of the octaves from the first on: a multiple of 8, usually none. */
typedef struct {
    intptr_t count;
    double *w, *mass, *rho_mass;     /* rho_mass includes the factor w, */
    double *counts;                  /* and these do not */
    double weight;                   /* sum of w over the items they replace */
} proxy_items;

typedef struct {
    double heaviest; /* compressed weights are below this */
    moments zeroth[OCTAVES], first[OCTAVES];
} proxy_polynomials;

typedef int64_t moments_mask __attribute__((vector_size(8 * PROXIES_OF_OCTAVE)));

/* prepare_interpolation fills these; they are read-only afterwards. */
static double proxy_mantissa[PROXIES_OF_OCTAVE]; /* mantissa of each proxy's weight, in (1, 2) */
static moments lagrange[PROXIES_OF_OCTAVE];      /* polynomials that are 1 at one proxy and 0 at the others */

/* Compute Chebyshev nodes and the polynomials between them, once per process. */
static void prepare_interpolation(void)
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

/* A register of weights w = 2^-octave m with 1 <= m < 2, and powers of u = 2 m - 3, in [-1, 1). */
typedef struct {
    int64_t octave[PLR_LANES];
    double u[PLR_LANES], u2[PLR_LANES], u4[PLR_LANES];
} split_weights;

PLR_INLINE split_weights split(const double *w, size_t count)
{
    const vec_u64 word = (vec_u64)vec_load_some(w, count, 1);
    const vec_u64 octave = UINT64_C(1023) - (word >> 52);
    const lanes mantissa = (lanes)((word & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52), u = 2.0 * mantissa - 3.0;
    split_weights weights;
    memcpy(weights.octave, &octave, sizeof octave);
    vec_store(weights.u, u);
    vec_store(weights.u2, u * u);
    vec_store(weights.u4, (u * u) * (u * u));
    __asm__("" : "+m"(weights)); /* otherwise GCC extracts each weight from a register by shuffles */
    return weights;
}

/* Return 1, u, .., u^7 of weight i. */
PLR_INLINE moments powers(const split_weights *weights, intptr_t i)
{
    const moments one = {1, 1, 1, 1, 1, 1, 1, 1};
    const moments_mask first = {0, -1, 0, -1, 0, -1, 0, -1}, second = {0, 0, -1, -1, 0, 0, -1, -1};
    const moments_mask third = {0, 0, 0, 0, -1, -1, -1, -1};
    const moments a = weights->u[i] - (moments){0}, b = weights->u2[i] - (moments){0};
    const moments c = weights->u4[i] - (moments){0};
    moments x = (moments)((first & (moments_mask)a) | (~first & (moments_mask)one));
    moments y = (moments)((second & (moments_mask)b) | (~second & (moments_mask)one));
    moments z = (moments)((third & (moments_mask)c) | (~third & (moments_mask)one));
    return x * y * z;
}

/* Return a register whose sum is the sum of the moments. */
PLR_INLINE lanes fold_moments(moments x)
{
    lanes part[PROXIES_OF_OCTAVE / PLR_LANES];
    memcpy(part, &x, sizeof x);
    for (int i = 1; i < PROXIES_OF_OCTAVE / PLR_LANES; i++)
        part[0] += part[i];
    return part[0];
}

PLR_INLINE double sum_moments(moments x)
{
    return vec_sum(fold_moments(x));
}

/* Return whether readers may stop at item j; such items are not compressed. */
PLR_INLINE int stops_at(const double *stop, intptr_t j)
{
    return stop && stop[j] != 0;
}

/* Compute the moments of n items, with relevance relative to `common`. */
static void sum_octaves(octave_sums *sums, intptr_t n, const double *w, const double *relevance, double common,
                        const double *stop)
{
    lanes lightest = vec_all(1);
    for (intptr_t j = 0; j < n; j += PLR_LANES)
        lightest = vec_min_f64(vec_load_some(w + j, n - j, 1), lightest);
    sums->used = (int)smaller(OCTAVES, 1 - ilogb(larger(vec_smallest(lightest), DBL_MIN)));
    sums->stopping = 0;
    const size_t parts = QUARTET * (size_t)sums->used;
    memset(sums->plain, 0, parts * sizeof *sums->plain);
    memset(sums->relevant, 0, parts * sizeof *sums->relevant);
    memset(sums->magnitudes, 0, parts * sizeof *sums->magnitudes);
    memset(sums->squares, 0, parts * sizeof *sums->squares);
    for (intptr_t j = 0; j < n; j += PLR_LANES) {
        const intptr_t here = n - j < PLR_LANES ? n - j : PLR_LANES;
        const split_weights weights = split(w + j, here);
        for (intptr_t i = 0; i < here; i++) {
            const int64_t octave = QUARTET * weights.octave[i] + i % QUARTET;
            const moments u = powers(&weights, i);
            sums->stopping += stops_at(stop, j + i);
            if (weights.octave[i] >= OCTAVES || stops_at(stop, j + i))
                continue;
            const double rho = relevance[j + i] - common;
            sums->plain[octave] += u;
            sums->relevant[octave] += (rho * w[j + i]) * u;
            sums->magnitudes[octave] += fabs(rho);
            sums->squares[octave] += rho * rho;
        }
    }
    for (int octave = 0; octave < sums->used; octave++)
        for (int copy = 1; copy < QUARTET; copy++) {
            sums->plain[QUARTET * octave] += sums->plain[QUARTET * octave + copy];
            sums->relevant[QUARTET * octave] += sums->relevant[QUARTET * octave + copy];
            sums->magnitudes[QUARTET * octave] += sums->magnitudes[QUARTET * octave + copy];
            sums->squares[QUARTET * octave] += sums->squares[QUARTET * octave + copy];
        }
}

/* Add moments to the moments of other items. */
static void merge_octaves(octave_sums *to, const octave_sums *sums)
{
    for (int i = 0; i < QUARTET * sums->used; i += QUARTET) {
        const int others = i < QUARTET * to->used;
        to->plain[i] = others ? to->plain[i] + sums->plain[i] : sums->plain[i];
        to->relevant[i] = others ? to->relevant[i] + sums->relevant[i] : sums->relevant[i];
        to->magnitudes[i] = others ? to->magnitudes[i] + sums->magnitudes[i] : sums->magnitudes[i];
        to->squares[i] = others ? to->squares[i] + sums->squares[i] : sums->squares[i];
    }
    to->used = to->used > sums->used ? to->used : sums->used;
}

/* Return the number of items in octaves before this one. */
static intptr_t count_heavier(const octave_sums *sums, int octave)
{
    double n = 0;
    for (int heavier = 0; heavier < octave && heavier < sums->used; heavier++)
        n += sums->plain[QUARTET * heavier][0];
    return (intptr_t)n;
}

/* Add to the bins the items of the octaves at both ends of these, so that the sum of weights is kept; return the number
 * of bins in use. */
static int add_octaves(bin_sums *bins, const octave_sums *sums)
{
    int used = 2;
    for (int octave = 0; octave < sums->used; octave++) {
        const moments plain = sums->plain[QUARTET * octave];
        if (plain[0] == 0)
            continue;
        const double mantissa = 1.5 + 0.5 * plain[1] / plain[0];
        const double relevance = ldexp(sums->relevant[QUARTET * octave][0], octave) / mantissa;
        const bin_sums all = {plain[0], relevance, sums->magnitudes[QUARTET * octave], sums->squares[QUARTET * octave]};
        add_to_bins(bins, NULL, larger(0, (octave - 1) * M_LN2), (mantissa - 1) * all, 0);
        add_to_bins(bins, NULL, octave * M_LN2, (2 - mantissa) * all, 0);
        used = (int)(octave * M_LN2 * BINS_PER_NAT) + 2;
    }
    return used;
}

/* Place proxies for the items of the octaves from first_octave on. */
static void place_proxies(const octave_sums *sums, int first_octave, proxy_items *proxies)
{
    proxies->weight = 0;
    intptr_t n = 0;
    for (int octave = first_octave; octave < sums->used; octave++) {
        const moments plain = sums->plain[QUARTET * octave], relevant = sums->relevant[QUARTET * octave];
        if (plain[0] == 0)
            continue;
        for (int c = 0; c < PROXIES_OF_OCTAVE; c++) {
            proxies->w[n] = ldexp(proxy_mantissa[c], -octave);
            proxies->mass[n] = sum_moments(lagrange[c] * plain);
            proxies->rho_mass[n] = sum_moments(lagrange[c] * relevant);
            proxies->counts[n] = proxies->rho_mass[n] / proxies->w[n];
            n++;
        }
    }
    proxies->count = n;
    for (intptr_t c = 0; c < n; c++)
        proxies->weight += proxies->mass[c] * proxies->w[c];
}

/* Return the polynomial of an octave in u through the values at its proxies. */
PLR_INLINE moments through_proxies(const double *value)
{
    moments polynomial = {0};
    for (int c = 0; c < PROXIES_OF_OCTAVE; c++)
        polynomial += value[c] * lagrange[c];
    return polynomial;
}

/* Compute the polynomials in u, one for each octave from first_octave on, through values at its proxies. */
static void interpolate_proxies(const octave_sums *sums, int first_octave, const double *zeroth, const double *first,
                                proxy_polynomials *polynomials)
{
    for (int octave = 0; octave < OCTAVES; octave++) {
        polynomials->zeroth[octave] = polynomials->first[octave] = (moments){0};
        if (octave < first_octave || octave >= sums->used || sums->plain[QUARTET * octave][0] == 0)
            continue;
        polynomials->zeroth[octave] = through_proxies(zeroth);
        polynomials->first[octave] = through_proxies(first);
        zeroth += PROXIES_OF_OCTAVE;
        first += PROXIES_OF_OCTAVE;
    }
}

/* Set to_j = w_j (zeroth(w_j) + rho_j first(w_j)) for the compressed ones of the n items. */
static void return_to_items(const proxy_polynomials *polynomials, intptr_t n, const double *w, const double *relevance,
                            double common, const double *stop, double *to)
{
    for (intptr_t j = 0; j < n; j += PLR_LANES) {
        const intptr_t here = n - j < PLR_LANES ? n - j : PLR_LANES;
        const split_weights weights = split(w + j, here);
        double rho[PLR_LANES];
        vec_store(rho, vec_load_some(relevance + j, here, common) - common);
        lanes terms[PLR_LANES];
        for (intptr_t i = 0; i < PLR_LANES; i++) { /* the lightest items use the polynomial of the last octave */
            const int64_t octave = weights.octave[i] < OCTAVES ? weights.octave[i] : OCTAVES - 1;
            terms[i] = fold_moments((polynomials->zeroth[octave] + rho[i] * polynomials->first[octave]) *
                                    powers(&weights, i));
        }
        const lanes sums = lane_sums(terms);
        for (intptr_t i = 0; i < here; i++)
            if (w[j + i] < polynomials->heaviest && !stops_at(stop, j + i))
                to[j + i] = w[j + i] * sums[i];
    }
}

#endif
