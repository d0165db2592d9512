"""Scalar types of the compiled core.

Indices inside a kernel are ``intp_t``. Integers in arrays have a fixed width: documents of a ranking ``int32_t``,
offsets ``int64_t``, random words ``uint64_t``. Real numbers are ``double`` throughout.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef Py_ssize_t intp_t
