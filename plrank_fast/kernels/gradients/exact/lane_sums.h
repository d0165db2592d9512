/* Sums over the lanes of vectors, for as many vectors as each has lanes. */
#ifndef PLR_LANE_SUMS_H
#define PLR_LANE_SUMS_H

#include "simd/vectors.h"

/* Lane i of the result is the sum over the lanes of v[i]. A step of stride s combines two vectors to one whose lane i
 * is the sum of lanes i and i ^ s of the first vector or, where i has the bit s, of the second. This takes two shuffles
 * and an addition for each pair, where summing vectors one by one takes six for each. */
#define OWN_LANE(i, s) ((i) + ((i) & (s) ? PLR_LANES : 0))
#define OTHER_LANE(i, s) (((i) ^ (s)) + ((i) & (s) ? PLR_LANES : 0))
#if PLR_LANES == 8
#define ALL_LANES(order, s) PLR_FOUR_LANES(order, s, 0), PLR_FOUR_LANES(order, s, 4)
#elif PLR_LANES == 4
#define ALL_LANES(order, s) PLR_FOUR_LANES(order, s, 0)
#else
#define ALL_LANES(order, s) order(0, s), order(1, s)
#endif
#define ADD_PAIRS(sum, s)                                                                    \
    for (int i = 0; i < PLR_LANES; i += 2 * (s))                                             \
        sum[i] = __builtin_shufflevector(sum[i], sum[i + (s)], ALL_LANES(OWN_LANE, s)) +     \
                 __builtin_shufflevector(sum[i], sum[i + (s)], ALL_LANES(OTHER_LANE, s));

PLR_INLINE lanes lane_sums(const lanes *v)
{
    lanes sum[PLR_LANES];
    memcpy(sum, v, sizeof sum);
    ADD_PAIRS(sum, 1)
#if PLR_LANES >= 4
    ADD_PAIRS(sum, 2)
#endif
#if PLR_LANES >= 8
    ADD_PAIRS(sum, 4)
#endif
    return sum[0];
}

#endif
