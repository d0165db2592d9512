"""Losses that are likelihoods: pointwise, softmax cross-entropy, ListMLE."""

from plrank_fast._core.losses.loss cimport Loss

cdef Loss pointwise_squared() noexcept nogil
cdef Loss pointwise_logistic() noexcept nogil
cdef Loss softmax_cross_entropy() noexcept nogil
cdef Loss list_mle() noexcept nogil
