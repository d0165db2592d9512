"""The plain sampler, with which tests compare the accelerated ones.

Every item arrives at an exponential time of rate w = exp(score), and the order of arrival is a Plackett-Luce ranking
(with -log of the times this is the Gumbel top-K trick). Introselect finds the K items that arrive first, and a sort
orders them: O(D + K log K) per ranking.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, log
from libc.string cimport memcpy

from plrank_fast._core.random.selection cimport sort_smallest
from plrank_fast._core.random.stream cimport plr_stream
from plrank_fast._core.ranking.weights cimport Weights, relative_weights_of
from plrank_fast._core.runtime.layout cimport Layout, layout_at, measure, padded, take
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.sampling.noise cimport (
    PLR_GUMBEL, PLR_GUMBEL_WIDE, PLR_NORMAL, NoisyScores, draw_arrivals, shorten_gaps,
)

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
    Introselect *sampler, const Weights *weights, intp_t cutoff, const NoisyScores *noisy, char *workspace
) noexcept nogil:
    """Prepare ``sampler`` to draw the first ``cutoff`` ranks of one query. O(D); O(D log D) at huge score gaps.

    Without ``noisy`` scores, NULL, rankings are Plackett-Luce's; with them, weights are those of their levels.
    """
    cdef intp_t n_items = weights.n_items, d
    cdef Layout layout = layout_at(workspace)
    sampler.n_items = n_items
    sampler.cutoff = cutoff
    lay_out(sampler, n_items, &layout)
    sampler.kind = PLR_GUMBEL if weights.representable else PLR_GUMBEL_WIDE
    if noisy != NULL:
        sampler.kind = noisy.kind
    sampler.given = NULL
    sampler.pivot = NAN
    if sampler.kind == PLR_GUMBEL:
        relative_weights_of(weights.scores, weights.highest, -1.0, sampler.rates, n_items)
    elif noisy != NULL:
        memcpy(sampler.rates, noisy.levels, n_items * sizeof(double))
    else:
        shorten_gaps(weights.scores, n_items, 1.0, UNCROSSABLE_GAP, sampler.keys, sampler.items, sampler.rates)
    for d in range(n_items, padded(n_items)):
        sampler.rates[d] = INFINITY if sampler.kind == PLR_GUMBEL else -DBL_MAX


cdef void take_given(Introselect *sampler) noexcept nogil:
    """Set the arrivals from the noise given for the next ranking: exponential numbers, or normal ones."""
    cdef intp_t d
    for d in range(sampler.n_items):
        if sampler.kind == PLR_GUMBEL:
            sampler.arrivals[d] = sampler.given[d] * sampler.rates[d]
        elif sampler.kind == PLR_NORMAL:
            sampler.arrivals[d] = -(sampler.rates[d] + sampler.given[d])
        else:
            sampler.arrivals[d] = log(sampler.given[d]) - sampler.rates[d]
    sampler.given += sampler.n_items


cdef void draw_ranking(Introselect *sampler, plr_stream *stream, int32_t *ranking, intp_t stride) noexcept nogil:
    """Draw the first ``cutoff`` items to arrive; they are written ``stride`` apart, and their arrivals to ``keys``."""
    cdef intp_t k
    if sampler.given == NULL:
        draw_arrivals(sampler.kind, stream, sampler.rates, sampler.arrivals, sampler.n_items)
    else:
        take_given(sampler)
    sort_smallest(sampler.arrivals, sampler.n_items, sampler.cutoff, &sampler.pivot, sampler.keys, sampler.items)
    for k in range(sampler.cutoff):
        ranking[k * stride] = sampler.items[k]
