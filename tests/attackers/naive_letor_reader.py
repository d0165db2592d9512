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
FEATURE = re.compile(rb"([0-9]{1,4000}):(.*)")
QID = re.compile(rb"qid:0*([0-9]{1,19})")
STRING_QID = re.compile(rb"qid:(.{1,1000})")
LARGEST_INDEX = 2**31 - 1
LARGEST_QID = 2**63 - 1


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
    for file, content in enumerate(contents):
        if content[:2] == b"\x1f\x8b":
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError, zlib.error):
                raise RefusedError(file, None, "damaged gzip") from None
        lines = content.removesuffix(b"\n").split(b"\n") if content else []
        earlier, first_row = set(rows.qids), len(rows.labels)
        seen: set[int | str] = set()
        for number, line in enumerate(lines, 1):
            try:
                require(number > 1 or not line.startswith(b"\xef\xbb\xbf"), "byte order mark")
                if tokens := tokens_of(line, options.string_qids):
                    label, qid, values = document(tokens, options)
                    if len(rows.labels) == first_row or rows.qids[-1] != qid:
                        require(qid not in seen | earlier, "query returns")
                        seen.add(qid)
                        rows.qids.append(qid)
                        rows.starts.append(len(rows.labels))
                    rows.columns = max(rows.columns, *(column + 1 for column in values), 1)
                    rows.labels.append(label)
                    rows.values.append(values)
            except AssertionError as what:
                raise RefusedError(file, number, str(what)) from None
        if len(rows.labels) == first_row:
            raise RefusedError(file, max(1, len(lines)), "no document")
    return rows


def require(held: object, what: str) -> None:
    if not held:
        raise AssertionError(what)


def tokens_of(line: bytes, string_qids: bool) -> list[bytes]:
    """Cut a line; a comment begins at the first number sign that is not of a string qid."""
    require(b"\0" not in line, "NUL")
    line = line.rstrip(b"\r")
    require(b"\r" not in line, "carriage return")
    text = line.split(b"#")[0]
    if string_qids and (name := re.match(rb"[ \t]*[^ \t#]+[ \t]+qid:[^ \t]*", line)):
        text = name[0] + line[name.end() :].split(b"#")[0]
    require(text == text.decode("utf-8", "ignore").encode(), "UTF-8")
    if not text.strip():
        return []
    require(b"\v" not in text and b"\f" not in text, "white space")
    return [token for token in re.split(rb"[ \t]+", text) if token]


def document(tokens: list[bytes], options: Options) -> tuple[float, int | str, dict[int, float]]:
    """Label, query and features of a line."""
    require(NUMBER.fullmatch(tokens[0]) and np.isfinite(float(tokens[0])), "label")
    name = len(tokens) > 1 and (STRING_QID if options.string_qids else QID).fullmatch(tokens[1])
    require(name, "qid")
    qid = name[1].decode() if options.string_qids else int(name[1])
    require(options.string_qids or qid <= LARGEST_QID, "qid")
    values: dict[int, float] = {}
    last, limit = -1, LARGEST_INDEX if options.n_features is None else options.n_features
    for token in tokens[2:]:
        match = FEATURE.fullmatch(token)
        require(match and NUMBER.fullmatch(match[2]), "feature")
        column = int(match[1]) - (not options.zero_based)
        require(last < column < limit, "index")
        with np.errstate(over="ignore"):
            values[column] = float(options.dtype(float(match[2])))
        require(np.isfinite(values[column]), "value out of range")
        last = column
    return float(tokens[0]), qid, values
