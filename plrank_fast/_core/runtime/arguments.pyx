"""The arrays of a call: what needs no conversion is copied here, and ``validation`` converts everything else.

Published training loops call once per query. The arithmetic for ten documents takes less than a microsecond, and
checking the arguments one by one in Python takes twenty. So ``validation.batch`` first asks ``plain_batch``, which
recognises contiguous arrays of finite native numbers. The copies are the same as those that ``validation`` makes.
Functions that are called for one query at a time first hand a ``plain_query`` to a function of the core named
``..._plain``, which takes options as they are. It computes if all are plain: of the exact type, in range, and without
``out``. Otherwise it returns None, and ``validation`` reads every argument.

The arrays of a large batch are copied, converted and checked in a single pass, which threads share. What else a
function must know of them, such as whether a label is negative, the pass finds out too.
"""

import numpy as np

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport floor
from libc.string cimport memcmp, memcpy

from plrank_fast._core.runtime.buffers cimport integers, numbers
from plrank_fast._core.runtime.magnitudes cimport (
    PLR_DOUBLES, PLR_FLOATS, PLR_INTS, PLR_KINDS, PLR_LIMIT_EXPONENT, PLR_LONGS, PLR_NOT_FINITE, each_within,
    found_by_threads, found_in, found_while_copying, plr_add_flags,
)
from plrank_fast._core.runtime.queries cimport Queries, all_alike
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t, uint64_t
from plrank_fast._core.runtime.teams cimport run_ranges
from plrank_fast._core.runtime.threads cimport Workspaces, resolve_threads

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept

ABSENT = object()      # stands for an array that a function does not take
LONGEST_LIST = 10_000  # documents without offsets and without a warning
cdef intp_t LONGEST_QUERY = LONGEST_LIST
cdef double LARGEST_FACTOR = 2.0**PLR_LIMIT_EXPONENT, SMALLEST_FACTOR = 1.0 / LARGEST_FACTOR
cdef object EMPTY = np.empty, ZEROS = np.zeros, INT64 = np.dtype(np.int64), NDARRAY = np.ndarray
cdef intp_t FEW = 4096               # items of which a pass takes less time than to look at the number of processors


# ---------------------------------------------------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------------------------------------------------

cdef enum:
    LARGEST_PLAIN_COUNT = 1 << 30


cdef bint is_plain_count(object value, intp_t lowest, intp_t *number) noexcept:
    """Return whether the value is an int from ``lowest`` to 2**30, and set ``number`` to it."""
    cdef int overflow = 0
    if type(value) is not int:
        return False
    number[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0 and lowest <= number[0] <= LARGEST_PLAIN_COUNT


cdef bint is_plain_cutoff(object value, intp_t *number) noexcept:
    """Return whether the value is None, which sets ``number`` to -1, or an int from 0 to 2**30."""
    number[0] = -1
    return value is None or is_plain_count(value, 0, number)


cdef bint is_plain_factor(object value) noexcept:
    """Return whether the value is a float from 2**-200 to 2**200."""
    return type(value) is float and SMALLEST_FACTOR <= value <= LARGEST_FACTOR


cdef bint copy_plain_counts(list values, int64_t *copies, intp_t n_values) noexcept:
    """Copy a list if it holds so many ints from 0 to 2**30; return whether it does."""
    cdef intp_t i = 0, number = 0
    for value in values:
        if i == n_values or not is_plain_count(value, 0, &number):
            return False
        copies[i] = number
        i += 1
    return i == n_values


# ---------------------------------------------------------------------------------------------------------------------
# Arrays
# ---------------------------------------------------------------------------------------------------------------------

cdef inline int kind_of(const Py_buffer *view) noexcept:
    """Return the kind of numbers, one of ``magnitudes.h``, or -1."""
    cdef char name = view.format[0]
    if view.format[1] != 0:
        return -1
    if view.itemsize == 8:
        return PLR_DOUBLES if name == b"d" else PLR_LONGS if name in (b"l", b"q") else -1
    if view.itemsize == 4:
        return PLR_FLOATS if name == b"f" else PLR_INTS if name == b"i" else -1
    return -1


cdef const void *plain(object array, int *kind, intp_t *n_values) noexcept:
    """Return the values of a one-dimensional, contiguous array of native numbers; NULL and a count of -1 for others.

    ``kind`` is that of the numbers, or ``PLR_KINDS`` to learn it. The pointer is valid until the array is freed or
    resized. A subclass, such as a masked array, is not plain.
    """
    cdef Py_buffer view
    cdef const void *values = NULL
    cdef int found
    n_values[0] = -1
    if type(array) is not NDARRAY:
        return NULL
    try:
        PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_STRIDES)
    except (BufferError, ValueError):  # no format describes its type
        return NULL
    found = kind_of(&view)
    if found >= 0 and kind[0] in (found, PLR_KINDS) and view.ndim == 1 and view.strides[0] == view.itemsize:
        values, kind[0], n_values[0] = view.buf, found, view.shape[0]
    PyBuffer_Release(&view)
    return values


