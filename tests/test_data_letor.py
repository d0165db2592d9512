"""LETOR files: what is valid loads right, the rest raises naming file and line."""

import gzip
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plrank_fast.data import load_letor

GOOD = b"1 qid:1 1:2 3:0.5\n0 qid:1 2:3\n2 qid:7 1:1\n"


def written(tmp_path, content):
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.rstrip(b"\n"),
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b" # docid = GX1:2 caf\xc3\xa9\n"),
        GOOD.replace(b"\n", b"\n\n  \n# a comment of its own\n"),
        GOOD.replace(b" ", b"\t  "),
        gzip.compress(GOOD),
        GOOD.replace(b"0.5", b"+5e-1").replace(b"0 qid:1", b"0 qid:01"),
    ],
    ids=["plain", "no final newline", "CRLF", "comments", "blank lines", "tabs", "gzip", "spellings"],
)
def test_valid_files(tmp_path, content):
    """Mutants: blank lines counted as rows; last query closed only when another follows; column 1 kept as column 1."""
    data = load_letor(written(tmp_path, content))
    assert data.features.tolist() == [[2, 0, 0.5], [0, 3, 0], [1, 0, 0]]
    assert data.labels.tolist() == [1, 0, 2]
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.qids.tolist() == [1, 7]
    assert data.name == "data.txt"
    assert data.features.dtype == np.float64


# what is wrong, the file, the line to be named
FAULTS = [
    ("byte order mark", b"\xef\xbb\xbf" + GOOD, 1),
    ("NUL", GOOD + b"1 qid:8 1:2\0\n", 4),
    ("NUL", GOOD + b"1 qid:8 1:2 # \0\n", 4),
    ("UTF-8", GOOD + b"1 qid:8 1:2 # caf\xe9\n", 4),
    ("numbers", GOOD + b"1 qid:8 1:2 caf\xc3\xa9\n", 4),
    ("NUL", GOOD.decode().encode("utf-16-le"), 1),
    ("qid", b"1 1:2\n", 1),
    ("qid", GOOD + b"1 1:2\n", 4),
    ("qid", GOOD + b"1\n", 4),
    ("qid", GOOD + b"1 qid:-3 1:2\n", 4),
    ("qid", GOOD + b"1 qid:9223372036854775808 1:2\n", 4),
    ("qid", GOOD + b"1 qid:" + b"9" * 6000 + b" 1:2\n", 4),
    ("qid", GOOD + b"1 qid: 1:2\n", 4),
    ("numbers", GOOD + b"1 qid:8 qid:9 1:2\n", 4),
    ("qid", GOOD + b"1 qidx:8 1:2\n", 4),
    ("1 returns", GOOD + b"1 qid:1 1:2\n", 4),
    ("1 returns", GOOD + b"1 qid:01 1:2\n", 4),
    ("2:3", GOOD + b"1 qid:8 1:2:3\n", 4),
    ("sorted and unique", GOOD + b"1 qid:8 1:2 1:3\n", 4),
    ("sorted and unique", GOOD + b"1 qid:8 2:2 1:3\n", 4),
    ("index 0", GOOD + b"1 qid:8 0:2 1:3\n", 4),
    ("2147483648", GOOD + b"1 qid:8 1:1 2147483648:3\n", 4),
    ("9999", GOOD + b"1 qid:8 " + b"9" * 6000 + b":3\n", 4),
    ("1:nan", GOOD + b"1 qid:8 1:nan\n", 4),
    ("1:inf", GOOD + b"1 qid:8 1:inf\n", 4),
    ("1:1_0", GOOD + b"1 qid:8 1:1_0\n", 4),
    ("range", GOOD + b"\n# note\n1 qid:8 1:1 2:1e999 3:1\n1 qid:8 1:2\n", 6),
    ("range", GOOD + b"1 qid:8 1:1e999 2:1\n", 4),
    ("label beyond", b"\n" + GOOD + b"1e999 qid:8 1:1\n", 5),
    ("numbers", GOOD + b"x qid:8 1:1\n", 4),
    ("float", GOOD + b"1-1 qid:8 1:1\n", 4),
    ("float", GOOD + b"1 qid:8 1:\n", 4),
    ("numbers", b"1 qid:1 1:2\r0 qid:1 1:3\r", 1),
    ("no document", b"", 1),
    ("no document", b"\n# only a comment\n", 2),
    ("no document", gzip.compress(b""), 1),
    ("gzip", gzip.compress(GOOD)[:-12], r"\d+"),
    ("gzip", gzip.compress(GOOD)[:-8] + bytes(8), 4),
]


@pytest.mark.parametrize(("what", "content", "line"), FAULTS, ids=range(len(FAULTS)))
def test_faults_name_file_and_line(tmp_path, what, content, line):
    """Mutants: every check of `_CheckedLines` left out, one at a time; line counted from 0; row given for line; an
    error of ours wrapped once more, being a ValueError itself."""
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}, line {line}: .*{re.escape(what)}") as caught:
        load_letor(path)
    assert str(caught.value).count(str(path)) == 1


