#include "gradients/stochastic_rank.h"
#include "simd/vector_math.h"

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

/* Return the density at a node over node_unit, exactly or approximately (more accurate than the interpolation between
 * nodes). The location, and for PLR_NORMAL the arrival, are multiplied by node_scale. */
PLR_INLINE vec_f64 node_density(int noise, int exactly, vec_f64 location, double arrival)
{
    if (exactly)
        return density(noise, location, arrival);
    if (noise == PLR_GUMBEL) {
        vec_f64 y = location * arrival;
        return y * vec_rough_exp2(y);
    }
    vec_f64 x = location + arrival;
    return vec_rough_exp2(-(x * x));
}

/* Return the factor by which a power of two replaces an exponential. */
PLR_INLINE double node_scale(int noise, int exactly)
{
    return exactly ? 1.0 : noise == PLR_GUMBEL ? -1.4426950408889634 : 0.84932180028801905;
}

PLR_INLINE double node_unit(int noise, int exactly)
{
    return exactly ? 1.0 : noise == PLR_GUMBEL ? -0.69314718055994531 : 0.3989422804014326779;
}

/* Evaluate some vectors of nodes at once, as the exponentials are long chains of dependent steps. `below` and
 * `below_weighted` are the sums, over the ranks below the current one, of their extra contribution to an item above
 * them, compared with an unplaced item: these ranks move up by one if the item is left out. */
PLR_INLINE void nodes_of(int noise, int exactly, const int group, const noisy_ranking *ranking, const double *locations,
                         const int32_t *rows, double *sums, double *corrections, size_t n)
{
    const size_t ranks = (ranking->n_ranks + 7) / 8 * 8;
    const double *factors = ranking->factors;
    for (size_t i = 0; i < n; i += group * PLR_LANES) {
        vec_f64 location[3], plain[3], weighted[3], below[3], below_weighted[3];
        for (int v = 0; v < group; v++) {
            location[v] = vec_load(locations + i + v * PLR_LANES) * node_scale(noise, exactly);
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
                const vec_f64 e = node_density(noise, exactly, location[v], arrival);
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
PLR_INLINE void make_factors(int noise, int exactly, const noisy_ranking *ranking)
{
    const size_t ranks = (ranking->n_ranks + 7) / 8 * 8;
    double *factors = ranking->factors;
    for (size_t k = 0; k < ranking->n_ranks; k += PLR_LANES) {
        vec_f64 rho = vec_load(ranking->relevance + k), drop = node_unit(noise, exactly) * vec_load(ranking->drops + k);
        vec_f64 change = node_unit(noise, exactly) * vec_load(ranking->drop_changes + k);
        vec_f64 arrival = vec_load(ranking->arrivals + k);
        vec_store(factors + k, noise == PLR_NORMAL ? node_scale(noise, exactly) * arrival : arrival);
        vec_store(factors + ranks + k, drop);
        vec_store(factors + 2 * ranks + k, drop * rho);
        vec_store(factors + 3 * ranks + k, change);
        vec_store(factors + 4 * ranks + k, change * rho);
    }
}

PLR_INLINE void nodes_of_noise(int noise, int exactly, const noisy_ranking *ranking, const double *locations,
                               const int32_t *rows, double *sums, double *corrections, size_t n)
{
    make_factors(noise, exactly, ranking);
    if (exactly)
        nodes_of(noise, 1, 1, ranking, locations, rows, sums, corrections, n);
    else if (n % (2 * PLR_LANES) == 0)
        nodes_of(noise, 0, 2, ranking, locations, rows, sums, corrections, n);
    else /* four would not fit the registers: the loop is slower by half */
        nodes_of(noise, 0, 3, ranking, locations, rows, sums, corrections, n);
}

static void nodes(int noise, int exactly, const noisy_ranking *ranking, const double *locations, const int32_t *rows,
                  double *sums, double *corrections, size_t n)
{
    if (noise == PLR_GUMBEL_WIDE)
        nodes_of_noise(PLR_GUMBEL_WIDE, 1, ranking, locations, rows, sums, corrections, n);
    else if (noise == PLR_GUMBEL && exactly)
        nodes_of_noise(PLR_GUMBEL, 1, ranking, locations, rows, sums, corrections, n);
    else if (noise == PLR_GUMBEL)
        nodes_of_noise(PLR_GUMBEL, 0, ranking, locations, rows, sums, corrections, n);
    else if (exactly)
        nodes_of_noise(PLR_NORMAL, 1, ranking, locations, rows, sums, corrections, n);
    else
        nodes_of_noise(PLR_NORMAL, 0, ranking, locations, rows, sums, corrections, n);
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

const stochastic_rank_kernels ISA(stochastic_rank_kernels) = {nodes, interpolate};
