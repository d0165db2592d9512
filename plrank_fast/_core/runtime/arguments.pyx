"""Arguments of a call: what needs no conversion is read here, and ``validation`` reads everything else.

Published training loops call once per query. The arithmetic for ten documents takes less than a microsecond, and
checking the arguments one by one in Python takes twenty. So entry points pass the arguments of public functions to the
functions below, which recognise contiguous arrays of finite doubles, ints, floats and None. Any other value goes to the
function of ``validation`` that converts it or raises the error. Both give a kernel the same numbers.

An entry point reads its arrays (``checked_batch``), its options and ``out``, then draws the key of its random streams,
runs the batch, and delivers the results. So an argument that is refused costs no random number and leaves ``out`` as it
was.
"""

import numpy as np

from plrank_fast._core.runtime.magnitudes import LIMIT_EXPONENT

from libc.math cimport floor, isinf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from plrank_fast._core.runtime.magnitudes cimport copy_each_within_limits, copy_finite
from plrank_fast._core.runtime.plain_arrays cimport data_of, plain_integers, plain_values
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept

NOT_TAKEN = object()
cdef double LARGEST_FACTOR = 2.0**LIMIT_EXPONENT, SMALLEST_FACTOR = 1.0 / LARGEST_FACTOR
cdef object COPYTO = np.copyto, EMPTY = np.empty, ZEROS = np.zeros, INT64 = np.dtype(np.int64)


def read_others_with(package):
    """Name the package that reads what is not plain; return the one before. ``validation`` calls this at import."""
    global validation
    before, validation = validation, package
    return before


# ---------------------------------------------------------------------------------------------------------------------
# Options
# ---------------------------------------------------------------------------------------------------------------------

