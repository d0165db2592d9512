#include "stochastic_rank.h"
#include "vector_functions.h"

PLR_INLINE vec_u64 words_at(const plr_lanes *words, int lane)
{
    vec_u64 random;
    memcpy(&random, (const char *)words + 8 * lane, sizeof random);
    return random;
}

/* Two independent standard normal numbers per pair of words (Box and Muller, 1958). */
PLR_INLINE vec_f64 normal_pair(vec_u64 first, vec_u64 second, vec_f64 *other)
{
    vec_f64 minus_2_log = -2.0 * vec_log(vec_uniform(first)), radius, cosine;
    for (int lane = 0; lane < PLR_LANES; lane++)
        radius[lane] = __builtin_sqrt(minus_2_log[lane]);
    vec_f64 sine = vec_sin_cos(vec_uniform(second), &cosine);
    *other = radius * sine;
    return radius * cosine;
}

static void arrivals(int noise, plr_stream *stream, const double *places, double *out, size_t n)
{
    plr_stream_state state = plr_stream_load(stream);
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_lanes words = plr_stream_step(&state);
        if (noise == PLR_NORMAL) {
            /* the second half of a step's numbers would need a second step; a step each is simpler and as fast */
            plr_lanes angles = plr_stream_step(&state);
            size_t both = i + PLR_STREAM_LANES < n ? 2 : 1;
            for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES) {
                vec_f64 other, one = normal_pair(words_at(&words, lane), words_at(&angles, lane), &other);
                vec_store(out + i + lane, -(vec_load(places + i + lane) + one));
                if (both == 2)
                    vec_store(out + i + PLR_STREAM_LANES + lane,
                              -(vec_load(places + i + PLR_STREAM_LANES + lane) + other));
            }
            i += both == 2 ? PLR_STREAM_LANES : 0;
        } else {
            for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES) {
                vec_f64 clock = -vec_log(vec_uniform(words_at(&words, lane))), place = vec_load(places + i + lane);
                vec_store(out + i + lane, noise == PLR_GUMBEL ? clock * place : vec_log(clock) - place);
            }
        }
    }
    plr_stream_store(stream, &state);
}

/* Density of the noise that takes an item from its place to an arrival; 0 where it underflows. */
PLR_INLINE vec_f64 density(int noise, vec_f64 place, double arrival)
{
    if (noise == PLR_GUMBEL) {
        vec_f64 z = place * arrival;
        return z * vec_exp_flush(-z);
    }
    vec_f64 x = place + arrival;
    if (noise == PLR_NORMAL)
        return 0.3989422804014326779 * vec_exp_flush(-0.5 * x * x);
    x = vec_select(x < 7.0, x, 7.0 + (vec_f64){0}); /* exp(-exp(7)) is 0 already */
    return vec_exp_flush(x - vec_exp_flush(x));
}

/* p 2^n for whole n <= 0 (`shifted` is n + 1.5 2^52, so n stands in its low bits), 0 where that underflows. */
PLR_INLINE vec_f64 scale_down(vec_f64 p, vec_f64 n, vec_f64 shifted)
{
#if defined(PLR_ISA_AVX512)
    (void)shifted;
    return (vec_f64)_mm512_scalef_pd((__m512d)p, (__m512d)n); /* one instruction for the four below */
#else
    p = (vec_f64)((vec_u64)p + ((vec_u64)shifted << 52));
    return vec_select(n > -1000.0, p, (vec_f64){0});
#endif
}

/* 2^y for y <= 0, 0 where it underflows; relative error below 2e-9 (the minimax polynomial of degree 6), which is far less
 * than that of the interpolation between nodes and costs half of what vec_exp_flush does. */
PLR_INLINE vec_f64 rough_exp2(vec_f64 y)
{
    const double shift = 0x1.8p52;
    vec_f64 shifted = y + shift, n = shifted - shift, r = y - n;
    vec_f64 p = 0.00015345811891695425 + (vec_f64){0};
    p = p * r + 0.0013399931218233876;
    p = p * r + 0.009618488957521243;
    p = p * r + 0.05550328776967989;
    p = p * r + 0.24022646890630409;
    p = p * r + 0.6931472057372671;
    p = p * r + 1.0000000005541676;
    return scale_down(p, n, shifted);
}

/* Density at a node, roughly. */
PLR_INLINE vec_f64 node_density(int noise, vec_f64 place, double arrival)
{
    const double log2_e = 1.4426950408889634;
    if (noise == PLR_GUMBEL) {
        vec_f64 z = place * arrival;
        return z * rough_exp2(-log2_e * z);
    }
    vec_f64 x = place + arrival;
    if (noise == PLR_NORMAL)
        return 0.3989422804014326779 * rough_exp2((-0.5 * log2_e) * (x * x));
    return density(noise, place, arrival);
}

/* `below` sums, over the ranks below the one at hand, what they are worth more to an item that stands above them than
 * to one that is not placed: they move up by one when that item is left out. */
PLR_INLINE void items_of(int noise, const noisy_ranking *ranking, const double *places, const double *relevance,
                         const double *own_ranks, double *gradient, size_t n)
{
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 place = vec_load(places + i), rho = vec_load(relevance + i), own = vec_load(own_ranks + i);
        vec_f64 total = vec_load(gradient + i), below = {0};
        for (size_t k = ranking->n_ranks; k-- > 0;) {
            vec_f64 share = density(noise, place, ranking->arrivals[k]) * (rho - ranking->relevance[k]);
            total += vec_select(own == (double)k, below, (vec_f64){0});
            total += ranking->drops[k] * share;
            below += ranking->drop_changes[k] * share;
        }
        vec_store(gradient + i, total);
    }
}

