"""Ctrl-C as a request to finish: the first stops the training loop after its batch, the second aborts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_STATUS = 128 + signal.SIGINT  # of a process that Ctrl-C has ended, as shells have it


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Within the block, keep the first Ctrl-C as a flag; give the function that reads it.

    A second Ctrl-C has its usual effect. Outside the main thread, where Python delivers no signals, nothing is changed,
    nor where SIGINT is ignored, as a shell has it for what it starts in the background.
    """
    requested = threading.Event()
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return

    def request(_signal: int, _frame: FrameType | None) -> None:
        requested.set()
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, request)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
