"""Lock of a folder for one run at a time, as two would overwrite each other's temporary files and checkpoints."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "run.lock"


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a folder, which must exist, within the block; raise BlockingIOError if another run has locked it.

    The lock ends with the process; its empty file remains. On file systems without locks nothing is checked.
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
