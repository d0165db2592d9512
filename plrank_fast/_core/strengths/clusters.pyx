"""Squares of the slopes of clusters."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t


def add_squares(
    const int64_t[::1] clusters, const int64_t[::1] columns, const double[::1] values, double[:, ::1] result
):
    """Add the products of each two values of a cluster up by their columns; clusters are in ascending order."""
    cdef intp_t start = 0, k, other
    cdef double product
    for k in range(clusters.shape[0]):
        if clusters[k] != clusters[start]:
            start = k
        for other in range(start, k + 1):
            product = values[k] * values[other]
            result[columns[k], columns[other]] += product
            if other < k:
                result[columns[other], columns[k]] += product