cdef inline bint is_plain_count(object value, intp_t lowest, intp_t *number) noexcept:
    """Return whether the value is an int from ``lowest`` to 2**30, and set ``number`` to it."""
    cdef int overflow = 0
    if type(value) is not int:
        return False
    number[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0 and lowest <= number[0] <= LARGEST_PLAIN_COUNT


cdef intp_t checked_count(object value, str name, intp_t lowest) except -1:
    """Return an integer of at least ``lowest``, which is 0 or more."""
    cdef intp_t number
    return number if is_plain_count(value, lowest, &number) else validation.count(value, name, lowest)


cdef double checked_real(object value, str name, bint or_nan=False) except? -1.0:
    """Return a finite number, or NaN if that is allowed."""
    if type(value) is float and not isinf(<double>value) and (or_nan or value == value):
        return value
    return validation.real(value, name, or_nan=or_nan)


cdef double checked_factor(object value, str name) except -1.0:
    """Return a number from 2**-200 to 2**200."""
    if type(value) is float and SMALLEST_FACTOR <= value <= LARGEST_FACTOR:
        return value
    return validation.factor(value, name)


cdef bint checked_flag(object value, str name) except -1:
    return value is True or (value is not False and validation.flag(value, name))


cdef object chosen(object value, str name, dict choices):
    """Return what ``choices`` has for the value."""
    found = choices.get(value) if type(value) is str else None
    return found if found is not None else choices[validation.choice(value, name, tuple(choices))]


cdef object checked_threads(object n_threads):
    """Return ``n_threads`` if it is None or an int other than 0."""
    cdef intp_t number
    if n_threads is None or is_plain_count(n_threads, 1, &number):
        return n_threads
    return validation.threads(n_threads)


# ---------------------------------------------------------------------------------------------------------------------
# Arrays
# ---------------------------------------------------------------------------------------------------------------------

cdef inline bint look_exchanged(const double *scores, const double *others, intp_t n_items) noexcept:
    """Return whether ``validation.of_documents``, which warns of exchanged arguments, could have reason to."""
    return n_items >= 3 and scores[0] == floor(scores[0]) and (scores[0] == 1.0 or others[0] != floor(others[0]))


cdef inline bint are_offsets(const int64_t *offsets, intp_t n_queries, intp_t n_items) noexcept:
    cdef intp_t q
    if n_queries < 0 or offsets[0] != 0 or offsets[n_queries] != n_items:
        return False
    for q in range(n_queries):
        if offsets[q + 1] < offsets[q]:
            return False
    return True


cdef class CheckedBatch:
    """The arrays of a call, copied and checked: nobody can change them while a kernel runs without the GIL."""

    def __dealloc__(self):
        free(self._copies)
        free(self._scratch)

    cdef bint read_plain(self, object scores, object relevance, object rank_weights, object offsets) except -1:
        """Copy the arrays if all of them are plain; else return False.

        Relevance and rank weights must be 0 or within the limits of magnitude, entry by entry.
        """
        cdef intp_t n_items, n_relevance = 0, n_ranks = 0, n_offsets = 2
        cdef const double *given = plain_values(scores, &n_items, False)
        cdef const double *given_relevance = NULL
        cdef const double *given_weights = NULL
        cdef const int64_t *given_offsets = NULL
        cdef double *copies
        cdef int64_t *starts
        if n_items < 1:
            return False
        if relevance is not NOT_TAKEN:
            given_relevance = plain_values(relevance, &n_relevance, False)
            if n_relevance != n_items:
                return False
        if rank_weights is not NOT_TAKEN:
            given_weights = plain_values(rank_weights, &n_ranks, False)
            if n_ranks < 1:
                return False
        if offsets is not None:
            given_offsets = plain_integers(offsets, &n_offsets)
            if n_offsets < 2:
                return False
        # the four arrays one after another, in words of 64 bits
        copies = self._copies = <double *>malloc((n_items + n_relevance + n_ranks + n_offsets) * sizeof(double))
        if copies == NULL:
            n_bytes = (n_items + n_relevance + n_ranks + n_offsets) * sizeof(double)
            raise MemoryError(f"could not allocate {n_bytes} bytes for copies of the arguments")
        starts = <int64_t *>(copies + n_items + n_relevance + n_ranks)
        starts[0] = 0
        starts[1] = n_items
        if given_offsets != NULL:
            memcpy(starts, given_offsets, n_offsets * sizeof(int64_t))
        if (
            not copy_finite(copies, given, n_items)
            or not copy_each_within_limits(copies + n_items, given_relevance, n_relevance)
            or not copy_each_within_limits(copies + n_items + n_relevance, given_weights, n_ranks)
            or not are_offsets(starts, n_offsets - 1, n_items)
            or (given_relevance != NULL and look_exchanged(copies, copies + n_items, n_items))
        ):
            return False
        self.queries.scores = copies
        self.queries.relevance = copies + n_items if given_relevance != NULL else NULL
        self.queries.rank_weights = copies + n_items + n_relevance if given_weights != NULL else NULL
        self.queries.n_ranks = n_ranks
        self.queries.next_rank_weights = 0
        self.queries.offsets = starts
        self.n_items = n_items
        self.n_queries = n_offsets - 1
        self.measure()
        return True

    cdef int take(self, object scores, object relevance, object rank_weights, object offsets) except -1:
        """Take the copies that ``validation`` has made; relevance and rank weights (rows) may be None."""
        self._arrays = scores, relevance, rank_weights, offsets
        self.n_items = scores.size
        self.n_queries = offsets.size - 1
        self.queries.scores = <double *>data_of(scores)
        self.queries.relevance = <double *>data_of(relevance) if relevance is not None else NULL
        self.queries.offsets = <int64_t *>data_of(offsets)
        self.queries.rank_weights = NULL
        self.queries.n_ranks = self.queries.next_rank_weights = 0
        if rank_weights is not None:
            self.queries.rank_weights = <double *>data_of(rank_weights)
            self.queries.n_ranks = rank_weights.shape[1]
            if rank_weights.shape[0] > 1:
                self.queries.next_rank_weights = self.queries.n_ranks
        self.measure()
        return 0

    cdef void measure(self) noexcept:
        cdef intp_t q
        self.longest = 0
        for q in range(self.n_queries):
            self.longest = max(self.longest, self.queries.offsets[q + 1] - self.queries.offsets[q])
        self.queries.n_ranks = min(self.queries.n_ranks, self.longest)

    cdef double *result(self, intp_t n_values, object out) except NULL:
        """Return memory for the result of a call, which is 0: a new array, or what is copied to ``out`` in the end."""
        if out is None:
            self._result = ZEROS(n_values)
            self._values = <double *>data_of(self._result)
        else:
            self._values = self._scratch = <double *>calloc(n_values + 1, sizeof(double))
            if self._scratch == NULL:
                raise MemoryError(f"could not allocate {n_values * sizeof(double)} bytes for results")
        return self._values

    cdef object delivered(self, intp_t n_values, object out):
        """Return the result, in ``out`` if the caller gave one, so that only finished results are written."""
        cdef intp_t length
        cdef double *target
        if out is None:
            return self._result
        target = plain_values(out, &length, True)
        if length == n_values:
            memcpy(target, self._values, n_values * sizeof(double))
        else:  # not contiguous
            array = EMPTY(n_values)
            memcpy(data_of(array), self._values, n_values * sizeof(double))
            COPYTO(out, array)
        return out

    cdef object offsets_array(self):
        """Return a copy of the offsets, for ``validation``."""
        array = EMPTY(self.n_queries + 1, INT64)
        memcpy(data_of(array), self.queries.offsets, (self.n_queries + 1) * sizeof(int64_t))
        return array

    cdef object relevance_array(self):
        """Return a copy of the relevance, for ``validation``."""
        array = EMPTY(self.n_items)
        memcpy(data_of(array), self.queries.relevance, self.n_items * sizeof(double))
        return array


cdef CheckedBatch checked_batch(
    object scores, object relevance, object rank_weights, object offsets, str name="relevance", bint limited=True,
    bint unretrieved=False
):
    """Return the arrays of a call. ``relevance`` may have another ``name``, and no limits of magnitude.

    With ``unretrieved`` the scores may be -inf.
    """
    cdef CheckedBatch batch = CheckedBatch.__new__(CheckedBatch)
    cdef bint with_relevance = relevance is not NOT_TAKEN, with_weights = rank_weights is not NOT_TAKEN
    if not batch.read_plain(scores, relevance, rank_weights, offsets):
        scores, relevance, rank_weights, offsets = validation.arrays_of_queries(
            scores, relevance, rank_weights, offsets, name, limited, with_relevance, with_weights, unretrieved)
        batch.take(scores, relevance, rank_weights, offsets)
    return batch


# ---------------------------------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------------------------------

cdef object zeros(object shape):
    """Return a new array for results."""
    return ZEROS(shape)


cdef object checked_output(object out, intp_t n_values):
    """Return ``out`` if it is None or an array that results can be copied to."""
    cdef intp_t length = n_values
    if out is not None:
        plain_values(out, &length, True)
    return out if length == n_values else validation.output(out, (n_values,))
