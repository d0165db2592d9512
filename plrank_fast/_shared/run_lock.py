"""Lock of a folder for one run at a time, as two would overwrite each other's temporary files and checkpoints."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = "run.lock"

_held: set[tuple[int, int, Path]] = set()  # (process, thread, folder): a fork copies the set


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a folder, which must exist, against other runs within the block.

    The lock ends with the process; its empty file remains. The thread that holds a folder may enter again. On file
    systems without locks nothing is checked.

    Raises
    ------
    BlockingIOError
        If another run has locked the folder, which the error names.
    OSError
        If the folder cannot be written.
    """
    holder = os.getpid(), threading.get_ident(), Path(folder).resolve()
    if holder in _held:
        yield
        return
    with open(holder[2] / LOCK, "ab") as file:
        _lock(file, folder)
        _held.add(holder)
        try:
            yield
        finally:
            _held.discard(holder)


def _lock(file: BinaryIO, folder: str | os.PathLike[str]) -> None:
    """Lock an open file until it is closed."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            raise BlockingIOError(
                errno.EWOULDBLOCK, "another run is at work in this folder", os.fspath(folder)
            ) from None
