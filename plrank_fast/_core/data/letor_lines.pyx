"""Lines of LETOR files in their usual form. ``data.letor`` reads any other line, or has the words for its fault.

A line in the usual form is ``label qid:N index:value ... # comment`` without a fault, of the last row's query where
qids are strings, and with no column beyond the width so far. So the reader of all lines decides what is valid, and this
one only has to give the same numbers: decimals that are rounded once.
"""

import numpy as np

from libc.float cimport DBL_MAX, FLT_MAX
from libc.math cimport fabs, fma
from libc.string cimport memchr, memcmp

from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t, uint64_t

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, void *no_error) except? -1.0
    const char *PyBytes_AS_STRING(object text) noexcept

cdef enum:
    MOST_DIGITS = 19      # that fit 64 bits
    HIGHEST_POWER = 22    # of 10 that is a double
    DIGITS_OF_INDEX = 10
    LARGEST_SHIFT = 100_000_000
    ROWS = 1 << 13        # to be read at once, and their values: 2 MB
    VALUES = 1 << 17
    NUMBERS_OF_QUERY = 3
cdef uint64_t LARGEST_QID = 0x7FFFFFFFFFFFFFFF, EXACT = 1 << 53
cdef double[HIGHEST_POWER + 1] POWERS
cdef int power
for power in range(HIGHEST_POWER + 1):
    POWERS[power] = 10.0**power


# ---------------------------------------------------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------------------------------------------------

cdef inline bint is_digit(char c) noexcept nogil:
    return <unsigned char>(c - c'0') < 10


cdef inline bint is_blank(char c) noexcept nogil:
    return c == c' ' or c == c'\t'


cdef double converted(const char *number, const char *end) noexcept nogil:
    """Return the number from ``number`` to ``end`` as Python converts it; infinite beyond the largest double."""
    cdef char *stopped = NULL
    cdef double value = 0.0
    with gil:
        try:
            value = PyOS_string_to_double(number, &stopped, NULL)
        except ValueError:
            stopped = NULL
    return value if stopped == end else DBL_MAX * 2.0


cdef inline double quotient(uint64_t digits, double divisor) noexcept nogil:
    """Divide up to 19 digits by a power of 10 up to the 22nd, rounded to the nearest.

    The digits are a sum of two doubles, and what the first quotient leaves over of them is exact. The second quotient
    errs by less than 2**-51 of itself, 2**-103 of the whole. The whole lies at least 2**-65 of itself from the middle
    of any two doubles, unless it is one: then the second quotient is half a unit in the last place, without error.
    """
    cdef double high = <double>digits, low, first
    low = <double><int64_t>(digits - <uint64_t>high)
    first = high / divisor
    return first + (fma(-first, divisor, high) + low) / divisor


cdef const char *read_number(const char *text, double *number) noexcept nogil:
    """Read a decimal number, rounded to the nearest double; return its end, or NULL if there is none.

    Digits of at most 2**53 times or over an exact power of 10 need a single rounding.
    """
    cdef const char *at = text
    cdef const char *first
    cdef uint64_t digits = 0
    cdef intp_t n_digits, exponent = 0, shift = 0
    cdef bint negative = at[0] == c'-', shrinks
    at += negative or at[0] == c'+'
    first = at
    while is_digit(at[0]):
        digits = digits * 10 + <uint64_t>(at[0] - c'0')
        at += 1
    n_digits = at - first
    if at[0] == c'.':
        at += 1
        first = at
        while is_digit(at[0]):
            digits = digits * 10 + <uint64_t>(at[0] - c'0')
            at += 1
        n_digits += at - first
        exponent = first - at
    if n_digits == 0:
        return NULL
    if at[0] == c'e' or at[0] == c'E':
        at += 1
        shrinks = at[0] == c'-'
        at += shrinks or at[0] == c'+'
        first = at
        while is_digit(at[0]):
            shift = min(shift * 10 + (at[0] - c'0'), <intp_t>LARGEST_SHIFT)
            at += 1
        if at == first:
            return NULL
        exponent += -shift if shrinks else shift
    if n_digits <= MOST_DIGITS and digits <= EXACT and -HIGHEST_POWER <= exponent <= HIGHEST_POWER:
        number[0] = digits / POWERS[-exponent] if exponent < 0 else digits * POWERS[exponent]
    elif n_digits <= MOST_DIGITS and -HIGHEST_POWER <= exponent < 0:
        number[0] = quotient(digits, POWERS[-exponent])
    else:
        number[0] = converted(text, at)
        return at
    if negative:
        number[0] = -number[0]
    return at