cdef inline bint look_exchanged(const double *scores, const double *others, intp_t n_items) noexcept:
    """Return whether ``validation.of_documents``, which warns of exchanged arguments, could have reason to."""
    return n_items >= 3 and scores[0] == floor(scores[0]) and (scores[0] == 1.0 or others[0] != floor(others[0]))


cdef bint is_plain_number_of_threads(object n_threads) noexcept:
    cdef intp_t number
    return n_threads is None or (is_plain_count(n_threads, -LARGEST_PLAIN_COUNT, &number) and number != 0)


cdef int threads_of_pass(object n_threads, intp_t n_items) except -1:
    """Return the number of threads for passes over all items; an argument that is not plain is judged later."""
    return resolve_threads(n_threads) if n_items > FEW and is_plain_number_of_threads(n_threads) else 1


cdef struct Columns:
    Column scores
    Column relevance


cdef int copy_column(Column *column, intp_t start, intp_t stop) noexcept nogil:
    """Copy the numbers of some items; return what was found among them."""
    cdef size_t width = 4 if column.kind == PLR_FLOATS or column.kind == PLR_INTS else 8
    cdef int found = found_while_copying(column.copy + start, column.given + start * width, column.kind, stop - start)
    plr_add_flags(&column.found, found)
    return found


cdef void copy_columns(void *columns_, intp_t start, intp_t stop) noexcept nogil:
    cdef Columns *columns = <Columns *>columns_
    copy_column(&columns.scores, start, stop)
    if columns.relevance.given != NULL:
        copy_column(&columns.relevance, start, stop)


cdef void copy_one_column(void *column, intp_t start, intp_t stop) noexcept nogil:
    copy_column(<Column *>column, start, stop)


def plain_copy(values, n_threads, int refused=0):
    """Return a copy, in doubles, of a contiguous array of native numbers of any shape; None if it is anything else.

    None is returned too if a value is not finite, or has one of the ``refused`` flags. One pass, which threads share.
    """
    cdef Column column
    cdef double[::1] copies
    cdef intp_t n
    if type(values) is not NDARRAY:
        return None
    column.kind, column.found = PLR_KINDS, 0
    flat = values if values.ndim == 1 else values.reshape(-1)
    column.given = <const char *>plain(flat, &column.kind, &n)
    if n < 1:
        return None
    copy = EMPTY(values.shape)
    copies = copy.reshape(-1)
    column.copy = &copies[0]
    run_ranges(copy_one_column, &column, n, 1.0, threads_of_pass(n_threads, n))
    return None if column.found & (PLR_NOT_FINITE | refused) else copy


def same_numbers(first, second):
    """Return whether two arrays hold the same numbers, which plain ones of the same bytes do: most are such."""
    cdef int kind = PLR_KINDS
    cdef intp_t n, n_others
    cdef const void *bytes_of_first = plain(first, &kind, &n)
    cdef const void *others = plain(second, &kind, &n_others)
    if n == n_others > 0 and memcmp(bytes_of_first, others, n * first.itemsize) == 0:
        return True
    return np.array_equal(first, second)


def found_among(const double[::1] values, n_threads):
    """Return the flags of ``magnitudes.h`` for what occurs among the values, in one pass, which threads share."""
    return found_by_threads(numbers(values), values.shape[0], threads_of_pass(n_threads, values.shape[0]))


