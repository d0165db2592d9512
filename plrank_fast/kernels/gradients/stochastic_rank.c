#include "gradients/stochastic_rank.h"
#include "simd/vector_math.h"

/* Return two independent standard normal numbers per pair of words (Box and Muller, 1958). */
PLR_INLINE vec_f64 normal_pair(vec_u64 first, vec_u64 second, vec_f64 *other)
{
    vec_f64 radius = vec_sqrt(-2.0 * vec_log(vec_uniform(first))), cosine;
    vec_f64 sine = vec_sin_cos(vec_uniform(second), &cosine);
    *other = radius * sine;
    return radius * cosine;
}

static void arrivals(int noise, plr_stream *stream, const double *locations, double *out, size_t n)
{
    plr_stream_state state = plr_stream_load(stream);
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_lanes words = plr_stream_step(&state);
        if (noise == PLR_NORMAL) {
            /* separate steps for radius and angle are simpler than sharing one, and as fast */
            plr_lanes angles = plr_stream_step(&state);
            size_t both = i + PLR_STREAM_LANES < n ? 2 : 1;
            for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES) {
                vec_f64 other, one = normal_pair(plr_words_at(&words, lane), plr_words_at(&angles, lane), &other);
                vec_store(out + i + lane, -(vec_load(locations + i + lane) + one));
                if (both == 2)
                    vec_store(out + i + PLR_STREAM_LANES + lane,
                              -(vec_load(locations + i + PLR_STREAM_LANES + lane) + other));
            }
            i += both == 2 ? PLR_STREAM_LANES : 0;
        } else {
            for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES) {
                vec_f64 e = -vec_log(vec_uniform(plr_words_at(&words, lane)));
                vec_f64 location = vec_load(locations + i + lane);
                vec_store(out + i + lane, noise == PLR_GUMBEL ? e * location : vec_log(e) - location);
            }
        }
    }
    plr_stream_store(stream, &state);
}

/* Append the lanes of `key` where `held`, and their indices from `first` on, to n of each; room for a whole vector. */
PLR_INLINE size_t append(vec_i64 held, vec_u64 key, size_t first, uint64_t *keys, int32_t *items, size_t n)
{
#ifdef PLR_ISA_AVX512
    /* compression has no generic vector form */
    const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __mmask8 mask = _mm512_movepi64_mask((__m512i)held);
    __m256i item = _mm256_add_epi32(eight, _mm256_set1_epi32((int)first));
    _mm512_storeu_si512(keys + n, _mm512_maskz_compress_epi64(mask, (__m512i)key));
    _mm256_storeu_si256((__m256i *)(items + n), _mm256_maskz_compress_epi32(mask, item));
    return n + (size_t)__builtin_popcount(mask);
#else
    for (int lane = 0; lane < PLR_LANES; lane++) {
        keys[n] = key[lane];
        items[n] = (int32_t)first + lane;
        n -= (size_t)held[lane];
    }
    return n;
#endif
}

static size_t keep_before(const double *arrivals, size_t n, double pivot, double *kept, int32_t *items)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 arrival = vec_load(arrivals + i);
        n_kept = append(arrival < pivot, (vec_u64)arrival, i, (uint64_t *)kept, items, n_kept);
    }
    while (n_kept > 0 && (size_t)items[n_kept - 1] >= n) /* drop the padding after the last item */
        n_kept--;
    return n_kept;
}

/* With Gumbel noise an item arrives before the pivot if -log(u) location < pivot, that is, from some random word on.
 * The thresholds are a little low, so that rounding omits no item. */
static void early_words(const double *locations, size_t n, double pivot, uint64_t *thresholds)
{
    const size_t padded = (n + PLR_STREAM_LANES - 1) / PLR_STREAM_LANES * PLR_STREAM_LANES; /* as read */
    for (size_t i = 0; i < padded; i += PLR_LANES) {
        vec_f64 silent = vec_exp_flush(-pivot / vec_load(locations + i)) * (1.0 - 1e-11);
        for (int lane = 0; lane < PLR_LANES; lane++)
            thresholds[i + lane] = i + lane < n ? (uint64_t)(silent[lane] * 0x1p64) : UINT64_MAX;
    }
}

