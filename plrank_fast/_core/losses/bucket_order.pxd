"""The likelihood of a ranking with ties, as a loss."""

from plrank_fast._core.losses.loss cimport Loss

cdef Loss bucket_order() noexcept nogil
