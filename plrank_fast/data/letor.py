"""LETOR files: ``label qid:N index:value index:value ... # comment``, one document per line.

scikit-learn parses the numbers. What it takes in silence is caught here on the way, line by line and at the speed of
`bytes.translate`: a missing, huge or negative qid, a query that returns later, a signed feature index, ``nan``,
``1_0``, NUL, a carriage return that ends no line, other encodings. Rows, queries and columns are counted here from the
text alone and compared with what the parser gives.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from plrank_fast.data.ranking_data import RankingData
from plrank_fast.extras import import_extra
from plrank_fast.validation import count

MAX_LINE_BYTES = 2**25  # about three million features; a longer "line" is no LETOR file, and is not read into memory
MAX_INDEX = 2**31 - 1
MAX_QID = 2**63 - 1

NUMERIC = b"0123456789.:+-eE \t\r\n"  # deleting these from a valid line leaves "qid"


def load_letor(
    path: str | os.PathLike[str], *, n_features: int | None = None, dtype: npt.DTypeLike = np.float64
) -> RankingData:
    """Read one LETOR (SVMlight with qid) file, plain or gzipped.

    Comments, blank lines, CRLF and a missing final newline are fine. Labels stay as they are.

    Parameters
    ----------
    path : path-like
        The file; gzip is recognised by its first bytes.
    n_features : int, optional
        Number of columns to give, for instance that of the training file; by default the largest index in the file.
    dtype : float32 or float64
        Type of the features.

    Returns
    -------
    RankingData
        Features dense; index 1 of the file is column 0.

    Raises
    ------
    ValueError
        For whatever is not a valid line, naming file and line.
    MemoryError
        If the dense features would not fit into this machine, naming the figure.
    OSError
        If the file cannot be opened.
    TypeError
        If ``n_features`` is no integer.
    ImportError
        If scikit-learn is absent.
    """
    datasets = import_extra("sklearn.datasets", "train")
    if n_features is not None:
        n_features = count(n_features, "n_features", 1)
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    with _open(path) as file:
        lines = _CheckedLines(file, os.fspath(path), n_features)
        try:
            # query_id=True would append to an array row by row, which is quadratic: hours for MSLR-Web30k.
            sparse, labels = datasets.load_svmlight_file(
                lines, n_features=MAX_INDEX, dtype=dtype, zero_based=False, query_id=False
            )
        except (LetorError, OSError):
            raise
        except (ValueError, OverflowError) as error:
            raise lines.error(str(error)) from error
    if len(lines.line_of_row) == 0:
        raise lines.error("the file holds no document")
    if len(labels) != len(lines.line_of_row):
        raise lines.error(f"{len(lines.line_of_row)} rows counted but {len(labels)} parsed")
    parsed_columns = int(sparse.indices.max(initial=-1)) + 1
    if parsed_columns != lines.largest_index:
        raise lines.error(f"{lines.largest_index} columns counted but {parsed_columns} parsed")
    for what, values, row_ends in (("label", labels, None), ("feature value", sparse.data, sparse.indptr[1:])):
        overflowed = np.flatnonzero(~np.isfinite(values))
        if len(overflowed):
            entry = overflowed[0]
            row = entry if row_ends is None else np.searchsorted(row_ends, entry, side="right")
            raise lines.error(f"{what} beyond the range of {values.dtype}", lines.line_of_row[row])
    columns = lines.largest_index if n_features is None else n_features
    sparse.resize(len(labels), max(1, columns))
    _check_fits(sparse.shape, dtype, lines.path)
    row_starts = np.array(lines.query_starts, dtype=np.int64)
    return RankingData(
        features=sparse.toarray(),
        labels=np.array(labels, dtype=np.float64),
        offsets=np.append(row_starts, len(labels)),
        qids=np.array(lines.qids, dtype=np.int64),
        name=Path(path).name,
    )


class LetorError(ValueError):
    """What is wrong with which line of which file."""

    def __init__(self, filename: str, line_number: int, what: str) -> None:
        super().__init__(f"{filename}, line {line_number}: {what}")
        self.filename = filename


class _CheckedLines(io.BufferedIOBase):
    """The lines of a file, each checked before anyone else sees it, and counted."""

    def __init__(self, file: BinaryIO, path: str, n_features: int | None) -> None:
        self.path = path
        self.largest_index = 0
        self.line_of_row = array("q")
        self.query_starts = array("q")
        self.qids = array("q")
        self._file = file
        self._index_limit = MAX_INDEX if n_features is None else n_features
        self._line_number = 0
        self._query_text = b""
        self._seen: set[int] = set()

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
        if document.translate(None, NUMERIC) != b"qid":
            token = next((t for t in document.split() if t.translate(None, NUMERIC) not in (b"", b"qid")), document)
            raise self.error(f"expected numbers, got {_shown(token)}")
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
        digits = text[4:]
        # int() refuses thousands of digits with a message of its own, and takes signs
        if not digits.isdigit() or len(digits) > 4000 or int(digits) > MAX_QID:
            raise self.error(f"qid must be a whole number from 0 to 2**63 - 1, got {_shown(text)}")
        qid = int(digits)
        self._query_text = text
        if self.qids and qid == self.qids[-1]:  # the same number written differently
            return
        if qid in self._seen:
            raise self.error(f"query {qid} returns after others; the documents of a query must follow one another")
        self._seen.add(qid)
        self.qids.append(qid)
        self.query_starts.append(len(self.line_of_row))

    def _check_indices(self, features: bytes) -> None:
        # The parser refuses points, exponents and minus signs in an index; a plus sign it would take.
        if features.startswith(b"+") or b" +" in features or b"\t+" in features:
            signed = next(feature for feature in features.split() if feature.startswith(b"+"))
            raise self.error(f"feature index must be a whole number without a sign, got {_shown(signed)}")
        # Indices ascend (the parser sees to it), so the last is the largest.
        feature = features.rsplit(None, 1)[-1]
        digits, colon, _ = feature.partition(b":")
        if not (digits.isdigit() and colon):
            raise self.error(f"expected 'index:value', got {_shown(feature)}")
        if len(digits) > 4000 or int(digits) > self._index_limit:
            limit = "2**31 - 1" if self._index_limit == MAX_INDEX else f"n_features = {self._index_limit}"
            raise self.error(f"feature index {_shown(digits)} is beyond {limit}")
        self.largest_index = max(self.largest_index, int(digits))


@contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[Any]:
    with open(path, "rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(file, "rb") as unpacked:
                yield unpacked
        else:
            yield file


def _check_fits(shape: tuple[int, int], dtype: np.dtype[Any], path: str) -> None:
    """Raise before a matrix is begun that this machine cannot hold (Linux would kill the process half-way)."""
    needed = shape[0] * shape[1] * dtype.itemsize
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if needed > memory:
        raise MemoryError(
            f"{path}: {shape[0]} x {shape[1]} features need {needed / 1e9:.1f} GB of the {memory / 1e9:.1f} GB here"
        )


def _shown(text: bytes) -> str:
    text = text.strip()
    return ascii(text[:40].decode("latin-1")) + ("..." if len(text) > 40 else "")
