"""The cache of LETOR text: the same data as the text, of the present text, or not at all."""

import os
import re

import numpy as np
import pytest

from plrank_fast.data import letor, load_letor

TEXT = b"1 qid:1 1:2 3:0.5\n0 qid:1 2:3\n2 qid:7 1:1\n"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def parsed(monkeypatch):
    """Files that were parsed, in order."""
    names, read = [], letor._Rows.read
    monkeypatch.setattr(
        letor._Rows, "read", lambda rows, path: names.append(os.path.basename(path)) or read(rows, path)
    )
    return names


def caches(folder):
    return sorted(path for path in folder.iterdir() if path.name.endswith(".letor-cache"))


def test_same_data_for_the_same_options(text, parsed):
    """Mutants: labels kept in the type of the features; arrays placed one byte off; qids always integers; the name of
    the cache made without the options; a cache under another's name believed; the file mapped for writing, so that the
    next reader sees a change."""
    cases = {}, {"dtype": np.float32}, {"n_features": 5}, {"string_qids": True}
    plain = [load_letor(text, **options) for options in cases]

    def compare_all():
        for data, options in zip(plain, cases, strict=True):
            cached = load_letor(text, cache=True, **options)
            assert (cached.fingerprint(), cached.name) == (data.fingerprint(), data.name)
            for name in ("features", "labels", "offsets", "query_ids"):
                assert getattr(cached, name).dtype == getattr(data, name).dtype
            cached.features[0, 0] = 77.0

    for _ in range(3):
        compare_all()
    assert len(parsed) == 2 * len(cases)
    one, *others = caches(text.parent)
    assert len(list(text.parent.iterdir())) == 1 + len(cases)  # no temporary file is left
    for other in others:
        other.write_bytes(one.read_bytes())
    compare_all()
    text.write_bytes(TEXT.replace(b"qid:7", b"qid:q"))
    with pytest.raises(ValueError, match="line 3"):
        load_letor(text, cache=True)
    text.write_bytes(b"0 qid:1 0:5 1:6\n")
    with pytest.raises(ValueError, match="zero_based=True"):
        load_letor(text, cache=True)
    assert load_letor(text, cache=True, zero_based=True).features.tolist() == [[5, 6]]


def test_changed_text_is_read_anew(text, parsed):
    """And one that was touched, or moved with its cache, is not. Mutants: the hash of the whole text not compared; the
    cache not written anew; other times always stale; absolute paths in the cache."""
    load_letor(text, cache=True)
    (cache,) = caches(text.parent)
    changes = [
        (TEXT + b"0 qid:8 1:1\n", None),  # longer
        (TEXT.replace(b"2:3", b"2:4"), None),  # as long, at another time
        (TEXT.replace(b"2:3", b"2:5"), "modified"),  # as long, with the old time put back
    ]
    for content, kept in changes:
        before = text.stat()
        text.write_bytes(content)
        if kept:
            os.utime(text, ns=(before.st_atime_ns, before.st_mtime_ns))
        parsed.clear()
        for _ in range(2):
            assert load_letor(text, cache=True).fingerprint() == load_letor(text).fingerprint()
        assert parsed == ["data.txt"] * 3
        assert caches(text.parent) == [cache]
    os.utime(text, ns=(1, 1))
    moved = text.parent / "moved"
    moved.mkdir()
    for path in (text, cache):
        path.rename(moved / path.name)
    assert load_letor(moved / "data.txt", cache=True).features[1, 1] == 5.0
    assert parsed == ["data.txt"] * 3


def test_text_that_changes_while_it_is_read(text, monkeypatch):
    """After it is parsed, or before and later back. Mutants: hashes taken after parsing alone, or before alone."""
    read = letor._Rows.read

    def write(value):
        text.write_bytes(TEXT.replace(b"2:3", b"2:%d" % value))

    def change(rows, path):
        write(values[0])
        read(rows, path)
        write(values[1])

    for values, later in (((3, 4), 4), ((5, 5), 3)):  # while it is read, afterwards; and later
        write(3)
        with monkeypatch.context() as patch:
            patch.setattr(letor._Rows, "read", change)
            assert load_letor(text, cache=True).features[1, 1] == values[0]
        write(later)
        assert load_letor(text, cache=True).features[1, 1] == later


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: c[:-1] + b"x", lambda c: b"", lambda c: b"x" + c])
def test_damage_is_told_and_mended(text, parsed, damage):
    """Mutants: the damaged cache dropped without a word; left in place; an empty file mapped."""
    expected = load_letor(text, cache=True).fingerprint()
    (cache,) = caches(text.parent)
    sound = cache.read_bytes()
    cache.write_bytes(damage(sound))
    with pytest.warns(UserWarning, match=rf"^cache {re.escape(str(cache))} .*; it is written anew$") as caught:
        assert load_letor(text, cache=True).fingerprint() == expected
    assert caught[0].filename == __file__
    assert cache.read_bytes() == sound
    load_letor(text, cache=True)
    assert len(parsed) == 2


def test_where_nothing_can_be_written(text, monkeypatch):
    """Mutants: the error raised; the temporary file left behind."""

    def refuse(source, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(UserWarning, match="cannot be written, so the text is parsed each time: .*Permission denied"):
        assert load_letor(text, cache=True).n_docs == 3
    assert list(text.parent.iterdir()) == [text]
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="cannot be written, so the text is parsed each time"):
        assert load_letor(text, cache=text / "below").n_docs == 3  # a folder that cannot be made


def test_folder(text, parsed, tmp_path):
    """Mutants: files of one name in two folders share a cache; only the first of several files looked at."""
    other = tmp_path / "fold2" / "data.txt"
    other.parent.mkdir()
    other.write_bytes(TEXT.replace(b"2:3", b"2:9"))
    folder = tmp_path / "made" / "caches"
    for _ in range(2):
        assert load_letor(text, cache=folder).features[1, 1] == 3.0
        assert load_letor(other, cache=str(folder)).features[1, 1] == 9.0
    assert len(parsed) == 2
    assert len(caches(folder)) == 2
    assert not caches(tmp_path)
    for value in (2.0, 4.0):
        other.write_bytes(b"3 qid:2 3:%d\n" % value)
        for _ in range(2):
            assert load_letor([text, other], cache=folder).features[:, 2].tolist() == [0.5, 0.0, 0.0, value]
    assert len(parsed) == 6
    assert load_letor([other, text], cache=folder).labels.tolist() == [3, 1, 0, 2]


def test_arguments(text):
    with pytest.raises(TypeError, match="cache must be True, False or a folder, got 1"):
        load_letor(text, cache=1)
    with pytest.raises(FileNotFoundError):
        load_letor(text.parent / "absent.txt", cache=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(text.parent / "pipe")
        with pytest.raises(ValueError, match="cache must be False for a path that is not a regular file"):
            load_letor(text.parent / "pipe", cache=True)
