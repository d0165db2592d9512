/* Arrival times of a group of sixteen samples as sortable integers, and the repair that makes their order exact.
 *
 * Slot s of sample j holds a candidate item: a random word, the item's mean (1 / weight) and a key at
 * keys[s * PLR_GROUP_SIZE + j]. A key is the float32 arrival time E * mean with its exponent range clamped and its low
 * bits replaced by the slot, so that a network of integer minima and maxima sorts time and slot together. Times that
 * differ by less than the error of their keys are compared again in double precision, from 64 random bits: the word and
 * 32 more that only such comparisons draw.
 */
#ifndef PLR_ARRIVAL_KEYS_H
#define PLR_ARRIVAL_KEYS_H

#include <math.h>

#include "random/random_stream.h"
#include "sampling/sorting_network.h"

/* Below this distance from 0 or 2^32 a word has too few bits for a key: such arrival times use 64 bits at once. Above
 * it, on at most 2^-11 of the range, two keys may still be less accurate than their bits: the expected number of
 * misplaced pairs per ranking stays below D^2 2^-46, one in 4e9 rankings of 128 items. */
#define PLR_RARE_WORD (1 << 16)
#define PLR_LEAST_KEY (1 << 24) /* less than any key whose word is not rare, and a normal number as a float */

typedef struct {
    float scale;       /* scales arrival times so that the float bits shifted out are the same for all */
    int shift;
    int32_t slot_mask; /* low bits that hold the slot */
    int slot_bits;
    uint32_t nearest;  /* largest distance of two keys, slots aside, at which their order may be wrong */
} key_format;

/* Return the format of keys for n_slots candidates (at most 1024) whose means lie between 1 and largest_mean (at most
 * 2^104).
 *
 * An arrival time lies below 45.1 times the largest mean (E from 64 bits), and above 2^-16 unless its word is rare. If
 * that is at most 63 octaves, scaling puts them between 4 and 0.71 * 2^65: the sign and the highest bit of the exponent
 * are then 0 and 1 for all and are shifted out. Otherwise scaling puts them below 1.42, and only the sign is shifted
 * out. In both cases the key is a finite, normal float, since neither all nor none of the upper 8 bits are set. float32
 * times have relative error 4e-7: 2 units of a mantissa of 20 bits, 1 of a shorter one. */
PLR_INLINE key_format make_key_format(size_t n_slots, float largest_mean)
{
    key_format format;
    uint32_t bits;
    memcpy(&bits, &largest_mean, sizeof bits);
    int octaves = 6 + (int)((bits + 0x007fffff) >> 23) - 127; /* 64 times the next power of two */
    format.shift = octaves <= 6 + 41 ? 2 : 1;
    bits = (uint32_t)(127 + (format.shift == 2 ? 65 : 1) - (octaves < 126 ? octaves : 126)) << 23;
    memcpy(&format.scale, &bits, sizeof bits);
    format.slot_bits = 5;
    while ((size_t)1 << format.slot_bits < n_slots)
        format.slot_bits++;
    format.slot_mask = (1 << format.slot_bits) - 1;
    format.nearest = 23 + format.shift - format.slot_bits >= 20 ? 2 : 1;
    return format;
}

/* Split words: u = (word + 1/2) / 2^32 = 2^-h (1 - y) with y in [0, 1/2], unless the word is rare. Returns y; *halved =
 * h log 2, and *distance is how far the word is from 0 or 2^32. y keeps its relative precision where it is small and
 * h = 0, for early arrivals. */