def are_all_alike(const double[::1] relevance, const int64_t[::1] offsets):
    """Return whether no query has documents of different relevance."""
    cdef Queries queries = Queries(integers(offsets), NULL, numbers(relevance), NULL, 0, 0)
    return bool(all_alike(&queries, offsets.shape[0] - 1))


cdef class CheckedBatch:
    """The arrays of a call, copied and checked: nobody can change them while a kernel runs without the GIL."""

    cdef bint read_plain(
        self, object scores, object relevance, object rank_weights, object offsets, object n_threads
    ) except -1:
        """Copy the arrays if all of them are plain; else return False.

        Relevance and rank weights must be 0 or within the limits of magnitude, entry by entry.
        """
        cdef intp_t n_items, n_relevance = 0, n_ranks = 0, n_offsets = 2
        cdef Columns columns
        cdef const double *given_weights = NULL
        cdef const int64_t *given_offsets = NULL
        cdef int doubles = PLR_DOUBLES, longs = PLR_LONGS
        cdef Workspaces copies
        cdef double *rank_weights_
        cdef int64_t *starts
        columns.scores.kind = columns.relevance.kind = PLR_KINDS
        columns.scores.given = <const char *>plain(scores, &columns.scores.kind, &n_items)
        columns.relevance.given = NULL
        columns.scores.found = columns.relevance.found = 0
        if n_items < 1 or not is_plain_number_of_threads(n_threads):
            return False
        if relevance is not ABSENT:
            columns.relevance.given = <const char *>plain(relevance, &columns.relevance.kind, &n_relevance)
            if n_relevance != n_items:
                return False
        if rank_weights is not ABSENT:
            given_weights = <const double *>plain(rank_weights, &doubles, &n_ranks)
            if n_ranks < 1:
                return False
        if type(offsets) is list:
            n_offsets = len(offsets)
        elif offsets is not None:
            given_offsets = <const int64_t *>plain(offsets, &longs, &n_offsets)
        if n_offsets < 2:
            return False
        # the four arrays one after another, in words of 64 bits
        copies = Workspaces(1, (n_items + n_relevance + n_ranks + n_offsets) * sizeof(double))
        columns.scores.copy = <double *>copies.of_thread(0)
        columns.relevance.copy = columns.scores.copy + n_items
        rank_weights_ = columns.relevance.copy + n_relevance
        starts = <int64_t *>(rank_weights_ + n_ranks)
        if offsets is None:
            starts[0], starts[1] = 0, n_items
        elif given_offsets != NULL:
            memcpy(starts, given_offsets, n_offsets * sizeof(int64_t))
        elif not copy_plain_counts(<list>offsets, starts, n_offsets):
            return False
        run_ranges(copy_columns, &columns, n_items, 1.0, threads_of_pass(n_threads, n_items))
        self.found_in_scores, self.found_in_relevance = columns.scores.found, columns.relevance.found
        if n_ranks > 0:
            self.found_in_rank_weights = found_while_copying(rank_weights_, given_weights, PLR_DOUBLES, n_ranks)
        if (
            columns.scores.found & PLR_NOT_FINITE or not each_within(columns.relevance.found)
            or not each_within(self.found_in_rank_weights)
            or (n_relevance > 0 and look_exchanged(columns.scores.copy, columns.relevance.copy, n_items))
        ):
            return False
        self.copies, self.n_threads, self.n_ranks = copies, n_threads, n_ranks
        self.queries.offsets, self.queries.scores = starts, columns.scores.copy
        if n_relevance > 0:
            self.queries.relevance = columns.relevance.copy
        if n_ranks > 0:
            self.queries.rank_weights = rank_weights_
        return self.measure(n_items, n_offsets - 1)

    cdef bint measure(self, intp_t n_items, intp_t n_queries) noexcept:
        """Find the longest query; return whether the offsets are those of queries of these items."""
        cdef const int64_t *offsets = self.queries.offsets
        cdef uint64_t longest = 0  # more than there are items, if offsets decrease
        cdef intp_t q
        for q in range(n_queries):
            longest = max(longest, <uint64_t>(offsets[q + 1] - offsets[q]))
        self.n_items, self.n_queries, self.longest = n_items, n_queries, longest
        self.queries.n_ranks = min(self.n_ranks, self.longest)
        return longest <= <uint64_t>n_items and offsets[0] == 0 and offsets[n_queries] == n_items

    def all_alike(self):
        """Return whether no query has documents of different relevance."""
        return bool(all_alike(&self.queries, self.n_queries))

    def scores_array(self):
        """Return a copy of the scores."""
        return copy_of(self.queries.scores, self.n_items)

    def relevance_array(self):
        """Return a copy of the relevance."""
        return copy_of(self.queries.relevance, self.n_items)

    def offsets_array(self):
        """Return a copy of the offsets."""
        array = EMPTY(self.n_queries + 1, INT64)
        cdef int64_t[::1] copies = array
        memcpy(&copies[0], self.queries.offsets, (self.n_queries + 1) * sizeof(int64_t))
        return array


