"""Coercion of arguments and every error the ranking functions raise.

Each function takes what a user passed and the name of the argument, and returns what the kernels take. Arrays are
copied: a kernel must not see them change, or be reused for ``out``, while it runs without the GIL.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast._core.random import key as _key
from plrank_fast._core.ranking import rankings as _rankings
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast._core.runtime import plain_arrays as _plain_arrays
from plrank_fast.extras import import_extra

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
RankingArray: TypeAlias = NDArray[np.int32]
KeyArray: TypeAlias = NDArray[np.uint64]
RandomState: TypeAlias = "int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None"

ARRAY_PROTOCOLS = ("__array__", "__dlpack__", "__arrow_c_array__", "__arrow_c_stream__")
LARGEST_COUNT = 2**62
DLPACK_HOST_DEVICES = (1, 3, 11)  # memory of the CPU, and what CUDA and ROCm have pinned of it
FEWEST_TO_JUDGE = 12  # numbers, before their looks say what they are
LARGEST_GAIN_TO_JUDGE = 31.0  # of grades up to 5
SECOND_DCG_WEIGHT = 1.0 / np.log2(3.0)
ORDERED_AFTER_SCORES = ("relevance", "labels")
ORDER_OF_RESEARCH_CODE = (
    ": the order here is (scores, relevance, rank_weights); plrank_fast.compat.sigir22 has the published code's, "
    "(rank_weights, labels, scores)"
)
SMALLEST_TOLERANCE = 1e-10  # of exact expectations; the C interface has the same
LARGEST_EXACT_INTEGER = 2**53  # above it a double is not told from its neighbours
KINDS_OF_IDENTIFIERS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (bytes,),
    "integer": (int, np.integer),
    "float": (float, np.floating),
}


def real_array(
    values: ArrayLike, name: str, ndim: tuple[int, ...] | None = (1,), minus_infinity: bool = False
) -> FloatArray:
    """Return a finite, C-contiguous float64 copy of ``values``; -inf may be in it if the caller says so.

    ``values`` may be whatever `_as_array` reads. With ``ndim`` None it may have any number of dimensions.

    Raises
    ------
    TypeError
        If ``values`` is None, masked, requires a gradient, or is not of real numbers.
    ValueError
        If the number of dimensions is wrong or a value is not finite.
    """
    plain = _plain_arrays.finite_copy(values)
    if plain is not None and (ndim is None or plain.ndim in ndim):
        return plain
    array = _as_array(values, name)
    if array.dtype.kind not in "fiub":
        cast = f": cast it, {name}.astype('float32')" if array.dtype.name == "bfloat16" else ""
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}{cast}")
    if ndim is not None and array.ndim not in ndim:
        expected = " or ".join(f"{n}-dimensional" for n in ndim)
        raise ValueError(f"{name} must be {expected}, got shape {array.shape}{_how_to_flatten(array, name)}")
    if array.dtype == np.float64:
        copy = np.array(array, dtype=np.float64, order="C")
    else:
        with np.errstate(over="ignore"):
            copy = np.array(array, dtype=np.float64, order="C")
    if not _magnitudes.all_finite(copy.reshape(-1)):
        wrong = ~np.isfinite(copy)
        if minus_infinity:
            wrong &= copy != -np.inf
            if not wrong.any():
                return copy
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = first[0] if len(first) == 1 else first
        hint = (
            ": leave out documents of weight 0, only sample_rankings takes them" if _is_score(name, copy[first]) else ""
        )
        raise ValueError(f"{name} must be finite, got {copy[first]} at index {where}{hint}")
    return copy


def _how_to_flatten(array: NDArray[Any], name: str) -> str:
    """What to pass in place of an array with too many axes, or of a cutoff in place of the weights of ranks."""
    if array.ndim == 0 and name == "rank_weights":
        cutoff = int(array) if array >= 1 and array == np.floor(array) else 10
        return f": pass an array of weights, such as dcg_weights({cutoff}) for the DCG of the first {cutoff} ranks"
    if array.ndim == 2 and 1 in array.shape:
        return f": pass {name}.ravel()"
    if array.ndim == 2:
        return (
            f": if its rows are queries, pass {name}[mask] with mask of the same shape, True for documents, "
            "and offsets=offsets_from_group(mask.sum(axis=1))"
        )
    return ""


def _is_score(name: str, value: float) -> bool:
    """Whether a value that is not finite may have been meant as the logarithm of a weight of 0."""
    return name == "scores" and value == -np.inf


def same_length(array: FloatArray, name: str, scores: FloatArray, scores_first: bool = True) -> FloatArray:
    """Return ``array`` if it has one entry per document.

    Warns where the two look exchanged, if the caller takes ``scores_first``.
    """
    if array.shape != scores.shape:
        order = ""
        if scores_first and 1 < scores.size < array.size and scores[-1] >= 0.0 and (np.diff(scores) < 0.0).all():
            order = ORDER_OF_RESEARCH_CODE
        raise ValueError(
            f"{name} must have one entry per score, got shape {array.shape} for {scores.size} scores{order}"
        )
    if scores_first and array.size >= 3:
        _warn_if_exchanged(array, name, scores)
    return array


def _warn_if_exchanged(array: FloatArray, name: str, scores: FloatArray) -> None:
    """Warn where scores and relevance or labels look as if they had been given in another library's order.

    Scores that are few different whole numbers, beside relevance that is nearly nowhere the same, are grades beside
    scores. Grades and gains of them are whole numbers, and scores of a model are not, so that one look at the first
    entries ends this for most calls. Scores that are the rank weights of DCG, to the digit, are those.
    """
    first = scores.item(0)
    if first == 1.0 and abs(scores.item(1) - SECOND_DCG_WEIGHT) < 1e-6:
        discounts = 1.0 / np.log2(np.arange(2, scores.size + 2))
        if np.abs(scores - discounts).max() < 1e-6:
            warn(f"scores look like the rank weights of DCG{ORDER_OF_RESEARCH_CODE}")
    if not first.is_integer() or array.item(0).is_integer() or name not in ORDERED_AFTER_SCORES:
        return
    if array.size < FEWEST_TO_JUDGE or scores.min() < 0.0 or scores.max() > LARGEST_GAIN_TO_JUDGE:
        return
    if not (scores == np.floor(scores)).all():
        return
    if 1 < np.unique(scores).size <= array.size / 2 and np.unique(array).size >= 0.9 * array.size:
        warn(
            f"scores look like grades, whole numbers from {scores.min():g} to {scores.max():g}, and {name} like "
            f"scores: scores come first here, (scores, {name}, ...), unlike in scikit-learn"
        )


def warn_if_gains(labels: FloatArray) -> None:
    """Warn where grades, from which gains are to be made, look like gains 2**grade - 1 already.

    That is where many labels are above 0, none of them is 2, 4, 5 or another number without that form, and 1, 3 and 7
    are all there. Scales up to 3 cannot be told from their gains, which are 0, 1 and 3.
    """
    if labels.max(initial=0.0) < 7.0:
        return
    values, counts = np.unique(labels[labels != 0.0], return_counts=True)
    mantissa, _ = np.frexp(values + 1.0)
    if counts.sum() >= FEWEST_TO_JUDGE and (mantissa == 0.5).all() and np.isin([1.0, 3.0, 7.0], values).all():
        shown = ", ".join(f"{value:g}" for value in values[:6])
        warn(f"labels look like gains, {shown} and no grade between: pass the grades, gains are made of them here")


def warn(message: str) -> None:
    """Warn about a call, at the line outside this package that made it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)


