"""Fuzz LETOR files: ``load_letor`` and the naive reader give the same data, or refuse the same line.

    make fuzz FUZZ_FLAGS="--minutes 60 --seed 0"
    python tests/attackers/fuzz.py --again '{"seed": 0, "case": 17}'

Cases are made from (seed, number) and nothing else. One that takes two minutes of the processor is a finding like any
other. Every finding is printed with a line that ``--again`` takes, and the exit status is 1 if there was one. Ctrl-C
ends the search and prints the tally.
"""

from __future__ import annotations

import gzip
import itertools
import random
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import naive_letor_reader as naive
from plrank_fast.data import RankingData, letor, load_letor
from search import Search, ViolationError, wrong_with

SECONDS_OF_A_CASE = 120.0  # of the processor; longer, and it counts as hanging
LONG_SHARE = 0.02  # of files of hundreds to thousands of lines; the others have a few
MOST_NUMBERS = 2_000_000  # of the dense matrix; files that would need more are left out
HIGHEST_INDEX = 40
MANY_DIGITS = ("{:.16g}", "{!r}", "{:.17e}", "{:.18f}", "{:.25f}", "{:e}")
SPELLINGS = ("{}", "{}", "{}", "{}", "+{}", "-{}", "0{}", "{}.", "{}.5", ".{}", "{}e0", "{}E-3", "{}e+2", "-{}.25e-1")
SEPARATORS = (" ", " ", " ", " ", "  ", "\t", " \t ")
ENDS = ("", "", "", "", " ", "\r", " # docid = 1 inc = 0.5", " #", "#é: 1:2", "\t\r")
ODD_NUMBERS = (
    *("nan", "inf", "-inf", "1e999", "-1e999", "1e-999", "1e39", "1_0", "0x1", "1e", "e1", ".", "+", "-", "--1"),
    *("1.2.3", "", "9" * 400, "0" * 5000 + "1", "1\u2003", "\u0661", "1#2"),
)
ODD_INDICES = (
    *("0", "-1", "+1", "1.0", "1e0", "01", "2147483647", "2147483648", "99999999999999999999", "", "\u0661", "1_0"),
    *("x", "8" * 5000, "0" * 5000 + "1"),
)
ODD_QIDS = (
    *("", "-1", "+1", "01", "1.0", "9223372036854775807", "9223372036854775808", "a", "a#1", "#", "\u00e9", "q:1"),
    *("1_0", "\u0661"),
    *("7" * 5000, "q" * 1001, "q" * 1000),
)
ODD_TOKENS = (
    *(":", "1:2:3", "#", "QID:1", "qid", "qid: 1", "qid:1", "\v", "\f", "\r", "\x1c", "\x85", "\u2028", "\ufeff", "\0"),
    *("1", "1:1"),
)
ODD_BYTES = (*(byte.encode() for byte in "\n\r\t :#+-.e09\0\v_"), b"\xff", b"\xef\xbb\xbf")


class Fuzz(Search):
    """Cases in turn, until the time is over."""

    def steps(self) -> Iterator[object]:
        for number in itertools.count():
            if wrong := self.fault(number):
                self.broken(wrong, seed=self.seed, case=number)
            yield

    @classmethod
    def again(cls, case: dict[str, Any]) -> bool:
        wrong = cls(case["seed"]).fault(case["case"])
        print(wrong or "held")
        return wrong is not None

    def fault(self, number: int) -> str | None:
        """Return the fault of one case, or None."""
        before = signal.signal(signal.SIGPROF, too_long)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_CASE)
        try:
            with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
                warnings.simplefilter("error")
                return wrong_with(self.attack, random.Random(f"letor {self.seed} {number}"), Path(folder))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def attack(self, rng: random.Random, folder: Path) -> None:
        """Make files, and compare what both readers make of them."""
        options = naive.Options(
            n_features=rng.choice((None, None, None, HIGHEST_INDEX, 5)),
            dtype=rng.choice((np.float64, np.float32)),
            zero_based=rng.random() < 0.2,
            string_qids=rng.random() < 0.2,
        )
        contents = letor_files(rng, options)
        paths = [folder / f"{number}.txt" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        self.tally["files"] += len(contents)
        self.tally["lines"] += sum(content.count(b"\n") for content in contents)
        try:
            expected: naive.Rows | naive.RefusedError = naive.read(contents, options)
        except naive.RefusedError as refused:
            expected = refused
        else:
            if len(expected.labels) * expected.columns > MOST_NUMBERS:
                self.tally["too large"] += 1
                return
        letor.BYTES_AT_ONCE = rng.choice((10, 100, 2**18))
        try:
            data = load_letor(
                paths if len(paths) > 1 else paths[0],
                n_features=options.n_features,
                dtype=options.dtype,
                zero_based=options.zero_based,
                string_qids=options.string_qids,
            )
        except ValueError as error:
            self.tally["refused"] += 1
            wrong = _wrong_refusal(str(error), expected, [str(path) for path in paths])
        else:
            self.tally["read"] += 1
            self.tally["rows read"] += len(data.labels)
            wrong = _wrong_data(data, expected, options)
        if wrong:
            raise ViolationError(f"{wrong}\n{options}\n" + "\n".join(repr(content) for content in contents))


def too_long(*_: object) -> None:
    raise ViolationError(f"it takes more than {SECONDS_OF_A_CASE} s")


def letor_files(rng: random.Random, options: naive.Options) -> list[bytes]:
    """One file, seldom two or three; half of them without a fault that was put in."""
    n_files = rng.choice((1, 1, 1, 1, 1, 1, 2, 3))
    first_qid = 0
    contents = []
    for _ in range(n_files):
        lines, first_qid = _lines(rng, options, first_qid if rng.random() < 0.9 else 0)
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4))):
            number = rng.randrange(len(lines))
            tokens = damaged(rng, lines[number].split(" "), lambda place: _odd_token(rng, place))
            lines[number] = " ".join(tokens)
        if rng.random() < 0.1:
            lines = damaged(rng, lines, lambda place, lines=lines: rng.choice(lines)) or [""]
        content = rng.choice((b"\n", b"\n", b"\n", b"\r\n")).join(line.encode() for line in lines)
        content += rng.choice((b"", b"\n", b"\n", b"\r\n", b"\n\n"))
        if rng.random() < 0.2:
            content = damaged_bytes(rng, content)
        if rng.random() < 0.1:
            content = gzip.compress(content, mtime=0)
            if rng.random() < 0.5:
                content = damaged_bytes(rng, content)
            elif rng.random() < 0.3:
                content += rng.choice((gzip.compress(b"1 qid:5 1:1\n", mtime=0), bytes(10), b"x"))
        contents.append(content)
    return contents


