"""Groups of items whose differences rankings do not decide, by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
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

    Differences within a group are finite, and no others. Groups above come first. It takes O(entries) steps.
    """
    n, (above, below, size) = likelihood.n_items, _comparisons(likelihood)
    one = np.zeros(n, dtype=np.int64)
    if all(_reached(*ends, size)[:n].all() for ends in ((above, below), (below, above))):
        return one, np.zeros((1, 1), dtype=bool)
    edges = np.unique(above * size + below)
    part, lower = _components(edges // size, edges % size, size)
    found, group = np.unique(part[:n], return_inverse=True)
    is_above = np.array([[lower[a] >> int(b) & 1 for b in found] for a in found], dtype=bool)
    np.fill_diagonal(is_above, False)
    return found.size - 1 - group, is_above[::-1, ::-1]


def _comparisons(likelihood: Likelihood) -> tuple[IntArray, IntArray, int]:
    """Return pairs (before, after) of nodes: the items, and one or two for each tied set of the longer rankings.

    All items of a set come before the node after it, and this before all of the next set.
    """
    battles, others, n = likelihood.battles, likelihood.others, likelihood.n_items
    i, j, (won, lost, drawn) = battles.i, battles.j, battles.results.T > 0.0
    won, lost = won | drawn, lost | drawn
    seen = others.rows(others.counts > 0.0)
    entries, ranking, places = seen.entries, seen.ranking, seen.places
    starts = np.append(True, np.diff(ranking) != 0)[: entries.size]
    group = n + np.cumsum(starts | np.append(True, np.diff(places) != 0)[: entries.size])
    later = group > np.maximum.accumulate(np.where(starts, group, 0))
    pairs = [(i[won], j[won]), (j[lost], i[lost]), (entries, group), (group[later] - 1, entries[later])]
    size = n + 1 + int(group.max(initial=n) - n)
    if likelihood.n_draws:  # of which each is an order both ways
        tied = places != REST
        pairs += [(entries[tied], group[tied] + size), (group[tied] + size, entries[tied])]
    before, after = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return before, after, 2 * size


def _reached(from_: IntArray, to: IntArray, size: int) -> NDArray[np.bool_]:
    """Return which nodes follow node 0."""
    reached, before = np.arange(size) == 0, 0
    while (now := int(np.count_nonzero(reached))) > before:
        reached[to[reached[from_]]], before = True, now
    return reached


def _components(from_: IntArray, to: IntArray, size: int) -> tuple[IntArray, list[int]]:
    """Return the strong component of each node, and for each the bits of those below it, by Tarjan's algorithm.

    A component has a larger number than all those below it.
    """
    heads, upto = to.tolist(), np.searchsorted(from_, np.arange(size + 1)).tolist()
    seen, low, part, following = [0] * size, [0] * size, [-1] * size, upto[:-1]
    open_: list[int] = []
    below: list[int] = []
    count = 0
    for root in range(size):
        path = [] if seen[root] else [root]
        while path:
            node = path[-1]
            if not seen[node]:
                count += 1
                seen[node] = low[node] = count
                open_.append(node)
            if following[node] < upto[node + 1]:
                head = heads[following[node]]
                following[node] += 1
                if not seen[head]:
                    path.append(head)
                elif part[head] < 0:
                    low[node] = min(low[node], seen[head])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[node])
            if low[node] == seen[node]:
                members, bits = [-1], 0
                while members[-1] != node:
                    members.append(open_.pop())
                    part[members[-1]] = len(below)
                for member in members[1:]:
                    for head in heads[upto[member] : upto[member + 1]]:
                        if part[head] != len(below):
                            bits |= below[part[head]] | 1 << part[head]
                below.append(bits)
    return np.array(part), below


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