def plain_batch(scores, relevance, rank_weights, offsets, n_threads):
    """Return the batch of these arrays, or None unless all of them are plain, or ``ABSENT``."""
    cdef CheckedBatch batch = CheckedBatch.__new__(CheckedBatch)
    return batch if batch.read_plain(scores, relevance, rank_weights, offsets, n_threads) else None


def plain_query(scores, relevance, rank_weights, n_threads):
    """Return the batch of a single query if there is nothing left to check or to warn of, or None."""
    cdef CheckedBatch batch = CheckedBatch.__new__(CheckedBatch)
    if not batch.read_plain(scores, relevance, rank_weights, None, n_threads) or batch.n_items > LONGEST_QUERY:
        return None
    return batch


def batch_of(scores, relevance, rank_weights, offsets, n_threads):
    """Return the batch of checked copies: relevance and rank weights, as rows, may be None."""
    cdef CheckedBatch batch = CheckedBatch.__new__(CheckedBatch)
    cdef intp_t n_items = scores.size, n_rows = 0
    flat = None if rank_weights is None else rank_weights.reshape(-1)
    batch.copies, batch.n_threads = (scores, relevance, flat, offsets), n_threads
    batch.queries.offsets, batch.queries.scores = integers(offsets), numbers(scores)
    batch.found_in_scores = found_in(batch.queries.scores, n_items)
    if relevance is not None:
        batch.queries.relevance = numbers(relevance)
        batch.found_in_relevance = found_in(batch.queries.relevance, n_items)
    if rank_weights is not None:
        batch.queries.rank_weights = numbers(flat)
        n_rows, batch.n_ranks = rank_weights.shape
        batch.found_in_rank_weights = found_in(batch.queries.rank_weights, n_rows * batch.n_ranks)
        batch.queries.next_rank_weights = batch.n_ranks if n_rows > 1 else 0
    batch.measure(n_items, offsets.size - 1)
    return batch


# ---------------------------------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------------------------------

cdef double *memory_of(object array) except? NULL:
    """Return the first of the numbers of an array that this module has made."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)
    PyBuffer_Release(&view)
    return <double *>view.buf


cdef object zeros(intp_t n_values, double **values):
    """Return a new array for results, and set ``values`` to its memory."""
    array = ZEROS(n_values)
    values[0] = memory_of(array)
    return array


cdef object empty(intp_t n_values, double **values):
    """Return a new array of numbers that are all to be set, and set ``values`` to its memory."""
    array = EMPTY(n_values)
    values[0] = memory_of(array)
    return array


cdef object copy_of(const double *given, intp_t n_values):
    """Return a new array of these numbers."""
    cdef double *values
    array = empty(n_values, &values)
    memcpy(values, given, n_values * sizeof(double))
    return array


cdef object result_of(const Queries *queries, intp_t n_queries, intp_t n_values, double **values):
    """Return a new array for the result of a batch, one for each query or each item, and set ``values`` to its memory.

    The result of a query of several items is not set: whichever thread computes it is the first to touch it. That of a
    single item, which most functions skip, is 0, and so is everything if no rank counts.
    """
    cdef intp_t q
    if n_values == n_queries or queries.n_ranks == 0:
        return zeros(n_values, values)
    array = empty(n_values, values)
    for q in range(n_queries):
        if queries.offsets[q + 1] - queries.offsets[q] == 1:
            values[0][queries.offsets[q]] = 0.0
    return array
