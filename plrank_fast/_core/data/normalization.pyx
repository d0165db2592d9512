"""Min-max normalisation of features within each query."""

import numpy as np

from libc.string cimport memcpy

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t

ctypedef fused Number:
    float
    double
    long double


cdef void normalize_query(Number *rows, intp_t n_rows, intp_t width, Number *low, Number *span) noexcept nogil:
    """Map each column of some rows onto [0, 1], or to 0 if it is constant. A width may overflow; halves do not."""
    cdef intp_t row, column
    cdef Number *values
    cdef Number half = <Number>0.5, value
    memcpy(low, rows, width * sizeof(Number))
    memcpy(span, rows, width * sizeof(Number))
    for row in range(1, n_rows):
        values = rows + row * width
        for column in range(width):
            low[column] = min(low[column], values[column])
            span[column] = max(span[column], values[column])
    for column in range(width):
        low[column] = low[column] * half
        span[column] = span[column] * half - low[column]
    for row in range(n_rows):
        values = rows + row * width
        for column in range(width):
            value = (values[column] * half - low[column]) / span[column]
            values[column] = value if span[column] > 0 else <Number>0.0


def normalize_rows(Number[:, ::1] features, const int64_t[::1] offsets):
    """Normalise the columns within each query's rows, in place."""
    cdef intp_t width = features.shape[1], q
    cdef Number[:, ::1] ranges = np.empty((2, max(width, 1)), np.asarray(features).dtype)
    if width == 0:
        return
    with nogil:
        for q in range(offsets.shape[0] - 1):
            if offsets[q + 1] > offsets[q]:
                normalize_query(
                    &features[offsets[q], 0], offsets[q + 1] - offsets[q], width, &ranges[0, 0], &ranges[1, 0])
