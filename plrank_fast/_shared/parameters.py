"""Descriptions of the parameters that several public functions share, each written once."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

SHARED = """
scores : array_like, shape (n_docs,)
    Log-weights of the documents, all queries one after another; any finite values.
relevance : array_like, shape (n_docs,)
    Gain rho of each document (see ``gains``), of any sign.
rank_weights : array_like, shape (K,) or (n_queries, K)
    Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each.
offsets : array_like of int, shape (n_queries + 1,), optional
    Where each query's documents start; a single query by default.
n_samples : int
    Rankings drawn for each query, N.
rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
    Rankings to use instead of drawing, each of length K or more, or of all documents.
rng : None, int, SeedSequence, BitGenerator or Generator
    Source of the random numbers; the same key gives the same bits for any number of threads.
sampler : {"auto", "introselect", "network", "alias", "threshold"}
    Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
n_threads : int, optional
    None: all available processors; negative: that many fewer than all, plus one.
out : ndarray, shape (n_docs,), float64, optional
    Where to write the result.
first_query : int
    Number of the first query in the numbering of random streams, for batches cut into parts.
"""

PLACE = re.compile(r"^( *)\{([a-z_]+(?:,\s+[a-z_]+)*)\}$", re.MULTILINE)


def _entries(text: str) -> dict[str, str]:
    """Return the entries of a parameter list by their names."""
    entries = re.split(r"\n(?=\w)", inspect.cleandoc(text))
    return {entry.partition(" : ")[0]: entry for entry in entries}


def with_parameters(own: str = "") -> Callable[[Documented], Documented]:
    """Return a decorator that fills parameters into a docstring, from the list ``own`` and that of shared ones.

    It replaces a line such as ``{scores, offsets}`` by the descriptions of these parameters. The signature that
    ``help`` shows lacks the ``**unknown``, which a function takes in order to refuse it by name, and requires
    ``rank_weights``, which is None in a call without it so that `validation` says what to pass.
    """
    return partial(_fill, _entries(SHARED + inspect.cleandoc(own)))


def _fill(entries: dict[str, str], documented: Documented) -> Documented:
    def described(place: re.Match[str]) -> str:
        lines = "\n".join(entries[name] for name in re.split(r",\s+", place[2])).split("\n")
        return "\n".join(place[1] + line for line in lines)

    if documented.__doc__:  # there is none with ``python -OO``
        documented.__doc__ = PLACE.sub(described, documented.__doc__)
    if inspect.isfunction(documented):
        code = documented.__code__
        ends_with_weights = code.co_varnames[: code.co_argcount][-1:] == ("rank_weights",)
        requires_weights = ends_with_weights and documented.__defaults__ is None
        if requires_weights or code.co_flags & inspect.CO_VARKEYWORDS:
            signature = inspect.signature(documented)
            accepted = [each for name, each in signature.parameters.items() if name != "unknown"]
            documented.__signature__ = signature.replace(parameters=accepted)  # type: ignore[attr-defined]
        if requires_weights:
            documented.__defaults__ = (None,)
    return documented
