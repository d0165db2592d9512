"""Parts that public functions share: descriptions of parameters, and the answer to a call that does not fit."""

import inspect
import re
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from plrank_fast import validation

Documented = TypeVar("Documented", bound=Callable[..., Any])

SHARED = """
scores : array_like, shape (n_docs,)
    Log-weights of the documents, all queries one after another; any finite values at any distance.
relevance : array_like, shape (n_docs,)
    Gain rho of each document (see ``gains``), of any sign.
rank_weights : array_like, shape (K,) or (n_queries, K)
    Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks
    past the end of a query do not count.
offsets : array_like of int, shape (n_queries + 1,), optional
    Where each query's documents start; a single query by default.
n_samples : int
    Rankings drawn for each query, N.
rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
    Rankings to use instead of drawing, each of length K or more, or of all documents.
rng : None, int, SeedSequence, BitGenerator or Generator
    Source of the random numbers. The same key gives the same bits for any number of threads; a generator is advanced by
    one draw, and None is fresh entropy.
sampler : {"auto", "introselect", "network", "alias", "threshold"}
    Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
noise : {"gumbel", "normal"}
    Noise of the scores. Gumbel noise with ``sigma`` 1 is the Plackett-Luce model, normal noise Thurstone's, Case V.
sigma : float
    Scale of the noise, positive.
n_threads : int, optional
    None: all available processors; negative: that many fewer than all, plus one.
out : ndarray, shape (n_docs,), float64, optional
    Where to write the result; untouched if the call fails or is interrupted.
first_query : int
    Number of the first query in the numbering of random streams. Query q of a call draws from stream
    ``first_query + q``, so a batch that is cut into chunks gives the same numbers as the whole.
"""

HEADING = re.compile(r"^(?=\w+(?: \w+)*\n---)", re.MULTILINE)


def with_parameters(*own: str | None) -> Callable[[Documented], Documented]:
    """Return a decorator that adds what a docstring leaves out: descriptions of parameters, and of the result.

    They come from ``own``, lists or docstrings of other functions, and from the list of this module. A call that does
    not fit the signature raises Python's TypeError, with a hint of the argument to pass. A function that takes a
    microsecond has no time for this wrapper: it takes ``**unknown`` to refuse it itself, and its ``rank_weights`` are
    None where they are missing.
    """
    entries: dict[str, str] = {}
    returns = ""
    for listed in (SHARED, *own):
        sections = sections_of(listed)
        entries |= entries_of(sections.get("Parameters", sections[""]))
        returns = sections.get("Returns", returns)
    return partial(_documented, entries, returns)


def sections_of(text: str | None) -> dict[str, str]:
    """Return the sections of a docstring by their titles, and what precedes them by the title ""."""
    first, *titled = HEADING.split(inspect.cleandoc(text or ""))
    return {"": first, **{section.partition("\n")[0]: section for section in titled}}


def entries_of(section: str) -> dict[str, str]:
    """Return the entries of a list of parameters by the names of each."""
    entries = re.split(r"\n(?=\S)", (section.partition("----------\n")[2] or section).strip())
    return {name: entry for entry in entries if entry for name in re.split(r" :|\n", entry)[0].split(", ")}


def _documented(shared: dict[str, str], returns: str, documented: Documented) -> Documented:
    function: Any = documented.__init__ if isinstance(documented, type) else documented  # type: ignore[misc]
    code = inspect.unwrap(function).__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if documented.__doc__:  # there is none with ``python -OO``
        sections = sections_of(documented.__doc__)
        own = entries_of(sections.get("Parameters", ""))
        entries = {name: (shared | own)[name] for name in parameters if name != "self"} | own
        listed = "\n".join(["Parameters", "----------", *dict.fromkeys(entries.values())])
        order = {"": "", "Parameters": "", "Returns": "" if isinstance(documented, type) else returns}
        sections = order | sections | {"Parameters": listed}
        documented.__doc__ = "\n\n".join(section.strip() for section in sections.values() if section)

    if code.co_flags & inspect.CO_VARKEYWORDS:
        signature = inspect.signature(function)
        accepted = [each for name, each in signature.parameters.items() if name != "unknown"]
        function.__signature__ = signature.replace(parameters=accepted)
        function.__defaults__ = function.__defaults__ or (None,)
        return documented

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next is None:  # the call itself has failed
                validation.hint_at_argument(error, parameters)
            raise

    if not isinstance(documented, type):
        return call  # type: ignore[return-value]
    if "__init__" in vars(documented):
        documented.__init__ = call  # type: ignore[misc]
    return documented


documented = with_parameters()
documented_gradient = with_parameters(
    """
    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent.
    """
)