def within(array: FloatArray, name: str, lowest: float, highest: float, why: str = "") -> FloatArray:
    """Return ``array`` if all its values lie in [lowest, highest]; ``why`` follows the message."""
    if array.min(initial=np.inf) < lowest or (highest < np.inf and array.max(initial=-np.inf) > highest):
        first = int(np.argmax((array < lowest) | (array > highest)))
        limits = f"at least {lowest:g}" if highest == np.inf else f"from {lowest:g} to {highest:g}"
        raise ValueError(f"{name} must be {limits}, got {array[first]} at index {first}{why}")
    return array


def whole_numbers(array: FloatArray, name: str) -> IntArray:
    """Return ``array`` as integers if it holds nothing else."""
    whole = array == np.rint(array)
    if not whole.all():
        first = int(np.argmin(whole))
        raise ValueError(f"{name} must be whole numbers, got {array[first]} at index {first}")
    return array.astype(np.int64)


def ideal_metrics(ideal: FloatArray) -> FloatArray:
    """Return the metric of each query's ideal ranking, if none is negative: what is to be divided by it."""
    if (ideal < 0.0).any():
        query = int(np.argmax(ideal < 0.0))
        raise ValueError(f"normalize needs ideal metrics of at least 0, got {ideal[query]} for query {query}")
    return ideal


def query_offsets(offsets: ArrayLike | None, n_docs: int) -> IntArray:
    """Return CSR offsets (n_queries + 1,) as int64; None means a single query of all documents."""
    if offsets is None:
        return np.array([0, n_docs], dtype=np.int64)
    array = integer_array(offsets, "offsets")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"offsets must be 1-dimensional and start with 0, got shape {array.shape}")
    sizes = ": sizes of queries become offsets by offsets_from_group(sizes)"
    if array[0] != 0:
        raise ValueError(f"offsets must start with 0, got {array[0]}{sizes if array[0] > 0 else ''}")
    if array[-1] != n_docs:
        hint = sizes if array.min() >= 0 and sum(array.tolist()) == n_docs else ""
        raise ValueError(f"offsets must end with the number of documents, {n_docs}, got {array[-1]}{hint}")
    if (array[1:] < array[:-1]).any():
        first = int(np.argmax(array[1:] < array[:-1])) + 1
        raise ValueError(f"offsets must not decrease, got {array[first]} after {array[first - 1]} at index {first}")
    return array


def longest_list(offsets: IntArray) -> int:
    """Documents of the longest query; np.diff would take as long as a metric of a short list does."""
    return int((offsets[1:] - offsets[:-1]).max(initial=0))


def integer_array(values: ArrayLike, name: str) -> IntArray:
    """Return an int64 copy of an array of integers that fit."""
    array = _as_array(values, name)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name} must not be missing, got nan at index {int(np.argmax(np.isnan(array.reshape(-1))))}")
    if array.dtype.kind not in "iu":
        if array.size or array.dtype.kind == "b":
            cast = f": cast it, {name}.astype(int)" if array.dtype.kind == "f" else ""
            raise ValueError(f"{name} must hold integers, got dtype {array.dtype}{cast}")
        array = array.astype(np.int64)
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit 64-bit signed integers, got {array.max()}")
    return np.array(array, dtype=np.int64, order="C")