static size_t early_arrivals(plr_stream *stream, const double *locations, const uint64_t *thresholds, size_t n,
                             double pivot, double *kept, int32_t *items)
{
    plr_stream_state state = plr_stream_load(stream);
    size_t n_early = 0, n_kept = 0;
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_lanes words = plr_stream_step(&state);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES) {
            vec_u64 word = plr_words_at(&words, lane), threshold = vec_load_u64(thresholds + i + lane);
            n_early = append(word >= threshold, word, i + lane, (uint64_t *)kept, items, n_early);
        }
    }
    plr_stream_store(stream, &state);
    while (n_early > 0 && (size_t)items[n_early - 1] >= n)
        n_early--;
    for (size_t i = 0; i < n_early; i += PLR_LANES) {
        vec_f64 e = -vec_log(vec_uniform((vec_u64)vec_load(kept + i)));
#ifdef PLR_ISA_AVX512
        const size_t here = n_early - i < PLR_LANES ? n_early - i : PLR_LANES;
        __mmask8 mask = (__mmask8)((1u << here) - 1);
        __m256i item = _mm256_loadu_si256((const __m256i *)(items + i));
        __m512d location = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, item, locations, 8);
        __m512d arrival = _mm512_mul_pd((__m512d)e, location);
        mask = _mm512_mask_cmp_pd_mask(mask, arrival, _mm512_set1_pd(pivot), _CMP_LT_OQ);
        _mm512_storeu_pd(kept + n_kept, _mm512_maskz_compress_pd(mask, arrival));
        _mm256_storeu_si256((__m256i *)(items + n_kept), _mm256_maskz_compress_epi32(mask, item));
        n_kept += (size_t)__builtin_popcount(mask);
#else
        for (int lane = 0; lane < PLR_LANES && i + lane < n_early; lane++) {
            const int32_t item = items[i + lane];
            kept[n_kept] = e[lane] * locations[item];
            items[n_kept] = item;
            n_kept += kept[n_kept] < pivot;
        }
#endif
    }
    return n_kept;
}

/* Return the density of the noise that moves an item from its location to an arrival; 0 where it underflows. */
PLR_INLINE vec_f64 density(int noise, vec_f64 location, double arrival)
{
    if (noise == PLR_GUMBEL) {
        vec_f64 z = location * arrival;
        return z * vec_exp_flush(-z);
    }
    vec_f64 x = location + arrival;
    if (noise == PLR_NORMAL)
        return 0.3989422804014326779 * vec_exp_flush(-0.5 * x * x);
    x = vec_min_f64(x, vec_all(7.0)); /* exp(-exp(7)) is 0 already */
    return vec_exp_flush(x - vec_exp_flush(x));
}

/* Return an approximate density at a node (more accurate than the interpolation between nodes), over node_unit(noise).
 * location (its negative for PLR_GUMBEL) and, except for PLR_GUMBEL, arrival are multiplied by node_scale(noise). */
PLR_INLINE vec_f64 node_density(int noise, vec_f64 location, double arrival)
{
    if (noise == PLR_GUMBEL) {
        vec_f64 y = location * arrival;
        return y * vec_rough_exp2(y);
    }
    if (noise == PLR_NORMAL) {
        vec_f64 x = location + arrival;
        return vec_rough_exp2(-(x * x));
    }
    return density(noise, location, arrival);
}

/* Return the factor by which a power of two replaces an exponential. */
PLR_INLINE double node_scale(int noise)
{
    return noise == PLR_GUMBEL ? 1.4426950408889634 : noise == PLR_NORMAL ? 0.84932180028801905 : 1.0;
}

PLR_INLINE double node_unit(int noise)
{
    return noise == PLR_GUMBEL ? -0.69314718055994531 : noise == PLR_NORMAL ? 0.3989422804014326779 : 1.0;
}

/* `below` is the sum, over the ranks below the current one, of their extra contribution to an item above them, compared
 * with an unplaced item: these ranks move up by one if the item is left out. */
PLR_INLINE void items_of(int noise, const noisy_ranking *ranking, const double *locations, const double *relevance,
                         const double *own_ranks, double *gradient, size_t n)
{
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 location = vec_load(locations + i), rho = vec_load(relevance + i), own = vec_load(own_ranks + i);
        vec_f64 total = vec_load(gradient + i), below = {0};
        for (size_t k = ranking->n_ranks; k-- > 0;) {
            vec_f64 share = density(noise, location, ranking->arrivals[k]) * (rho - ranking->relevance[k]);
            total += vec_keep(own == (double)k, below);
            total += ranking->drops[k] * share;
            below += ranking->drop_changes[k] * share;
        }
        vec_store(gradient + i, total);
    }
}

/* Evaluate two vectors of nodes at once, or three if there are three, as the exponentials are long chains of dependent
 * steps. Four would not fit the registers (the loop is slower by half). */
PLR_INLINE void nodes_of(int noise, const int group, const noisy_ranking *ranking, const double *locations,
                         const int32_t *rows, double *sums, double *corrections, size_t n)
{
    const size_t ranks = (ranking->n_ranks + 7) / 8 * 8;
    const double *factors = ranking->factors;
    for (size_t i = 0; i < n; i += group * PLR_LANES) {
        vec_f64 location[3], plain[3], weighted[3], below[3], below_weighted[3];
        for (int v = 0; v < group; v++) {
            location[v] = vec_load(locations + i + v * PLR_LANES) * (noise == PLR_GUMBEL ? -1.0 : 1.0) * node_scale(noise);
            plain[v] = weighted[v] = below[v] = below_weighted[v] = (vec_f64){0};
        }
        for (size_t k = ranking->n_ranks; k-- > 0;) {
            if (rows[k] >= 0) {
                const double rho = ranking->relevance[k];
                double *row = corrections + (size_t)rows[k] * n + i;
                for (int v = 0; v < group; v++)
                    vec_store(row + v * PLR_LANES,
                              (vec_load(row + v * PLR_LANES) - below_weighted[v]) + rho * below[v]);
            }
            const double arrival = factors[k], drop = factors[ranks + k], drop_rho = factors[2 * ranks + k];
            const double change = factors[3 * ranks + k], change_rho = factors[4 * ranks + k];
            for (int v = 0; v < group; v++) {
                const vec_f64 e = node_density(noise, location[v], arrival);
                plain[v] += drop * e;
                below[v] += change * e;
                weighted[v] += drop_rho * e;
                below_weighted[v] += change_rho * e;
            }
        }
        for (int v = 0; v < group; v++) {
            double *to = sums + i + v * PLR_LANES;
            vec_store(to, vec_load(to) + plain[v]);
            vec_store(to + n, vec_load(to + n) + weighted[v]);
        }
    }
}

