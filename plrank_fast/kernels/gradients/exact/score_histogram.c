#include "gradients/exact/score_histogram.h"

#include <math.h>

#include "simd/vector_math.h"

void sum_counts(score_histogram *histogram)
{
    histogram->above[0] = 0;
    for (int i = 0; i < histogram->bins; i++)
        histogram->above[i + 1] = histogram->above[i] + histogram->count[i];
}

void fill_histogram(score_histogram *histogram, const double *f, const double *relevance, intptr_t n,
                    double lowest)
{
    histogram->bins = (int)(smaller(-lowest * BINS_PER_NAT, MOST_BINS - 2)) + 2;
    for (int i = 0; i < histogram->bins + PLR_LANES; i++)
        histogram->count[i] = histogram->relevance[i] = histogram->magnitudes[i] = histogram->squares[i] = 0;
    for (intptr_t j = 0; j < n; j++) {
        const double rho = relevance ? relevance[j] : 1;
        add_to_bins(histogram, -f[j], 1, rho, fabs(rho), rho * rho);
    }
    sum_counts(histogram);
}

int has_gap(const score_histogram *histogram, intptr_t K, double gap)
{
    int empty = 0;
    for (int i = 0; i < histogram->bins && histogram->above[i] < (double)K; i++) {
        empty = histogram->count[i] == 0 ? empty + 1 : 0;
        if (empty >= (int)(gap * BINS_PER_NAT) - 1)
            return 1;
    }
    return histogram->above[histogram->bins] < (double)K - 0.5;
}