# ---------------------------------------------------------------------------------------------------------------------
# Lines
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Block:
    const char *text            # ends with a NUL
    const char *stop
    bint has_odd_bytes          # NUL or carriage return
    bint string_qids, narrow
    intp_t first_index, width, longest_line
    bint in_query               # whether there is a last row, whose query is:
    int64_t qid
    const char *name
    intp_t name_length
    double *labels
    int64_t *lengths
    int32_t *columns
    double *values              # or floats
    int64_t *queries            # (n_queries, 3): qid, row, line
    intp_t n_lines, n_rows, n_values, n_queries


cdef inline const char *read_whole_qid(const char *at, int64_t *qid) noexcept nogil:
    """Read a whole number up to 2**63 - 1; return its end, or NULL if there is none."""
    cdef const char *first = at
    cdef const char *significant
    cdef uint64_t number = 0
    while at[0] == c'0':
        at += 1
    significant = at
    while is_digit(at[0]):
        number = number * 10 + <uint64_t>(at[0] - c'0')
        at += 1
    qid[0] = <int64_t>number
    return at if at > first and at - significant <= MOST_DIGITS and number <= LARGEST_QID else NULL


cdef const char *read_name(const Block *block, const char *at, const char *end) noexcept nogil:
    """Read the name of the last row's query; return its end, or NULL if there is another one."""
    if end - at < block.name_length or memcmp(at, block.name, block.name_length) != 0:
        return NULL
    at += block.name_length
    return at if at == end or is_blank(at[0]) else NULL


cdef intp_t read_features(const Block *block, const char *at, const char *end) noexcept nogil:
    """Read what follows the qid; return the number of values, or -1 if anything is unusual."""
    cdef intp_t first_value = block.n_values, n = first_value
    cdef int64_t last = -1, index
    cdef double value
    cdef const char *before
    while True:
        before = at
        while is_blank(at[0]):
            at += 1
        if at == end or at[0] == c'#':
            return n - first_value
        if at == before or not is_digit(at[0]):
            return -1
        before, index = at, 0
        while is_digit(at[0]) and at - before <= DIGITS_OF_INDEX:
            index = index * 10 + (at[0] - c'0')
            at += 1
        index -= block.first_index
        if at[0] != c':' or index <= last or index >= block.width or n == VALUES:
            return -1
        last = index
        at = read_number(at + 1, &value)
        if at == NULL or not fabs(value) <= DBL_MAX:
            return -1
        block.columns[n] = <int32_t>index
        if block.narrow:
            if not fabs(<float>value) <= FLT_MAX:
                return -1
            (<float *>block.values)[n] = <float>value
        else:
            block.values[n] = value
        n += 1


