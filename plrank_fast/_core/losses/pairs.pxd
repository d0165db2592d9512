"""Losses over pairs of documents with unequal labels: pairwise logistic, LambdaRank, LambdaLoss."""

from plrank_fast._core.losses.loss cimport Loss

cdef Loss pairwise_logistic
cdef Loss lambda_loss
