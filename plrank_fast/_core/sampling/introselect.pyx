"""The plain sampler, with which tests compare the accelerated ones.

Every item arrives at an exponential time of rate w = exp(score), and the order of arrival is a Plackett-Luce ranking
(with -log of the times this is the Gumbel top-K trick). Introselect finds the K items that arrive first, and a sort
orders them: O(D + K log K) per ranking.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN

from plrank_fast._core.random.selection cimport sort_pairs, sort_smallest
from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.ranking.weights cimport Weights, relative_weights_of
from plrank_fast._core.runtime.layout cimport Layout, layout_at, measure, padded, take
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "sampling/arrival_times.h" nogil:
    const arrival_times_kernels *arrival_times_kernels_at(int level)

cdef const arrival_times_kernels *arrival_times = arrival_times_kernels_at(simd_level())

cdef double UNCROSSABLE_GAP = 64.0  # nats: log E lies between -36.8 and 3.7 for the uniforms in use


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Introselect *sampler, intp_t n_items, Layout *layout) noexcept nogil:
    sampler.rates = <double *>take(layout, n_items * sizeof(double))
    sampler.arrivals = <double *>take(layout, n_items * sizeof(double))
    sampler.keys = <double *>take(layout, n_items * sizeof(double))
    sampler.items = <int32_t *>take(layout, n_items * sizeof(int32_t))


cdef size_t introselect_workspace(intp_t n_items) noexcept nogil:
    """Return the number of bytes that ``prepare_introselect`` lays out."""
    cdef Introselect sampler
    cdef Layout layout = measure()
    lay_out(&sampler, n_items, &layout)
    return layout.next


cdef void prepare_introselect(
    Introselect *sampler, const Weights *weights, intp_t cutoff, char *workspace
) noexcept nogil:
    """Prepare ``sampler`` to draw the first ``cutoff`` ranks of one query. O(D); O(D log D) at huge score gaps."""
    cdef intp_t n_items = weights.n_items, length = padded(n_items), d
    cdef Layout layout = layout_at(workspace)
    sampler.n_items = n_items
    sampler.cutoff = cutoff
    lay_out(sampler, n_items, &layout)
    sampler.logarithmic = not weights.representable
    sampler.pivot = NAN
    if sampler.logarithmic:
        shorten_gaps(
            weights.scores, n_items, 1.0, UNCROSSABLE_GAP, sampler.keys, sampler.items, sampler.rates)
        for d in range(n_items, length):
            sampler.rates[d] = -DBL_MAX
        return
    relative_weights_of(weights.scores, weights.highest, -1.0, sampler.rates, n_items)
    for d in range(n_items, length):
        sampler.rates[d] = INFINITY


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


cdef void draw_ranking(Introselect *sampler, plr_stream *stream, int32_t *ranking, intp_t stride) noexcept nogil:
    """Draw the first ``cutoff`` items to arrive; they are written ``stride`` apart."""
    cdef intp_t k
    if sampler.logarithmic:
        arrival_times.logarithmic(stream, sampler.rates, sampler.arrivals, sampler.n_items)
    else:
        arrival_times.linear(stream, sampler.rates, sampler.arrivals, sampler.n_items)
    sort_smallest(sampler.arrivals, sampler.n_items, sampler.cutoff, &sampler.pivot, sampler.keys, sampler.items)
    for k in range(sampler.cutoff):
        ranking[k * stride] = sampler.items[k]