def list_lengths(sizes: ArrayLike, name: str) -> IntArray:
    """Return numbers of documents, none negative and their sum a count."""
    if sizes is None:
        raise TypeError(
            f"{name} must be an array, got None: the data set has no groups, set them (its group or qid) first"
        )
    array = integer_array(sizes, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-dimensional, got shape {array.shape}{_how_to_flatten(array, name)}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must not be negative, got {array.min()} at index {int(array.argmin())}")
    if sum(array.tolist()) > LARGEST_COUNT:
        raise ValueError(f"{name} must add up to at most 2**62 documents")
    return array


def query_identifiers(qid: Any, name: str = "qid") -> NDArray[Any]:
    """Return a 1-dimensional array of integers, strings or bytes, one kind throughout and none missing.

    Whole numbers in floating point become integers, as far as a double tells integers apart.
    """
    array = _as_array(qid, name)
    if array.ndim != 1:
        hint = f": pass its one column, {name}[:, 0]" if array.ndim == 2 and array.shape[1] == 1 else ""
        raise ValueError(f"{name} must be 1-dimensional, got shape {array.shape}{hint}")
    # NumPy makes strings of a list that holds strings and numbers: 1 and "1" would become one query
    items = array.tolist() if array.dtype.kind == "O" else qid if isinstance(qid, (list, tuple)) else None
    if items is not None:
        _check_kinds(items, name)
        if array.dtype.kind == "O" and items and isinstance(items[0], (float, np.floating)):
            array = array.astype(np.float64)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) <= LARGEST_EXACT_INTEGER)
        if not whole.all():
            first = int(np.argmin(whole))
            if np.isnan(array[first]):
                raise ValueError(f"{name} must not be missing, got nan at index {first}")
            raise ValueError(f"{name} must be whole numbers up to 2**53 if floats, got {array[first]} at index {first}")
        array = array.astype(np.int64)
    if array.size and array.dtype.kind not in "iuSUTO":
        raise TypeError(f"{name} must hold integers or strings, got dtype {array.dtype}")
    return array


def _check_kinds(items: Sequence[Any], name: str) -> None:
    """Refuse identifiers that are missing, of no kind that names a query, or of more than one."""
    kind_of_type: dict[type, str | None] = {}
    for kind in set(map(type, items)):
        known = [label for label, types in KINDS_OF_IDENTIFIERS.items() if issubclass(kind, types)]
        kind_of_type[kind] = known[0] if known and not issubclass(kind, bool) else None
    if len(set(kind_of_type.values())) <= 1 and None not in kind_of_type.values():
        return
    kinds = [kind_of_type[type(item)] for item in items]
    for index, item in enumerate(items):
        if type(item).__name__ in ("NoneType", "NAType", "NaTType") or (kinds[index] == "float" and item != item):
            raise ValueError(f"{name} must not be missing, got {item} at index {index}")
    if None in kinds:
        index = kinds.index(None)
        raise TypeError(f"{name} must hold integers or strings, got {items[index]!r} at index {index}")
    other = next(index for index, kind in enumerate(kinds) if kind != kinds[0])
    raise TypeError(
        f"{name} must be of one kind, got {items[0]!r} ({kinds[0]}) at index 0 and {items[other]!r} ({kinds[other]}) "
        f"at index {other}"
    )


def names(given: Iterable[Any], name: str, number: int) -> list[str]:
    """Return so many names of queries or documents as strings, from anything that holds them."""
    if isinstance(given, str):
        raise TypeError(f"{name} must be an iterable of names, got the string {given!r}")
    if not isinstance(given, (list, tuple)) and any(hasattr(given, each) for each in ARRAY_PROTOCOLS):
        # the elements of a tensor are tensors, and a merge has made floats of a column's whole numbers
        given = query_identifiers(given, name).tolist()
    strings = [item.decode() if isinstance(item, bytes) else str(item) for item in given]
    if len(strings) != number:
        raise ValueError(f"{name} must have {number} names, got {len(strings)}")
    return strings


def distinct_names(strings: Sequence[str], name: str, query: str | None = None) -> None:
    """Check that no name stands twice, among the documents of ``query`` if there is one."""
    if len(set(strings)) == len(strings):
        return
    twice = next(each for each in strings if strings.count(each) > 1)
    where, which = ("", "") if query is None else (" in a query", f" in {query!r}")
    raise ValueError(f"{name} must be distinct{where}, got {twice!r} twice{which}")


def found(score: float | None, query: str, document: str) -> float:
    """Return the score that a run has for a document, if it has one."""
    if score is None:
        raise ValueError(f"run must have all documents (or give missing=), got none {document!r} of {query!r}")
    return score


def distinct(queries: NDArray[Any], first: NDArray[Any], name: str) -> None:
    """Check that no query is there twice; ``first`` says at which document each one begins."""
    identifiers = queries.tolist()
    if len(set(identifiers)) == len(identifiers):
        return
    seen: set[Any] = set()
    for query, start in zip(identifiers, first.tolist(), strict=True):
        if query in seen:
            raise ValueError(
                f"{name} must keep each query's documents together, got query {query} in separate places, again at "
                f"index {start}"
            )
        seen.add(query)


