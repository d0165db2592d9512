/* The laws of arrival: all that the other files know of the noise.
 *
 * An item is described by its weight w, if it arrives at a rate, or by its score. With p the probability of its arrival
 * by time t and q = 1 - p, a law has its odds p / q, the hazard (density of arrival over q), the derivatives of the
 * density by the score over the density, their magnitudes at complex times, and what law_terms.h lists. A further law
 * is a file beside these two, and its name in LAWS.
 */
#ifndef PLR_LAW_H
#define PLR_LAW_H

#include "gradients/exact/exponential_law.h"
#include "gradients/exact/normal_law.h"

#define LAWS(of, ...) of(exponential, __VA_ARGS__) of(normal, __VA_ARGS__)

#define NUMBER_OF_LAW(name, unused) name##_arrivals,
enum { LAWS(NUMBER_OF_LAW, ) ALL_LAWS };

#define ADDRESS_OF_LAW(name, unused) &name##_law,
static const arrival_law *const laws[] = {LAWS(ADDRESS_OF_LAW, )};

/* Execute a statement for a law that the compiler knows, by the name of LAW. */
#define IF_LAW(name, law, ...)               \
    if (law == name##_arrivals) {            \
        enum { LAW = name##_arrivals };      \
        __VA_ARGS__;                         \
    }
#define FOR_LAW(law, ...) { LAWS(IF_LAW, law, __VA_ARGS__) }

/* Return what the law's function of this name does. */
#define RETURN_OF_LAW(name, function, ...) \
    if (law == name##_arrivals)            \
        return name##_##function(__VA_ARGS__);
#define OF_LAW(function, ...)                              \
    LAWS(RETURN_OF_LAW, function, __VA_ARGS__)             \
    __builtin_unreachable();

/* Return whether items arrive at a rate, their weight, which is then the hazard at all times. */
PLR_INLINE int arrives_at_rate(int law)
{
    return law == exponential_arrivals;
}

PLR_INLINE odds_and_hazard odds_at(int law, double w_or_score, lanes t)
{
    OF_LAW(odds, w_or_score, t)
}

PLR_INLINE item_slopes slopes_at(int law, double w_or_score, lanes t)
{
    OF_LAW(slopes, w_or_score, t)
}

/* Return the magnitudes of an item of weight w and score f. */
PLR_INLINE item_magnitudes magnitudes_at(int law, double w, double f, complex_lanes t)
{
    OF_LAW(magnitudes, w, f, t)
}

/* Return whether an item of score f has certainly arrived, or certainly not, at all of these times. */
PLR_INLINE int certain_at(int law, double f, complex_lanes t)
{
    OF_LAW(certain, f, t)
}

/* Return the magnitude of the speed in item_slopes. */
PLR_INLINE lanes moving_at(int law, complex_lanes t)
{
    return arrives_at_rate(law) ? vec_rough_sqrt(square_of(t)) : vec_all(1);
}

#endif
