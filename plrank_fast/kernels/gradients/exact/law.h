/* A law of arrival: all that the evaluators and the bound of the integrands know of the noise.
 *
 * An item is described by its weight w, if it arrives at a rate, or by its score. With p the probability of its arrival
 * by time t and q = 1 - p, a law has its odds p / q, the hazard (density of arrival over q), the derivatives of the
 * density by the score over the density, their magnitudes at complex times, and a map of nodes. A further law is a file
 * beside these two, its name here, and its plan.
 */
#ifndef PLR_LAW_H
#define PLR_LAW_H

#include "gradients/exact/exponential_law.h"
#include "gradients/exact/normal_law.h"

/* Execute a statement for a law that the compiler knows, by the name of LAW. */
#define FOR_LAW(law, ...)                  \
    switch (law) {                         \
    case PLR_NORMAL: {                     \
        enum { LAW = PLR_NORMAL };         \
        __VA_ARGS__;                       \
        break;                             \
    }                                      \
    default: {                             \
        enum { LAW = PLR_EXPONENTIAL };    \
        __VA_ARGS__;                       \
    }                                      \
    }

/* Return whether items arrive at a rate, their weight, which is then the hazard at all times. */
PLR_INLINE int arrives_at_rate(int law)
{
    return law == PLR_EXPONENTIAL;
}

/* Return the odds and the hazard of an item of this score. */
PLR_INLINE odds_and_hazard odds_at(int law, double score, lanes t)
{
    (void)law;
    return normal_odds(score, t);
}

PLR_INLINE item_slopes slopes_at(int law, double w_or_score, lanes t)
{
    return law == PLR_NORMAL ? normal_slopes(w_or_score, t) : exponential_slopes(w_or_score, t);
}

/* Return the magnitudes of an item of weight w and score f. */
PLR_INLINE item_magnitudes magnitudes_at(int law, double w, double f, complex_lanes t)
{
    return law == PLR_NORMAL ? normal_item((complex_lanes){f + t.real, t.imaginary}) : exponential_item(w, t);
}

/* Return whether an item of score f has certainly arrived, or certainly not. */
PLR_INLINE int certain_at(int law, double f, complex_lanes t)
{
    return law == PLR_NORMAL && normal_certain((complex_lanes){f + t.real, t.imaginary});
}

/* Return the magnitude of the speed in item_slopes. */
PLR_INLINE lanes moving_at(int law, complex_lanes t)
{
    return arrives_at_rate(law) ? vec_rough_sqrt(square_of(t)) : vec_all(1);
}

#endif
