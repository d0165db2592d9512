"""A call for one short query whose arguments need no conversion: it reads, copies and checks them in one step.

Published training loops call once per query. The arithmetic for ten documents takes less than a microsecond, and
checking the arguments one by one in Python takes twenty. So beside the entry point of a module there is a function
``lone_...``, which takes the arguments of the public function unchanged, and returns None if one of them is not plain:
a contiguous array of finite doubles, an int, or None. The public function then continues with ``validation``, which
converts arguments and raises the errors. All of this happens before a random number is drawn.

The steps, in this order: ``look_at`` the arrays, describe the ``batch`` of one query like the entry point, ``copy``,
draw the key, ``run``, ``deliver``. The kernel is that of a batch, and so are the bits. A query that is not short is
left to the batch, which divides it into rounds.
"""

import numpy as np

from libc.math cimport fabs, floor, isinf, log2
from libc.string cimport memcpy, memset

from plrank_fast._core.runtime.batch cimport is_short, new_batch, run_query
from plrank_fast._core.runtime.layout cimport aligned
from plrank_fast._core.runtime.magnitudes cimport copy_finite, copy_within_limits
from plrank_fast._core.runtime.plain_arrays cimport new_array, plain_values
from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef extern from "runtime/thread_team.h":
    void plr_count(long long *number)

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept

NOT_TAKEN = object()
cdef object DOUBLE = np.dtype(np.float64), COPYTO = np.copyto
cdef long long DELIVERED = 0


def delivered():
    """Return the number of calls that have delivered results here so far, for tests."""
    return DELIVERED


# ---------------------------------------------------------------------------------------------------------------------
# Options
# ---------------------------------------------------------------------------------------------------------------------

cdef intp_t plain_count(object value, intp_t lowest) noexcept:
    """Return the value of an int from ``lowest`` to 2**30, or -1."""
    cdef int overflow = 0
    cdef long long number
    if type(value) is not int:
        return -1
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    return -1 if overflow or number < lowest or number > LONGEST_PLAIN_COUNT else number


cdef bint plain_real(object value) noexcept:
    """Return whether a double represents the value exactly, and it is finite."""
    return plain_count(value, 0) >= 0 if type(value) is int else type(value) is float and not isinf(<double>value)


cdef bint plain_threads(object n_threads) noexcept:
    """Return whether the value is valid for ``n_threads``; a short query has one thread in any case."""
    cdef int overflow = 0
    return n_threads is None or (
        type(n_threads) is int and (PyLong_AsLongLongAndOverflow(n_threads, &overflow) != 0 or overflow != 0))


cdef bint plain_output(object out, intp_t n_values) noexcept:
    """Return whether results can be copied to ``out``; None stands for a new array."""
    cdef intp_t length
    if out is None:
        return True
    plain_values(out, &length, True)
    return length == n_values


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline bint look_exchanged(const double *scores, const double *others, intp_t n_items) noexcept:
    """Return whether ``validation.same_length``, which warns of exchanged arguments, would examine the arrays."""
    if n_items < 3:
        return False
    if scores[0] == 1.0 and fabs(scores[1] - 1.0 / log2(3.0)) < 1e-5:
        return True
    return scores[0] == floor(scores[0]) and others[0] != floor(others[0])


cdef class LoneQuery:
    """The arrays of a call, and one block of memory with their copies, the results and the workspace of the kernel."""

    cdef bint look_at(self, object scores, object relevance, object rank_weights):
        """Return whether the arrays are plain, and of one query; their values are not checked here."""
        self._given[0] = plain_values(scores, &self._lengths[0], False)
        self._given[1] = self._given[2] = NULL
        self._lengths[1] = self._lengths[2] = 0
        if self._lengths[0] < 1:
            return False
        if relevance is not NOT_TAKEN:
            self._given[1] = plain_values(relevance, &self._lengths[1], False)
            if self._lengths[1] != self._lengths[0]:
                return False
        if rank_weights is not NOT_TAKEN:
            self._given[2] = plain_values(rank_weights, &self._lengths[2], False)
            if self._lengths[2] < 1:
                return False
        self.n_items = self._lengths[0]
        self.n_ranks = min(self._lengths[2], self._lengths[0])
        return True

    cdef Batch batch(self) noexcept:
        """Return a batch of this query, of which the caller still has to set functions and costs."""
        self._offsets[0] = 0
        self._offsets[1] = self.n_items
        return new_batch(self._offsets, 1)

    cdef bint copy(self, const Batch *batch, size_t result_bytes) except -1:
        """Allocate all memory and copy the arrays; False if the query is not short or a value is not plain.

        Relevance and rank weights must be within the limits of their magnitude. Results are 0.
        """
        cdef size_t bytes[3]
        cdef double *copies[3]
        cdef char *memory
        cdef int i
        if not is_short(batch):
            return False
        for i in range(3):
            bytes[i] = aligned(self._lengths[i] * sizeof(double))
        self._n_bytes = result_bytes
        self._memory = Workspaces(1, bytes[0] + bytes[1] + bytes[2] + aligned(result_bytes) + batch.workspace)
        memory = self._memory.of_thread(0)
        for i in range(3):
            copies[i] = <double *>memory
            memory += bytes[i]
            if self._given[i] == NULL:
                continue
            if not (copy_within_limits if i > 0 else copy_finite)(copies[i], self._given[i], self._lengths[i]):
                return False
        if self._given[1] != NULL and look_exchanged(copies[0], copies[1], self.n_items):
            return False
        self.results = memory
        memset(memory, 0, result_bytes)
        self.workspace = memory + aligned(result_bytes)
        self.queries.offsets = self._offsets
        self.queries.scores = copies[0]
        self.queries.relevance = copies[1] if self._given[1] != NULL else NULL
        self.queries.rank_weights = copies[2] if self._given[2] != NULL else NULL
        self.queries.n_ranks = self.n_ranks
        self.queries.next_rank_weights = 0
        return True

    cdef int run(self, const Batch *batch) except -1:
        """Run the kernel without the GIL, then check for interrupts."""
        return run_query(batch, self.workspace)

    cdef object deliver(self, size_t first, size_t n_bytes, object shape, object out, object dtype=DOUBLE):
        """Return ``n_bytes`` of the results, from byte ``first`` on, as an array, in ``out`` if the caller gave one."""
        cdef intp_t length
        cdef double *target
        plr_count(&DELIVERED)
        if out is None:
            return new_array(self.results + first, n_bytes, shape, dtype)
        target = plain_values(out, &length, True)
        if length * sizeof(double) == n_bytes:
            memcpy(target, self.results + first, n_bytes)
        else:  # another thread has changed it in the meantime; NumPy will raise
            COPYTO(out, new_array(self.results + first, n_bytes, shape, dtype))
        return out
