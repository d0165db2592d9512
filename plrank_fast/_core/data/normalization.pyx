"""Min-max normalisation of features within each query."""

import numpy as np

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "data/column_ranges.h" nogil:
    ctypedef struct column_ranges_kernels:
        void (*floats)(float *rows, size_t n_rows, size_t width, float *low, float *span) noexcept nogil
        void (*doubles)(double *rows, size_t n_rows, size_t width, double *low, double *span) noexcept nogil
        void (*long_doubles)(
            long double *rows, size_t n_rows, size_t width, long double *low, long double *span) noexcept nogil
    const column_ranges_kernels *column_ranges_kernels_at(int level)

cdef const column_ranges_kernels *kernels = column_ranges_kernels_at(simd_level())

ctypedef fused Number:
    float
    double
    long double


def normalize_rows(Number[:, ::1] features, const int64_t[::1] offsets):
    """Normalise the columns within each query's rows, in place."""
    cdef intp_t width = features.shape[1], q
    cdef Number[:, ::1] ranges = np.empty((2, max(width, 1)), np.asarray(features).dtype)
    cdef Number *rows
    cdef size_t n_rows
    if width == 0:
        return
    with nogil:
        for q in range(offsets.shape[0] - 1):
            if offsets[q + 1] > offsets[q]:
                rows, n_rows = &features[offsets[q], 0], offsets[q + 1] - offsets[q]
                if Number is float:
                    kernels.floats(rows, n_rows, width, &ranges[0, 0], &ranges[1, 0])
                elif Number is double:
                    kernels.doubles(rows, n_rows, width, &ranges[0, 0], &ranges[1, 0])
                else:
                    kernels.long_doubles(rows, n_rows, width, &ranges[0, 0], &ranges[1, 0])
