"""Archives: the old or the new file always loads, and whatever is wrong with one is seen."""

import errno
import hashlib
import json
import os
import secrets
import time

import numpy as np
import pytest

from plrank_fast._shared import archive, files
from plrank_fast._shared.archive import read_archive, write_archive

HEADER = {"epoch": 3, "text": "naïve", "share": 0.1 + 0.2}
ARRAYS = {"network/0.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "optimizer/0/step": np.array(7.5)}


def test_round_trip_in_both_byte_orders(tmp_path, monkeypatch):
    """Files are little-endian and arrays as on the machine; equal contents give equal bytes. Mutants: 0-d arrays
    flattened; floats rounded; arrays kept as they are in writing, or in reading; the time of writing inside; the
    entries in the order of the mapping."""
    others = {name: array.astype(array.dtype.newbyteorder("S")) for name, array in reversed(ARRAYS.items())}
    write_archive(tmp_path / "these", "checkpoint", HEADER, ARRAYS)
    monkeypatch.setattr(time, "time", lambda: 3e9)
    write_archive(tmp_path / "others", "checkpoint", dict(reversed(HEADER.items())), others)
    assert (tmp_path / "these").read_bytes() == (tmp_path / "others").read_bytes()
    header, arrays = read_archive(tmp_path / "others", "checkpoint")
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert array.dtype.isnative
        np.testing.assert_array_equal(array, ARRAYS[name], strict=True)
    assert sorted(os.listdir(tmp_path)) == ["others", "these"]


def test_every_flipped_bit_and_every_truncation_raises(tmp_path):
    """Mutants: no digest; digest of the first kilobyte; an unknown kind or version read all the same."""
    path = tmp_path / "file"
    write_archive(path, "model", HEADER, ARRAYS)
    content = path.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model .* reads model format version 1"):
            read_archive(path, "model")
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="model format version 1"):
            read_archive(path, "model")


def test_other_versions_and_kinds_are_named(tmp_path, monkeypatch):
    """Mutants: the version compared with >= only, so that a newer file is misread; a header that is a list taken."""
    path = tmp_path / "file"
    for version in (0, 2):
        monkeypatch.setattr(archive, "VERSION", version)
        write_archive(path, "checkpoint", HEADER, ARRAYS)
        monkeypatch.undo()
        with pytest.raises(ValueError, match=rf"has format version {version}; this plrank-fast .* version 1$"):
            read_archive(path, "checkpoint")
    write_archive(path, "model", HEADER, ARRAYS)
    with pytest.raises(ValueError, match="is a model file"):
        read_archive(path, "checkpoint")
    write_archive(path, "checkpoint", [], ARRAYS)
    with pytest.raises(ValueError, match="header is not a JSON object"):
        read_archive(path, "checkpoint")
    path.write_bytes(b"\x80\x04\x95 a pickle")
    with pytest.raises(ValueError, match="is not a checkpoint file, or its first line is damaged"):
        read_archive(path, "checkpoint")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch, failing):
    """Mutants: written in place; rename before fsync; temporary file left behind; the error
    without a name, as the system gives it, or with the temporary file's."""
    path = tmp_path / "file"
    write_archive(path, "model", HEADER, ARRAYS)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_archive(path, "model", {"epoch": 4}, ARRAYS)
    assert caught.value.filename == str(path)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]


def test_pipes_and_links_stay_what_they_are(tmp_path):
    """A pipe stands for a device such as /dev/null. Mutants: either replaced by a regular file."""
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "elsewhere" / "file"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_atomically(pipe, b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert pipe.is_fifo()
    target.parent.mkdir()
    link.symlink_to(target)
    for content in (b"first", b"second"):
        files.write_atomically(link, content)
        assert target.read_bytes() == content
    assert link.is_symlink()


@pytest.mark.parametrize("mode", [None, 0o640])
def test_temporary_files_are_new(tmp_path, monkeypatch, mode):
    """They follow no link and write over no file of a user, even if their name was guessed, and have a name where the
    target's leaves no room for more. Mutants: a fixed name; opened without O_EXCL; the target's name within it; a file
    of that name removed in the end; the mode not set."""
    own, target = tmp_path / "own", tmp_path / ("n" * 250)
    own.write_bytes(b"own")
    guessed = [tmp_path / "plrank-fast-guessed.tmp", target.with_name("out.tmp")]
    for link in guessed:
        link.symlink_to(own)
    for path in (target, tmp_path / "out"):
        with files.replacing(path, mode=mode) as file:
            file.write(b"content")
    umask = os.umask(0o022)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == (0o666 & ~umask if mode is None else mode)
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    with pytest.raises(FileExistsError) as caught, files.replacing(tmp_path / "other", mode=mode):
        pass
    assert caught.value.filename == str(tmp_path / "other")
    assert own.read_bytes() == b"own"
    assert all(link.is_symlink() for link in guessed)
    assert {*tmp_path.iterdir()} == {own, target, tmp_path / "out", *guessed}


@pytest.mark.parametrize(
    ("dtype", "shape", "told"),
    [
        ("<f8", [25_000_000], "buffer is smaller"), ("<f4", [-1], "has shape"), ("<f4", [6, -1], "reshape"),
        ("|O", [1], "OBJECT"), ("<f4", [2.5], "integer"), ("[('a', '|O')]", [1], "not understood|OBJECT"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mapped", [False, True])
def test_wrong_descriptions_under_the_right_digest(tmp_path, dtype, shape, told, mapped):
    """More than the file has, of no length, or pickled. Mutants: the shape not compared; the error let through, or
    only those caught that NumPy raises for damaged files."""
    path = tmp_path / "file"
    write_archive(path, "model", HEADER, {"weights": np.zeros(6, np.float32)})
    _, described, content = path.read_bytes().split(b"\n", 2)
    text = json.dumps({**json.loads(described), "arrays": {"weights": [dtype, shape]}}).encode() + b"\n" + content
    path.write_bytes(f"plrank-fast model {archive.VERSION} {hashlib.sha256(text).hexdigest()}\n".encode() + text)
    with pytest.raises(ValueError, match=rf"^model {path} cannot be read \(.*({told})"):
        read_archive(path, "model", mapped=mapped)


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_only_regular_files_are_read(tmp_path, kind):
    """A device may never end, a pipe never begin. Mutants: the kind of file not looked at; looked at once it is open,
    for which a pipe lets us wait."""
    path = tmp_path / "file"
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file") as caught:
        read_archive(path, "model")
    assert caught.value.filename == str(path)