def weights_of_ranks(rank_weights: ArrayLike, offsets: IntArray) -> FloatArray:
    """Return rank weights as rows, (1, K) for all queries or (n_queries, K), no longer than the longest query."""
    array = real_array(rank_weights, "rank_weights", ndim=(1, 2))
    n_queries = offsets.size - 1
    if array.ndim == 1:
        array = array[np.newaxis, :]
    elif array.shape[0] != n_queries:
        raise ValueError(
            f"rank_weights must have shape (K,) or one row for each of the {n_queries} queries, got {array.shape}"
        )
    if 0 < array.shape[1] * n_queries <= offsets[-1]:  # no more ranks than queries have documents in the mean
        return array
    longest = longest_list(offsets)
    return array if array.shape[1] <= longest else np.ascontiguousarray(array[:, :longest])


def count(value: Any, name: str, lowest: int) -> int:
    """Return an integer of at least ``lowest``; bool and float are no integers."""
    number = integer(value, name)
    if number < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {number}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most 2**62, got {number}")
    return number


def ranks_that_count(cutoff: Any) -> int | None:
    """Return a cutoff, None or an integer of at least 0."""
    if cutoff is not None and np.ndim(cutoff) > 0:
        raise TypeError(
            f"cutoff must be None or an integer, got an array of shape {np.shape(cutoff)}: weights of ranks are for dcg"
        )
    return None if cutoff is None else count(cutoff, "cutoff", 0)


def integer(value: Any, name: str) -> int:
    """Return a Python int, from any integer type but bool."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        raise TypeError(f"{name} must be an integer, got {value!r}{f': pass {int(value)}' if whole else ''}")
    try:
        return int(value.__index__())
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None


def threads(n_threads: Any) -> int | None:
    """Check ``n_threads``: None, or an integer other than 0."""
    if n_threads is None:
        return None
    number = integer(n_threads, "n_threads")
    if number == 0:
        raise ValueError("n_threads must be None, positive, or negative (-1: all processors), got 0")
    return max(-(2**30), min(number, 2**30))


def choice(value: Any, name: str, choices: Sequence[str], none: bool = False) -> str:
    """Return ``value`` if it is one of ``choices``; ``none`` adds to the message that None, which is no str, is too."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join([*(["None"] if none else []), *map(repr, choices)])
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name} must be one of {listed}, got {value!r}")
    return value


def excluded(value: Any, name: str, other: str, why: str) -> None:
    """Refuse an argument that was given beside another one, which leaves no meaning to it."""
    if value is not None:
        raise ValueError(f"{name} must not be given with {other}, {why}")


def goes_with(value: Any, name: str, used: bool, setting: str) -> None:
    """Refuse an argument that was given where a setting leaves it without effect."""
    if value is not None and not used:
        raise ValueError(f"{name} only goes with {setting}, got {value!r}")


