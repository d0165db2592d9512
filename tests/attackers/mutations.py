"""Small changes of the meaning of a source of Cython or C: every place where one can be made.

A mutation changes one line. Comments, strings, declarations without a value and whatever raises are left alone. Lines
with costs in nanoseconds are too, because these choose rounds and the size of teams only. What else does not compile,
or compiles to the same code, is not counted as a mutant.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
HIDDEN = {
    True: re.compile(rf"/\*.*?\*/|//[^\n]*|{_STRING}|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M),
    False: re.compile(
        rf'""".*?"""|{_STRING}|#[^\n]*'
        r"|^[ \t]*(?:cdef (?:extern|struct|enum|packed|union|class)|ctypedef)\b[^\n]*(?:\n+[ \t]+[^\n]*)*",
        re.S | re.M,
    ),
}  # of C, and of Cython
NOT_CODE = re.compile(
    r"\b(?:raise|assert|cimport|import|include|typedef|struct|enum|union)\b|^\s*@|^\s*cdef [^=(]*$|^\w[^=]*\);?$"
    r"|\b(?:ns_per|NS_PER)_|\b(?:new_estimator|Loss)\("
    r"|^\s*(?:cdef|cpdef|def|static|PLR_INLINE|void|int|double|size_t|lanes)\b[^=;]*[,({:]$"
)
TOKEN = re.compile(
    r"(?P<number>(?<![\w.:])(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?<= )(?P<operator><=|>=|==|!=|[-+*/]=|&&|\|\||[-+*/<>])(?= )"
    r"|(?P<minus>-(?=[\w(.]))|\b(?P<word>and|or|f?min|f?max|smaller|larger)\b"
)
PAIRS = {
    "comparison": ("< <=", "> >=", "== !="), "sign": ("+ -", "+= -="), "product": ("* /", "*= /="),
    "logic": ("&& ||", "and or", "min max", "fmin fmax", "smaller larger"),
}  # fmt: skip
INSTEAD = {
    one: (kind, other)
    for kind, pairs in PAIRS.items()
    for pair in pairs
    for one, other in itertools.permutations(pair.split())
}
KINDS = (*PAIRS, "off by one", "constant", "dropped statement", "swapped arguments")
STATEMENT = re.compile(
    r"\s*(?!return\b|break\b|continue\b|else\b|cdef\b|const\b|pass\b|goto\b)"
    r"([\w.\->*]+(?:\[[^=]*\])? (?:[-+*/|&]|<<|>>)?= [^=].*|[\w.]+(?:->\w+)?\(.*\)|[\w.\->]+(?:\[.*\])?(?:\+\+|--))"
)
# the arguments of an innermost call in which their order matters
CALL = re.compile(r"\b(?!(?:if|while|for|range|switch|f?min|f?max|smaller|larger)\b)[A-Za-z_]\w*\(([^()]+, [^()]+)\)")


@dataclasses.dataclass(frozen=True)
class Mutation:
    """Line ``number`` (from 0) of a file, before and after."""

    path: str
    number: int
    kind: str
    before: str
    after: str

    @property
    def change(self) -> tuple[str, str, str]:
        """Tell the same change of the same text from others, wherever in its file it stands."""
        return self.path, self.before.strip(), self.after.strip()

    def apply(self, source: str) -> str:
        lines = source.split("\n")
        assert lines[self.number] == self.before
        lines[self.number] = self.after
        return "\n".join(lines)


def code_of(source: str, is_c: bool) -> list[str]:
    """Lines with blanks for all that is not code, so that columns stay the same."""
    text = HIDDEN[is_c].sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    return [line.rstrip() for line in text.split("\n")]


def _replacements(code: str, is_c: bool) -> Iterator[tuple[int, int, str, str]]:
    """Characters of a line of code that are replaced, the kind, and what by."""
    for match in TOKEN.finditer(code):
        text, span = match[0], match.span()
        if match["minus"]:
            yield *span, "sign", ""
        elif text in INSTEAD:
            yield *span, *INSTEAD[text]
        elif text.isdigit():
            for other in {int(text) + 1, max(0, int(text) - 1)} - {int(text)}:
                yield *span, "off by one", str(other)
        else:
            yield *span, "constant", repr(2 * float(text) if float(text) else 1.0)
    statement = STATEMENT.fullmatch(code.removesuffix(";")) if code.endswith(";") == is_c else None
    if statement and code.count("(") == code.count(")"):
        yield statement.start(1), len(code), "dropped statement", ";" if is_c else "pass"
    for match in CALL.finditer(code):
        arguments = match[1].split(", ")
        for i in range(len(arguments) - 1 if all(map(str.strip, arguments)) else 0):  # a string is blank
            swapped = [*arguments[:i], arguments[i + 1], arguments[i], *arguments[i + 2 :]]
            yield *match.span(1), "swapped arguments", ", ".join(swapped)


def mutations(source: str, path: str) -> list[Mutation]:
    """All mutations of a source, in the order of its text."""
    is_c = path.endswith((".c", ".h"))
    return [
        Mutation(path, number, kind, line, after)
        for number, (line, code) in enumerate(zip(source.split("\n"), code_of(source, is_c), strict=True))
        if not NOT_CODE.search(code)
        for start, stop, kind, instead in _replacements(code, is_c)
        if (after := line[:start] + instead + line[stop:]) != line
    ]


def of_file(root: Path, path: str) -> list[Mutation]:
    return mutations((root / path).read_text(), path)