cdef bint read_line(Block *block, const char *at, const char *end) noexcept nogil:
    """Read a line in the usual form; return whether it is."""
    cdef const char *line = at
    cdef double label
    cdef int64_t qid = 0
    cdef intp_t n_values
    if end - line >= block.longest_line:
        return False
    if block.has_odd_bytes:
        while end > line and (end - 1)[0] == c'\r':
            end -= 1
        if memchr(line, c'\r', end - line) != NULL or memchr(line, 0, end - line) != NULL:
            return False
    while is_blank(at[0]):
        at += 1
    if at == end or at[0] == c'#':
        return True
    if block.n_rows == ROWS:
        return False
    at = read_number(at, &label)
    if at == NULL or not is_blank(at[0]) or not fabs(label) <= DBL_MAX:
        return False
    while is_blank(at[0]):
        at += 1
    if at[0] != c'q' or at[1] != c'i' or at[2] != c'd' or at[3] != c':':
        return False
    at = read_name(block, at + 4, end) if block.string_qids else read_whole_qid(at + 4, &qid)
    if at == NULL:
        return False
    n_values = read_features(block, at, end)
    if n_values < 0:
        return False
    if not block.string_qids and not (block.in_query and block.qid == qid):
        block.queries[NUMBERS_OF_QUERY * block.n_queries] = qid
        block.queries[NUMBERS_OF_QUERY * block.n_queries + 1] = block.n_rows
        block.queries[NUMBERS_OF_QUERY * block.n_queries + 2] = block.n_lines
        block.n_queries += 1
        block.in_query, block.qid = True, qid
    block.labels[block.n_rows] = label
    block.lengths[block.n_rows] = n_values
    block.n_rows += 1
    block.n_values += n_values
    return True


cdef const char *read_block(Block *block) noexcept nogil:
    """Read lines up to the first unusual one, or one that there is no room for; return the end of what was read."""
    cdef const char *line = block.text
    cdef const char *end
    while line < block.stop:
        end = <const char *>memchr(line, c'\n', block.stop - line)
        if end == NULL:
            end = block.stop
        if not read_line(block, line, end):
            return line
        block.n_lines += 1
        line = end + (end < block.stop)
    return line


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

ctypedef fused Number:
    float
    double


def new_rows(dtype):
    """Return memory for ``read_lines``: labels, lengths, columns and values of rows; (qid, row, line) of queries."""
    return (
        np.empty(ROWS), np.empty(ROWS, np.int64), np.empty(VALUES, np.int32), np.empty(VALUES, dtype),
        np.empty((ROWS, NUMBERS_OF_QUERY), np.int64))


def read_lines(
    bytes text, intp_t start, bint has_odd_bytes, double[::1] labels, int64_t[::1] lengths, int32_t[::1] columns,
    Number[::1] values, int64_t[:, ::1] queries, intp_t first_index, intp_t width, intp_t longest_line,
    bint string_qids, qid
):
    """Read whole lines from ``start`` on, as many as fit into the arrays of ``new_rows``, up to an unusual one.

    ``has_odd_bytes`` says whether the text holds NUL or carriage returns. ``width`` is the number of columns, a line of
    ``longest_line`` bytes or more is unusual, and ``qid`` is of the row before, or None: an int, or the bytes of a
    string.

    Returns the place behind what was read, and the numbers of its lines, rows, values and queries. If there is no line,
    the next one is unusual.
    """
    cdef Block block
    block.text, block.stop = PyBytes_AS_STRING(text) + start, PyBytes_AS_STRING(text) + len(text)
    block.has_odd_bytes, block.string_qids, block.narrow = has_odd_bytes, string_qids, Number is float
    block.first_index, block.width, block.longest_line = first_index, width, longest_line
    block.in_query, block.qid, block.name, block.name_length = qid is not None, 0, NULL, 0
    if string_qids:
        name = qid if block.in_query else b"\n"  # which no line holds
        block.name, block.name_length = PyBytes_AS_STRING(name), len(name)
    elif block.in_query:
        block.qid = qid
    block.labels, block.lengths, block.columns = &labels[0], &lengths[0], &columns[0]
    block.values, block.queries = <double *>&values[0], &queries[0, 0]
    block.n_lines = block.n_rows = block.n_values = block.n_queries = 0
    with nogil:
        block.stop = read_block(&block)
    return block.stop - PyBytes_AS_STRING(text), block.n_lines, block.n_rows, block.n_values, block.n_queries


def fill_rows(
    Number[:, ::1] features, const int64_t[::1] lengths, const int32_t[::1] columns, const Number[::1] values
):
    """Write the values of each row, of which there are ``lengths``, to their columns of ``features``."""
    cdef intp_t row, i = 0, end = 0
    with nogil:
        for row in range(features.shape[0]):
            end += lengths[row]
            while i < end:
                features[row, columns[i]] = values[i]
                i += 1
