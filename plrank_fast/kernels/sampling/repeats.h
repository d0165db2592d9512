/* Removal of repeats from rows of draws with replacement, for a group of sixteen rankings.
 *
 * The time depends on the number of rows, not on the number or the places of repeats. Each row is compared with all
 * rows before it, two rows at a time in halves of 32 bits. Then every draw moves up by the number of repeats before it,
 * one binary digit of that number per pass.
 */
#ifndef PLR_REPEATS_H
#define PLR_REPEATS_H

#include "sampling/groups.h"
#include "simd/vectors.h"

PLR_INLINE vec_u32 load_draws(const uint32_t *rows, size_t row)
{
    return (vec_u32)vec_load_i32((const int32_t *)rows + row * PLR_GROUP_SIZE);
}

PLR_INLINE void store_draws(uint32_t *rows, size_t row, vec_u32 v)
{
    vec_store_i32((int32_t *)rows + row * PLR_GROUP_SIZE, (vec_i32)v);
}

/* Clear the lanes of `unmatched` where a and b are equal; others keep a bit. This takes two instructions at every
 * level, while a comparison in AVX-512 returns a mask, which takes another instruction to become a vector. */
PLR_INLINE vec_u16 match(vec_u16 unmatched, vec_u16 a, vec_u16 b)
{
#if defined(PLR_ISA_AVX512)
    return (vec_u16)_mm512_min_epu16((__m512i)unmatched, (__m512i)(a ^ b));
#else
    return unmatched & ~(vec_u16)(a == b);
#endif
}

/* Compare the draws of rows [row, stop), an even number, with one another and with all before them. A new draw becomes
 * item | repeats before it << 16, a repeat becomes 0. `repeats` counts them for each ranking; `doubled` holds every
 * item twice in 32 bits. */
PLR_INLINE void tag_repeats(uint32_t *draws, uint32_t *doubled, size_t row, size_t stop, uint32_t *repeats)
{
    for (size_t lane = 0; lane < PLR_GROUP_SIZE; lane += PLR_LANES_32) {
        vec_u32 before = load_draws(repeats + lane, 0);
        for (size_t i = row; i < stop; i += 2) {
            vec_u32 first = load_draws(draws + lane, i), second = load_draws(draws + lane, i + 1);
            vec_u32 twice = first | first << 16, pair = first | second << 16;
            vec_u16 unmatched = (vec_u16)((pair ^ twice) | 0xffff);
            for (size_t j = 0; j < i; j++)
                unmatched = match(unmatched, (vec_u16)pair, (vec_u16)load_draws(doubled + lane, j));
            vec_u32 first_repeats = (vec_u32)(((vec_u32)unmatched & 0xffff) == 0);
            vec_u32 second_repeats = (vec_u32)(((vec_u32)unmatched >> 16) == 0);
            store_draws(doubled + lane, i, twice);
            store_draws(doubled + lane, i + 1, second | second << 16);
            store_draws(draws + lane, i, (first | before << 16) & ~first_repeats);
            before -= first_repeats;
            store_draws(draws + lane, i + 1, (second | before << 16) & ~second_repeats);
            before -= second_repeats;
        }
        store_draws(repeats + lane, 0, before);
    }
}

/* Move the draws of n tagged rows up over the repeats, at most `most` in a ranking; the first n_wanted items go to
 * `columns`.
 *
 * With the lowest digit first no two draws collide: of two neighbours the later one has further to go, by the gap
 * between them. The copy that a draw leaves behind follows it by less than the next digit, so it overtakes no draw. */
PLR_INLINE void close_gaps(uint32_t *draws, size_t n, uint32_t most, size_t n_wanted, int32_t *columns)
{
    for (size_t lane = 0; lane < PLR_GROUP_SIZE; lane += PLR_LANES_32) {
        for (int digit = 0; most >> digit; digit++) {
            const size_t distance = (size_t)1 << digit;
            for (size_t i = 0; i + distance < n; i++) {
                vec_u32 here = load_draws(draws + lane, i), next = load_draws(draws + lane, i + distance);
                vec_u32 moves = (vec_u32)((vec_i32)(next << (15 - digit)) >> 31);
                store_draws(draws + lane, i, (next & moves) | (here & ~moves));
            }
        }
        for (size_t i = 0; i < n_wanted; i++)
            store_draws((uint32_t *)columns + lane, i, load_draws(draws + lane, i) & 0xffff);
    }
}

#endif
