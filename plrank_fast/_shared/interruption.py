"""Deferred Ctrl-C: the first stops the training loop after its batch, the second aborts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_STATUS = 128 + signal.SIGINT  # shells expect it of a process that Ctrl-C has ended


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Within the block, turn the first Ctrl-C into a flag, and yield the function that reads it.

    A second Ctrl-C has its usual effect. Nothing changes outside the main thread, where Python delivers no signals, or
    if SIGINT is ignored, which it is in processes that a shell starts in the background.
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
