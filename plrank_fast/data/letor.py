"""LETOR files: ``label qid:N index:value index:value ... # comment``, one document per line.

`LINE` is the grammar: what it does not match is refused, and the error names file and line.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._core.data.letor_lines import fill_rows, new_rows, read_lines
from plrank_fast._shared.memory import require_bytes
from plrank_fast.data.letor_cache import cached
from plrank_fast.data.ranking_data import RankingData
from plrank_fast.validation import count, file_paths, flag

MAX_LINE_BYTES = 2**25  # about three million features; a longer "line" is no LETOR file, and is not read into memory
MAX_INDEX = 2**31 - 1
MAX_QID = 2**63 - 1
MAX_QID_BYTES = 1000  # strings all take the room of the longest
BYTES_AT_ONCE = 2**18  # of a file that is not packed; a packed one is damaged at some line, and read in small pieces

OTHER_FORMATS = {  # their first bytes tell them
    b"\xff\xfe": "UTF-16 text does: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text does: save it as UTF-8",
    b"BZh": "bzip2 data does: unpack it",
    b"\xfd7zXZ": "xz data does: unpack it",
    b"\x28\xb5\x2f\xfd": "Zstandard data does: unpack it",
    b"PK\3\4": "zip data does: unpack it",
}

STRING_QID_HINT = "; pass string_qids=True (--string-qids to a command) for identifiers of any kind"

NUMBER = "[-+0-9.eE]+"  # what has these characters and is no number is refused by `float`
LINE = re.compile(rf"({NUMBER})[ \t]+qid:([^ \t\v\f]*)((?:[ \t]+[0-9]++:{NUMBER}+)*+)")
WITH_STRING_QID = re.compile(rf"[ \t]*{NUMBER}[ \t]+qid:[^ \t]*".encode())  # a "#" in it does not begin a comment
# The parts of a line: label, qid, features.
PARTS = ((NUMBER, "a number"), (r"qid:[^\v\f]*", "a qid"), (f"[0-9]+:{NUMBER}", "'index:value'"))


def load_letor(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    zero_based: bool = False,
    string_qids: bool = False,
    cache: bool | str | os.PathLike[str] = False,
) -> RankingData:
    r"""Read LETOR (SVMlight with qid) files, plain or gzipped.

    Comments (in any encoding), blank lines, CRLF and a missing final newline are fine. Labels stay as they are.

    Parameters
    ----------
    path : path-like, or a sequence of these
        The file, or several to be read one after another; gzip is recognised by the first bytes of each. A query must
        not occur in two of them (``concatenate`` treats the same qid in two sets as two queries).
    n_features : int, optional
        Number of columns, for instance the training file's; by default the largest index in the files.
    dtype : float32 or float64
        Type of the features.
    zero_based : bool
        Whether the first feature has index 0, as in files of scikit-learn's ``dump_svmlight_file``, and not 1. It
        cannot be inferred: a file that leaves out values of 0 may start at 0 and contain no index 0.
    string_qids : bool
        Whether any text without white space may be a qid and is kept as it is written (``qid:07`` is not ``qid:7``,
        and ``qid:u1#1`` holds no comment). By default a qid is a whole number.
    cache : bool or path-like
        True keeps the parsed data in a binary file beside the first text, a path in that folder (made if it is not
        there). The next call with the same files and options maps it into memory in place of parsing: features are
        then read from the disk as they are used, and can be changed without changing the file. A text that has
        changed (size and time, or contents) is parsed anew, and so is one whose cache is damaged, with a warning. If
        the cache cannot be written, there is a warning. Caches are never deleted; you may delete files that end in
        ``.letor-cache`` at any time.

    Returns
    -------
    RankingData
        The data with dense features; index 1 of the file (0 with ``zero_based``) is column 0.

    Raises
    ------
    ValueError
        If a line is not valid (the message names file and line), or a query occurs in two files.
    MemoryError
        If the dense features would not fit into the memory that is available; the message gives the size, and the line
        and feature that ask for it.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> import os, tempfile
    >>> from plrank_fast.data import load_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = os.path.join(folder, "train.txt")
    ...     with open(text, "w") as file:
    ...         _ = file.write("2 qid:1 1:0.5 2:1 # a document\n0 qid:1 2:3\n1 qid:2 1:1\n")
    ...     data = load_letor(text, cache=True)
    >>> data.features
    array([[0.5, 1. ],
           [0. , 3. ],
           [1. , 0. ]])
    >>> data.offsets
    array([0, 2, 3])
    """
    paths = file_paths(path, "path")
    if n_features is not None:
        n_features = count(n_features, "n_features", 1)
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    zero_based, string_qids = flag(zero_based, "zero_based"), flag(string_qids, "string_qids")
    if not isinstance(cache, (bool, str, os.PathLike)):
        raise TypeError(f"cache must be True, False or a folder, got {cache!r}")
    if cache is False:
        return read_letor(paths, n_features, dtype, zero_based, string_qids)
    options = {"n_features": n_features, "dtype": dtype.str, "zero_based": zero_based, "string_qids": string_qids}
    folder = cache if isinstance(cache, (str, os.PathLike)) else None
    return cached(paths, options, folder, lambda: read_letor(paths, n_features, dtype, zero_based, string_qids))


class LetorError(ValueError):
    """Error that names a file, a line of it, and the fault."""

    def __init__(self, filename: str, line_number: int, fault: object) -> None:
        super().__init__(f"{filename}, line {line_number}: {fault}")
        self.filename = filename


def read_letor(
    paths: Sequence[str],
    n_features: int | None,
    dtype: npt.DTypeLike,
    zero_based: bool,
    string_qids: bool,
    known_features: int | None = None,
) -> RankingData:
    """Read files as `load_letor` does; a line that names more than the features known to a model is refused."""
    rows = _Rows(n_features, np.dtype(dtype), zero_based, string_qids, known_features)
    for path in paths:
        rows.read(path)
    names = (os.fsencode(Path(path).name) for path in paths)
    return rows.data(", ".join(name.decode(errors="backslashreplace") for name in names))


class _Rows:
    """The rows of all files, in sparse form until the number of columns is known."""

    def __init__(
        self,
        n_features: int | None,
        dtype: np.dtype[Any],
        zero_based: bool,
        string_qids: bool,
        known_features: int | None,
    ) -> None:
        self.dtype = dtype
        self.limit, self.highest = MAX_INDEX, "2**31 - 1"
        if n_features is not None:
            self.limit, self.highest = n_features, f"n_features = {n_features}"
        if known_features is not None:
            self.limit, self.highest = known_features, f"the {known_features} features that the model was trained with"
        self.string_qids = string_qids
        self.first_index = 0 if zero_based else 1
        self.n_features = n_features
        self.width = n_features or 1
        self.cause_of_width = f"n_features = {n_features}"
        self.paths: list[str] = []
        self.file_of_qid: dict[int | str, int] = {}  # entries are in the order of the queries
        self.starts = array("q")  # rows of the first documents of the queries
        self.labels = array("d")
        self.lengths = array("q")  # features in each row
        self.columns = array("i")
        self.values: array[float] = array(dtype.char)  # float or double
        self.qid: int | str | None = None  # of the file's last row
        self.n_lines = 0  # of the file, so far
        self.few_rows = new_rows(dtype)  # the last ones that were read

    def read(self, path: str) -> None:
        """Append the rows of a file."""
        before, self.qid, self.n_lines = len(self.labels), None, 0
        self.paths.append(path)
        with _open(path) as file:
            try:
                for text in _blocks(file):
                    self._append_lines(text)
                if len(self.labels) == before:
                    raise ValueError("the file holds no document")
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise LetorError(path, self.n_lines + 1, f"damaged gzip data: {error}") from error
            except ValueError as error:
                raise LetorError(path, max(1, self.n_lines), error) from error

    def _append_lines(self, text: bytes) -> None:
        """Append whole lines: those in the usual form at once, any other one as `_append` does."""
        at, has_odd_bytes = 0, b"\r" in text or b"\0" in text
        labels, lengths, columns, values, queries = self.few_rows
        while at < len(text):
            qid = self.qid.encode() if isinstance(self.qid, str) else self.qid
            at, n_lines, n_rows, n_values, n_queries = read_lines(
                text, at, has_odd_bytes, *self.few_rows, self.first_index, self.width, MAX_LINE_BYTES, self.string_qids,
                qid,
            )  # fmt: skip
            lines_before, rows_before = self.n_lines, len(self.labels)
            for number, row, line in queries[:n_queries].tolist():
                self.n_lines = lines_before + line + 1
                self._begin_query(number, rows_before + row)
            self.n_lines = lines_before + n_lines
            self.labels.frombytes(labels[:n_rows].view(np.uint8))
            self.lengths.frombytes(lengths[:n_rows].view(np.uint8))
            self.columns.frombytes(columns[:n_values].view(np.uint8))
            self.values.frombytes(values[:n_values].view(np.uint8))
            if n_lines == 0:
                end = text.find(b"\n", at) + 1 or len(text)
                self.n_lines += 1
                self._append(text[at:end])
                at = end

    def _append(self, line: bytes) -> None:
        """Append a line of any form, or raise the error that says what is wrong with it."""
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"longer than {MAX_LINE_BYTES} bytes")
        if b"\0" in line:
            raise ValueError("holds a NUL byte, as UTF-16 text and binary files do")
        line = line.rstrip(b"\r\n")
        if b"\r" in line:
            raise ValueError("holds a carriage return before its end, which some programs take for the end of a line")
        named = self.string_qids and WITH_STRING_QID.match(line)
        comment = line.find(b"#", named.end() if named else 0)
        document = (line if comment < 0 else line[:comment]).decode().strip(" \t")
        if not document.strip("\v\f \t"):
            return
        match = LINE.fullmatch(document)
        if not match:
            raise ValueError(_fault(document))
        label, name, features = match.groups()
        qid = name if self.string_qids else _whole_qid(name)
        if qid != self.qid:
            self._begin_query(qid, len(self.labels))
        tokens = features.replace(":", " ").split()
        columns = self._columns(tokens[::2])
        values: array[float] = array(self.dtype.char, map(float, tokens[1::2]))
        self.labels.append(float(label))
        if not all(map(math.isfinite, values)):
            raise ValueError(f"feature value beyond the range of {self.dtype}")
        if not math.isfinite(self.labels[-1]):
            raise ValueError("label beyond the range of float64")
        self.lengths.append(len(values))
        self.values.extend(values)
        self.columns.extend(columns)

    def _begin_query(self, qid: int | str, row: int) -> None:
        if isinstance(qid, str) and not 0 < len(qid.encode()) <= MAX_QID_BYTES:
            raise ValueError(f"qid must have 1 to {MAX_QID_BYTES} bytes, got {_shown(qid)}")
        self.qid = qid
        file = self.file_of_qid.get(qid)
        if file is None:
            self.file_of_qid[qid] = len(self.paths) - 1
            self.starts.append(row)
        elif file != len(self.paths) - 1:
            raise ValueError(
                f"query {qid} is in {self.paths[file]} already; if it is another query, load the files one by one and "
                "put them together with plrank_fast.data.concatenate"
            )
        else:
            raise ValueError(f"query {qid} returns after others; the documents of a query must follow one another")

    def _columns(self, indices: list[str]) -> list[int]:
        columns = [int(index) - self.first_index for index in indices]
        if columns and columns[0] < 0:
            raise ValueError("index 0: indices start at 1; pass zero_based=True for a file whose indices start at 0")
        if any(after <= before for before, after in pairwise(columns)):
            raise ValueError("feature indices must be sorted and unique")
        if columns and columns[-1] >= self.limit:
            raise ValueError(f"feature index {_shown(indices[-1])} is beyond {self.highest}")
        if columns and columns[-1] >= self.width:
            self.width = columns[-1] + 1
            self.cause_of_width = f"{self.paths[-1]}, line {self.n_lines}: feature {indices[-1]}"
        return columns

    def data(self, name: str) -> RankingData:
        """Return the rows in dense form."""
        n_docs = len(self.labels)
        matrix = f"{self.cause_of_width} means a matrix that, {n_docs} x {self.width} of {self.dtype},"
        remedy = "; renumber the features without gaps, or pass n_features= to have larger indices refused"
        needed = n_docs * self.width * self.dtype.itemsize
        require_bytes(needed, matrix, remedy if self.n_features is None else "; pass fewer")
        features = np.zeros((n_docs, self.width), self.dtype)
        fill_rows(features, self.lengths, self.columns, self.values)
        qids = [*self.file_of_qid]
        return RankingData(
            features=features,
            labels=np.array(self.labels),
            offsets=np.append(np.array(self.starts, np.int64), n_docs),
            query_ids=np.array(qids, np.str_) if self.string_qids else np.array(qids, np.int64),
            name=name,
        )


def _whole_qid(text: str) -> int:
    if not re.fullmatch("0*[0-9]{1,19}", text) or int(text[-19:]) > MAX_QID:
        raise ValueError(f"qid must be a whole number from 0 to 2**63 - 1, got {_shown(text)}{STRING_QID_HINT}")
    return int(text[-19:])


def _blocks(file: Any) -> Iterator[bytes]:
    """Yield the lines of a file, many at a time; one that is too long is cut behind its limit."""
    at_once = io.DEFAULT_BUFFER_SIZE if isinstance(file, gzip.GzipFile) else BYTES_AT_ONCE
    rest = b""
    while piece := file.read1(at_once):
        lines, line_feed, last = piece.rpartition(b"\n")
        if line_feed:
            yield b"".join((rest, lines, line_feed))
            rest = last
        else:
            rest += piece
            if len(rest) > MAX_LINE_BYTES:
                break
    if rest:
        yield rest


def _fault(document: str) -> str:
    """Describe the first token that does not match its part of the grammar."""
    if document.startswith("\ufeff"):
        return "starts with a byte order mark; save the file as plain UTF-8"
    tokens = re.split("[ \t]+", document)
    if len(tokens) < 2 or not tokens[1].startswith("qid:"):
        return f"expected 'label qid:N ...', got {_shown(document)}"
    parts = zip(tokens, (*PARTS, *PARTS[2:] * len(tokens)), strict=False)
    token, expected = next((t, expected) for t, (pattern, expected) in parts if not re.fullmatch(pattern, t))
    remedy = "; fill in a value that is missing, or leave the feature out, which is 0"
    return f"expected {expected}, got {_shown(token)}" + (remedy if re.match("[0-9]+:", token) else "")


@contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[Any]:
    with open(path, "rb") as file:
        first_bytes = file.peek(5)
        for start, format_of_it in OTHER_FORMATS.items():
            if first_bytes.startswith(start):
                raise LetorError(os.fspath(path), 1, f"starts as {format_of_it}")
        if first_bytes[:2] == b"\x1f\x8b":
            with gzip.open(file, "rb") as unpacked:
                yield unpacked
        else:
            yield file


def _shown(text: str) -> str:
    return ascii(text[:40]) + ("..." if len(text) > 40 else "")