/* Store the factors of each rank that the nodes need: loads broadcast a factor to a vector at no cost, while
 * broadcasting computed products occupies a port of the processor that the densities need. */
PLR_INLINE void make_factors(int noise, const noisy_ranking *ranking)
{
    const size_t ranks = (ranking->n_ranks + 7) / 8 * 8;
    double *factors = ranking->factors;
    for (size_t k = 0; k < ranking->n_ranks; k += PLR_LANES) {
        vec_f64 rho = vec_load(ranking->relevance + k), drop = node_unit(noise) * vec_load(ranking->drops + k);
        vec_f64 change = node_unit(noise) * vec_load(ranking->drop_changes + k);
        vec_f64 arrival = vec_load(ranking->arrivals + k);
        vec_store(factors + k, noise == PLR_NORMAL ? node_scale(noise) * arrival : arrival);
        vec_store(factors + ranks + k, drop);
        vec_store(factors + 2 * ranks + k, drop * rho);
        vec_store(factors + 3 * ranks + k, change);
        vec_store(factors + 4 * ranks + k, change * rho);
    }
}

PLR_INLINE void nodes_of_noise(int noise, const noisy_ranking *ranking, const double *locations, const int32_t *rows,
                               double *sums, double *corrections, size_t n)
{
    make_factors(noise, ranking);
    if (n % (2 * PLR_LANES) == 0)
        nodes_of(noise, 2, ranking, locations, rows, sums, corrections, n);
    else
        nodes_of(noise, 3, ranking, locations, rows, sums, corrections, n);
}

static void items(int noise, const noisy_ranking *ranking, const double *locations, const double *relevance,
                  const double *own_ranks, double *gradient, size_t n)
{
    if (noise == PLR_GUMBEL)
        items_of(PLR_GUMBEL, ranking, locations, relevance, own_ranks, gradient, n);
    else if (noise == PLR_GUMBEL_WIDE)
        items_of(PLR_GUMBEL_WIDE, ranking, locations, relevance, own_ranks, gradient, n);
    else
        items_of(PLR_NORMAL, ranking, locations, relevance, own_ranks, gradient, n);
}

static void nodes(int noise, const noisy_ranking *ranking, const double *locations, const int32_t *rows, double *sums,
                  double *corrections, size_t n)
{
    if (noise == PLR_GUMBEL)
        nodes_of_noise(PLR_GUMBEL, ranking, locations, rows, sums, corrections, n);
    else if (noise == PLR_GUMBEL_WIDE)
        nodes_of_noise(PLR_GUMBEL_WIDE, ranking, locations, rows, sums, corrections, n);
    else
        nodes_of_noise(PLR_NORMAL, ranking, locations, rows, sums, corrections, n);
}

/* Interpolate by the barycentric formula (Berrut and Trefethen, 2004): coefficients weight / (x - node), over their
 * sum. */
static double interpolate(double at, double relevance, const double *node_locations, const double *node_weights,
                          const double *sums, const double *correction, size_t n)
{
    vec_f64 numerator = {0}, denominator = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 distance = at - vec_load(node_locations + i);
        /* on a node its coefficient outweighs all others */
        distance = vec_select(vec_abs(distance) < 1e-200, vec_all(1e-200), distance);
        vec_f64 coefficient = vec_load(node_weights + i) / distance;
        vec_f64 value = relevance * vec_load(sums + i) - vec_load(sums + n + i) + vec_load(correction + i);
        numerator += coefficient * value;
        denominator += coefficient;
    }
    return vec_sum(numerator) / vec_sum(denominator);
}

/* Sort eight lists side by side by Batcher's odd-even merge sort (1968). The low bits of every key hold its position,
 * so that only keys move; the caller sorts again the keys that this rounding has tied. */
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
                        vec_store(low + part, vec_min_f64(a, b));
                        vec_store(high + part, vec_max_f64(a, b));
                    }
                }
}

const stochastic_rank_kernels ISA(stochastic_rank_kernels) = {
    arrivals, keep_before, early_words, early_arrivals, items, nodes, interpolate, sort_together};