#if defined(PLR_ISA_AVX512)
PLR_INLINE vec_f32 split_word(vec_i32 word, vec_f32 *halved, vec_i32 *distance)
{
    /* h log 2 for words that are not rare, less the 1/2 that multiplying a word by 2^h loses: 2^(h - 33) / 0.72 */
#define PLR_HALVED(h) (float)((h) * 0.693147180559945 - ((double)(1 << (h)) - 1.0) * 0x1p-33 / 0.72)
    const vec_f32 table = {PLR_HALVED(0), PLR_HALVED(1), PLR_HALVED(2),  PLR_HALVED(3),  PLR_HALVED(4),  PLR_HALVED(5),
                           PLR_HALVED(6), PLR_HALVED(7), PLR_HALVED(8),  PLR_HALVED(9),  PLR_HALVED(10), PLR_HALVED(11),
                           PLR_HALVED(12), PLR_HALVED(13), PLR_HALVED(14), PLR_HALVED(15)};
    __m512i zeros = _mm512_lzcnt_epi32((__m512i)word);
    __m512 below = _mm512_cvtepi32_ps(_mm512_sllv_epi32((__m512i)word, zeros)); /* signed: 2^32 less where negative */
    *halved = (vec_f32)_mm512_permutexvar_ps(zeros, (__m512)table);
    *distance = (vec_i32)_mm512_abs_epi32((__m512i)word);
    return (vec_f32)below * -0x1p-32f - 0x1p-33f;
}
#else
PLR_INLINE vec_f32 split_word(vec_i32 word, vec_f32 *halved, vec_i32 *distance)
{
    /* the exponent of a float has h, its mantissa 1 - y; for u >= 1/2 neither would be precise enough */
    vec_i32 upper = word >> 31;
    *distance = word ^ upper;
    vec_f32 f = __builtin_convertvector(*distance, vec_f32);
    vec_f32 y_upper = f * 0x1p-32f + 0x1p-33f;
    vec_f32 y_lower = 1.0f - (vec_f32)(((vec_i32)f & 0x007fffff) | 0x3f000000);
    *halved = __builtin_convertvector((158 - ((vec_i32)f >> 23)) & ~upper, vec_f32) * 0.693147180559945f;
    return (vec_f32)(((vec_i32)y_upper & upper) | ((vec_i32)y_lower & ~upper));
}
#endif

/* Return E = -log u in float32 with relative error 3e-7; *rarest keeps the least distance of a word from 0 or 2^32.
 *
 * E = h log 2 - log1p(-y), and -log1p(-y) = y P(y) with P the degree-7 Chebyshev interpolant (error 1.7e-7). */
PLR_INLINE vec_f32 exponential_f32(vec_i32 word, vec_i32 *rarest)
{
    vec_i32 distance;
    vec_f32 halved, y = split_word(word, &halved, &distance);
    vec_f32 p = 1.1586140394210815f * y - 1.0360389947891235f;
    p = p * y + 0.7545884251594543f;
    p = p * y + 0.04835805669426918f;
    p = p * y + 0.2704770267009735f;
    p = p * y + 0.3320068418979645f;
    p = p * y + 0.5000321865081787f;
    p = p * y + 0.9999998807907104f;
    *rarest = vec_min_i32(*rarest, distance);
    return halved + y * p;
}

/* Return the key of a scaled arrival time; `shift` belongs to the format, as a constant for the compiler. */
PLR_INLINE vec_i32 arrival_key(vec_f32 arrival, int shift, int32_t slot_mask, vec_i32 slot)
{
    return ((vec_i32)((vec_u32)arrival << shift) & ~slot_mask) | slot;
}

PLR_INLINE int is_rare_word(uint32_t word)
{
    return word + PLR_RARE_WORD < 2 * PLR_RARE_WORD;
}

/* Return the key of an arrival time in double precision; PLR_LEAST_KEY for times below the range of keys. */
static inline int32_t exact_key(key_format format, double arrival, int32_t slot)
{
    float scaled = (float)(arrival * format.scale);
    uint32_t bits;
    memcpy(&bits, &scaled, sizeof bits);
    bits = scaled < (format.shift == 2 ? 2.5f : 0x1p-125f) ? PLR_LEAST_KEY : bits << format.shift;
    return (int32_t)(bits & ~(uint32_t)format.slot_mask) | slot;
}

/* Return E = -log u from 64 random bits in double precision. */
static inline double exact_exponential(uint32_t word, uint64_t salt, uint64_t sample, uint64_t item)
{
    uint64_t fresh = plr_mix64(salt + (sample << 32 | item) * PLR_GOLDEN_RATIO);
    uint64_t bits = (uint64_t)word << 32 | fresh >> 32;
    if (bits >> 63)
        return -log1p(-((double)~bits + 0.5) * 0x1p-64);
    return -log(((double)bits + 0.5) * 0x1p-64);
}

#endif
