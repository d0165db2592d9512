"""Groups of items whose differences rankings do not decide, by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._core.strengths.orders import comes_before
from plrank_fast.strengths.likelihood import Likelihood
from plrank_fast.strengths.observed import REST, Observed
from plrank_fast.validation import IntArray

MOST_NAMED = 3


def require_seen(observed: Observed, names: Sequence[Any]) -> None:
    """Require that each item is in some ranking with another one."""
    used = (observed.lengths > 1) & (observed.counts > 0.0)
    entries = observed.entries if used.all() else observed.entries[used[observed.ranking]]
    seen = np.bincount(entries, minlength=len(names)) > 0
    absent = names[int(np.argmin(seen))]
    remedy = "leave it out of names, number the items without gaps from 0, or pass a ridge"
    validation.require(seen.all(), f"item {absent!r} is in no ranking with others: {remedy}")


def groups_of(likelihood: Likelihood) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the group of each item, in which all come before all directly or through others, and who is above whom.

    Differences within a group are finite, and no others. Groups above come first. Several groups take
    O(n_items^3 / 64) steps.
    """
    n, others, battles = likelihood.n_items, likelihood.others, likelihood.battles
    before = np.zeros((n, n), dtype=np.uint8)
    won, lost, drawn = battles.results.T > 0.0
    before[battles.i[won | drawn], battles.j[won | drawn]] = True
    before[battles.j[lost | drawn], battles.i[lost | drawn]] = True
    seen = others.rows(others.counts > 0.0)
    comes_before(seen.entries, seen.places, seen.limits, REST, likelihood.n_draws > 0, before)
    if _reached(before).all() and _reached(before.T).all():
        return np.zeros(n, dtype=np.int64), np.zeros((1, 1), dtype=bool)
    np.fill_diagonal(before, True)
    bits = np.packbits(before, axis=1)
    for item in range(n):  # whoever comes before it also comes before all that follow it
        bits[(bits[:, item // 8] >> (7 - item % 8) & 1).astype(bool)] |= bits[item]
    follow = np.unpackbits(bits, axis=1, count=n).astype(bool)
    first = (follow & follow.T).argmax(axis=1)  # of the group of each item
    heads = np.unique(first)
    heads = heads[np.argsort(-follow[heads].sum(axis=1), kind="stable")]
    above = follow[np.ix_(heads, heads)]
    np.fill_diagonal(above, False)
    return (first[:, np.newaxis] == heads).argmax(axis=1), above


def _reached(before: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which items follow the first one."""
    reached = new = np.arange(len(before)) == 0
    while new.any():
        new = before[new].any(axis=0) & ~reached
        reached = reached | new
    return reached


def describe(groups: IntArray, above: NDArray[np.bool_], names: Sequence[Any]) -> str:
    """Say which groups there are, for a message."""
    texts = []
    for group in range(min(len(above), MOST_NAMED)):
        items = [repr(names[i]) for i in np.flatnonzero(groups == group).tolist()]
        many = len(items) > 1
        items[MOST_NAMED:] = [f"{len(items) - MOST_NAMED} more"] if len(items) > MOST_NAMED else []
        over, under = above[group].any(), above[:, group].any()
        what = "never come" if many else "never comes"
        how = f"{what} after" if over and not under else f"{what} before" if under and not over else ""
        between = f"{'come' if many else 'comes'} after some of them, and before others, and never the other way round"
        how = how or (between if over else f"{'are' if many else 'is'} never compared with")
        texts.append(f"item{'s' if many else ''} {', '.join(items)} {how}" + ("" if over and under else " any other"))
    rest = [f"and so on for {len(above) - MOST_NAMED} more groups"] if len(above) > MOST_NAMED else []
    return "; ".join(texts + rest)
