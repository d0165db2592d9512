"""LETOR files: what is valid loads right, the rest raises naming file and line."""

import bz2
import decimal
import gzip
import os
import re
import tracemalloc

import numpy as np
import pytest

from plrank_fast._shared import memory
from plrank_fast.data import concatenate, letor, load_letor, normalize_queries
from plrank_fast.training.sources import with_columns

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
        GOOD.replace(b"\n", b"# caf\xe9\n#\xff\xfe\n"),
        GOOD.replace(b" ", b"\t  "),
        gzip.compress(GOOD),
        GOOD.replace(b"0.5", b"+5e-1").replace(b"0 qid:1", b"0 qid:" + b"0" * 5000 + b"1"),
    ],
    ids=["plain", "no final newline", "CRLF", "comments", "blank lines", "Latin-1", "tabs", "gzip", "spellings"],
)
def test_valid_files(tmp_path, content):
    """Mutants: blank lines counted as rows; last query closed only when another follows; column 1 kept as column 1."""
    data = load_letor(written(tmp_path, content))
    assert data.features.tolist() == [[2, 0, 0.5], [0, 3, 0], [1, 0, 0]]
    assert data.labels.tolist() == [1, 0, 2]
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.query_ids.tolist() == [1, 7]
    assert data.name == "data.txt"
    assert data.features.dtype == np.float64


USUAL = (
    b"1 qid:0 1:2 3:0.5 # c\n\n# a comment\n0 qid:00 2:3\r\n+1e0\tqid:9 \t1:-.5e1  3:1.25# c\n0 qid:9\n \t\n"
    b"2 qid:9223372036854775807 1:0001 003:0.12345678901234567 \t\n3 qid:7 2:1e-300"
)


@pytest.mark.parametrize("bytes_at_once", [1, 7, 40, 2**18])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_usual_lines_are_read_at_once(tmp_path, monkeypatch, dtype, bytes_at_once):
    """Line by line, and at once but for a line that makes the matrix wider: the same data.

    Mutants: a line that ends with a carriage return left to `_append`, or one with a comment, a qid with zeros before
    it, or all that follow the first of these; the last line without its line feed left out.
    """
    monkeypatch.setattr(letor, "BYTES_AT_ONCE", bytes_at_once)
    path, one_by_one = written(tmp_path, USUAL), []
    append = letor._Rows._append
    with monkeypatch.context() as patch:
        patch.setattr(letor._Rows, "_append", lambda rows, line: one_by_one.append(line) or append(rows, line))
        data = load_letor(path, dtype=dtype)
        assert one_by_one == [b"1 qid:0 1:2 3:0.5 # c\n"]
        assert load_letor(path, dtype=dtype, n_features=3).fingerprint() == data.fingerprint()
        assert len(one_by_one) == 1
        monkeypatch.setattr(letor, "read_lines", lambda text, at, *_: (at, 0, 0, 0, 0))
        assert load_letor(path, dtype=dtype).fingerprint() == data.fingerprint()
        assert len(one_by_one) == 1 + USUAL.count(b"\n") + 1
    assert data.offsets.tolist() == [0, 2, 4, 5, 6]
    assert data.query_ids.tolist() == [0, 9, 2**63 - 1, 7]


