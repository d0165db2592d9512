"""The history of a run on disk: one line of JSON per epoch, only ever appended to.

A checkpoint holds the length of the log before it, a digest of that part, and the entries since. The log is extended
after the checkpoint is on the disk. So whenever a process is killed, the log begins with the part that the checkpoint
refers to; resuming drops the rest and writes it again from the checkpoint. The cost of a checkpoint does not grow with
the number of epochs, and a new run leaves an earlier one intact until it writes its own first checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plrank_fast._shared.files import open_regular
from plrank_fast.validation import count

Entry = dict[str, Any]


class HistoryLog:
    """The log of one run, to append to.

    Parameters
    ----------
    path : Path
        The file; the first `append` replaces its contents unless `restore` comes before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = 0
        self._bytes = 0
        self._digest = hashlib.sha256()

    def state(self) -> dict[str, Any]:
        """Return the state of the log for a checkpoint, ready for JSON."""
        return {"bytes": self._bytes, "entries": self.entries, "sha256": self._digest.hexdigest()}

    @staticmethod
    def check(state: dict[str, Any]) -> None:
        """Raise TypeError, KeyError or ValueError if `state` cannot have returned this."""
        count(state["bytes"], "bytes", 0)
        count(state["entries"], "entries", 0)
        bytes.fromhex(state["sha256"])

    def restore(self, state: dict[str, Any]) -> list[Entry]:
        """Continue a log from its state at a checkpoint.

        Parameters
        ----------
        state : dict
            The result of `state` when the checkpoint was written.

        Returns
        -------
        list of dict
            The entries so far.

        Raises
        ------
        ValueError
            If the beginning of the file has changed.
        OSError
            If it cannot be read.
        """
        content = b""
        if state["bytes"]:
            with open_regular(self.path) as file:
                content = file.read(state["bytes"])
        digest = hashlib.sha256(content)
        if digest.hexdigest() != state["sha256"]:
            raise ValueError(f"history {self.path} is damaged: its beginning is not that of the checkpoint")
        entries: list[Entry] = [json.loads(line) for line in content.splitlines()]
        self.entries, self._bytes, self._digest = len(entries), len(content), digest
        return entries

    def append(self, entries: Sequence[Entry]) -> None:
        """Write further entries after those known; anything else in the file is removed.

        Raises
        ------
        OSError
            If the file, which the error names, cannot be written; the entries may then be appended again.
        """
        lines = b"".join(json.dumps(entry, allow_nan=False, sort_keys=True).encode() + b"\n" for entry in entries)
        try:
            # Mode "a" creates the file if necessary and does not truncate it.
            with open(self.path, "ab") as file:
                file.truncate(self._bytes)
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self.entries += len(entries)
        self._bytes += len(lines)
        self._digest.update(lines)
