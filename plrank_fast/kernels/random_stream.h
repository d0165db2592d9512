/* Counter-keyed random streams: eight lanes of xoshiro256++ (Blackman and Vigna, 2019), seeded through SplitMix64 from
 * (key, query, block).
 *
 * A stream belongs to one block of samples of one query. Nothing else enters its seed, so the numbers do not depend on
 * threads, on the size of a batch, or on which samples were drawn before.
 */
#ifndef PLR_RANDOM_STREAM_H
#define PLR_RANDOM_STREAM_H

#include <stdint.h>

#define PLR_STREAM_LANES 8

typedef struct {
    uint64_t word[4][PLR_STREAM_LANES]; /* word i of each lane's state */
} plr_stream;

/* The output function of SplitMix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t plr_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t plr_splitmix64(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return plr_mix64(*state);
}

/* Two SplitMix64 chains absorb (key, query, block) in different orders; each state word mixes one output of both, so
 * that two streams coincide only when 128 bits do. */
static inline void plr_stream_init(plr_stream *stream, const uint64_t key[2], uint64_t query, uint64_t block)
{
    uint64_t first = key[0], second = key[1];
    first = plr_splitmix64(&first) ^ query;
    first = plr_splitmix64(&first) ^ block;
    second = plr_splitmix64(&second) ^ block;
    second = plr_splitmix64(&second) ^ query;
    for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < PLR_STREAM_LANES; lane++)
            stream->word[i][lane] = plr_mix64(plr_splitmix64(&first) + plr_splitmix64(&second));
}

/* One step of every lane. */
static inline void plr_stream_next(plr_stream *stream, uint64_t *restrict out)
{
    for (int lane = 0; lane < PLR_STREAM_LANES; lane++) {
        uint64_t a = stream->word[0][lane], b = stream->word[1][lane];
        uint64_t c = stream->word[2][lane], d = stream->word[3][lane];
        uint64_t sum = a + d;
        out[lane] = ((sum << 23) | (sum >> 41)) + a;
        uint64_t shifted = b << 17;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        c ^= shifted;
        d = (d << 45) | (d >> 19);
        stream->word[0][lane] = a;
        stream->word[1][lane] = b;
        stream->word[2][lane] = c;
        stream->word[3][lane] = d;
    }
}

#endif
