"""Noise on the scores of a query: its kinds, the levels that it is added to, and arrival times.

An item of noisy score u arrives at exp(-u), or at -u where that leaves the range of a double and with normal noise: the
order of arrival is the ranking. With Gumbel noise it is a Plackett-Luce ranking, which any sampler draws. The gaps
between its arrivals are then independent and exponential at the rate of the weight not yet placed.
"""

from libc.string cimport memset

from plrank_fast._core.random.selection cimport sort_pairs
from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.ranking.weights cimport PLR_LARGEST_SPREAD
from plrank_fast._core.runtime.layout cimport Layout, layout_at, measure, padded, take
from plrank_fast._core.runtime.scalar_types cimport int8_t, int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "sampling/arrival_times.h" nogil:
    ctypedef struct arrival_times_kernels:
        void (*linear)(plr_stream *stream, const double *inverse_weights, double *arrivals, size_t n) noexcept nogil
        void (*logarithmic)(plr_stream *stream, const double *scores, double *arrivals, size_t n) noexcept nogil
        void (*normal)(plr_stream *stream, const double *scores, double *arrivals, size_t n) noexcept nogil
    const arrival_times_kernels *arrival_times_kernels_at(int level)

cdef const arrival_times_kernels *arrival_times = arrival_times_kernels_at(simd_level())

NOISES = {"gumbel": PLR_GUMBEL, "normal": PLR_NORMAL}

# Gaps between neighbours are shortened to this, which no pair can cross and where the density is 0, so that scores such
# as 1e300 do not absorb the noise
cdef double GUMBEL_GAP = 800.0
cdef double NORMAL_GAP = 64.0


cdef void draw_arrivals(
    int kind, plr_stream *stream, const double *rates, double *arrivals, intp_t n_items
) noexcept nogil:
    """Set the arrivals of all items. ``rates`` are 1 / weight for PLR_GUMBEL, else scores, padded as the arrivals."""
    if kind == PLR_GUMBEL:
        arrival_times.linear(stream, rates, arrivals, n_items)
    elif kind == PLR_NORMAL:
        arrival_times.normal(stream, rates, arrivals, n_items)
    else:
        arrival_times.logarithmic(stream, rates, arrivals, n_items)


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void shorten_gaps(
    const double *scores, intp_t n_items, double scale, double widest, double *keys, int32_t *order, double *levels
) noexcept nogil:
    """Sort the items by descending score; levels are scores times ``scale``, the highest 0, with shortened gaps.

    If no noise crosses a gap of ``widest``, rankings stay the same, and scores such as 1e300 no longer absorb the noise
    that is added. ``keys`` gets the negative scores in order.
    """
    cdef intp_t i
    cdef double level = 0.0
    for i in range(n_items):
        keys[i] = -scores[i]
        order[i] = <int32_t>i
    sort_pairs(keys, order, n_items)
    for i in range(n_items):
        if i > 0:
            level -= min((keys[i] - keys[i - 1]) * scale, widest)
        levels[order[i]] = level


cdef double *take_noise(NoisyScores *noisy, intp_t n_items, Layout *layout) noexcept nogil:
    """Lay out the levels and their order; return scratch of as many numbers."""
    noisy.levels = <double *>take(layout, n_items * sizeof(double))
    noisy.order = <int32_t *>take(layout, n_items * sizeof(int32_t))
    return <double *>take(layout, n_items * sizeof(double))


cdef size_t noise_workspace(intp_t n_items) noexcept nogil:
    """Return the number of bytes that ``prepare_noise`` takes."""
    cdef NoisyScores noisy
    cdef Layout layout = measure()
    take_noise(&noisy, n_items, &layout)
    return layout.next


cdef char *prepare_noise(
    NoisyScores *noisy, const Noise *noise, const double *scores, intp_t n_items, char *workspace
) noexcept nogil:
    """Prepare the scores of a query; return the first unused byte of ``workspace``. O(D log D)."""
    cdef Layout layout = layout_at(workspace)
    cdef double *keys = take_noise(noisy, n_items, &layout)
    noisy.kind, noisy.given = noise.kind, noise.given
    shorten_gaps(
        scores, n_items, noise.inverse_sigma, NORMAL_GAP if noise.kind == PLR_NORMAL else GUMBEL_GAP, keys, noisy.order,
        noisy.levels)
    if noisy.kind == PLR_GUMBEL and noisy.levels[noisy.order[n_items - 1]] < -PLR_LARGEST_SPREAD:
        noisy.kind = PLR_GUMBEL_WIDE  # exp(f) leaves the range of a double
    noisy.by_order = noisy.kind == PLR_GUMBEL and noisy.given == NULL
    return <char *>layout.next


# ---------------------------------------------------------------------------------------------------------------------
# Per ranking
# ---------------------------------------------------------------------------------------------------------------------

cdef void take_gaps(Gaps *gaps, intp_t n_items, intp_t n_ranks, Layout *layout) noexcept nogil:
    gaps.inverse_sums = <double *>take(layout, padded(n_ranks) * sizeof(double))
    gaps.placed = <int8_t *>take(layout, n_items)
    if not layout.measuring:
        memset(gaps.inverse_sums, 0, padded(n_ranks) * sizeof(double))
        memset(gaps.placed, 0, n_items)


cdef double weight_left(
    Gaps *gaps, const double *weights, intp_t n_items, const int32_t *ranking, intp_t n_ranks
) noexcept nogil:
    """Return the weight of the items that the ranks leave over, summed directly."""
    cdef double left = 0.0
    cdef intp_t d, k
    for k in range(n_ranks):
        gaps.placed[ranking[k]] = True
    for d in range(n_items):
        left += 0.0 if gaps.placed[d] else weights[d]
    for k in range(n_ranks):
        gaps.placed[ranking[k]] = False
    return left


cdef void draw_gaps(
    Gaps *gaps, const double *weights, double total, intp_t n_items, const int32_t *ranking, intp_t n_ranks,
    double *arrivals
) noexcept nogil:
    """Set the arrivals of one ranking, padded: the gap before each is exponential at the rate of what remains."""
    cdef double placed = 0.0, left
    cdef intp_t k
    for k in range(n_ranks):
        placed += weights[ranking[k]]
    left = total - placed
    if left < 1e-3 * total:  # the difference cancels
        left = weight_left(gaps, weights, n_items, ranking, n_ranks)
    for k in range(n_ranks - 1, -1, -1):
        left += weights[ranking[k]]
        gaps.inverse_sums[k] = 1.0 / left
    arrival_times.linear(&gaps.stream, gaps.inverse_sums, arrivals, n_ranks)
    for k in range(1, n_ranks):
        arrivals[k] += arrivals[k - 1]
