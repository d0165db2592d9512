"""Small changes of the meaning of a source of Cython or C: every place where one can be made.

A mutation replaces some characters of one line. Comments, documentation, strings, preprocessor lines, declarations
without a value and whatever raises or checks arguments are left alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

C_HIDDEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M
)
NOT_CODE = re.compile(r"\b(raise|assert|cimport|import|include|extern|ctypedef|typedef|struct|enum|union)\b|^\s*@")
DECLARATION = re.compile(
    r"^\s*cdef [^=(]*$|^\s*(cdef|cpdef|def|static|PLR_INLINE|void|int|double|size_t|lanes)\b[^=;]*[,({:]$"
)
TOKEN = re.compile(
    r"(?P<number>(?<![\w.:])(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<operator><<=?|>>=?|<=|>=|==|!=|\+=|-=|\*=|/=|->|\+\+|--|&&|\|\||[-+*/<>])"
    r"|(?P<word>\b(?:and|or|min|max|fmin|fmax|smaller|larger)\b)"
)
INSTEAD = {
    "<": ("comparison", "<="), "<=": ("comparison", "<"), ">": ("comparison", ">="), ">=": ("comparison", ">"),
    "==": ("comparison", "!="), "!=": ("comparison", "=="),
    "+": ("sign", "-"), "-": ("sign", "+"), "+=": ("sign", "-="), "-=": ("sign", "+="),
    "*": ("product", "/"), "/": ("product", "*"), "*=": ("product", "/="), "/=": ("product", "*="),
    "&&": ("logic", "||"), "||": ("logic", "&&"), "and": ("logic", "or"), "or": ("logic", "and"),
    "min": ("logic", "max"), "max": ("logic", "min"), "fmin": ("logic", "fmax"), "fmax": ("logic", "fmin"),
    "smaller": ("logic", "larger"), "larger": ("logic", "smaller"),
}  # fmt: skip
KINDS = ("comparison", "sign", "product", "logic", "off by one", "constant", "dropped statement", "swapped arguments")
STATEMENT = re.compile(
    r"^\s*(?!return\b|break\b|continue\b|else\b|cdef\b|const\b|pass\b|goto\b)"
    r"(?:[\w.\->*]+(?:\[[^=]*\])? (?:[-+*/|&]|<<|>>)?= [^=].*|[\w.]+(?:->\w+)?\(.*\)"
    r"|[\w.\->]+(?:\[.*\])?(?:\+\+|--))$"
)
# calls whose arguments are in an order that matters
CALL = re.compile(r"\b(?!(?:if|while|for|sizeof|range|return|switch|def|f?min|f?max|smaller|larger)\b)[A-Za-z_]\w*\(")


@dataclasses.dataclass(frozen=True)
class Mutation:
    """Characters ``start`` to ``stop`` of line ``number`` (from 0) of a file, and what stands there instead."""

    path: str
    number: int
    start: int
    stop: int
    kind: str
    instead: str
    before: str  # the whole line

    @property
    def after(self) -> str:
        return self.before[: self.start] + self.instead + self.before[self.stop :]

    @property
    def identity(self) -> str:
        """The same for the same change of the same text, wherever in its file it stands."""
        text = "\0".join([self.path, self.before.strip(), self.after.strip()])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def apply(self, source: str) -> str:
        lines = source.split("\n")
        assert lines[self.number] == self.before
        lines[self.number] = self.after
        return "\n".join(lines)


def blanked(source: str, path: str) -> list[str]:
    """Lines of code with everything else replaced by blanks, so that columns stay what they are."""
    text = list(source)

    def blank(start: int, stop: int) -> None:
        for i in range(start, stop):
            if text[i] != "\n":
                text[i] = " "

    if path.endswith((".c", ".h")):
        for match in C_HIDDEN.finditer(source):
            blank(*match.span())
    else:
        starts = [0]
        for line in source.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                blank(starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
    return "".join(text).split("\n")


def _blocks_without_code(lines: list[str]) -> set[int]:
    """Numbers of lines inside ``cdef extern``, ``cdef struct`` and their like, of Cython."""
    inside, depth = set(), None
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if depth is not None and indent > depth:
            inside.add(i)
            continue
        depth = indent if re.match(r"\s*(cdef (extern|struct|enum|packed|union)|ctypedef|cdef class)\b", line) else None
    return inside


def _arguments(code: str, opening: int) -> list[tuple[int, int]]:
    """Spans of the arguments of the call whose bracket opens there, if it closes on the same line."""
    depth, spans, start = 0, [], opening + 1
    for i in range(opening, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and code[i] == ","):
            left = start + len(code[start:i]) - len(code[start:i].lstrip())
            spans.append((left, start + len(code[start:i].rstrip())))
            start = i + 1
        if depth == 0:
            return spans
    return []


def _of_tokens(code: str) -> Iterator[tuple[int, int, str, str]]:
    for match in TOKEN.finditer(code):
        start, stop = match.span()
        text = match.group()
        if match["number"]:
            if text.isdigit():
                yield start, stop, "off by one", str(int(text) + 1)
                if int(text) > 0:
                    yield start, stop, "off by one", str(int(text) - 1)
            else:
                yield start, stop, "constant", repr(2 * float(text) if float(text) else 1.0)
        elif text in INSTEAD:
            kind, instead = INSTEAD[text]
            binary = start > 0 and code[start - 1] == " " and code[stop : stop + 1] == " "
            if text in "+-*/<>" and not binary:  # pointers, signs, casts of Cython
                if text != "-" or code[start - 1].isalnum() or code[stop : stop + 1] in ("", " "):
                    continue
                instead = ""  # a minus in front
            yield start, stop, kind, instead


def mutations(source: str, path: str) -> list[Mutation]:
    """All mutations of a source, in the order of its text."""
    is_c = path.endswith((".c", ".h"))
    lines, codes = source.split("\n"), blanked(source, path)
    without = set() if is_c else _blocks_without_code(codes)
    found = []

    def add(number: int, start: int, stop: int, kind: str, instead: str) -> None:
        mutation = Mutation(path, number, start, stop, kind, instead, lines[number])
        if mutation.after != mutation.before:
            found.append(mutation)

    depth = 0  # of brackets that are open
    for number, (line, code) in enumerate(zip(lines, codes, strict=True)):
        continued = depth > 0
        depth += sum(code.count(bracket) for bracket in "([") - sum(code.count(bracket) for bracket in ")]")
        if number in without or not code.strip() or NOT_CODE.search(code) or DECLARATION.search(code.rstrip()):
            continue
        for start, stop, kind, instead in _of_tokens(code):
            add(number, start, stop, kind, instead)
        text = code.rstrip()
        statement = STATEMENT.match(text.removesuffix(";")) if text.endswith(";") == is_c else None
        if statement and not continued and depth == 0:
            begin = len(text) - len(text.lstrip())
            add(number, begin, len(text), "dropped statement", ";" if is_c else "pass")
        for match in CALL.finditer(code):
            spans = _arguments(code, match.end() - 1)
            for (a, b), (c, d) in itertools.pairwise(spans):
                if is_c and re.match(
                    r"(?:static |PLR_INLINE |const )*(?:void|int|double|lanes|size_t)\b", code.lstrip()
                ):
                    break  # a definition
                add(number, a, d, "swapped arguments", line[c:d] + line[b:c] + line[a:b])
    return found


def of_file(root: Path, path: str) -> list[Mutation]:
    return mutations((root / path).read_text(), path)