def damaged(rng: random.Random, parts: Sequence[Any], another: Callable[[int], Any]) -> list[Any]:
    """Replace a part by another one, insert one, or remove, double or move some."""
    changed, start, kind = list(parts), rng.randrange(len(parts) + 1), rng.randrange(6)
    end = min(len(parts), start + rng.choice((1, 1, 2 ** rng.randrange(12))))
    some = changed[start:end]
    if kind < 3:
        changed[start : start + (kind > 0)] = [another(start)]
    elif kind == 3:
        changed[end:end] = some
    else:
        del changed[start:end]
        where = rng.randrange(len(changed) + 1)
        changed[where:where] = some if kind == 5 else []
    return changed


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    parts = [content[i : i + 1] for i in range(len(content))]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parts = damaged(rng, parts, lambda place: rng.choice((*ODD_BYTES, bytes([rng.randrange(256)]))))
    return b"".join(parts)


def _lines(rng: random.Random, options: naive.Options, qid: int) -> tuple[list[str], int]:
    n_lines = rng.randrange(300, 4000) if rng.random() < LONG_SHARE else rng.choice((1, 2, 3, 5, 8, 13))
    highest = options.n_features or HIGHEST_INDEX
    lines = []
    for _ in range(n_lines):
        if rng.random() < 0.3:
            qid += rng.choice((1, 1, 1, 7))
        name = f"q{qid}" if options.string_qids and qid % 3 else str(qid)
        columns = sorted(rng.sample(range(highest), rng.choice((0, 1, 2, 3, min(5, highest)))))
        features = [f"{column + (not options.zero_based)}:{_number(rng)}" for column in columns]
        tokens = [_number(rng), f"qid:{name}", *features]
        lines.append(rng.choice(SEPARATORS).join(tokens) + rng.choice(ENDS))
        if rng.random() < 0.03:
            lines.append(rng.choice(("", " ", "# a comment", "\t#", "\r", "\f")))
    return lines, qid + 1


def _number(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(MANY_DIGITS).format(rng.gauss(0.0, 1.0) * 10.0 ** rng.randrange(-30, 20))
    return rng.choice(SPELLINGS).format(rng.choice((0, 1, 2, 3, 4, 17, 123456789, rng.randrange(10**6))))


def _odd_token(rng: random.Random, place: int) -> str:
    """A label, a qid or a feature, as is expected at its place, that is hardly one."""
    if rng.random() < 0.15:
        return rng.choice(ODD_TOKENS)
    if place == 0:
        return rng.choice(ODD_NUMBERS)
    if place == 1:
        return "qid:" + rng.choice(ODD_QIDS)
    if rng.random() < 0.5:
        return f"{rng.choice(ODD_INDICES)}:{_number(rng)}"
    return f"{rng.randrange(1, HIGHEST_INDEX)}:{rng.choice(ODD_NUMBERS)}"


def _wrong_refusal(message: str, expected: naive.Rows | naive.RefusedError, paths: list[str]) -> str | None:
    """Return the fault of a refusal: another file or another line than the naive reader's."""
    if isinstance(expected, naive.Rows):
        return f"refused, but the naive reader reads it: {message}"
    named = re.match(r"(.*), line (\d+): ", message)
    if not named:
        return f"refused without file and line: {message}"
    if named[1] != paths[expected.file] or (expected.line is not None and int(named[2]) != expected.line):
        return f"refused for another line than by the naive reader ({expected}): {message}"
    return None


def _wrong_data(data: RankingData, expected: naive.Rows | naive.RefusedError, options: naive.Options) -> str | None:
    """Return the fault of data that were read."""
    if isinstance(expected, naive.RefusedError):
        return f"read, but the naive reader refuses it ({expected})"
    features = np.zeros((len(expected.labels), expected.columns), options.dtype)
    for row, values in enumerate(expected.values):
        for column, value in values.items():
            features[row, column] = value
    starts = np.array([*expected.starts, len(expected.labels)])
    for what, got, wanted in (
        ("features", data.features, features),
        ("labels", data.labels, np.array(expected.labels)),
        ("offsets", data.offsets, starts),
        ("query_ids", data.query_ids, np.array(expected.qids)),
    ):
        if got.dtype != wanted.dtype or not np.array_equal(got, wanted):
            return f"{what} are {got!r}, the naive reader's {wanted!r}"
    return None


if __name__ == "__main__":
    sys.exit(Fuzz.main())
