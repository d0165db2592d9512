"""Atomic replacement of files, reading that is limited to regular files, and the lock of a run's folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

LOCK = "run.lock"


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read from; a pipe might never begin, a device never end."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)  # opening a pipe must not wait

    file = open(path, "rb", opener=opener)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return file


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace a file in one step; see `replacing`."""
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, mode: int | None = None) -> Iterator[BinaryIO]:
    """Write to a file that takes the place of another in one step when the block ends without an error.

    The content goes to a new file in the same folder, which is synchronised and renamed; its name is random, so that it
    is never a file or a link that somebody has put there. A kill leaves it behind. A link keeps its target; pipes and
    devices are written to directly. Errors name ``path``.

    ``mode`` has the permissions of a file that several processes may write at once, such as a cache; a pipe or a link
    of its name is replaced too.
    """
    target = Path(path if mode is not None else os.path.realpath(path))
    try:
        as_it_is = mode is None and target.exists() and not target.is_file()
        with open(target, "wb") if as_it_is else _replacing(target, mode) as file:
            yield file
    except OSError as error:  # the error of a full disk has no name, and the temporary file's would mislead
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextlib.contextmanager
def _replacing(target: Path, mode: int | None) -> Iterator[BinaryIO]:
    temporary = target.with_name(f"plrank-fast-{secrets.token_hex(8)}.tmp")  # short, however long the target's name is
    file = open(temporary, "xb")  # noqa: SIM115 - closed below; where this fails, there is nothing to remove
    try:
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def refuse_overwriting(name: str, path: str, read: Sequence[str]) -> None:
    """Raise ValueError if the output file of the argument ``name`` is one of those that are read."""
    for other in read:
        if os.path.exists(path) and os.path.isfile(other) and os.path.samefile(path, other):
            raise ValueError(f"{name} would write over {other}, which this command reads")


@contextlib.contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a folder, which must exist, within the block; raise BlockingIOError if another run has locked it.

    Two would overwrite each other's checkpoints. The lock ends with the process; its empty file
    remains. On file systems without locks nothing is checked.
    """
    with open(Path(folder) / LOCK, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
                raise BlockingIOError(
                    errno.EWOULDBLOCK, "another run is at work in this folder", os.fspath(folder)
                ) from None
        yield
