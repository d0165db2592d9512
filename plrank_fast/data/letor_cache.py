"""Binary copies of parsed LETOR text, from which features are mapped into memory.

One file holds the result of one call of `load_letor`: a line that names the format, the length and checksum of a
header, the header (JSON: options, texts, and of each array its type, shape, place and checksum), and the bytes of the
arrays. Nothing in it is executed or unpickled.

A copy is used only if two checks show that it is whole and belongs to the present text:

- The CRC-32 of all of its bytes, when it is opened, which takes about a tenth of a second for 130 MB.
- Size, times of change and a hash of blocks spread over each text. If only the times differ (the files were copied or
  touched), a hash of the whole text decides.

Copies are written to a temporary file and then renamed, so that no reader ever sees half of one.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import platform
import stat
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._shared.files import open_regular, replacing
from plrank_fast.data.ranking_data import RankingData

FAMILY = b"plrank_fast LETOR cache, format "
MAGIC = FAMILY + b"1\n"
PREFIX = struct.Struct("<QI")  # length and checksum of the header
SUFFIX = ".letor-cache"
ALIGNMENT = 64
ARRAYS = ("features", "labels", "offsets", "query_ids")
BLOCK_BYTES = 2**14
# Python knows the flag by name since 3.13. Other systems need none, or have none.
NO_RESERVE = 0
if sys.platform == "linux":
    NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if platform.machine() in ("x86_64", "aarch64") else 0)
SAMPLED_BLOCKS = 64  # texts of up to a megabyte are hashed whole at each opening


def cached(
    paths: Sequence[str], options: Mapping[str, Any], folder: str | os.PathLike[str] | None, parse: Callable[[], Any]
) -> RankingData:
    """Return the data of ``paths`` from their cache, or parse them and write it.

    Parameters
    ----------
    paths : sequence of str
        Regular files.
    options : mapping
        Everything else that the result depends on, as JSON, such as ``dtype`` of the features and ``string_qids``.
    folder : path-like, optional
        Where caches are kept; beside the first text by default.
    parse : callable
        Reads the text.

    Returns
    -------
    RankingData
        The data, with features mapped copy-on-write if they come from the cache: changing them changes no file.

    Warns
    -----
    UserWarning
        If the cache is damaged (it is written anew), or cannot be read or written (only speed is lost).

    Raises
    ------
    ValueError
        If a path is not a regular file.
    """
    for path in paths:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(f"cache must be False for a path that is not a regular file, got {path}")
    home = Path(folder) if folder is not None else Path(paths[0]).parent
    key = {"texts": [_relative(path, home) for path in paths], "options": dict(options)}
    digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=5).hexdigest()
    cache = home / f"{Path(paths[0]).name}.{digest}{SUFFIX}"
    try:
        return _opened(cache, paths, key)
    except (FileNotFoundError, NotADirectoryError, StaleCacheError):
        pass
    except (ValueError, KeyError, TypeError, struct.error) as error:
        warnings.warn(f"cache {cache} is damaged and is written anew: {error}", stacklevel=3)
    except OSError as error:
        warnings.warn(f"cache {cache} cannot be read, so the text is: {error}", stacklevel=3)
    before = [_times(path) for path in paths]
    data: RankingData = parse()
    try:
        home.mkdir(parents=True, exist_ok=True)
        texts = [{**_times(path), "sampled": _sampled_hash(path), "whole": _whole_hash(path)} for path in paths]
        if [_times(path) for path in paths] == before:  # else a text was changed while it was read
            _write(cache, data, {**key, "name": data.name, "identities": texts}, os.stat(paths[0]).st_mode)
    except OSError as error:
        warnings.warn(f"cache {cache} cannot be written, so the text is parsed each time: {error}", stacklevel=3)
    return data


class StaleCacheError(Exception):
    """The cache is whole, but belongs to another text or has another format."""


def _opened(cache: Path, paths: Sequence[str], key: Mapping[str, Any]) -> RankingData:
    """Read a cache that is whole and belongs to the present texts.

    Raises
    ------
    StaleCacheError
        If it belongs to others.
    ValueError, KeyError, TypeError, struct.error
        If it is damaged.
    OSError
        If it cannot be read.
    """
    with open_regular(cache) as file:
        first_line = file.read(len(MAGIC))
        if first_line[: len(FAMILY)] != FAMILY:
            raise ValueError("it does not begin as a cache does")
        if first_line != MAGIC:
            raise StaleCacheError
        length, checksum = PREFIX.unpack(file.read(PREFIX.size))
        start = file.tell()
        if start + length > os.fstat(file.fileno()).st_size:
            raise ValueError("it ends before its header does")
        text = file.read(length)
        if zlib.crc32(text) != checksum:
            raise ValueError("its header has another checksum")
        header = json.loads(text)
        if any(header[name] != value for name, value in key.items()):
            raise StaleCacheError
        if not all(_same_text(path, known) for path, known in zip(paths, header["identities"], strict=True)):
            raise StaleCacheError
        memory = _memory_of(file.fileno())
    arrays = {name: _mapped(memory, name, header["arrays"][name]) for name in ARRAYS}
    _check_types(arrays, key["options"])
    if not isinstance(header["name"], str):
        raise TypeError(f"its name is {header['name']!r}")
    small = {name: arrays[name].copy() for name in ARRAYS if name != "features"}
    return RankingData(features=arrays["features"], name=header["name"], **small)


def _memory_of(handle: int) -> mmap.mmap:
    """Map a file copy-on-write, whatever its size.

    Without NO_RESERVE Linux reserves memory for every page that could be written to, and refuses files larger than the
    machine's memory.
    """
    if not NO_RESERVE:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_COPY)
    return mmap.mmap(handle, 0, mmap.MAP_PRIVATE | NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE)


def _mapped(memory: mmap.mmap, name: str, described: Mapping[str, Any]) -> npt.NDArray[Any]:
    shape = tuple(described["shape"])
    dtype = np.dtype(described["dtype"])
    start, size = described["start"], dtype.itemsize * math.prod(shape)
    if start + size > len(memory):
        raise ValueError(f"it ends before its {name} do")
    with memoryview(memory) as whole, whole[start : start + size] as part:
        if zlib.crc32(part) != described["checksum"]:
            raise ValueError(f"its {name} have another checksum")
    return np.frombuffer(memory, dtype, count=math.prod(shape), offset=start).reshape(shape)


def _check_types(arrays: Mapping[str, npt.NDArray[Any]], options: Mapping[str, Any]) -> None:
    """Raise TypeError unless the arrays have the types that parsing gives; checksums do not cover types."""
    number, whole = np.dtype(np.float64), np.dtype(np.int64)
    expected = {"features": np.dtype(options["dtype"]), "labels": number, "offsets": whole, "query_ids": whole}
    for name, dtype in expected.items():
        found = arrays[name].dtype
        is_text = found.kind == "U" and found.isnative
        if not (is_text if name == "query_ids" and options["string_qids"] else found == dtype):
            raise TypeError(f"its {name} are of type {found}")


def _write(cache: Path, data: RankingData, header: Mapping[str, Any], mode: int) -> None:
    """Write a cache beside its final name and rename it, with the permissions of the text."""
    arrays = {name: np.ascontiguousarray(getattr(data, name)) for name in ARRAYS}
    bytes_of = {name: array.reshape(-1).view(np.uint8).data for name, array in arrays.items()}
    described: dict[str, dict[str, Any]] = {
        name: {"dtype": array.dtype.str, "shape": array.shape, "checksum": zlib.crc32(bytes_of[name])}
        for name, array in arrays.items()
    }
    # The length of the header depends on the places of the arrays, so leave room for any.
    room = len(json.dumps({**header, "arrays": described})) + 64 * len(ARRAYS)
    start = -(-(len(MAGIC) + PREFIX.size + room) // ALIGNMENT) * ALIGNMENT
    for name in ARRAYS:
        described[name]["start"] = start
        start = -(-(start + bytes_of[name].nbytes) // ALIGNMENT) * ALIGNMENT
    text = json.dumps({**header, "arrays": described}).encode()
    with replacing(cache, shared=True) as file:
        file.write(MAGIC + PREFIX.pack(len(text), zlib.crc32(text)) + text)
        for name in ARRAYS:
            file.seek(described[name]["start"])
            file.write(bytes_of[name])
        os.chmod(file.name, stat.S_IMODE(mode) & 0o666 | stat.S_IRUSR | stat.S_IWUSR)


def _relative(path: str, folder: Path) -> str:
    """Name a text from the folder of its cache, so that both can be moved together."""
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # on another drive
        return os.path.abspath(path)


def _times(path: str) -> dict[str, int]:
    status = os.stat(path)
    return {"size": status.st_size, "modified": status.st_mtime_ns, "changed": status.st_ctime_ns}


def _same_text(path: str, known: Mapping[str, Any]) -> bool:
    now = _times(path)
    if now["size"] != known["size"]:
        return False
    if now == {name: known[name] for name in now}:
        return _sampled_hash(path) == known["sampled"]
    return _whole_hash(path) == known["whole"]


def _sampled_hash(path: str) -> str:
    """Hash blocks spread evenly over a file, its first and its last among them."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as file:
        last = max(0, os.fstat(file.fileno()).st_size - BLOCK_BYTES)
        for block in range(SAMPLED_BLOCKS):
            file.seek(last * block // (SAMPLED_BLOCKS - 1))
            digest.update(file.read(BLOCK_BYTES))
    return digest.hexdigest()


def _whole_hash(path: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()
