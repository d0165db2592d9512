"""The plain sampler, with which tests compare the accelerated ones.

Every item arrives at an exponential time of rate w = exp(score), and the order of arrival is a Plackett-Luce ranking
(with -log of the times this is the Gumbel top-K trick). Introselect finds the K items that arrive first, and a sort
orders them: O(D + K log K) per ranking.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, exp, sqrt

from plrank_fast._core.random.selection cimport PLR_SHORT_LIST, early_key, keep_below, select_smallest, sort_pairs
from plrank_fast._core.random.stream cimport PLR_STREAM_LANES, plr_stream
from plrank_fast._core.ranking.weights cimport Weights
from plrank_fast._core.runtime.layout cimport Layout, layout_at, measure, take
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "sampling/arrival_times.h" nogil:
    ctypedef struct arrival_times_kernels:
        void (*linear)(plr_stream *stream, const double *inverse_weights, double *arrivals, size_t n) noexcept nogil
        void (*logarithmic)(plr_stream *stream, const double *scores, double *arrivals, size_t n) noexcept nogil
    const arrival_times_kernels *arrival_times_kernels_at(int level)

cdef extern from "ranking/weights.h" nogil:
    ctypedef struct weights_kernels:
        double (*relative)(const double *scores, double highest, double sign, double *out, size_t n) noexcept nogil
    const weights_kernels *weights_kernels_at(int level)

cdef const arrival_times_kernels *arrival_times = arrival_times_kernels_at(simd_level())
cdef const weights_kernels *weights_at_level = weights_kernels_at(simd_level())

cdef double UNCROSSABLE_GAP = 64.0  # nats: log E lies between -36.8 and 3.7 for the uniforms in use
cdef intp_t FIRST_PIVOT_SAMPLES = 16  # fewer samples do not repay the search for the first pivot


# ---------------------------------------------------------------------------------------------------------------------
# Per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t padded(intp_t n_items) noexcept nogil:
    return (n_items + PLR_STREAM_LANES - 1) // PLR_STREAM_LANES * PLR_STREAM_LANES


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Introselect *sampler, intp_t n_items, Layout *layout) noexcept nogil:
    cdef size_t length = padded(n_items)
    sampler.rates = <double *>take(layout, length * sizeof(double))
    sampler.arrivals = <double *>take(layout, length * sizeof(double))
    sampler.keys = <double *>take(layout, length * sizeof(double))
    sampler.items = <int32_t *>take(layout, length * sizeof(int32_t))


cdef size_t introselect_workspace(intp_t n_items) noexcept nogil:
    """Return the number of bytes that ``prepare_introselect`` lays out."""
    cdef Introselect sampler
    cdef Layout layout = measure()
    lay_out(&sampler, n_items, &layout)
    return layout.next


cdef void prepare_introselect(
    Introselect *sampler, const Weights *weights, intp_t cutoff, intp_t n_samples, char *workspace
) noexcept nogil:
    """Prepare ``sampler`` to draw the first ``cutoff`` ranks of one query. O(D); O(D log D) at huge score gaps."""
    cdef intp_t n_items = weights.n_items, length = padded(n_items), d
    cdef Layout layout = layout_at(workspace)
    sampler.n_items = n_items
    sampler.cutoff = cutoff
    lay_out(sampler, n_items, &layout)
    sampler.logarithmic = not weights.representable
    sampler.first_pivot = 0.0
    if sampler.logarithmic:
        compress_gaps(sampler, weights.scores)
        for d in range(n_items, length):
            sampler.rates[d] = -DBL_MAX
        return
    weights_at_level.relative(weights.scores, weights.highest, -1.0, sampler.rates, n_items)
    for d in range(n_items, length):
        sampler.rates[d] = INFINITY
    if n_samples >= FIRST_PIVOT_SAMPLES:
        sampler.first_pivot = time_of_arrivals(sampler, <double>cutoff + 3.0 * sqrt(<double>cutoff) + 1.0)


cdef void compress_gaps(Introselect *sampler, const double *scores) noexcept nogil:
    """Shorten large gaps between neighbouring scores to one that no pair of arrival times can cross.

    Rankings stay the same, and scores such as 1e300 no longer absorb the noise that is added.
    """
    cdef intp_t d
    cdef double level = 0.0, previous, gap
    for d in range(sampler.n_items):
        sampler.keys[d] = -scores[d]
        sampler.items[d] = <int32_t>d
    sort_pairs(sampler.keys, sampler.items, sampler.n_items)
    previous = sampler.keys[0]
    for d in range(sampler.n_items):
        gap = sampler.keys[d] - previous
        previous = sampler.keys[d]
        level -= min(gap, UNCROSSABLE_GAP)
        sampler.rates[sampler.items[d]] = level


cdef double time_of_arrivals(Introselect *sampler, double arrivals) noexcept nogil:
    """Return the time before which this many items are expected to arrive; 0 if that is most of them.

    Newton's method on the concave sum of 1 - exp(-w t), which approaches the root from below.
    """
    cdef double time = 0.0, arrived, rate, still_silent
    cdef intp_t d, _
    if arrivals > 0.8 * sampler.n_items:
        return 0.0
    for _ in range(12):
        arrived = 0.0
        rate = 0.0
        for d in range(sampler.n_items):
            still_silent = exp(-time / sampler.rates[d])
            arrived += 1.0 - still_silent
            rate += still_silent / sampler.rates[d]
        if arrived > 0.95 * arrivals:
            return time
        time += (arrivals - arrived) / rate
        if not time < 1e300:
            return 0.0
    return 0.0


cdef void draw_ranking(Introselect *sampler, plr_stream *stream, int32_t *ranking, intp_t stride) noexcept nogil:
    """Draw the first ``cutoff`` items to arrive; they are written ``stride`` apart."""
    cdef intp_t kept = 0, k
    if sampler.logarithmic:
        arrival_times.logarithmic(stream, sampler.rates, sampler.arrivals, sampler.n_items)
    else:
        arrival_times.linear(stream, sampler.rates, sampler.arrivals, sampler.n_items)
    if sampler.first_pivot > 0.0:
        kept = keep_below(sampler.arrivals, sampler.n_items, sampler.first_pivot, sampler.keys, sampler.items)
    elif sampler.n_items > PLR_SHORT_LIST:
        kept = keep_below(
            sampler.arrivals, sampler.n_items, early_key(sampler.arrivals, sampler.n_items, sampler.cutoff),
            sampler.keys, sampler.items)
    if kept < sampler.cutoff:
        kept = keep_below(sampler.arrivals, sampler.n_items, INFINITY, sampler.keys, sampler.items)
    if kept > PLR_SHORT_LIST:
        select_smallest(sampler.keys, sampler.items, kept, sampler.cutoff)
        kept = sampler.cutoff
    sort_pairs(sampler.keys, sampler.items, kept)
    for k in range(sampler.cutoff):
        ranking[k * stride] = sampler.items[k]
