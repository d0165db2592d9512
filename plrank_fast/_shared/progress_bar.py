"""The progress bar of long commands, with a total, on at most 80 columns."""

from __future__ import annotations

import shutil
import sys
import warnings
from typing import Any

from plrank_fast._shared.extras import import_extra

MAX_COLUMNS = 80


def make_bar(
    extra: str, total: float, layout: str, *, initial: float = 0, leave: bool = True, quiet: bool = False
) -> Any:
    """Make a progress bar with tqdm, which ``extra`` installs; ``layout`` is its ``bar_format``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # a notebook without ipywidgets gets a bar of text
        tqdm = import_extra("tqdm.auto", extra).tqdm
    return tqdm(
        total=total,
        initial=initial,
        bar_format=layout,
        leave=leave,
        disable=quiet or sys.stderr is None,  # the parent process may have closed it
        # A log file gets a line every few seconds, a terminal a live one.
        mininterval=0.2 if sys.stderr is not None and sys.stderr.isatty() else 5.0,
        miniters=0,
        ncols=min(MAX_COLUMNS, shutil.get_terminal_size().columns),
    )
