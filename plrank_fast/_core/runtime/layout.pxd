"""The arrays of a workspace. One function lays them out and measures how much memory they take.

A layout function takes one piece after another::

    cdef void lay_out(State *state, intp_t n_items, Layout *layout) noexcept nogil:
        state.keys = <double *>take(layout, n_items * sizeof(double))
        state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))

With ``measure()``, the pointers are invalid and ``layout.next`` becomes the size; with ``layout_at(memory)``, they
point into the memory. Sizes must not shrink as queries grow: the workspace of the longest query of a batch serves all.
"""

from libc.stdint cimport uintptr_t

cdef struct Layout:
    uintptr_t next               # address of the next piece


cdef inline size_t aligned(size_t n_bytes) noexcept nogil:
    """Round up to whole cache lines."""
    return (n_bytes + 63) // 64 * 64


cdef inline Layout layout_at(const void *memory) noexcept nogil:
    cdef Layout layout
    layout.next = <uintptr_t>memory
    return layout


cdef inline Layout measure() noexcept nogil:
    return layout_at(NULL)


cdef inline void *take(Layout *layout, size_t n_bytes) noexcept nogil:
    """Return the next piece; pieces start on cache lines."""
    cdef uintptr_t piece = layout.next
    layout.next += aligned(n_bytes)
    return <void *>piece
