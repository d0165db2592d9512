"""Losses that are likelihoods: pointwise, softmax cross-entropy, ListMLE."""

from plrank_fast._core.losses.loss cimport Loss

cdef Loss pointwise_squared
cdef Loss pointwise_logistic
cdef Loss softmax_cross_entropy
cdef Loss list_mle
