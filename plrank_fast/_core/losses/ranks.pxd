"""Losses that make ranks smooth: ApproxNDCG and SoftRank."""

from plrank_fast._core.losses.loss cimport Loss

cdef Loss approx_ndcg
cdef Loss soft_rank
