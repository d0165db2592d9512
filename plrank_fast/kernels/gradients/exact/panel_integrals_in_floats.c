/* The evaluators once more, for floats. */
#define PLR_SINGLE
#include "gradients/exact/arrival_polynomials.c"
#include "gradients/exact/panel_integrals.c"