/* Some vectors of nodes in flight, as the exponentials have long chains of dependent steps: two, or three where that is
 * what there is. Four would not fit the registers (the loop is slower by half). */
PLR_INLINE void nodes_of(int noise, const int group, const noisy_ranking *ranking, const double *places,
                         const int32_t *rows, double *sums, double *corrections, size_t n)
{
    for (size_t i = 0; i < n; i += group * PLR_LANES) {
        vec_f64 place[3], plain[3], weighted[3], below[3], below_weighted[3];
        for (int v = 0; v < group; v++) {
            place[v] = vec_load(places + i + v * PLR_LANES);
            plain[v] = weighted[v] = below[v] = below_weighted[v] = (vec_f64){0};
        }
        for (size_t k = ranking->n_ranks; k-- > 0;) {
            double rho = ranking->relevance[k], drop = ranking->drops[k], change = ranking->drop_changes[k];
            if (rows[k] >= 0) {
                double *row = corrections + (size_t)rows[k] * n + i;
                for (int v = 0; v < group; v++)
                    vec_store(row + v * PLR_LANES,
                              (vec_load(row + v * PLR_LANES) - below_weighted[v]) + rho * below[v]);
            }
            for (int v = 0; v < group; v++) {
                vec_f64 e = node_density(noise, place[v], ranking->arrivals[k]);
                plain[v] += drop * e;
                below[v] += change * e;
                e *= rho;
                weighted[v] += drop * e;
                below_weighted[v] += change * e;
            }
        }
        for (int v = 0; v < group; v++) {
            double *to = sums + i + v * PLR_LANES;
            vec_store(to, vec_load(to) + plain[v]);
            vec_store(to + n, vec_load(to + n) + weighted[v]);
        }
    }
}

PLR_INLINE void nodes_of_noise(int noise, const noisy_ranking *ranking, const double *places, const int32_t *rows,
                               double *sums, double *corrections, size_t n)
{
    if (n % (2 * PLR_LANES) == 0)
        nodes_of(noise, 2, ranking, places, rows, sums, corrections, n);
    else
        nodes_of(noise, 3, ranking, places, rows, sums, corrections, n);
}

static void items(int noise, const noisy_ranking *ranking, const double *places, const double *relevance,
                  const double *own_ranks, double *gradient, size_t n)
{
    if (noise == PLR_GUMBEL)
        items_of(PLR_GUMBEL, ranking, places, relevance, own_ranks, gradient, n);
    else if (noise == PLR_GUMBEL_WIDE)
        items_of(PLR_GUMBEL_WIDE, ranking, places, relevance, own_ranks, gradient, n);
    else
        items_of(PLR_NORMAL, ranking, places, relevance, own_ranks, gradient, n);
}

static void nodes(int noise, const noisy_ranking *ranking, const double *places, const int32_t *rows, double *sums,
                  double *corrections, size_t n)
{
    if (noise == PLR_GUMBEL)
        nodes_of_noise(PLR_GUMBEL, ranking, places, rows, sums, corrections, n);
    else if (noise == PLR_GUMBEL_WIDE)
        nodes_of_noise(PLR_GUMBEL_WIDE, ranking, places, rows, sums, corrections, n);
    else
        nodes_of_noise(PLR_NORMAL, ranking, places, rows, sums, corrections, n);
}

/* Barycentric interpolation (Berrut and Trefethen, 2004): coefficients weight / (x - node), over their sum. */
static double interpolate(double at, double relevance, const double *node_places, const double *node_weights,
                          const double *sums, const double *correction, size_t n)
{
    vec_f64 numerator = {0}, denominator = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 distance = at - vec_load(node_places + i);
        /* on a node its coefficient outweighs all others */
        distance = vec_select(vec_abs(distance) < 1e-200, 1e-200 + (vec_f64){0}, distance);
        vec_f64 coefficient = vec_load(node_weights + i) / distance;
        vec_f64 value = relevance * vec_load(sums + i) - vec_load(sums + n + i) + vec_load(correction + i);
        numerator += coefficient * value;
        denominator += coefficient;
    }
    return vec_sum(numerator) / vec_sum(denominator);
}

/* Batcher's odd-even merge sort (1968) of eight lists side by side. The low bits of every key hold its position, so
 * that keys alone have to move; the caller puts right what that rounding has tied. */
static void sort_together(const double *const *lists, size_t n, uint64_t position_bits, double *keys)
{
    for (size_t i = 0; i < n; i++)
        for (size_t list = 0; list < PLR_LISTS; list++) {
            uint64_t bits;
            memcpy(&bits, &lists[list][i], sizeof bits);
            bits = (bits & ~position_bits) | i;
            memcpy(keys + i * PLR_LISTS + list, &bits, sizeof bits);
        }
    int log_2p = 1;
    for (size_t p = 1; p < n; p *= 2, log_2p++)
        for (size_t k = p; k >= 1; k /= 2)
            for (size_t j = k % p; j + k < n; j += 2 * k)
                for (size_t i = j; i < j + k && i + k < n; i++) {
                    if ((i ^ (i + k)) >> log_2p)
                        continue;
                    double *low = keys + i * PLR_LISTS, *high = low + k * PLR_LISTS;
                    for (int part = 0; part < PLR_LISTS; part += PLR_LANES) {
                        vec_f64 a = vec_load(low + part), b = vec_load(high + part);
                        vec_i64 ordered = a < b;
                        vec_store(low + part, vec_select(ordered, a, b));
                        vec_store(high + part, vec_select(ordered, b, a));
                    }
                }
}

const stochastic_rank_kernels ISA(stochastic_rank_kernels) = {arrivals, items, nodes, interpolate, sort_together};
