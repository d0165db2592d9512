/* Clocks of sixteen samples in lockstep as sortable integers, and the repair that makes their order exact.
 *
 * Slot s of sample j holds a candidate item: a random word, the item's mean (1 / weight) and, in the lockstep layout,
 * a key at keys[s * PLR_LOCKSTEP + j]. A key is the float32 clock E * mean with its exponent range clamped and its low
 * bits replaced by the slot, so that a network of integer minima and maxima sorts clock and slot together. Two clocks
 * that come closer than the error of their keys are compared again in double precision, from 64 random bits: the
 * word and 32 more that only a comparison like this ever asks for.
 */
#ifndef PLR_CLOCK_KEYS_H
#define PLR_CLOCK_KEYS_H

#include <math.h>

#include "random_stream.h"
#include "sorting_network.h"

/* Below this distance from 0 or 2^32 a word has too few bits for a key: such clocks come from 64 bits at once. Above
 * it, on at most 2^-11 of the range, two keys may still agree less well than their bits: misplaced pairs per ranking
 * stay below D^2 2^-46, one in 4e9 rankings of 128 items. */
#define PLR_RARE_WORD (1 << 16)

typedef struct {
    float scale;       /* takes clocks to where the float bits that are shifted out are the same for all */
    int shift;
    int32_t slot_mask; /* low bits that hold the slot */
    int slot_bits;
    uint32_t nearest;  /* distance of two keys, slots aside, up to which their order may be wrong */
} key_format;

/* Keys for n_slots candidates (at most 1024) whose means lie between 1 and largest_mean (at most 2^104).
 *
 * A clock lies below 64 times the largest mean (E < 45 from 64 bits), and above 2^-16 unless its word is rare. If that
 * is 64 octaves, scaling puts them between 2 and 2^65: the sign and the highest bit of the exponent are then 0 and 1
 * for all and are shifted out. If it is more, they are put below 2, and the sign alone is shifted out. float32 clocks
 * err by 4e-7 relative: 2 units of 20 bits of mantissa, 1 of fewer. */
PLR_INLINE key_format make_key_format(size_t n_slots, float largest_mean)
{
    key_format format;
    int octaves = 6;
    while (octaves < 126 && ldexpf(1.0f, octaves - 6) < largest_mean)
        octaves++;
    format.shift = octaves <= 6 + 42 ? 2 : 1;
    format.scale = ldexpf(1.0f, (format.shift == 2 ? 65 : 1) - octaves);
    format.slot_bits = 5;
    while ((size_t)1 << format.slot_bits < n_slots)
        format.slot_bits++;
    format.slot_mask = (1 << format.slot_bits) - 1;
    format.nearest = 23 + format.shift - format.slot_bits >= 20 ? 2 : 1;
    return format;
}

/* E = -log u, u = (word + 1/2) / 2^32, in float32 with relative error 3e-7; `rarest` keeps the least distance of a
 * word from 0 or 2^32.
 *
 * For u >= 1/2, E = -log1p(-y) with y = 1 - u; below, u = 2^-h (1 - y), E = h log 2 - log1p(-y). In both y is in
 * [0, 1/2], and -log1p(-y) = y P(y) with P the degree-7 Chebyshev interpolant (error 1.7e-7). */
PLR_INLINE vec_f32 exponential_clock(vec_i32 word, vec_i32 *rarest)
{
    vec_i32 upper = word >> 31;
    vec_i32 distance = word ^ upper;
    vec_f32 f = __builtin_convertvector(distance, vec_f32);
    vec_f32 y_upper = f * 0x1p-32f + 0x1p-33f;
    vec_f32 y_lower = 1.0f - (vec_f32)(((vec_i32)f & 0x007fffff) | 0x3f000000);
    vec_f32 y = (vec_f32)(((vec_i32)y_upper & upper) | ((vec_i32)y_lower & ~upper));
    vec_f32 halvings = __builtin_convertvector((158 - ((vec_i32)f >> 23)) & ~upper, vec_f32);
    vec_f32 p = 1.1586140394210815f * y - 1.0360389947891235f;
    p = p * y + 0.7545884251594543f;
    p = p * y + 0.04835805669426918f;
    p = p * y + 0.2704770267009735f;
    p = p * y + 0.3320068418979645f;
    p = p * y + 0.5000321865081787f;
    p = p * y + 0.9999998807907104f;
    *rarest = vec_min(*rarest, distance);
    return halvings * 0.693147180559945f + y * p;
}

/* `clock` is scaled; `shift` is the format's, known to the compiler. */
PLR_INLINE vec_i32 clock_key(vec_f32 clock, int shift, int32_t slot_mask, vec_i32 slot)
{
    return ((vec_i32)((vec_u32)clock << shift) & ~slot_mask) | slot;
}

PLR_INLINE int is_rare_word(uint32_t word)
{
    return word + PLR_RARE_WORD < 2 * PLR_RARE_WORD;
}

/* The key of a clock in double precision; 0 for one below those that have a key. */
static inline int32_t exact_key(key_format format, double clock, int32_t slot)
{
    float scaled = (float)(clock * format.scale);
    uint32_t bits;
    memcpy(&bits, &scaled, sizeof bits);
    if (scaled < (format.shift == 2 ? 2.0f : 0x1p-126f))
        bits = 0;
    return (int32_t)((bits << format.shift) & ~(uint32_t)format.slot_mask) | slot;
}

/* The same clock from 64 random bits in double precision. */
static inline double exact_exponential(uint32_t word, uint64_t salt, uint64_t sample, uint64_t item)
{
    uint64_t fresh = plr_mix64(salt + (sample << 32 | item) * UINT64_C(0x9e3779b97f4a7c15));
    uint64_t bits = (uint64_t)word << 32 | fresh >> 32;
    if (bits >> 63)
        return -log1p(-((double)~bits + 0.5) * 0x1p-64);
    return -log(((double)bits + 0.5) * 0x1p-64);
}

#endif