def positive_real(value: Any, name: str) -> float:
    """Return a finite float > 0."""
    if isinstance(value, (bool, np.bool_, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    number = float(value)
    if not (0.0 < number < np.inf):
        raise ValueError(f"{name} must be positive and finite, got {number}")
    return number


def relative_tolerance(value: Any, name: str) -> float:
    """Return a float that exact expectations can hold as a relative error: below, rounding has its say."""
    number = positive_real(value, name)
    if not SMALLEST_TOLERANCE <= number < 1.0:
        raise ValueError(f"{name} must be at least {SMALLEST_TOLERANCE:g} and below 1, got {number:g}")
    return number


def at_least(value: Any, name: str, lowest: float) -> float:
    """Return a finite float that is not below ``lowest``."""
    if isinstance(value, (bool, np.bool_, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an int beyond the range of a double
        number = np.inf if value > 0 else -np.inf
    if not lowest <= number < LARGEST_COUNT:
        raise ValueError(f"{name} must be at least {lowest:g} and finite, got {number}")
    return number


def check_random_state(rng: Any) -> RandomState:
    """Check ``rng`` without drawing from it, so that a later error leaves its stream where it was."""
    if rng is None or isinstance(rng, (np.random.SeedSequence, np.random.BitGenerator, np.random.Generator)):
        return rng
    if isinstance(rng, (bool, np.bool_)) or not hasattr(rng, "__index__"):
        raise TypeError(f"rng must be None, an int, a SeedSequence, a BitGenerator or a Generator, got {rng!r}")
    seed = int(rng.__index__())
    if seed < 0:
        raise ValueError(f"rng must not be negative, got {seed}")
    return seed


def stream_key(rng: RandomState) -> KeyArray:
    """Return the 128-bit key of one call's random streams; draws it from a generator, under its lock."""
    key = _key.stream_key(rng)
    if key is not None:
        return key
    if isinstance(rng, np.random.Generator):
        return rng.integers(0, 2**64, size=2, dtype=np.uint64)
    assert not isinstance(rng, np.random.BitGenerator)
    sequence = rng if isinstance(rng, np.random.SeedSequence) else np.random.SeedSequence(rng)
    return sequence.generate_state(2, np.uint64).astype(np.uint64)


def seed_sequence(rng: Any) -> np.random.SeedSequence:
    """Seeds of the draws that one call leaves to NumPy: made from ``stream_key``, with a check of ``rng``."""
    return np.random.SeedSequence([int(word) for word in stream_key(check_random_state(rng))])


def given_rankings(
    rankings: ArrayLike, offsets: IntArray, cutoff: int | None, batch: bool, prefixes: bool = False
) -> RankingArray:
    """Return rankings made elsewhere as (n_queries, n_samples, length), every entry in use checked.

    A ranking may be longer than the cutoff, and entries past the end of a short query are not looked at (they are -1
    in the output of ``sample_rankings``); it must not be shorter than both the cutoff and the query. With cutoff None
    all ranks are in use, however many there are. With ``prefixes`` a ranking may end early, and is -1 from there on.
    """
    array = integer_array(rankings, "rankings")
    shape = array.shape
    n_queries = offsets.size - 1
    if array.ndim == 2 and n_queries == 1:
        array = array[np.newaxis]
    if array.ndim != 3 or array.shape[0] != n_queries:
        expected = f"({n_queries}, n_samples, length)" if batch else "(n_samples, length)"
        raise ValueError(f"rankings must have shape {expected}, got {shape}")
    if array.shape[1] == 0:
        raise ValueError("rankings must hold at least one ranking, got none")
    longest = longest_list(offsets)
    if cutoff is None:
        cutoff = array.shape[2]
    elif array.shape[2] < min(cutoff, longest):
        raise ValueError(f"rankings must reach rank {min(cutoff, longest)}, got rankings of length {array.shape[2]}")
    narrow = np.clip(array, -2, 2**31 - 1).astype(np.int32)
    fault, (query, sample, rank) = _rankings.find_fault(narrow, offsets, cutoff, prefixes)
    if fault:
        item = array[query, sample, rank]
        where = f"(query {query}, sample {sample}, rank {rank})" if batch else f"(sample {sample}, rank {rank})"
        if fault == _rankings.DUPLICATE:
            raise ValueError(f"rankings must not repeat an item, got {item} a second time at {where}")
        if fault == _rankings.AFTER_THE_END:
            raise ValueError(f"rankings must not go on after -1, which ends them, got {item} at {where}")
        n_items = int(offsets[query + 1] - offsets[query])
        raise ValueError(f"rankings must hold items 0 to {n_items - 1}, got {item} at {where}")
    return narrow


def one_per_ranking(values: ArrayLike, name: str, shape: tuple[int, int], batch: bool) -> FloatArray:
    """Return numbers of rankings as (n_queries, n_rankings): given so, or without ``batch`` as (n_rankings,)."""
    array = real_array(values, name, ndim=None)
    if array.shape != shape and not (shape[0] == 1 and array.shape == shape[1:]):
        expected = shape if batch else shape[1:]
        raise ValueError(f"{name} must have one entry per ranking, shape {expected}, got {array.shape}")
    return array.reshape(shape)


def one_per_rank(values: ArrayLike, name: str, shape: tuple[int, ...], batch: bool) -> FloatArray:
    """Return numbers of ranks in the shape of the rankings: given so, or without ``batch`` as (n_rankings, length)."""
    array = real_array(values, name, ndim=None)
    if array.shape != shape and not (shape[0] == 1 and array.shape == shape[1:]):
        expected = shape if batch else shape[1:]
        raise ValueError(f"{name} must have the shape of rankings, {expected}, got {array.shape}")
    return array.reshape(shape)


def one_per_place(array: FloatArray, name: str, n_ranks: int) -> FloatArray:
    """Return the first ``n_ranks`` of numbers of ranks, 1-dimensional, if there are as many."""
    if array.size < n_ranks:
        raise ValueError(f"{name} must have one entry per rank, {n_ranks} or more, got {array.size}")
    return array[:n_ranks]


def chances(array: FloatArray, name: str) -> FloatArray:
    """Return probabilities of what has happened: above 0, and at most 1 but for rounding."""
    wrong = ~((array > 0.0) & (array <= 1.0 + 1e-9))
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{name} must be above 0 and at most 1, got {array[first]} at index {first}")
    return array


def whole_rankings(lengths: IntArray, shown: NDArray[np.bool_], wanted: IntArray) -> None:
    """Check that no ranking shown ends before the rank wanted of its query; lengths and shown: (n_queries, n_rows)."""
    short = shown & (lengths < wanted[:, np.newaxis])
    if short.any():
        query, row = (int(i) for i in np.argwhere(short)[0])
        raise ValueError(
            f"rankings must not end early here, got {lengths[query, row]} items in place of {wanted[query]} at "
            f"(query {query}, sample {row})"
        )


def below_one(value: Any, name: str) -> float:
    """Return a float of at least 0 and below 1."""
    number = at_least(value, name, 0.0)
    if number >= 1.0:
        raise ValueError(f"{name} must be below 1, got {number:g}")
    return number


def between(value: Any, name: str, lowest: float, highest: float) -> float:
    """Return a float that lies between the two, neither of them included."""
    number = positive_real(value, name)
    if not lowest < number < highest:
        raise ValueError(f"{name} must be between {lowest:g} and {highest:g}, got {number:g}")
    return number


def same_offsets(offsets: IntArray, name: str, expected: IntArray) -> None:
    """Check that another distribution is over queries of the same lengths."""
    if not np.array_equal(offsets, expected):
        raise ValueError(f"{name} must be over the same queries, with offsets {expected}, got {offsets}")


def at_least_one_axis(shape: tuple[int, ...], name: str) -> None:
    """Check that a tensor is no scalar."""
    if not shape:
        raise ValueError(f"{name} must have an axis of items, got a scalar")


def number_of_axes(got: int, name: str, expected: int) -> None:
    """Check the number of axes of an array whose values are not known yet."""
    if got != expected:
        raise ValueError(f"{name} must have {expected} {'axis' if expected == 1 else 'axes'}, got {got}")


def sizes_of_axes(values: Any, name: str) -> tuple[int, ...]:
    """Return a shape that a caller gave."""
    of_type(isinstance(values, (tuple, list)), name, "a tuple of integers", type(values).__name__)
    return tuple(count(size, name, 0) for size in values)


def broadcast_with_batch(shape: tuple[int, ...], batch_shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Return what the axes of an array before its last and those of a batch broadcast to."""
    try:
        return np.broadcast_shapes(shape, batch_shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast with the batch, of shape {batch_shape}, got {shape}") from None


def reward_baseline(values: Any, shape: tuple[int, int], per_ranking: bool) -> FloatArray | None:
    """Return what is taken off the rewards, to be broadcast to their shape; None is the mean of the other rankings.

    That is what True asks for; False is 0; else a number, one of each query or, with ``per_ranking``, of each ranking.
    """
    if isinstance(values, (bool, np.bool_)):
        return None if values else np.zeros((1, 1))
    array = real_array(values, "baseline", ndim=None)
    if array.ndim == 0:
        return array.reshape(1, 1)
    if per_ranking and (array.shape == shape or (shape[0] == 1 and array.shape == shape[1:])):
        return array.reshape(shape)
    if array.shape == shape[:1]:
        return array[:, np.newaxis]
    each = f", one of each query, {shape[:1]}" + (f", or one of each ranking, {shape}" if per_ranking else "")
    raise ValueError(f"baseline must be True, False, a number{each}, got shape {array.shape}")


def rewards_of_block(values: Any, shape: tuple[int, int], batch: bool) -> FloatArray:
    """Return what a caller's reward function gave for a block of rankings, (n_queries, n_rankings)."""
    return one_per_ranking(values, "reward(rankings)", shape, batch)


def function(value: Any, name: str) -> Any:
    """Return ``value`` if it can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}")
    return value


def output(out: Any, shape: tuple[int, ...], name: str = "out") -> FloatArray | None:
    """Check an output array: float64, of the right shape, writeable."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, got {type(out).__name__}")
    if out.dtype != np.float64 or not out.dtype.isnative or out.shape != shape:
        raise ValueError(f"{name} must be float64 of shape {shape}, got {out.dtype} of shape {out.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name} must be writeable, got a read-only array")
    return out


def representable(result: FloatArray, names: str) -> FloatArray:
    """Return ``result`` if none of it is beyond the largest double; ``names`` are the arguments to blame if it is."""
    if not _magnitudes.all_finite(result):
        first = int(np.argmin(np.isfinite(result)))
        raise ValueError(f"{names} lead to a result beyond the largest double, about 1.8e308, at index {first}")
    return result


def representable_product(array: FloatArray, factor: float, names: str) -> None:
    """Check that no value times ``factor`` is beyond the largest double."""
    largest = float(np.abs(array).max(initial=0.0))
    if not largest * factor < np.inf:
        raise ValueError(f"{names} have a product beyond the largest double, about 1.8e308, got {largest} and {factor}")


def deliver(result: FloatArray, out: FloatArray | None) -> FloatArray:
    """Return ``result``, through ``out`` if the caller gave one; only a finished result is ever written."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


def output_pair(
    out: Any, shape: tuple[int, ...], second_shape: tuple[int, ...] | None = None
) -> tuple[FloatArray | None, FloatArray | None]:
    """Check the output of two results, such as a gradient and its Hessian diagonal: a pair of arrays."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"out must be a pair of arrays, one for each result, got {type(out).__name__}")
    pair = output(out[0], shape, "out[0]"), output(out[1], second_shape or shape, "out[1]")
    if pair[0] is not None and pair[1] is not None and np.shares_memory(pair[0], pair[1]):
        raise ValueError("out must be a pair of separate arrays, got two that share memory")
    return pair


def flag(value: Any, name: str) -> bool:
    """Return a bool; nothing else is taken for one."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def addressable(shape: tuple[int, ...], itemsize: int, name: str) -> tuple[int, ...]:
    """Return ``shape`` if an array of it could exist at all."""
    size = itemsize
    for length in shape:
        size *= length
    if size >= 2**63:
        raise ValueError(f"{name} asks for an array of shape {shape}, {size} bytes: more than can be addressed")
    return shape


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """Read anything that holds an array on the CPU: arrays, sequences, columns, DLPack, Arrow."""
    if values is None:
        raise TypeError(f"{name} must be an array, got None")
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: fill or drop the masked entries first")
    if getattr(values, "requires_grad", False):
        raise TypeError(
            f"{name} must not require a gradient: pass {name}.detach(), or call plrank_fast.torch for a loss that "
            "autograd goes through"
        )
    try:
        _check_array_interface(values, name)
        array = np.asarray(values)
        return _imported(values, array) if array.ndim == 0 and array.dtype.kind == "O" else array
    except (TypeError, ValueError, RuntimeError, OverflowError, BufferError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        if type(error).__name__ == "TracerArrayConversionError":
            message = f"{name} must not be traced by JAX: plrank_fast.jax has what goes through jit, grad and vmap"
        else:
            message = f"{name} cannot be read as an array: {error}{_remedy(values, name)}"
        raise kind(message) from error


def _imported(values: Any, otherwise: NDArray[Any]) -> NDArray[Any]:
    """Read what NumPy takes for a single object by the protocol that it has, DLPack's or Arrow's."""
    if hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        pyarrow = import_extra("pyarrow", "arrow")
        import_array = pyarrow.array if hasattr(values, "__arrow_c_array__") else pyarrow.chunked_array
        return np.asarray(import_array(values))
    return otherwise


def _remedy(values: Any, name: str) -> str:
    """What to call on an array that NumPy cannot read."""
    if str(getattr(values, "dtype", "")).endswith("bfloat16"):  # a tensor's type of its own
        return f": cast it, {name}.float()"
    device = getattr(values, "device", None)  # of NumPy and the array API, of torch, CuPy and JAX
    if device is not None:
        on_cpu = "cpu" in str(device).lower()
    else:
        on_cpu = not hasattr(values, "__dlpack_device__") or values.__dlpack_device__()[0] in DLPACK_HOST_DEVICES
    if on_cpu:
        return ""
    library = type(values).__module__.partition(".")[0]
    call = {"torch": "cpu()", "cupy": "get()"}.get(library, 'to_device("cpu")')
    return f": copy it to the CPU first, {name}.{call}"


def _check_array_interface(values: Any, name: str) -> None:
    """Refuse an ``__array_interface__`` that claims more than its buffer holds: NumPy would read past its end."""
    interface = None if isinstance(values, np.ndarray) else getattr(values, "__array_interface__", None)
    if not isinstance(interface, dict) or isinstance(interface.get("data"), (tuple, type(None))):
        return  # a bare address has no length to check
    itemsize = np.dtype(interface["typestr"]).itemsize
    end = interface.get("offset", 0) + itemsize
    strides = interface.get("strides")
    for axis, length in enumerate(interface["shape"]):
        step = strides[axis] if strides else itemsize * int(np.prod(interface["shape"][axis + 1 :], dtype=object))
        end += max(0, step * (length - 1)) if length else -itemsize
    held = memoryview(interface["data"]).nbytes
    if end > held:
        raise ValueError(f"its array interface claims {end} bytes of a buffer of {held}")


def only_one(arguments: dict[str, Any]) -> None:
    """Raise if more than one of these arguments, by name, is not None."""
    given = [name for name, value in arguments.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"only one of {' and '.join(given)} may be given, got both")


def at_most(number: int, name: str, highest: int) -> int:
    """Return ``number`` if it is not above ``highest``."""
    if number > highest:
        raise ValueError(f"{name} must be at most {highest}, got {number}")
    return number


def query_weights(weights: ArrayLike | None, n_queries: int) -> FloatArray:
    """Return one weight per query, not negative; all 1 if there are none."""
    if weights is None:
        return np.ones(n_queries)
    array = real_array(weights, "weights")
    if array.size != n_queries:
        raise ValueError(f"weights must have one entry per query, got {array.size} for {n_queries} queries")
    return within(array, "weights", 0.0, np.inf)


def one_entry_each(array: NDArray[Any], name: str, number: int, of: str) -> NDArray[Any]:
    """Return ``array`` if it has one entry for each of so many queries, or documents."""
    if array.shape != (number,):
        raise ValueError(f"{name} must have one entry for each of the {number} {of}, got shape {array.shape}")
    return array


def weights_of_queries(weights: ArrayLike | None, offsets: IntArray) -> FloatArray | None:
    """Return the weight of each query from those of its documents, which must be the same."""
    if weights is None:
        return None
    array = real_array(weights, "weights")
    if array.size != offsets[-1]:
        raise ValueError(f"weights must have one entry per document, got {array.size} for {offsets[-1]} documents")
    of_queries, differing = _first_of_queries(array, offsets)
    if differing.any():
        document = int(np.argmax(differing))
        query = int(np.searchsorted(offsets, document, side="right")) - 1
        raise ValueError(
            f"weights must be the same for all documents of a query, for the objective is of whole rankings: got "
            f"{of_queries[query]:g} and {array[document]:g} in query {query}"
        )
    return of_queries


def weights_of_scattered_queries(sample_weight: ArrayLike | None, order: IntArray, offsets: IntArray) -> FloatArray:
    """Return the weight of each query from those of its documents, which ``order`` brings together; 1 without any."""
    if sample_weight is None:
        return np.ones(offsets.size - 1)
    of_rows = one_entry_each(real_array(sample_weight, "sample_weight"), "sample_weight", order.size, "documents")
    of_queries, differing = _first_of_queries(within(of_rows, "sample_weight", 0.0, np.inf)[order], offsets)
    if differing.any():
        row = int(order[np.argmax(differing)])
        raise ValueError(f"sample_weight must be the same for all documents of a query, got another at index {row}")
    if not of_queries.any():
        raise ValueError("sample_weight must not be zero for all queries")
    return of_queries


def _first_of_queries(array: FloatArray, offsets: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Value of the first document of each query, 0 where there is none, and which documents have another value."""
    lengths = np.diff(offsets)
    filled = lengths > 0
    of_queries = np.zeros(lengths.size)
    of_queries[filled] = array[offsets[:-1][filled]]
    return of_queries, array != np.repeat(of_queries, lengths)


def groups_of(groups: ArrayLike | None, remedy: str) -> ArrayLike:
    """Return what a library holds of its data set's groups, if it holds any."""
    if groups is None or np.size(groups) == 0:
        raise ValueError(f"the data set has no groups, and a ranking objective needs to know its queries: {remedy}")
    return groups


def whole_queries(taken: IntArray, sizes: IntArray, remedy: str) -> None:
    """Raise if of a query with ``sizes`` documents some but not all are taken, (n_queries,)."""
    cut = (taken > 0) & (taken < sizes)
    if cut.any():
        first = int(np.argmax(cut))
        raise ValueError(
            f"the data set holds parts of queries, {taken[first]} of the {sizes[first]} documents of query {first}, "
            f"which a ranking objective cannot learn from: {remedy}"
        )


def dask_rows(collection: Any, columns: tuple[int, ...] | None, name: str) -> Any:
    """Return a Dask collection in ``columns`` parts by columns (None: it is none) if it is partitioned by rows only."""
    if columns is None:
        raise TypeError(f"{name} must be a Dask array, data frame or series, got {type(collection).__name__}")
    if any(number > 1 for number in columns):
        raise ValueError(f"{name} must be partitioned by rows only, got {columns} parts by columns: rechunk it")
    return collection


def same_partitions(rows: IntArray, expected: IntArray, name: str) -> None:
    """Raise unless the partitions of a collection have as many rows as those of ``qid``."""
    if rows.size != expected.size:
        raise ValueError(f"{name} must have the partitions of qid, got {rows.size} and not {expected.size}")
    if (rows != expected).any():
        place = int(np.argmax(rows != expected))
        raise ValueError(
            f"{name} must have the partitions of qid, got {rows[place]} rows in partition {place} and not "
            f"{expected[place]}"
        )


def queries_in_one_place(identifiers: NDArray[Any]) -> None:
    """Raise if a query, one of these in the order in which they begin, returns after others."""
    known, counts = np.unique(identifiers, return_counts=True)
    if known.size != identifiers.size:
        raise ValueError(
            f"qid {known[counts > 1][0]!s} returns after others; the documents of a query must follow one another: "
            "sort by qid"
        )


def uncut_queries(ends: IntArray, moved: IntArray, remedy: str) -> None:
    """Raise if an end of a partition had to be moved to that of a query."""
    if (ends != moved).any():
        place = int(np.argmax(ends != moved))
        raise ValueError(f"qid has a query that is split between partitions {place - 1} and {place}: {remedy}")


def required(value: Any, name: str, by: str) -> Any:
    """Return ``value`` if there is one; argument ``by`` needs it."""
    if value is None:
        raise ValueError(f"{name} must be given for {by}, got None")
    return value


def instead_of(value: Any, name: str, other: str) -> Any:
    """Return ``value`` if there is one; the caller has found that ``other`` was not given in its place."""
    if value is None:
        raise ValueError(f"{name} must be given, or {other}")
    return value


def values_of_rankings(values: ArrayLike, n_docs: int) -> FloatArray:
    """Return noisy scores of a query's documents, (n_samples, n_docs), of at least one ranking."""
    array = real_array(values, "sampled_values", ndim=(2,))
    if array.shape[1] != n_docs or not array.size:
        raise ValueError(f"sampled_values must have shape (N, {n_docs}), got {array.shape}")
    return array


def given_with_rankings(values: Any, rankings: Any) -> None:
    """Check that the noise of a ranking is given where the ranking is."""
    if values is None and rankings is not None:
        raise ValueError("sampled_values must be given with sampled_rankings: the noise counts, not only the order")


def qid_to_score(qid: Any, n_queries_fitted: int) -> None:
    """Check that documents of several queries are not scored as those of one."""
    if qid is None and n_queries_fitted > 1:
        raise ValueError(
            f"qid must be given to score, as the ranker was fitted on {n_queries_fitted} queries "
            "(under cross-validation: set_score_request(qid=True))"
        )


def shape_of_scores(shape: tuple[int, ...], offsets: Any, mask: Any) -> None:
    """Check the shape of a network's scores, and that only one argument says where queries end: one that can."""
    if len(shape) not in (1, 2):
        raise ValueError(f"scores must have shape (n_docs,), (n_docs, 1) or (n_queries, length), got {shape}")
    if mask is not None:
        excluded(offsets, "offsets", "a mask", "which says where queries end")
    elif offsets is not None and shape[1:] not in ((), (1,)):
        raise ValueError(f"scores must have shape (n_docs,) or (n_docs, 1) with offsets, got {shape}")


def mask_of_scores(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return a mask of the shape of the scores."""
    places = np.asarray(mask)
    if places.dtype != np.bool_:
        raise TypeError(f"mask must be of bool, True where a document stands, got dtype {places.dtype}")
    return like_scores(places, "mask", shape)


def like_scores(array: NDArray[Any], name: str, shape: tuple[int, ...], or_flat: bool = False) -> NDArray[Any]:
    """Return ``array`` if it has the shape of the scores, or if allowed as many entries in one dimension."""
    if array.shape != shape and not (or_flat and array.shape == (int(np.prod(shape)),)):
        raise ValueError(f"{name} must have the shape of scores, {shape}, got {array.shape}")
    return array


def of_type(holds: bool, name: str, expected: str, got: Any) -> None:
    """Raise unless an argument is of the type expected: for types of which only another library can tell."""
    if not holds:
        raise TypeError(f"{name} must be {expected}, got {got}")


def constant(differentiated: bool, name: str, must_not: str, remedy: str) -> None:
    """Refuse an argument by which a library would differentiate, and find 0 in silence."""
    if differentiated:
        raise TypeError(f"{name} must not {must_not}: pass {remedy}")
