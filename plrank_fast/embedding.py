"""Access to the C interface from Python, for build scripts and for code that calls C functions by their address.

``docs/embedding.md`` says how to use it from Cython, C, C++, Numba and cffi.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

from plrank_fast import cython_plrank, validation
from plrank_fast.validation import KeyArray, RandomState

__all__ = [
    "constants",
    "ctypes_function",
    "declarations",
    "function_address",
    "get_include",
    "stream_key",
    "table_address",
]


def __dir__() -> list[str]:
    return __all__


CTYPES: dict[str, Any] = {
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "char const *": ctypes.c_char_p,
}  # other pointers are untyped: ctypes then takes addresses and None, Numba takes ``array.ctypes`` and 0 for NULL


def get_include() -> str:
    """Return the folder of ``plrank.h``, the header of the C interface.

    Returns
    -------
    str
        A path for the ``include_dirs`` of an extension that includes ``plrank.h``.

    Examples
    --------
    >>> import os, plrank_fast as plr
    >>> os.listdir(plr.get_include())
    ['plrank.h']
    """
    return str(Path(__file__).parent / "include")


def stream_key(rng: RandomState = None) -> KeyArray:
    """Return the key of the random streams that a call with this ``rng`` would use.

    Parameters
    ----------
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the key. A generator is advanced by one draw, as it is by a call.

    Returns
    -------
    ndarray, shape (2,), uint64
        The arguments ``key0`` and ``key1`` of the C function ``plrank_stream_init``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> bool((plr.stream_key(0) == plr.stream_key(0)).all())
    True
    """
    return validation.stream_key(rng)


def function_address(name: str) -> int:
    """Return the address of a C function, such as ``"plrank_top_k"``."""
    functions = cython_plrank.exported_functions()
    return functions[validation.choice(name, "name", sorted(functions))][0]


def ctypes_function(name: str) -> Any:
    """Return a C function with its argument types, to be called through ctypes or from code compiled by Numba.

    Pointers are untyped: an address, or NULL, in ctypes ``array.ctypes.data`` or None, in Numba ``array.ctypes`` or 0.

    Examples
    --------
    >>> from plrank_fast import embedding
    >>> embedding.ctypes_function("plrank_strerror")(embedding.constants()["PLRANK_BAD_STREAM"])
    b'the stream has not been initialised'
    """
    address = function_address(name)
    _, signature = cython_plrank.exported_functions()[name]
    result, arguments = re.fullmatch(r"(.+?) ?\((.*)\)", signature).groups()  # type: ignore[union-attr]
    types = [] if arguments == "void" else [CTYPES.get(argument, ctypes.c_void_p) for argument in arguments.split(", ")]
    return ctypes.CFUNCTYPE(CTYPES[result], *types)(address)


def declarations() -> str:
    """Return the declarations of ``plrank.h`` without preprocessor directives, as ``cffi.FFI.cdef`` takes them.

    The functions are the members of the struct ``plrank_api``, whose address ``table_address`` returns.
    """
    text = (Path(get_include()) / "plrank.h").read_text()
    declared = re.search(r"/\* -+ declarations \*/\n(.*)/\* -+ end of declarations \*/", text, re.DOTALL)
    assert declared is not None
    return declared[1]


def table_address() -> int:
    """Return the address of the table of functions, a ``const plrank_api *``."""
    return cython_plrank.table_address()


def constants() -> dict[str, int]:
    """Return the constants of the C interface: status codes, samplers and other choices.

    Examples
    --------
    >>> from plrank_fast import embedding
    >>> embedding.constants()["PLRANK_OK"]
    0
    """
    found = re.findall(r"^(?:#define |\s+)(PLRANK_\w+) (?:= )?(-?\d+)", declarations(), re.MULTILINE)
    return {name: int(value) for name, value in found}
