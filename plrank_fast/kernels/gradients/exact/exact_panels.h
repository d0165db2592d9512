/* From a query to panels.
 *
 * A panel is an interval of time with its own map of nodes. One panel serves a list without large gaps between
 * neighbouring scores. The weights in a panel are relative to its heaviest item, so that scores may be further apart
 * than the exponents of float64 reach.
 */
#ifndef PLR_EXACT_PANELS_H
#define PLR_EXACT_PANELS_H

#include "gradients/exact/exact_problem.h"

#define GAP 7.0          /* nats between neighbouring scores from which on a cut saves nodes */
/* Nats, or sigmas, that one panel may span. Shorter ones leave out more items that cannot arrive
 * in them, and have more nodes in all. The limit is 200: odds are finite up to e^700 (exact_panel.h), beside which
 * third powers of w t, at most e^600, must be negligible. */
#define WIDEST 30.0

#endif