def test_more_lines_than_fit_at_once(tmp_path):
    """Mutants: rows beyond the memory for them; values beyond it, of a line of its own too; numbers of lines of a
    query, or of the first faulty line, from the first of the rows at once."""
    path = written(tmp_path, b"".join(b"%d qid:%d\n" % (row % 3, row // 4) for row in range(20_000)))
    data = load_letor(path)
    assert data.labels.tolist() == [row % 3 for row in range(20_000)]
    assert data.offsets.tolist() == [*range(0, 20_001, 4)]
    pairs = [b"%d:%d" % (index, index) for index in range(1, 140_001)]
    lines = [b"1 qid:a " + b" ".join(pairs[:length]) for length in (3, 60_000, 100_000, 140_000, 5)]
    data = load_letor(written(tmp_path, b"\n".join(lines)), string_qids=True, n_features=140_000)
    assert data.features.sum(axis=1).tolist() == [n * (n + 1) / 2 for n in (3, 60_000, 100_000, 140_000, 5)]
    for fault in (b"1 qid:3 1:1\n", b"1 qid:20001 1:x\n"):
        with pytest.raises(ValueError, match="line 20003: "):
            load_letor(written(tmp_path, b"".join(b"1 qid:%d\n" % row for row in range(20_000)) + b"\n\n" + fault))


def test_numbers_are_rounded_once(tmp_path):
    """Decimals of any length, and such as lie next to the middle of two doubles: the doubles of ``float``.

    Mutants: the second part of a quotient left out, or the rest of its digits; digits beyond 2**53 rounded first; 19
    digits taken to fit 63 bits; 20 digits; 10**23; the sign lost.
    """
    rng = np.random.default_rng(0)
    doubles = rng.normal(size=3000) * 10.0 ** rng.uniform(-25, 25, 3000)
    texts = [form.format(double) for double in doubles.tolist() for form in ("{!r}", "{:.6f}", "{:.18f}", "{:.18e}")]
    with decimal.localcontext(prec=60):
        for k in range(3000):
            low = float(rng.random() * 10.0 ** rng.integers(-3, 2))
            middle = (decimal.Decimal(low) + decimal.Decimal(np.nextafter(low, 9.0))) / 2
            texts.append(f"{middle:.{16 + k % 6}f}")  # near the middle of two doubles
    texts += [
        f"{sign}{rng.integers(2**63, 10**19, dtype=np.uint64)}e-{k}" for k in range(25) for sign in ("", "-", "+")
    ]
    texts += [f"{rng.integers(2**62)}e{k}" for k in range(-25, 26) for _ in range(40)]
    texts += [f"{digits}e{k}" for digits in (1, 7, 2**53 - 1, 2**53, 2**53 + 1) for k in range(-25, 26)]
    texts += ["9007199254740993", "18446744073709551617", "99999999999999999999e-20", "-0", "1e23", "1e-23", "5e-324"]
    texts += ["0." + "0" * 30 + "1", "1" * 30, "2.4703282292062327e-324", "1.7976931348623158e308", "1e-99999999999999"]
    for dtype in (np.float32, np.float64):
        kept = [text for text in texts if abs(float(text)) < float(np.finfo(dtype).max)]
        path = written(tmp_path, "".join(f"{text} qid:1 1:{text}\n" for text in kept).encode())
        data, expected = load_letor(path, dtype=dtype), np.array([*map(float, kept)])
        assert data.labels.tobytes() == expected.tobytes()
        assert data.features.tobytes() == expected.astype(dtype).tobytes()


# what is wrong, the file, the line to be named
FAULTS = [
    ("byte order mark", b"\xef\xbb\xbf" + GOOD, 1),
    ("NUL", GOOD + b"1 qid:8 1:2 # \0\n", 4),
    ("utf-8", GOOD + b"1 qid:8 1:2 caf\xe9 # a\n", 4),
    ("starts as UTF-16 text does: save it as UTF-8", GOOD.decode().encode("utf-16"), 1),
    ("bzip2 data does: unpack it", bz2.compress(GOOD), 1),
    ("index:value", GOOD + b"1 qid:8 1:2 caf\xc3\xa9\n", 4),
    ("qid", GOOD + b"1 1:2\n", 4),
    ("qid", GOOD + b"1\n", 4),
    ("qid", GOOD + b"1 qid:-3 1:2\n", 4),
    ("qid", GOOD + b"1 qid:9223372036854775808 1:2\n", 4),
    ("qid", GOOD + b"1 qid:" + b"9" * 6000 + b" 1:2\n", 4),
    ("1 returns", GOOD + b"1 qid:1 1:2\n", 4),
    ("1 returns", GOOD + b"1 qid:01 1:2\n", 4),
    ("sorted and unique", GOOD + b"1 qid:8 1:2 1:3\n", 4),
    ("index 0", GOOD + b"1 qid:8 0:2 1:3\n", 4),
    ("2147483648", GOOD + b"1 qid:8 1:1 2147483648:3\n", 4),
    ("limit", GOOD + b"1 qid:8 " + b"9" * 6000 + b":3\n", 4),
    ("got '1:nan'; fill in a value that is missing, or leave the feature out", GOOD + b"1 qid:8 1:nan\n", 4),
    ("range", GOOD + b"\n# note\n1 qid:8 1:1 2:1e999 3:1\n1 qid:8 1:2\n", 6),
    ("label beyond", b"\n" + GOOD + b"1e999 qid:8 1:1\n", 5),
    ("a number", GOOD + b"x qid:8 1:1\n", 4),
    ("float", GOOD + b"1-1 qid:8 1:1\n", 4),
    ("carriage return", GOOD + b"1 qid:8 1:2 # note\r0 qid:8 1:3\n", 4),
    ("index", GOOD + b"1 qid:8 1:1 2:7 +3:5\n", 4),
    ("no document", b"", 1),
    ("no document", b"\n# only a comment\n", 2),
    ("gzip", gzip.compress(GOOD)[:-12], r"\d+"),
    ("gzip", gzip.compress(GOOD)[:-8] + bytes(8), 4),
]


@pytest.mark.parametrize(("what", "content", "line"), FAULTS, ids=range(len(FAULTS)))
def test_faults_name_file_and_line(tmp_path, what, content, line):
    """Mutants: every check of `_Rows` left out, one at a time; line counted from 0; row given for line."""
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
    with pytest.raises(TypeError, match="n_features must be an integer, got True"):
        load_letor(path, n_features=True)
    assert load_letor(path, n_features=np.int32(4)).n_features == 4
    assert load_letor(written(tmp_path, b"1 qid:1\n0 qid:2\n")).features.tolist() == [[0], [0]]


def test_dtype(tmp_path):
    """Mutant: values checked for overflow before and not after rounding to float32."""
    path = written(tmp_path, b"1 qid:1 1:1e39\n")
    assert load_letor(path).features[0, 0] == 1e39
    with pytest.raises(ValueError, match="line 1: feature value beyond the range of float32"):
        load_letor(path, dtype=np.float32)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int64"):
        load_letor(path, dtype=np.int64)


def test_matrix_that_cannot_fit(tmp_path, monkeypatch):
    """The memory that is available counts, and the line and feature that make the matrix wide are named. Mutants: no
    check, and 172 GB of zero pages promised by the kernel; the memory of the machine counted; the last line named."""
    path = written(tmp_path, b"0 qid:1 3:1\n1 qid:1 2147483647:1\n" + b"1 qid:1 3:1\n" * 998)
    remedy = r"renumber the features without gaps, or pass n_features= to have larger indices refused"
    with pytest.raises(MemoryError, match=rf"^{path}, line 2: feature 2147483647 .* 1000 x .* 17179\.9 GB.*{remedy}"):
        load_letor(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 71)
    path = written(tmp_path, GOOD)
    with pytest.raises(MemoryError, match="line 1: feature 3 "):
        load_letor(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 72)
    assert load_letor(path).n_docs == 3


def test_every_matrix_counts(tmp_path, monkeypatch):
    """The matrix of a split that is normalised, widened to the columns of another one, or put together counts too.
    Mutants: one of the checks left out; the matrix of the file counted alone."""
    data = load_letor(written(tmp_path, GOOD), dtype=np.float32)
    for call, matrix, needed in (
        (lambda: normalize_queries(data), "another matrix of features, 3 x 3, normalised,", 36),
        (lambda: concatenate([data, data]), "another matrix of features, 6 x 3, of all parts", 72),
        (lambda: with_columns(data, 5), "feature 5 means a matrix for data.txt that, 3 x 5,", 60),
    ):
        monkeypatch.setattr(memory, "available_bytes", lambda needed=needed: needed - 1)
        with pytest.raises(MemoryError, match=f"^{matrix} needs "):
            call()
        monkeypatch.setattr(memory, "available_bytes", lambda needed=needed: needed)
        assert call().features.nbytes == needed


def test_available_memory():
    """Mutant: kilobytes taken for bytes."""
    assert 2**28 < memory.available_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_zero_based(tmp_path):
    """scikit-learn writes such files by default. Mutants: the option not handed on; columns counted from 1."""
    datasets = pytest.importorskip("sklearn.datasets")
    features = np.array([[1.5, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])
    path = tmp_path / "zero.txt"
    datasets.dump_svmlight_file(features, [1, 0, 2], str(path), query_id=[4, 4, 9])
    with pytest.raises(ValueError, match=r"line 1: index 0: .* pass zero_based=True"):
        load_letor(path)
    data = load_letor(path, zero_based=True)
    assert data.features.tolist() == features.tolist()
    assert data.query_ids.tolist() == [4, 9]
    assert load_letor(path, zero_based=True, n_features=3).features.shape == (3, 3)
    with pytest.raises(ValueError, match="line 1: feature index '2' is beyond n_features = 2"):
        load_letor(path, zero_based=True, n_features=2)
    with pytest.raises(ValueError, match=r"line 4: expected 'index:value', got '-1:1'"):
        load_letor(written(tmp_path, GOOD + b"1 qid:8 -1:1 2:7\n"), zero_based=True)
    with pytest.raises(TypeError, match="zero_based must be True or False"):
        load_letor(path, zero_based="auto")


def test_string_qids(tmp_path):
    """Mutants: "01" taken for "1"; the check of the other tokens left out with strings; a qid decoded as Latin-1; a
    form feed beside a qid is white space where qids are strings, and an error where they are not; a qid, and the
    features behind it, cut at a "#"; a line that is a comment taken for a document."""
    text = "1 qid:q-7 1:2\n0 qid:q-7 2:1\n1 qid:01 1:1\n0 qid:1 1:1\n"
    text += "2 qid:caf\u00e9:#no#n 1:1#1\n# 1 qid:#1\n1 qid:caf\u00e9:2 1:3 # c\n"
    path = written(tmp_path, text.encode())
    with pytest.raises(ValueError, match=r"line 1: qid must be a whole number .*'q-7'; pass string_qids=True"):
        load_letor(path)
    assert load_letor(written(tmp_path, b"1 qid:7#a 1:1\n")).features.tolist() == [[0]]  # a number ends before it
    data = load_letor(written(tmp_path, text.encode()), string_qids=True)
    assert data.query_ids.tolist() == ["q-7", "01", "1", "caf\u00e9:#no#n", "caf\u00e9:2"]
    assert data.offsets.tolist() == [0, 2, 3, 4, 5, 6]
    assert data.features.tolist() == [[2, 0], [0, 1], [1, 0], [1, 0], [1, 0], [3, 0]]
    faults = {
        b"1 qid: 1:1\n": "qid must have 1 to 1000 bytes",
        b"1 qid:" + "\u00e9".encode() * 501 + b" 1:1\n": "qid must have 1 to 1000 bytes",
        b"1 qid:a 1:x\n": "expected 'index:value', got '1:x'",
        b"1 qid:a\n1 qid:b\n1 qid:a\n": "line 3: query a returns after others",
        b"1# qid:a\n": "expected 'label qid:N",
        b"1 qid:caf\xe9# 1:1\n": "line 1: 'utf-8' codec",
        b"1 qid:a\f1:1\n": r"line 1: expected a qid, got 'qid:a\\x0c1:1'",
        b"1 qid:a\n1\vqid:a 1:1\n": r"line 2: expected 'label qid:N",
    }
    for content, message in faults.items():
        with pytest.raises(ValueError, match=message):
            load_letor(written(tmp_path, content), string_qids=True)


def test_several_files(tmp_path, monkeypatch):
    """Mutants: starts of the second file not moved; entries of an earlier chunk of rows; width of the first file for
    all; a query in two files let through, or in one that is read twice."""
    monkeypatch.setattr(letor, "BYTES_AT_ONCE", 20)
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_bytes(GOOD)
    second.write_bytes(gzip.compress(b"# b\n3 qid:2 5:1\n1 qid:3 1:4\n0 qid:3 2:1\n"))
    data = load_letor([first, str(second)], dtype=np.float32)
    alone = [load_letor(path, n_features=5, dtype=np.float32) for path in (first, second)]
    joined = concatenate(alone)
    assert data.fingerprint() == joined.fingerprint()
    assert data.name == joined.name == "a.txt, b.txt.gz"
    assert data.offsets.tolist() == [0, 2, 3, 4, 6]
    assert load_letor((first,)).fingerprint() == load_letor(first).fingerprint()
    second.write_bytes(b"3 qid:2 5:1\n\n1 qid:7 1:4\n0 qid:9 2:1\n")
    with pytest.raises(ValueError, match=rf"b\.txt\.gz, line 3: query 7 is in {re.escape(str(first))} already"):
        load_letor([first, second])
    second.write_bytes(b"1 qid:1 1:1\n")
    with pytest.raises(ValueError, match=r"line 1: query 1 is in .* already"):
        load_letor([second, second])
    for nothing, error in (([], ValueError), (None, TypeError), ([None], TypeError), (7, TypeError)):
        with pytest.raises(error, match="path must be the path of a file, or a sequence of at least one"):
            load_letor(nothing)
