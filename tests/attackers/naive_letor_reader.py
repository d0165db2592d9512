"""A reader of LETOR files in plain Python, one line after another: what the docstring of ``load_letor`` says, no more.

It shares no code with the library: lines are cut at line feeds, tokens at blanks and tabs, a
number is what a regular expression says. It is the judge of ``fuzz``.
"""

from __future__ import annotations

import dataclasses
import gzip
import re
import zlib
from collections.abc import Sequence

import numpy as np

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
FEATURE = re.compile(rb"([0-9]+):(.*)")
LARGEST_INDEX = 2**31 - 1
LARGEST_QID = 2**63 - 1
MOST_DIGITS = 4000
MOST_QID_BYTES = 1000


class RefusedError(Exception):
    """A file and one of its lines (None: any) that cannot be read."""

    def __init__(self, file: int, line: int | None, what: str) -> None:
        super().__init__(f"file {file}, line {line}: {what}")
        self.file, self.line = file, line


@dataclasses.dataclass(frozen=True)
class Options:
    n_features: int | None
    dtype: type
    zero_based: bool
    string_qids: bool


@dataclasses.dataclass
class Rows:
    """Contents of the files, row by row; columns are counted from 0."""

    labels: list[float] = dataclasses.field(default_factory=list)
    values: list[dict[int, float]] = dataclasses.field(default_factory=list)
    qids: list[int | str] = dataclasses.field(default_factory=list)
    starts: list[int] = dataclasses.field(default_factory=list)
    columns: int = 1


def read(contents: Sequence[bytes], options: Options) -> Rows:
    """Read files that stand for one set of data, or raise `RefusedError`."""
    rows = Rows(columns=options.n_features or 1)
    for number, content in enumerate(contents):
        _read_file(rows, number, content, options)
    return rows


def unpacked(content: bytes) -> bytes | None:
    """Undo gzip, member by member; None if the file is damaged."""
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return None


def _read_file(rows: Rows, file: int, content: bytes, options: Options) -> None:
    if content[:2] == b"\x1f\x8b":
        text = unpacked(content)
        if text is None:
            raise RefusedError(file, None, "damaged gzip")
        content = text
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    earlier, first_row = set(rows.qids), len(rows.labels)
    seen: set[int | str] = set()
    for number, line in enumerate(lines, 1):

        def refuse(what: str, line_number: int = number) -> RefusedError:
            return RefusedError(file, line_number, what)

        tokens = _tokens(line, number, options.string_qids, refuse)
        if not tokens:
            continue
        if len(tokens) < 2 or not tokens[1].startswith(b"qid:"):
            raise refuse("no qid")
        if not NUMBER.fullmatch(tokens[0]):
            raise refuse("label")
        label = float(tokens[0])
        if not np.isfinite(label):
            raise refuse("label out of range")
        qid = _qid(tokens[1][4:], options, refuse)
        if len(rows.labels) == first_row or rows.qids[-1] != qid:
            if qid in seen:
                raise refuse("query returns")
            seen.add(qid)
            if qid in earlier:
                raise refuse("query in two files")
            rows.qids.append(qid)
            rows.starts.append(len(rows.labels))
        values: dict[int, float] = {}
        last = -1
        for token in tokens[2:]:
            column, value = _feature(token, options, refuse)
            if column <= last:
                raise refuse("order")
            last = column
            values[column] = value
            if not np.isfinite(value):
                raise refuse("value out of range")
        rows.columns = max(rows.columns, last + 1)
        rows.labels.append(label)
        rows.values.append(values)
    if len(rows.labels) == first_row:
        raise RefusedError(file, max(1, len(lines)), "no document")


def _tokens(line: bytes, number: int, string_qids: bool, refuse) -> list[bytes]:
    if b"\0" in line:
        raise refuse("NUL")
    if number == 1 and line.startswith(b"\xef\xbb\xbf"):
        raise refuse("byte order mark")
    line = line.rstrip(b"\r")
    if b"\r" in line:
        raise refuse("carriage return")
    text = line.split(b"#")[0]
    if string_qids and (name := re.match(rb"[ \t]*[^ \t#]+[ \t]+qid:[^ \t]*", line)):
        text = name[0] + line[name.end() :].split(b"#")[0]
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        raise refuse("UTF-8") from None
    if not text.strip():
        return []
    if b"\v" in text or b"\f" in text:
        raise refuse("white space")
    return [token for token in re.split(rb"[ \t]+", text) if token]


def _qid(name: bytes, options: Options, refuse) -> int | str:
    if options.string_qids:
        if not 1 <= len(name) <= MOST_QID_BYTES:
            raise refuse("qid")
        return name.decode()
    digits = name.lstrip(b"0") or name[-1:]
    if not re.fullmatch(rb"[0-9]{1,19}", digits) or int(digits) > LARGEST_QID:
        raise refuse("qid")
    return int(digits)


def _feature(token: bytes, options: Options, refuse) -> tuple[int, float]:
    match = FEATURE.fullmatch(token)
    if not match or not NUMBER.fullmatch(match[2]) or len(match[1]) > MOST_DIGITS:
        raise refuse("feature")
    column = int(match[1]) - (not options.zero_based)
    limit = LARGEST_INDEX if options.n_features is None else options.n_features
    if not 0 <= column < limit:
        raise refuse("index")
    with np.errstate(over="ignore"):
        return column, float(options.dtype(float(match[2])))