def test_line_of_a_hundred_megabytes(tmp_path):
    """Mutant: `readline()` without a limit."""
    path = written(tmp_path, GOOD + b"1 qid:8 1:1 ")
    with open(path, "r+b") as file:
        file.truncate(10**8)  # a hole, not 100 MB on the disk
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"line 4: longer than 33554432 bytes"):
        load_letor(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9e7


def test_number_of_columns(tmp_path):
    """Mutants: n_features taken as a minimum; the line of the last row named."""
    path = written(tmp_path, GOOD)
    assert load_letor(path, n_features=5).features.shape == (3, 5)
    with pytest.raises(ValueError, match=r"line 1: feature index '3' is beyond n_features = 2"):
        load_letor(path, n_features=2)
    with pytest.raises(ValueError, match="n_features must be at least 1, got 0"):
        load_letor(path, n_features=0)
    assert load_letor(written(tmp_path, b"1 qid:1\n0 qid:2\n")).features.tolist() == [[0], [0]]


def test_dtype(tmp_path):
    """Mutant: values checked for overflow before and not after rounding to float32."""
    path = written(tmp_path, b"1 qid:1 1:1e39\n")
    assert load_letor(path).features[0, 0] == 1e39
    with pytest.raises(ValueError, match="line 1: feature value beyond the range of float32"):
        load_letor(path, dtype=np.float32)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int64"):
        load_letor(path, dtype=np.int64)


def test_matrix_that_cannot_fit(tmp_path):
    """Mutant: no check, and 172 GB of zero pages promised by the kernel."""
    path = written(tmp_path, b"1 qid:1 2147483647:1\n" * 1000)
    with pytest.raises(MemoryError, match=r"1000 x 2147483647 features need 17179\.9 GB"):
        load_letor(path)


def test_labels_stay_as_they_are(tmp_path):
    """Mutant: labels cast to int."""
    assert load_letor(written(tmp_path, b"0.5 qid:1 1:1\n-1 qid:1 1:1\n")).labels.tolist() == [0.5, -1]


def strict_parse(content):
    """Independent reading by regular expressions; None if anything is wrong."""
    rows, seen = [], []
    number = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    for line in content.decode().split("\n"):
        text = line.partition("#")[0].strip(" \t\r")
        if not text:
            continue
        match = re.fullmatch(rf"({number})[ \t]+qid:(\d+)((?:[ \t]+\d+:{number})*)", text, re.ASCII)
        if not match:
            return None
        features = [feature.split(":") for feature in match[3].split()]
        indices = [int(index) for index, _ in features]
        if indices != sorted(set(indices)) or 0 in indices:
            return None
        qid = int(match[2])
        if not rows or rows[-1][1] != qid:
            if qid in seen:
                return None
            seen.append(qid)
        rows.append(
            (float(match[1]), qid, {index: float(value) for index, (_, value) in zip(indices, features, strict=True)})
        )
    return rows or None


PIECES = st.sampled_from(
    [
        *("0", "1", "2", "0.5", "-1", "1e3", ".5", "5.", "+", "-", ":", "nan", "\t", "#", "# note"),
        *("1:", ":2", "1:2:3", "1:-2.5e-3", "2:7", "3:0", "2:1", "1:+1", "0:1", "1:x"),
        *("qid:1", "qid:2", "qid:3", "qid:-1", "qid:", "qid"),
    ]
)
LINES = st.one_of(
    st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["", " 1:1", " 1:2 3:4", " 2:.5 #"])).map(
        lambda row: f"{row[0]} qid:{row[1]}{row[2]}"
    ),
    st.lists(PIECES, max_size=5).map(" ".join),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, min_size=1, max_size=5), end=st.sampled_from(["", "\n", "\r\n"]))
def test_against_an_independent_parser(tmp_path, lines, end):
    """Mutants: qid pattern without its end; query change found by text only; index 0 accepted."""
    content = ("\n".join(lines) + end).encode()
    path, expected = written(tmp_path, content), strict_parse(content)
    if expected is None:
        with pytest.raises(ValueError, match="line"):
            load_letor(path)
        return
    data = load_letor(path)
    assert data.labels.tolist() == [label for label, _, _ in expected]
    assert np.repeat(data.qids, data.list_lengths).tolist() == [qid for _, qid, _ in expected]
    for row, (_, _, features) in zip(data.features, expected, strict=True):
        assert {index + 1: row[index] for index in np.flatnonzero(row)} == {i: v for i, v in features.items() if v}


@pytest.mark.parametrize(
    ("file", "rows", "queries"),
    [
        ("graded300/train.txt", 3005, 201),
        ("graded300/test.txt", 768, 50),
        ("mq2008/S1.txt", None, None),
        ("mq2008/S3.txt", None, None),
        ("sparse44/test.txt", 11431, 628),
    ],
)
def test_real_files(real_data, file, rows, queries):
    """Counts by regular expression from the bytes. Mutant: the last query dropped, as the published reader does."""
    content = (real_data / file).read_bytes()
    qids = re.findall(rb"^\S+ qid:(\d+)", content, re.MULTILINE)
    assert rows in (None, len(qids))
    assert queries in (None, len(set(qids)))
    data = load_letor(real_data / file)
    assert data.n_docs == len(qids)
    assert data.n_queries == len(set(qids))
    assert np.repeat(data.qids, data.list_lengths).tolist() == [int(qid) for qid in qids]
    assert data.features.sum() == pytest.approx(sum(map(float, re.findall(rb" \d+:(\S+)", content))), rel=1e-9)
