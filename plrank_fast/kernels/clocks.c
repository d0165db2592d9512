#include "clocks.h"
#include "vector_math.h"

/* E ~ Exp(1) for the PLR_STREAM_LANES words of one step, starting at word `lane`. */
PLR_INLINE vec_f64 exponential(const uint64_t *words, int lane)
{
    vec_u64 random;
    memcpy(&random, words + lane, sizeof random);
    return -vec_log(vec_uniform(random));
}

static void linear(plr_stream *stream, const double *inverse_weights, double *clocks, size_t n)
{
    plr_stream local = *stream;
    uint64_t words[PLR_STREAM_LANES];
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_stream_next(&local, words);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES)
            vec_store(clocks + i + lane, exponential(words, lane) * vec_load(inverse_weights + i + lane));
    }
    *stream = local;
}

static void logarithmic(plr_stream *stream, const double *scores, double *clocks, size_t n)
{
    plr_stream local = *stream;
    uint64_t words[PLR_STREAM_LANES];
    for (size_t i = 0; i < n; i += PLR_STREAM_LANES) {
        plr_stream_next(&local, words);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane += PLR_LANES)
            vec_store(clocks + i + lane, vec_log(exponential(words, lane)) - vec_load(scores + i + lane));
    }
    *stream = local;
}

static void logarithm(const double *x, double *out, size_t n)
{
    for (size_t i = 0; i < n; i += PLR_LANES)
        vec_store(out + i, vec_log(vec_load(x + i)));
}

const clocks_kernels ISA(clocks_kernels) = {linear, logarithmic, logarithm};
