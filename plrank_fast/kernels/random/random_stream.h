/* Counter-keyed random streams: eight lanes of xoshiro256++ (Blackman and Vigna, 2019), seeded through SplitMix64 from
 * (key, query, block).
 *
 * A stream belongs to one block of samples of one query. Nothing else enters its seed, so the numbers do not depend on
 * threads, on the size of a batch, or on which samples were drawn before.
 */
#ifndef PLR_RANDOM_STREAM_H
#define PLR_RANDOM_STREAM_H

#include "simd/vectors.h"

#define PLR_STREAM_LANES 8

typedef struct {
    uint64_t word[4][PLR_STREAM_LANES]; /* word i of each lane's state */
} plr_stream;

/* 2^64 over the golden ratio: multiples of it are spread evenly over 64 bits. */
#define PLR_GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15)

/* The output function of SplitMix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t plr_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t plr_splitmix64(uint64_t *state)
{
    *state += PLR_GOLDEN_RATIO;
    return plr_mix64(*state);
}

typedef struct {
    /* Seed all lanes. */
    void (*start)(plr_stream *stream, const uint64_t key[2], uint64_t query, uint64_t block);
} random_stream_kernels;

PLR_DECLARE_KERNELS(random_stream_kernels)

/* One word of every lane, in registers of this SIMD level. (GCC keeps wider vectors in memory: drawing and sorting 120
 * keys at AVX2 then takes 330 ns, not 255.) A loop that draws keeps the state in registers from load
 * to store. */
#define PLR_STREAM_PARTS (PLR_STREAM_LANES / PLR_LANES)

typedef struct {
    vec_u64 part[PLR_STREAM_PARTS];
} plr_lanes;

typedef struct {
    plr_lanes a, b, c, d;
} plr_stream_state;

PLR_INLINE plr_stream_state plr_stream_load(const plr_stream *stream)
{
    plr_stream_state state;
    memcpy(&state, stream, sizeof state);
    return state;
}

PLR_INLINE void plr_stream_store(plr_stream *stream, const plr_stream_state *state)
{
    memcpy(stream, state, sizeof *state);
}

/* Advance every lane by one step and return the words. */
PLR_INLINE plr_lanes plr_stream_step(plr_stream_state *state)
{
    plr_lanes result;
    PLR_UNROLL
    for (int i = 0; i < PLR_STREAM_PARTS; i++) {
        vec_u64 a = state->a.part[i], b = state->b.part[i], c = state->c.part[i], d = state->d.part[i];
        vec_u64 sum = a + d;
        result.part[i] = ((sum << 23) | (sum >> 41)) + a;
        c ^= a;
        d ^= b;
        state->a.part[i] = a ^ d;
        state->c.part[i] = c ^ (b << 17);
        state->b.part[i] = b ^ c;
        state->d.part[i] = (d << 45) | (d >> 19);
    }
    return result;
}

/* Return one step as twice as many numbers of 32 bits: the lower half of each word comes first in memory, whatever the
 * byte order of the machine. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define plr_stream_step_32 plr_stream_step
#else
PLR_INLINE plr_lanes plr_stream_step_32(plr_stream_state *state)
{
    plr_lanes words = plr_stream_step(state);
    for (int i = 0; i < PLR_STREAM_PARTS; i++)
        words.part[i] = (words.part[i] << 32) | (words.part[i] >> 32);
    return words;
}
#endif

/* Return a register of the words of one step, from stream lane `lane` on. */
PLR_INLINE vec_u64 plr_words_at(const plr_lanes *words, int lane)
{
    return vec_load_u64((const uint64_t *)words + lane);
}

static inline void plr_stream_next(plr_stream *stream, uint64_t *out)
{
    plr_stream_state state = plr_stream_load(stream);
    plr_lanes words = plr_stream_step(&state);
    memcpy(out, &words, sizeof words);
    plr_stream_store(stream, &state);
}

#endif
