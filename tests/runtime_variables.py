"""The variables of the compiled ``threads``, which it exports to modules below it: tests read and set them from here.

The path of a query depends on estimates and on time, but its result must not depend on them, nor on the memory that is
kept for the next call.
"""

import ctypes
import os

from plrank_fast._core.runtime import teams, threads

OTHER_COSTS = os.environ.get("PLRANK_FAST_OTHER_COSTS") == "1"  # than those that ship: `make matrix` compiles them

_name = ctypes.pythonapi.PyCapsule_GetName
_name.argtypes, _name.restype = [ctypes.py_object], ctypes.c_char_p
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


class Spares(ctypes.Structure):
    """``spare_blocks`` of ``kernels/runtime/memory.h``."""

    _fields_ = [("block", 8 * ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("kept", ctypes.c_size_t)]


class Sizes(ctypes.Structure):
    """``team_sizes`` of ``kernels/runtime/team_size.h``."""

    _fields_ = [
        *(("waking", 40 * ctypes.c_double), ("factors", 512 * ctypes.c_double)),
        *(("credit", ctypes.c_double), ("limit", ctypes.c_int), ("limited_until", ctypes.c_double)),
    ]


def _variable(name, kind, module=threads):
    capsule = module.__pyx_capi__[name]
    return kind.from_address(_pointer(capsule, _name(capsule)))


_looks, _team = _variable("LOOKS", ctypes.c_longlong), _variable("LARGEST_TEAM", ctypes.c_int, teams)
_shared_loops = _variable("SHARED_LOOPS", ctypes.c_longlong, teams)
sizes = _variable("SIZES", Sizes, teams)
_spares = _variable("SPARES", Spares)
_costs = {
    "round_ns": _variable("ROUND_NS", ctypes.c_double),
    "teams": _variable("TEAMS", ctypes.c_int, teams),
    "learnt_factor": _variable("LEARNT_FACTOR", ctypes.c_double),
    "spare_bytes": _variable("MOST_SPARE", ctypes.c_size_t),
}


def set_costs(**costs):
    """Set what decides about rounds, threads and kept memory; the previous values. What was learnt is forgotten."""
    before = {name: variable.value for name, variable in _costs.items()}
    ctypes.memset(ctypes.addressof(sizes), 0, ctypes.sizeof(sizes))
    for name, value in costs.items():
        _costs[name].value = value
    return before


def looks():
    """How often calls have checked for interrupts; the time between checks depends on the machine."""
    return _looks.value


def team_that_ran():
    """The size of the largest team since the last call: on a single processor, tests of threads would pass on one."""
    size, _team.value = _team.value, 0
    return size


def shared_loops():
    """The number of loops since the last call of which no thread did nine tenths."""
    number, _shared_loops.value = _shared_loops.value, 0
    return number


def drop_spare():
    """Free the kept memory: the next call has to allocate."""
    kept = [block for block in _spares.block if block]
    ctypes.memset(ctypes.addressof(_spares), 0, ctypes.sizeof(_spares))
    for block in kept:
        ctypes.CDLL(None).free(ctypes.c_void_p(block))


def spare_sizes():
    """The sizes of the blocks that are kept, the last one first, and their sum as it is counted."""
    return [ctypes.c_size_t.from_address(block).value for block in _spares.block if block], _spares.bytes
