"""Checks of arguments: they convert a user's argument to the type that kernels take, or raise an error that names it.

This package raises all errors about arguments of functions that compute with queries: the modules from ``build`` to
``compat`` raise none. `require` checks a condition of the call, `each` a condition of every entry of an array; `real`,
`count`, `choice` and `flag` read options; `real_array`, `integer_array` and `query_offsets` read arrays, whose shape
and values `one_entry_each` and `within` check.

Arrays are copied: they must not change, or be reused for ``out``, while a kernel runs without the GIL.
"""

import sys

from plrank_fast._core.runtime import arguments as _arguments
from plrank_fast.validation.array_types import FloatArray as FloatArray
from plrank_fast.validation.array_types import IntArray as IntArray
from plrank_fast.validation.array_types import KeyArray as KeyArray
from plrank_fast.validation.array_types import RandomState as RandomState
from plrank_fast.validation.array_types import RankingArray as RankingArray
from plrank_fast.validation.arrays import LARGEST_MAGNITUDE as LARGEST_MAGNITUDE
from plrank_fast.validation.arrays import SMALLEST_MAGNITUDE as SMALLEST_MAGNITUDE
from plrank_fast.validation.arrays import as_array as as_array
from plrank_fast.validation.arrays import integer_array as integer_array
from plrank_fast.validation.arrays import one_entry_each as one_entry_each
from plrank_fast.validation.arrays import queries_within_limits as queries_within_limits
from plrank_fast.validation.arrays import real_array as real_array
from plrank_fast.validation.arrays import unmasked as unmasked
from plrank_fast.validation.arrays import whole_numbers as whole_numbers
from plrank_fast.validation.arrays import within as within
from plrank_fast.validation.arrays import within_limits as within_limits
from plrank_fast.validation.checks import each as each
from plrank_fast.validation.checks import excluded as excluded
from plrank_fast.validation.checks import given as given
from plrank_fast.validation.checks import goes_with as goes_with
from plrank_fast.validation.checks import groups_of as groups_of
from plrank_fast.validation.checks import of_type as of_type
from plrank_fast.validation.checks import only_one as only_one
from plrank_fast.validation.checks import refuse_unknown as refuse_unknown
from plrank_fast.validation.checks import require as require
from plrank_fast.validation.checks import shown as shown
from plrank_fast.validation.identifiers import distinct as distinct
from plrank_fast.validation.identifiers import distinct_names as distinct_names
from plrank_fast.validation.identifiers import file_paths as file_paths
from plrank_fast.validation.identifiers import identifier_strings as identifier_strings
from plrank_fast.validation.identifiers import query_identifiers as query_identifiers
from plrank_fast.validation.outputs import addressable as addressable
from plrank_fast.validation.outputs import broadcast_with_batch as broadcast_with_batch
from plrank_fast.validation.outputs import deliver as deliver
from plrank_fast.validation.outputs import output as output
from plrank_fast.validation.outputs import output_pair as output_pair
from plrank_fast.validation.outputs import representable as representable
from plrank_fast.validation.outputs import tolerance_missed as tolerance_missed
from plrank_fast.validation.queries import arrays_of_queries as arrays_of_queries
from plrank_fast.validation.queries import batch_offsets as batch_offsets
from plrank_fast.validation.queries import items_that_can_be_drawn as items_that_can_be_drawn
from plrank_fast.validation.queries import list_lengths as list_lengths
from plrank_fast.validation.queries import longest_list as longest_list
from plrank_fast.validation.queries import query_offsets as query_offsets
from plrank_fast.validation.queries import same_offsets as same_offsets
from plrank_fast.validation.queries import weights_of as weights_of
from plrank_fast.validation.queries import weights_of_queries as weights_of_queries
from plrank_fast.validation.queries import weights_of_ranks as weights_of_ranks
from plrank_fast.validation.random_state import DrawnKey as DrawnKey
from plrank_fast.validation.random_state import check_random_state as check_random_state
from plrank_fast.validation.random_state import seed_sequence as seed_sequence
from plrank_fast.validation.random_state import stream_key as stream_key
from plrank_fast.validation.rankings import chances as chances
from plrank_fast.validation.rankings import given_rankings as given_rankings
from plrank_fast.validation.rankings import importance_weights as importance_weights
from plrank_fast.validation.rankings import like_rankings as like_rankings
from plrank_fast.validation.rankings import one_bucket_each as one_bucket_each
from plrank_fast.validation.rankings import possible as possible
from plrank_fast.validation.rankings import reward_baseline as reward_baseline
from plrank_fast.validation.rankings import values_of_rankings as values_of_rankings
from plrank_fast.validation.scalars import LARGEST_COUNT as LARGEST_COUNT
from plrank_fast.validation.scalars import choice as choice
from plrank_fast.validation.scalars import count as count
from plrank_fast.validation.scalars import factor as factor
from plrank_fast.validation.scalars import flag as flag
from plrank_fast.validation.scalars import ranks_of_lists as ranks_of_lists
from plrank_fast.validation.scalars import ranks_that_count as ranks_that_count
from plrank_fast.validation.scalars import real as real
from plrank_fast.validation.scalars import relative_tolerance as relative_tolerance
from plrank_fast.validation.scalars import threads as threads
from plrank_fast.validation.scores import of_documents as of_documents
from plrank_fast.validation.scores import same_length as same_length
from plrank_fast.validation.scores import shape_of_scores as shape_of_scores
from plrank_fast.validation.scores import warn as warn
from plrank_fast.validation.scores import warn_if_gains as warn_if_gains

_arguments.read_others_with(sys.modules[__name__])
