"""Values and gradients of losses: those of a metric times a factor of the query, which may be over the ideal DCG."""

from plrank_fast._core.ranking.metrics cimport ideal_dcg_of_query, ranking_workspace
from plrank_fast._core.runtime.buffers cimport numbers, results
from plrank_fast._core.runtime.queries cimport Query
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t


cdef struct Scale:
    # factors of the values, and of gradients, which are written to one of two arrays
    const double *factors        # one for each query, or NULL
    double factor                # of all queries otherwise
    bint over_ideal              # they are divided by the ideal DCG, and 0 where that is 0
    double *doubles
    float *floats


cdef inline size_t scale_workspace(intp_t n_items) noexcept nogil:
    return ranking_workspace(n_items) + n_items * sizeof(double)


cdef inline double scale_gradient(
    const Scale *scale, const Query *query, const double *gradient, char *workspace
) noexcept nogil:
    """Write the gradient of a query times its factor, and return the factor."""
    cdef double *keys = <double *>workspace
    cdef double *weights = keys + query.n_items
    cdef double factor = scale.factor if scale.factors == NULL else scale.factors[query.index], ideal
    cdef intp_t d
    if scale.over_ideal:
        ideal = ideal_dcg_of_query(query, query.cutoff, keys, weights, <int32_t *>(weights + query.n_items))
        factor = factor / ideal if ideal > 0.0 else 0.0
    if scale.floats != NULL:
        for d in range(query.n_items):
            scale.floats[query.first + d] = <float>(factor * gradient[d])
    else:
        for d in range(query.n_items):
            scale.doubles[query.first + d] = factor * gradient[d]
    return factor


cdef inline Scale scale_of(intp_t n_items, object factors, bint over_ideal, object gradient) except *:
    """Return the scale of a call. ``factors`` are a float or an array; ``gradient`` is of float64 or float32."""
    cdef Scale scale = Scale(NULL, 0.0, over_ideal, NULL, NULL)
    cdef const double[::1] of_queries
    cdef double[::1] doubles
    cdef float[::1] floats
    if type(factors) is float:
        scale.factor = factors
    else:
        of_queries = factors
        scale.factors = numbers(of_queries)
    if n_items == 0:
        return scale
    if gradient.itemsize == sizeof(float):
        floats = gradient
        scale.floats = &floats[0]
    else:
        doubles = gradient
        scale.doubles = results(doubles)
    return scale
