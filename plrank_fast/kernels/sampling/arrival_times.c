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

const arrival_times_kernels ISA(arrival_times_kernels) = {linear, logarithmic};
