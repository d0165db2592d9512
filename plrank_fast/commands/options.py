"""Options that several commands have, and the names of files that they share."""

from __future__ import annotations

import argparse

from plrank_fast.training.config import DROP

EMPTY_HELP = "what a query without relevant documents counts in the mean of NDCG over queries ({}); drop: left out"
CACHE_HELP = "keep the parsed files in this folder, and read them from there next time (default: parse them each time)"
MODEL = "model.plrank"  # beside the checkpoint


def check_threads(n_threads: int | None) -> None:
    """Refuse 0 threads before anything is loaded."""
    if n_threads == 0:
        raise ValueError("n_threads must be positive, or negative to count from the end, got 0")


def empty_value(text: str) -> float | str:
    """Parse what a query without relevant documents counts."""
    try:
        return text if text == DROP else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number or 'drop', got {text!r}") from None
