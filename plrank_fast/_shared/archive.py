"""Files of arrays and a JSON header; a crash at any instant leaves the old or the new file.

A line of text (kind, format version, SHA-256 of the rest) precedes a line of JSON (the header, and type and shape of
each array) and the bytes of the arrays, each at a multiple of `ALIGNMENT`. Nothing is pickled; the digest reveals
every flipped bit and every truncation before a byte is interpreted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from plrank_fast._shared import files
from plrank_fast.build import __version__

VERSION = 1  # increases when the format, or the entries of a header, change
ALIGNMENT = 64
# Python knows the flag by name since 3.13. Other systems need none; Linux ignores bits that it does not know.
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    mode: int | None = None,
) -> None:
    """Write an archive atomically; equal content gives equal bytes.

    ``kind`` is a word, which reading checks. ``mode`` has the permissions of a file that several processes may write
    at once; see `files.replacing`. If an OSError is raised, an earlier file is intact.
    """
    little = {
        name: np.asarray(arrays[name], arrays[name].dtype.newbyteorder("<"), order="C") for name in sorted(arrays)
    }
    described = {name: (array.dtype.str, array.shape) for name, array in little.items()}
    text = json.dumps({"header": header, "arrays": described}, allow_nan=False, sort_keys=True).encode()
    begin = f"plrank-fast {kind} {VERSION} "
    space = -(len(begin) + 65 + len(text) + 1) % ALIGNMENT  # 65: the digest and its end of line
    parts: list[Any] = [text, b" " * space + b"\n"]
    for array in little.values():
        parts += [array.reshape(-1).view(np.uint8), bytes(-array.nbytes % ALIGNMENT)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with files.replacing(path, mode=mode) as file:
        file.writelines([f"{begin}{digest.hexdigest()}\n".encode(), *parts])


def read_archive(path: str | os.PathLike[str], kind: str, *, mapped: bool = False) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the arrays of an archive; raise ValueError if it is of another kind or version, or damaged.

    They may be ``mapped`` into memory: changing the arrays does not change the file. Otherwise they are read-only.
    """
    with files.open_regular(path) as file:
        content = mapped_memory(file) if mapped and os.fstat(file.fileno()).st_size else file.read()
    end = content.find(b"\n")
    words = content[: max(0, end)].decode("ascii", "replace").split(" ")
    name = f"{kind} {os.fspath(path)}"
    expected = f"this plrank-fast ({__version__}) reads {kind} format version {VERSION}"
    if len(words) != 4 or words[0] != "plrank-fast":
        raise ValueError(f"{name} is not a {kind} file, or its first line is damaged; {expected}")
    if words[1] != kind:
        raise ValueError(f"{name} is a {words[1]} file; {expected}")
    if words[2] != str(VERSION):
        raise ValueError(f"{name} has format version {words[2]}; {expected}")
    if hashlib.sha256(memoryview(content)[end + 1 :]).hexdigest() != words[3]:
        raise ValueError(f"{name} is damaged: its contents do not match its SHA-256; {expected}")
    try:
        start = content.find(b"\n", end + 1) + 1
        described = json.loads(content[end + 1 : start])
        header, arrays = described["header"], {}
        if not isinstance(header, dict):
            raise ValueError(f"its header is not a JSON object but {type(header).__name__}")
        for entry, (dtype, shape) in described["arrays"].items():
            array = np.frombuffer(content, dtype, math.prod(shape), start).reshape(shape)
            if list(array.shape) != shape:
                raise ValueError(f"its {entry} has shape {shape}")
            arrays[entry] = array.astype(array.dtype.newbyteorder("="), copy=False)
            start += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    except Exception as error:  # its type may be any; the digest is right, so another program wrote the file
        raise ValueError(f"{name} cannot be read ({error!r}); {expected}") from error
    return header, arrays


def mapped_memory(file: BinaryIO) -> mmap.mmap:
    """Map a file copy-on-write, whatever its size.

    Without NO_RESERVE Linux reserves memory for every page that could be written to, and refuses files larger than the
    machine's memory.
    """
    return mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE | NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE)


@contextlib.contextmanager
def interpreting(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Name the file in errors about the contents of an intact archive, such as entries missing or of a wrong type."""
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, RuntimeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{kind} {os.fspath(path)} is of another version than plrank-fast {__version__}: {what}"
        ) from error


def require_arrays(arrays: Arrays, like: Arrays) -> None:
    """Raise ValueError unless an archive has arrays of these names, shapes and types, and all their numbers finite."""
    for name in sorted(like.keys() | arrays.keys()):
        wanted, held = (
            f"{of[name].dtype} of shape {of[name].shape}" if name in of else "none" for of in (like, arrays)
        )
        if held != wanted:
            raise ValueError(f"its header means an array {name}: {wanted}, it holds {held}")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"its {name} must be finite")
