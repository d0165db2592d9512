"""Checks of arguments: they convert a user's argument to the type that kernels take, or raise an error that names it.

This package raises all errors about arguments of functions that compute with queries: the modules between it and
``data`` in the map (``_core``) raise none. `require` checks a condition of the call, `each` a condition of every entry
of an array; `real`, `count`, `choice` and `flag` read options; `real_array`, `integer_array` and `query_offsets` read
arrays, whose shape and values `one_entry_each` and `within` check.

Arrays are copied: they must not change, or be reused for ``out``, while a kernel runs without the GIL.
"""

from plrank_fast.validation.arrays import *
from plrank_fast.validation.checks import *
from plrank_fast.validation.choices import *
from plrank_fast.validation.frames import *
from plrank_fast.validation.identifiers import *
from plrank_fast.validation.queries import *
from plrank_fast.validation.random_state import *
from plrank_fast.validation.rankings import *
