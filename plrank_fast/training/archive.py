"""Files of arrays and a JSON header; a crash at any instant leaves the old or the new file.

A line of text (kind, format version, SHA-256 of the rest) precedes a NumPy ``.npz`` of little-endian arrays. Nothing is
pickled; the digest reveals every flipped bit and every truncation before a byte is interpreted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plrank_fast import __version__
from plrank_fast._shared.files import open_regular, write_atomically

FORMAT_VERSIONS = {"checkpoint": 3, "model": 1}  # by kind; increases when the entries of a header change

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write an archive atomically; equal content gives equal bytes.

    Parameters
    ----------
    path : path-like
        File to replace in one step once the new one is safely on the disk.
    kind : str
        One of `FORMAT_VERSIONS`, which reading checks.
    header : mapping
        Any values that JSON can hold.
    arrays : mapping of str to ndarray
        Arrays of numbers.

    Raises
    ------
    OSError
        If the folder cannot be written or the disk is full; the error names ``path``, where an earlier file is intact.
    """
    buffer = io.BytesIO()
    text = json.dumps(header, allow_nan=False, sort_keys=True).encode()
    contents: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **_in_order("<", arrays)}
    np.savez(buffer, **contents)
    payload = buffer.getvalue()
    digest = hashlib.sha256(payload).hexdigest()
    write_atomically(path, f"plrank-fast {kind} {FORMAT_VERSIONS[kind]} {digest}\n".encode() + payload)


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read an archive.

    Parameters
    ----------
    path : path-like
        A file that `write_archive` wrote.
    kind : str
        The expected kind.

    Returns
    -------
    header : dict
    arrays : dict of str to ndarray

    Raises
    ------
    ValueError
        If the file is not of this kind, of another format version (the message names both), or damaged.
    OSError
        If it cannot be read, or is not a regular file.
    """
    path = Path(path)
    with open_regular(path) as file:
        first, newline, payload = file.read().partition(b"\n")
    words = first.decode("ascii", "replace").split(" ")
    expected = f"this plrank-fast ({__version__}) reads {kind} format version {FORMAT_VERSIONS[kind]}"
    if not newline or len(words) != 4 or words[0] != "plrank-fast":
        raise ValueError(f"{kind} {path} is not a {kind} file, or its first line is damaged; {expected}")
    if words[1] != kind:
        raise ValueError(f"{kind} {path} is a {words[1]} file; {expected}")
    if words[2] != str(FORMAT_VERSIONS[kind]):
        raise ValueError(f"{kind} {path} has format version {words[2]}; {expected}")
    if hashlib.sha256(payload).hexdigest() != words[3]:
        raise ValueError(f"{kind} {path} is damaged: its contents do not match its SHA-256; {expected}")
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as directory:
            declared = sum(entry.file_size for entry in directory.infolist())
        if declared > len(payload):  # `write_archive` compresses nothing
            raise ValueError(f"its arrays would take {declared} bytes, more than the file has")
        with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
            arrays = _in_order("=", {name: archive[name] for name in archive.files})
        header = json.loads(arrays.pop("header").tobytes())
        if not isinstance(header, dict):
            raise ValueError(f"its header is not a JSON object but {type(header).__name__}")
    except Exception as error:  # np.load raises many types; the digest is right, so another program wrote the file
        raise ValueError(f"{kind} {path} cannot be read ({error!r}); {expected}") from error
    return header, arrays


def _in_order(order: Literal["<", "="], arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """Return the arrays in little-endian ("<") or the machine's own ("=") byte order."""
    return {name: array.astype(array.dtype.newbyteorder(order), copy=False) for name, array in arrays.items()}


@contextlib.contextmanager
def interpreting(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Name the file in errors about the contents of an intact archive, such as entries missing or of a wrong type.

    Raises
    ------
    ValueError
        If the block raises an error of another type.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RuntimeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{kind} {os.fspath(path)} is of another version than plrank-fast {__version__}: {what}"
        ) from error
