"""LETOR files: ``label qid:N index:value index:value ... # comment``, one document per line.

scikit-learn parses the numbers. This module refuses invalid text that its parser accepts, line by line and at the speed
of `bytes.translate`: a missing, huge or negative qid, a query that returns later, a signed feature index, ``nan``,
``1_0``, NUL, a carriage return within a line, other encodings. It also counts rows, queries and columns from the text
alone and compares them with the parser's result.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.memory import require_bytes
from plrank_fast.data.letor_cache import cached
from plrank_fast.data.ranking_data import RankingData
from plrank_fast.validation import count, file_paths, flag

MAX_LINE_BYTES = 2**25  # about three million features; a longer "line" is no LETOR file, and is not read into memory
MAX_INDEX = 2**31 - 1
MAX_QID = 2**63 - 1
MAX_QID_BYTES = 1000  # of a string: all take the room of the longest

ZERO_BASED_HINT = " Indices start at 1; pass zero_based=True for a file whose indices start at 0."
STRING_QID_HINT = "; pass string_qids=True (--string-qids to a command) for identifiers of any kind"

NUMERIC = b"0123456789.:+-eE \t\r\n"  # deleting these from a valid line leaves "qid"


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

    Comments, blank lines, CRLF and a missing final newline are fine. Labels stay as they are.

    Parameters
    ----------
    path : path-like, or a sequence of these
        The file, or several to be read one after another; gzip is recognised by the first bytes of each. A query must
        not occur in two of them (``concatenate`` treats the same qid in two sets as two queries).
    n_features : int, optional
        Number of columns, for instance that of the training file; by default the largest index in the files.
    dtype : float32 or float64
        Type of the features.
    zero_based : bool
        Whether the first feature has index 0, as in files of scikit-learn's ``dump_svmlight_file``, and not 1. It
        cannot be inferred: a file that leaves out values of 0 may start at 0 and contain no index 0.
    string_qids : bool
        Whether any text may be a qid and is kept as it is written (``qid:07`` is not ``qid:7``). By default a qid is a
        whole number.
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
    TypeError
        If ``n_features`` is not an integer, ``zero_based`` or ``string_qids`` not a bool, or ``cache`` neither a bool
        nor a path.
    ImportError
        If scikit-learn is absent.

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
        return _read(paths, n_features, dtype, zero_based, string_qids)
    options = {"n_features": n_features, "dtype": dtype.str, "zero_based": zero_based, "string_qids": string_qids}
    folder = cache if isinstance(cache, (str, os.PathLike)) else None
    return cached(paths, options, folder, lambda: _read(paths, n_features, dtype, zero_based, string_qids))


def _read(
    paths: Sequence[str], n_features: int | None, dtype: np.dtype[Any], zero_based: bool, string_qids: bool
) -> RankingData:
    """Parse files and concatenate them."""
    parts = []
    owner: dict[int | str, str] = {}
    for path in paths:
        sparse, labels, lines = _parse(path, n_features, dtype, zero_based, string_qids)
        for qid, row in zip(lines.qids, lines.query_starts, strict=True):
            if qid in owner:
                raise lines.error(
                    f"query {qid} is in {owner[qid]} already; if it is another query, load the files one by one and "
                    "put them together with plrank_fast.data.concatenate",
                    lines.line_of_row[row],
                )
        owner.update(dict.fromkeys(lines.qids, path))
        parts.append((sparse, labels, lines))
    columns = max(1, *(lines.columns for _, _, lines in parts)) if n_features is None else n_features
    row_starts = np.cumsum([0, *(len(labels) for _, labels, _ in parts)])
    _require_memory([lines for _, _, lines in parts], int(row_starts[-1]), columns, dtype)
    features = np.empty((int(row_starts[-1]), columns), dtype)
    starts = []
    for (sparse, labels, lines), row in zip(parts, row_starts.tolist(), strict=False):
        sparse.resize(len(labels), columns)
        sparse.toarray(out=features[row : row + len(labels)])
        starts.append(np.array(lines.query_starts, dtype=np.int64) + row)
    return RankingData(
        features=features,
        labels=np.concatenate([labels for _, labels, _ in parts]).astype(np.float64),
        offsets=np.append(np.concatenate(starts), row_starts[-1]),
        query_ids=np.array(list(owner), np.str_) if string_qids else np.array(list(owner), np.int64),
        name=", ".join(Path(path).name for path in paths),
    )


def _require_memory(files: Sequence[_CheckedLines], rows: int, columns: int, dtype: np.dtype[Any]) -> None:
    """Raise MemoryError if the matrix does not fit, before it is begun, and name the cause of its width."""
    widest = max(files, key=lambda lines: lines.columns)
    if widest.columns == columns:
        cause = f"{widest.path}, line {widest.widest_line}: feature {widest.widest_index} means a matrix that"
        remedy = "renumber the features without gaps, or pass n_features= to have larger indices refused"
    else:
        cause, remedy = f"n_features = {columns} means a matrix that", "pass fewer"
    require_bytes(rows * columns * dtype.itemsize, f"{cause}, {rows} x {columns} of {dtype},", f"; {remedy}")


def _parse(
    path: str, n_features: int | None, dtype: np.dtype[Any], zero_based: bool, string_qids: bool
) -> tuple[Any, npt.NDArray[Any], _CheckedLines]:
    """Parse one file into a sparse matrix, labels, and the lines with their counts."""
    datasets = import_extra("sklearn.datasets", "train")
    with _open(path) as file:
        lines = _CheckedLines(file, path, n_features, zero_based, string_qids)
        try:
            # query_id=True would append to an array row by row, which is quadratic: hours for MSLR-Web30k.
            sparse, labels = datasets.load_svmlight_file(
                lines, n_features=MAX_INDEX, dtype=dtype, zero_based=zero_based, query_id=False
            )
        except (LetorError, OSError):
            raise
        except (ValueError, OverflowError) as error:
            hint = ZERO_BASED_HINT if str(error).startswith("Invalid index 0 ") else ""
            raise lines.error(f"{error}{hint}") from error
    if len(lines.line_of_row) == 0:
        raise lines.error("the file holds no document")
    if len(labels) != len(lines.line_of_row):
        raise lines.error(f"{len(lines.line_of_row)} rows counted but {len(labels)} parsed")
    parsed_columns = int(sparse.indices.max(initial=-1)) + 1
    if parsed_columns != lines.columns:
        raise lines.error(f"{lines.columns} columns counted but {parsed_columns} parsed")
    for what, values, row_ends in (("label", labels, None), ("feature value", sparse.data, sparse.indptr[1:])):
        overflowed = np.flatnonzero(~np.isfinite(values))
        if len(overflowed):
            entry = overflowed[0]
            row = entry if row_ends is None else np.searchsorted(row_ends, entry, side="right")
            raise lines.error(f"{what} beyond the range of {values.dtype}", lines.line_of_row[row])
    return sparse, labels, lines


class LetorError(ValueError):
    """Error that names a file, a line of it, and what is wrong with it."""

    def __init__(self, filename: str, line_number: int, what: str) -> None:
        super().__init__(f"{filename}, line {line_number}: {what}")
        self.filename = filename


class _CheckedLines(io.BufferedIOBase):
    """The lines of a file, each checked and counted before the parser gets it."""

    def __init__(self, file: BinaryIO, path: str, n_features: int | None, zero_based: bool, string_qids: bool) -> None:
        self.path = path
        self.columns = self.widest_line = self.widest_index = 0
        self.line_of_row = array("q")
        self.query_starts = array("q")
        self.qids: list[int | str] = []
        self._file = file
        self._first_index = 0 if zero_based else 1
        self._column_limit = n_features
        self._string_qids = string_qids
        self._line_number = 0
        self._query_text = b""
        self._seen: set[int | str] = set()

    def error(self, what: str, line_number: int | None = None) -> LetorError:
        """Build the error for a line, by default the one read last."""
        return LetorError(self.path, max(1, line_number or self._line_number), what)

    def readable(self) -> bool:
        """Say that this is a file to read from, as `io` asks."""
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line, or nothing at the end of the file."""
        self._line_number += 1
        try:
            line = self._file.readline(MAX_LINE_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self.error(f"damaged gzip data: {error}") from error
        if not line:
            self._line_number -= 1
        elif len(line) > MAX_LINE_BYTES:
            raise self.error(f"longer than {MAX_LINE_BYTES} bytes")
        else:
            self._check(line)
        return line

    def _check(self, line: bytes) -> None:
        if b"\0" in line:
            raise self.error("holds a NUL byte")
        if not line.isascii():
            self._check_encoding(line)
        if b"\r" in line.rstrip(b"\r\n"):
            raise self.error("holds a carriage return before its end, which some programs take for the end of a line")
        document = line.partition(b"#")[0]
        tokens = document.split(None, 2)
        if not tokens:
            return
        if len(tokens) < 2 or not tokens[1].startswith(b"qid:"):
            raise self.error(f"expected 'label qid:N ...', got {_shown(document)}")
        if self._string_qids and (b"\f" in document or b"\v" in document):  # which are no numbers either
            raise self.error("holds a form feed or a vertical tab: tokens are separated by spaces and tabs")
        numbers = b" ".join((tokens[0], b"qid", *tokens[2:])) if self._string_qids else document
        if numbers.translate(None, NUMERIC) != b"qid":
            token = next((t for t in numbers.split() if t.translate(None, NUMERIC) not in (b"", b"qid")), document)
            hint = STRING_QID_HINT if token == tokens[1] else ""
            raise self.error(f"expected numbers, got {_shown(token)}{hint}")
        if tokens[1] != self._query_text:
            self._begin_query(tokens[1])
        if len(tokens) > 2:
            self._check_indices(tokens[2])
        self.line_of_row.append(self._line_number)

    def _check_encoding(self, line: bytes) -> None:
        if line.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) and self._line_number == 1:
            raise self.error("starts with a byte order mark; save the file as plain UTF-8")
        try:
            line.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"is not UTF-8 ({error.reason} at byte {error.start})") from error

    def _begin_query(self, text: bytes) -> None:
        name = text[4:]
        qid: int | str
        if self._string_qids:
            if not 0 < len(name) <= MAX_QID_BYTES:
                raise self.error(f"qid must have 1 to {MAX_QID_BYTES} bytes, got {_shown(text)}")
            qid = name.decode()
        # int() accepts signs, and refuses thousands of digits with a message of its own.
        elif not name.isdigit() or len(name) > 4000 or int(name) > MAX_QID:
            raise self.error(f"qid must be a whole number from 0 to 2**63 - 1, got {_shown(text)}{STRING_QID_HINT}")
        else:
            qid = int(name)
        self._query_text = text
        if self.qids and qid == self.qids[-1]:  # the same number written differently
            return
        if qid in self._seen:
            raise self.error(f"query {qid} returns after others; the documents of a query must follow one another")
        self._seen.add(qid)
        self.qids.append(qid)
        self.query_starts.append(len(self.line_of_row))

    def _check_indices(self, features: bytes) -> None:
        # The parser refuses points, exponents and minus signs in an index, but accepts a plus sign.
        if features.startswith(b"+") or b" +" in features or b"\t+" in features:
            signed = next(feature for feature in features.split() if feature.startswith(b"+"))
            raise self.error(f"feature index must be a whole number without a sign, got {_shown(signed)}")
        # Indices ascend, which the parser checks, so the last is the largest.
        feature = features.rsplit(None, 1)[-1]
        digits, colon, _ = feature.partition(b":")
        if not (digits.isdigit() and colon):
            raise self.error(f"expected 'index:value', got {_shown(feature)}")
        limit = MAX_INDEX if self._column_limit is None else self._column_limit
        column = limit if len(digits) > 4000 else int(digits) - self._first_index
        if column >= limit:
            highest = "2**31 - 1" if self._column_limit is None else f"n_features = {self._column_limit}"
            raise self.error(f"feature index {_shown(digits)} is beyond {highest}")
        if column >= self.columns:
            self.columns, self.widest_line, self.widest_index = column + 1, self._line_number, int(digits)


@contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[Any]:
    with open(path, "rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(file, "rb") as unpacked:
                yield unpacked
        else:
            yield file


def _shown(text: bytes) -> str:
    text = text.strip()
    return ascii(text[:40].decode("latin-1")) + ("..." if len(text) > 40 else "")
