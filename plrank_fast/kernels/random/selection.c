#include "random/selection.h"

#include <math.h>

#include "simd/vectors.h"

/* Copy the pairs (keys[i], i) with keys[i] < pivot, or (-keys[i], i) with keys[i] >= pivot. */
PLR_INLINE size_t keep(const double *keys, size_t n, double pivot, int highest, double *kept_keys, int32_t *kept_items)
{
    size_t i = 0, kept = 0;
#if defined(PLR_ISA_AVX512)
    /* packing has no generic vector form: 120 keys take 20 ns here, 70 ns in the loop below */
    __m256i items = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (; i + 8 <= n; i += 8) {
        __m512d key = _mm512_loadu_pd(keys + i);
        __mmask8 held = highest ? _mm512_cmp_pd_mask(key, _mm512_set1_pd(pivot), _CMP_GE_OQ)
                                : _mm512_cmp_pd_mask(key, _mm512_set1_pd(pivot), _CMP_LT_OQ);
        _mm512_storeu_pd(kept_keys + kept, _mm512_maskz_compress_pd(held, highest ? -key : key));
        _mm256_storeu_si256((__m256i *)(kept_items + kept), _mm256_maskz_compress_epi32(held, items));
        items = _mm256_add_epi32(items, _mm256_set1_epi32(8));
        kept += (size_t)__builtin_popcount(held);
    }
#endif
    for (; i < n; i++) {
        kept_keys[kept] = highest ? -keys[i] : keys[i];
        kept_items[kept] = (int32_t)i;
        kept += highest ? keys[i] >= pivot : keys[i] < pivot;
    }
    return kept;
}

static size_t keep_below(const double *keys, size_t n, double pivot, double *kept_keys, int32_t *kept_items)
{
    return keep(keys, n, pivot, 0, kept_keys, kept_items);
}

static size_t keep_from(const double *values, size_t n, double pivot, double *kept_keys, int32_t *kept_items)
{
    return keep(values, n, pivot, 1, kept_keys, kept_items);
}

#define BLOCKS 4 /* registers of keys handled together, as each count waits for its previous addition */

/* Add 1 to each lane of n where a < b, or a <= b. */
PLR_INLINE vec_i64 count_if(vec_i64 n, vec_f64 a, vec_f64 b, int or_equal)
{
#if defined(PLR_ISA_AVX512)
    /* This uses the comparison's mask directly: generic vectors take one more instruction. */
    __mmask8 before = or_equal ? _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ)
                               : _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ);
    return (vec_i64)_mm512_mask_sub_epi64((__m512i)n, before, (__m512i)n, _mm512_set1_epi64(-1));
#else
    return n - (or_equal ? (vec_i64)(a <= b) : (vec_i64)(a < b));
#endif
}

/* The place of a pair is the number of keys before its own. Counting takes n^2 comparisons, a register's width at a
 * time. 20 pairs take 0.05 us; from about 64 pairs on, partitions are faster. */
static void sort_short(double *keys, int32_t *items, size_t n)
{
    const size_t block = BLOCKS * PLR_LANES;
    double unsorted[PLR_SHORT_LIST + BLOCKS * PLR_LANES];
    int32_t unsorted_items[PLR_SHORT_LIST];
    memcpy(unsorted, keys, n * sizeof *keys);
    memcpy(unsorted_items, items, n * sizeof *items);
    for (size_t i = n; i < (n + block - 1) / block * block; i++)
        unsorted[i] = INFINITY;
    for (size_t i = 0; i < n; i += block) {
        vec_f64 key[BLOCKS];
        vec_i64 place[BLOCKS], number;
        const size_t stop = n - i < block ? n : i + block;
        PLR_UNROLL
        for (int b = 0; b < BLOCKS; b++) {
            key[b] = vec_load(unsorted + i + b * PLR_LANES);
            place[b] = (vec_i64){0};
        }
        for (int lane = 0; lane < PLR_LANES; lane++)
            number[lane] = lane;
        for (size_t j = 0; j < i; j++)
            PLR_UNROLL
            for (int b = 0; b < BLOCKS; b++)
                place[b] = count_if(place[b], vec_all(unsorted[j]), key[b], 1);
        /* within the block a key precedes equal keys of later registers, and of later lanes of its own */
        PLR_UNROLL
        for (int own = 0; own < BLOCKS; own++)
            for (size_t lane = 0; lane < PLR_LANES && i + own * PLR_LANES + lane < stop; lane++) {
                const vec_f64 other = vec_all(unsorted[i + own * PLR_LANES + lane]);
                PLR_UNROLL
                for (int b = 0; b < BLOCKS; b++)
                    place[b] = count_if(place[b], other, key[b], b > own);
                place[own] -= (vec_i64)(other == key[own]) & (vec_i64)(number > (int64_t)lane);
            }
        for (size_t j = stop; j < n; j++)
            PLR_UNROLL
            for (int b = 0; b < BLOCKS; b++)
                place[b] = count_if(place[b], vec_all(unsorted[j]), key[b], 0);
        int64_t places[BLOCKS * PLR_LANES];
        memcpy(places, place, sizeof places);
        for (size_t j = i; j < stop; j++) {
            keys[places[j - i]] = unsorted[j];
            items[places[j - i]] = unsorted_items[j];
        }
    }
}

const selection_kernels ISA(selection_kernels) = {keep_below, keep_from, sort_short};
