"""The likelihood of a ranking with ties, as a loss."""

from plrank_fast._core.losses.loss cimport LossQuery
from plrank_fast._core.runtime.layout cimport Layout
from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef void lay_out_buckets(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void bucket_order_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil
