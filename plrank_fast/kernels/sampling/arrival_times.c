#include "sampling/arrival_times.h"
#include "simd/vector_math.h"

/* Return E ~ Exp(1) from the random words that start at `lane` of one step. */
PLR_INLINE vec_f64 exponential(plr_lanes words, int lane)
{
    return -vec_log(vec_uniform(plr_words_at(&words, lane)));
}

static void linear(plr_stream *stream, const double *inverse_weights, double *arrivals, size_t n)
{
    plr_stream_state state = plr_stream_load(stream);
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_lanes words = plr_stream_step(&state);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES)
            vec_store(arrivals + i + lane, exponential(words, lane) * vec_load(inverse_weights + i + lane));
    }
    plr_stream_store(stream, &state);
}

static void logarithmic(plr_stream *stream, const double *scores, double *arrivals, size_t n)
{
    plr_stream_state state = plr_stream_load(stream);
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_lanes words = plr_stream_step(&state);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES)
            vec_store(arrivals + i + lane, vec_log(exponential(words, lane)) - vec_load(scores + i + lane));
    }
    plr_stream_store(stream, &state);
}

/* Return two independent standard normal numbers per pair of words (Box and Muller, 1958). */
PLR_INLINE vec_f64 normal_pair(vec_u64 first, vec_u64 second, vec_f64 *other)
{
    vec_f64 radius = vec_sqrt(-2.0 * vec_log(vec_uniform(first))), cosine;
    vec_f64 sine = vec_sin_cos(vec_uniform(second), &cosine);
    *other = radius * sine;
    return radius * cosine;
}

static void normal(plr_stream *stream, const double *scores, double *arrivals, size_t n)
{
    plr_stream_state state = plr_stream_load(stream);
    for (size_t i = 0; i < n; i += 2 * PLR_STREAM_LANES) {
        /* separate steps for radius and angle are simpler than sharing one, and as fast */
        plr_lanes words = plr_stream_step(&state), angles = plr_stream_step(&state);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES) {
            const size_t at = i + lane, next = at + PLR_STREAM_LANES;
            vec_f64 other, one = normal_pair(plr_words_at(&words, lane), plr_words_at(&angles, lane), &other);
            vec_store(arrivals + at, -(vec_load(scores + at) + one));
            if (i + PLR_STREAM_LANES < n)
                vec_store(arrivals + next, -(vec_load(scores + next) + other));
        }
    }
    plr_stream_store(stream, &state);
}

const arrival_times_kernels ISA(arrival_times_kernels) = {linear, logarithmic, normal};
