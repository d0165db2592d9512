"""The arrays of a workspace. One function lays them out and measures how much memory they take.

A layout function takes one piece after another, the state of the query first::

    cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
        cdef State measured
        cdef State *state = <State *>take_state(layout, sizeof(State), &measured)
        state.keys = <double *>take(layout, n_items * sizeof(double))
        state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))

``state_at`` calls it to lay out a workspace, ``bytes_of`` to measure one. Sizes must not shrink as queries grow: the
workspace of the longest query of a batch serves all.
"""

from libc.stdint cimport uintptr_t

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef struct Layout:
    uintptr_t next               # address of the next piece
    bint measuring               # the pieces are not there: ``next`` becomes the size
    void *state

ctypedef void (*layout_function)(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil


cdef inline size_t aligned(size_t n_bytes) noexcept nogil:
    """Round up to whole cache lines."""
    return (n_bytes + 63) // 64 * 64


cdef inline intp_t padded(intp_t n) noexcept nogil:
    """Round up to whole vectors of doubles at any SIMD level, as ``take`` does."""
    return (n + 7) // 8 * 8


cdef inline Layout layout_at(const void *memory) noexcept nogil:
    return Layout(<uintptr_t>memory, False, NULL)


cdef inline Layout measure() noexcept nogil:
    return Layout(0, True, NULL)


cdef inline void *take(Layout *layout, size_t n_bytes) noexcept nogil:
    """Return the next piece; pieces start on cache lines."""
    cdef uintptr_t piece = layout.next
    layout.next += aligned(n_bytes)
    return <void *>piece


cdef inline void *take_state(Layout *layout, size_t n_bytes, void *measured) noexcept nogil:
    """Take the state of a query; return it, or ``measured``, whose members can be set while measuring."""
    layout.state = take(layout, n_bytes)
    return measured if layout.measuring else layout.state


cdef inline size_t bytes_of(layout_function lay_out, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the bytes that a function lays out; NULL lays out nothing."""
    cdef Layout layout = measure()
    if lay_out != NULL:
        lay_out(&layout, n_items, cutoff)
    return layout.next


cdef inline void *state_at(char *memory, layout_function lay_out, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the state that a function lays out in memory; NULL if it lays out nothing."""
    cdef Layout layout = layout_at(memory)
    if lay_out != NULL:
        lay_out(&layout, n_items, cutoff)
    return layout.state
