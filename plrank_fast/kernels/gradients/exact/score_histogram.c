#include "gradients/exact/score_histogram.h"

#include <math.h>
#include <string.h>

#include "simd/vector_math.h"

void set_histogram(score_histogram *histogram, const bin_sums *bins, int n)
{
    histogram->bins = n;
    histogram->above[0] = 0;
    for (int i = 0; i < n + PLR_LANES; i++) {
        const bin_sums sums = i < n ? bins[i] : (bin_sums){0};
        histogram->count[i] = sums[0];
        histogram->relevance[i] = sums[1];
        histogram->magnitudes[i] = sums[2];
        histogram->squares[i] = sums[3];
        histogram->above[i + 1] = histogram->above[i] + sums[0];
    }
}

void fill_histogram(score_histogram *histogram, const double *f, const double *relevance, intptr_t n,
                    double lowest)
{
    bin_sums bins[MOST_BINS];
    const int used = (int)smaller(-lowest * BINS_PER_NAT, MOST_BINS - 2) + 2;
    memset(bins, 0, used * sizeof *bins);
    for (intptr_t j = 0; j < n; j++) {
        const double rho = relevance ? relevance[j] : 1;
        add_to_bins(bins, -f[j], (bin_sums){1, rho, fabs(rho), rho * rho});
    }
    set_histogram(histogram, bins, used);
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
