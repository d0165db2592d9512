"""The gradient to descend and the curvature of boosted trees, from the gradient of a metric to ascend.

The curvature of a document is the magnitude of its gradient, or of its Hessian diagonal if that is larger. Both are
divided by the mean curvature, so a first pass over the documents adds the curvatures up and a second one divides.
"""

from libc.math cimport fabs
from libc.string cimport memset

from plrank_fast._core.runtime.buffers cimport numbers, results
from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.teams cimport ITEMS_PER_RANGE, number_of_ranges, run_ranges
from plrank_fast._core.runtime.threads cimport resolve_threads

import numpy as np


cdef struct Call:
    const double *ascent         # (n_docs,)
    const double *diagonal       # (n_docs,), or NULL
    double *sums                 # one for each range, whatever the number of threads
    double divisor
    double least                 # added to each curvature
    intp_t n_docs
    double *doubles              # (2, n_docs): gradient and curvature; NULL if they are wanted as floats
    float *floats


cdef inline double curvature_of(const Call *call, intp_t d) noexcept nogil:
    cdef double size = fabs(call.ascent[d])
    return size if call.diagonal == NULL else max(size, fabs(call.diagonal[d]))


cdef void add_curvatures(void *call_, intp_t start, intp_t stop) noexcept nogil:
    """Add up the curvatures of a range."""
    cdef const Call *call = <const Call *>call_
    cdef double[8] sums          # side by side: an addition need not wait for the one before
    cdef intp_t d
    memset(sums, 0, sizeof(sums))
    for d in range(start, stop):
        sums[d & 7] += curvature_of(call, d)
    for d in range(1, 8):
        sums[0] += sums[d]
    call.sums[start // ITEMS_PER_RANGE] = sums[0]


cdef void divide(void *call_, intp_t start, intp_t stop) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef double gradient, curvature
    cdef intp_t d
    for d in range(start, stop):
        gradient = call.ascent[d] / -call.divisor
        curvature = curvature_of(call, d) / call.divisor + call.least
        if call.floats != NULL:
            call.floats[d], call.floats[call.n_docs + d] = <float>gradient, <float>curvature
        else:
            call.doubles[d], call.doubles[call.n_docs + d] = gradient, curvature


cdef Call call_of(const double[::1] ascent, const double[::1] diagonal) noexcept:
    return Call(numbers(ascent), numbers(diagonal), NULL, 1.0, 0.0, ascent.shape[0], NULL, NULL)


def total_curvature(const double[::1] ascent, const double[::1] diagonal, n_threads):
    """Return the sum of the curvatures of documents; ``diagonal`` may be None."""
    cdef Call call = call_of(ascent, diagonal)
    sums = np.zeros(number_of_ranges(call.n_docs))
    call.sums = results(sums)
    run_ranges(add_curvatures, &call, call.n_docs, 0.5, resolve_threads(n_threads))
    return sums.sum()


def divided(
    const double[::1] ascent, const double[::1] diagonal, double divisor, double least, n_threads, out
):
    """Write minus the gradient and the curvatures over ``divisor``, to which ``least`` is added.

    ``out`` is an array (2, n_docs) of float64 or float32.
    """
    cdef Call call = call_of(ascent, diagonal)
    cdef float[::1] floats = None
    flat = out.reshape(-1)
    call.divisor, call.least = divisor, least
    if call.n_docs == 0:  # a worker without documents
        return out
    if out.itemsize == sizeof(float):
        floats = flat
        call.floats = &floats[0]
    else:
        call.doubles = results(flat)
    run_ranges(divide, &call, call.n_docs, 1.0, resolve_threads(n_threads))
    return out
