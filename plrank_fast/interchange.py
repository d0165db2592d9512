"""Conversion between ragged arrays and the ``{query: {document: score}}`` of ranx, ir_measures and pytrec_eval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import FloatArray, IntArray


@validation.hinted
def to_run(
    scores: ArrayLike, offsets: ArrayLike, qids: Iterable[Any] | None = None, docids: Iterable[Any] | None = None
) -> dict[str, dict[str, float]]:
    """Convert scores to a run.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another.
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start.
    qids : iterable, one for each query, optional
        Distinct names of the queries in this order, turned into strings; "0", "1", ... by default.
    docids : iterable, one for each document, optional
        Names of the documents in this order, distinct within a query and turned into strings; "0", "1", ... in each
        query by default.

    Returns
    -------
    dict of str to dict of str to float
        Queries without documents are left out, as these tools refuse them.

    Notes
    -----
    Of documents with equal scores this library ranks the one with the lower index first, and trec_eval, pytrec_eval and
    ir_measures the one with the greater name.

    Examples
    --------
    >>> from plrank_fast.interchange import to_run
    >>> to_run([0.5, 0.1, 0.7], [0, 2, 3], qids=["a", "b"])
    {'a': {'0': 0.5, '1': 0.1}, 'b': {'0': 0.7}}
    """
    return _nested(validation.real_array(scores, "scores").tolist(), offsets, qids, docids)


@validation.hinted
def to_qrels(
    labels: ArrayLike, offsets: ArrayLike, qids: Iterable[Any] | None = None, docids: Iterable[Any] | None = None
) -> dict[str, dict[str, int]]:
    """Convert labels to relevance judgements.

    Parameters
    ----------
    labels : array_like, shape (n_docs,)
        Grades, whole numbers. The nDCG of these tools takes the grades themselves as gains, not 2**label - 1.
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start.
    qids : iterable, one for each query, optional
        Distinct names of the queries in this order, turned into strings; "0", "1", ... by default.
    docids : iterable, one for each document, optional
        Names of the documents in this order, distinct within a query and turned into strings; "0", "1", ... in each
        query by default.

    Returns
    -------
    dict of str to dict of str to int

    Examples
    --------
    >>> from plrank_fast.interchange import to_qrels
    >>> to_qrels([0, 2, 1], [0, 2, 3])
    {'0': {'0': 0, '1': 2}, '1': {'0': 1}}
    """
    grades = validation.whole_numbers(validation.real_array(labels, "labels"), "labels")
    return _nested(grades.tolist(), offsets, qids, docids)


@validation.hinted
def from_run(
    run: Mapping[str, Mapping[str, float]],
    offsets: ArrayLike,
    qids: Iterable[Any] | None = None,
    docids: Iterable[Any] | None = None,
    *,
    missing: float | None = None,
) -> FloatArray:
    """Extract scores or labels from a run or from judgements, in the order of the documents.

    Parameters
    ----------
    run : dict of str to dict of str to float
        A run or judgements, by `to_run`, `to_qrels` or another system.
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start.
    qids : iterable, one for each query, optional
        Distinct names of the queries in this order, turned into strings; "0", "1", ... by default.
    docids : iterable, one for each document, optional
        Names of the documents in this order, distinct within a query and turned into strings; "0", "1", ... in each
        query by default.
    missing : float, optional
        Score of documents that the run does not have, which are an error without it. Pass 0 for judgements, which are
        usually incomplete.

    Returns
    -------
    ndarray, shape (n_docs,), float64

    Examples
    --------
    >>> from plrank_fast.interchange import from_run
    >>> from_run({"a": {"0": 0.5, "1": 0.1}, "b": {"0": 0.7}}, [0, 2, 3], qids=["a", "b"])
    array([0.5, 0.1, 0.7])
    """
    validation.of_type(isinstance(run, Mapping), "run", "a mapping from queries to scores", type(run).__name__)
    if missing is not None:
        missing = validation.real(missing, "missing")
    starts = validation.integer_array(offsets, "offsets")
    scores = np.empty(max(int(starts[-1]), 0) if starts.size else 0)
    for query, documents in _nested(range(scores.size), starts, qids, docids).items():
        known = run.get(query, {})
        for document, place in documents.items():
            score = known.get(document, missing)
            must = "run must have a score for each document (or pass missing=)"
            validation.require(score is not None, f"{must}, got none for {document!r} of {query!r}")
            scores[place] = score
    return validation.real_array(scores, "run")


def _nested(values: Any, offsets: ArrayLike, qids: Iterable[Any] | None, docids: Iterable[Any] | None) -> Any:
    """Return ``{query: {document: value}}``, after a check that names are distinct."""
    starts = validation.query_offsets(offsets, len(values))
    queries = _names(qids, "qids", starts.size - 1, np.arange(starts.size - 1))
    documents = _names(docids, "docids", len(values), np.arange(len(values)) - np.repeat(starts[:-1], np.diff(starts)))
    validation.distinct(queries, range(len(queries)), "qids must be distinct")
    nested: dict[str, dict[str, Any]] = {}
    for query, start, stop in zip(queries, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        validation.distinct(documents[start:stop], range(start, stop), "docids must be distinct in a query")
        if stop > start:
            nested[query] = dict(zip(documents[start:stop], values[start:stop], strict=True))
    return nested


def _names(given: Iterable[Any] | None, argument: str, number: int, default: IntArray) -> list[str]:
    return validation.identifier_strings(default.tolist() if given is None else given, argument, number)
