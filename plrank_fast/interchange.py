"""Conversion between ragged arrays and ``{query: {document: score}}``, as ranx, ir_measures and pytrec_eval have it.

`align_run` leads from a run and judgements to the metrics, with documents that were not retrieved and not judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import FloatArray, IntArray

__all__ = ["align_run", "from_run", "to_qrels", "to_run"]


def __dir__() -> list[str]:
    return __all__


Run: TypeAlias = "Mapping[Any, Mapping[Any, float]] | Iterable[Any]"

# Names of fields, of which the first one present counts.
QUERIES = ("qid", "query_id", "q_id", "query-id", "query")
DOCUMENTS = ("docno", "doc_id", "docid", "pid", "corpus-id", "document")
SCORES = ("score",)
LABELS = ("relevance", "label", "rel")
FIELDS = frozenset((*QUERIES, *DOCUMENTS, *SCORES, *LABELS))
ROWS = "rows (query, document, score)"


@validation.hinted
def to_run(
    scores: ArrayLike, offsets: ArrayLike, query_ids: Iterable[Any] | None = None, docids: Iterable[Any] | None = None
) -> dict[str, dict[str, float]]:
    """Convert scores to a run.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; those with -inf were not retrieved and are left out.
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start.
    query_ids : iterable, one for each query, optional
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
    Of documents with equal scores this library ranks the one with the lower index first, and trec_eval and pytrec_eval
    the one with the greater name, among scores in float32. ir_measures ranks ties as the tool behind each measure does:
    the greater name first for RR, the lesser for RR@10. ``to_run(-order.argsort(), ...)`` with
    ``order = numpy.argsort(-scores, kind="stable")`` has the order of this library everywhere, up to 2**24 documents.

    Examples
    --------
    >>> from plrank_fast.interchange import to_run
    >>> to_run([0.5, 0.1, 0.7], [0, 2, 3], query_ids=["a", "b"])
    {'a': {'0': 0.5, '1': 0.1}, 'b': {'0': 0.7}}
    """
    nested = _nested(validation.real_array(scores, "scores", minus_infinity=True).tolist(), offsets, query_ids, docids)
    retrieved = {
        query: {document: score for document, score in documents.items() if score > -np.inf}
        for query, documents in nested.items()
    }
    return {query: documents for query, documents in retrieved.items() if documents}


@validation.hinted
def to_qrels(
    labels: ArrayLike, offsets: ArrayLike, query_ids: Iterable[Any] | None = None, docids: Iterable[Any] | None = None
) -> dict[str, dict[str, int]]:
    """Convert labels to relevance judgements.

    Parameters
    ----------
    labels : array_like, shape (n_docs,)
        Grades, whole numbers. The nDCG of these tools takes the grades themselves as gains, not 2**label - 1.
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start.
    query_ids : iterable, one for each query, optional
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
    return _nested(grades.tolist(), offsets, query_ids, docids)


@validation.hinted
def from_run(
    run: Run,
    offsets: ArrayLike,
    query_ids: Iterable[Any] | None = None,
    docids: Iterable[Any] | None = None,
    *,
    missing: float | None = None,
) -> FloatArray:
    """Extract scores or labels from a run or from judgements, in the order of the documents.

    `align_run` needs neither offsets nor names, and finds the documents itself.

    Parameters
    ----------
    run : dict of dict, data frame, iterable of rows, or ranx.Run
        A run or judgements, by `to_run`, `to_qrels` or another system, in any form that `align_run` takes.
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start.
    query_ids : iterable, one for each query, optional
        Distinct names of the queries in this order, turned into strings; "0", "1", ... by default.
    docids : iterable, one for each document, optional
        Names of the documents in this order, distinct within a query and turned into strings; "0", "1", ... in each
        query by default.
    missing : float, optional
        Value of documents that the run does not have, which are an error without it. -inf for documents that were not
        retrieved: metrics take such scores. 0 for documents that were not judged. The run must have one document.

    Returns
    -------
    ndarray, shape (n_docs,), float64

    Examples
    --------
    >>> from plrank_fast.interchange import from_run
    >>> from_run({"a": {"0": 0.5, "1": 0.1}, "b": {"0": 0.7}}, [0, 2, 3], query_ids=["a", "b"])
    array([0.5, 0.1, 0.7])
    """
    known = _by_name(run, "run")
    if missing is not None:
        is_infinite = type(missing) is float and missing == -np.inf
        missing = missing if is_infinite else validation.real(missing, "missing")
    starts = validation.integer_array(offsets, "offsets")
    places = _nested(range(max(int(starts[-1]), 0) if starts.size else 0), starts, query_ids, docids)
    names = [(query, document) for query, documents in places.items() for document in documents]
    scores = [known.get(query, {}).get(document) for query, document in names]
    if None in scores:
        query, document = names[scores.index(None)]
        remedy = "missing=-numpy.inf if it was not retrieved, missing=0 if it was not judged"
        must = "run must have a score for each document"
        validation.require(missing is not None, f"{must}, got none for {document!r} of {query!r}: pass {remedy}")
        others = [f"{next(iter(documents))!r} of {other!r}" for other, documents in known.items() if documents]
        found = not others or any(score is not None for score in scores)
        must = f"run must have a score for at least one of the documents, such as {document!r} of {query!r}"
        validation.require(found, f"{must}, got none, but one for {''.join(others[:1])}")
    return np.array([missing if score is None else score for score in scores], dtype=np.float64)


class JudgedRun(NamedTuple):
    """A run beside judgements: the arrays that metrics take, and the names of queries and documents."""

    scores: FloatArray  # -inf for documents that were not retrieved
    labels: FloatArray  # 0 for documents that were not judged
    offsets: IntArray
    query_ids: list[str]
    docids: list[str]

    def __repr__(self) -> str:
        retrieved = np.count_nonzero(self.scores > -np.inf)
        return f"JudgedRun(n_queries={len(self.query_ids)}, n_docs={len(self.docids)}, n_retrieved={retrieved})"


@validation.hinted
def align_run(run: Run, qrels: Run) -> JudgedRun:
    """Put a run and judgements side by side, so that metrics have the values that trec_eval gives.

    Parameters
    ----------
    run : dict of dict, data frame, iterable of rows, or ranx.Run
        Scores of the documents that a system has retrieved: ``{query: {document: score}}``, rows (query, document,
        score), or a frame or rows with names (``frame.itertuples()``, ``ir_measures.read_trec_run``), read by these:
        qid, query_id, q_id or query-id; docno, doc_id, docid, pid or corpus-id; score.
    qrels : dict of dict, data frame, iterable of rows, or ranx.Qrels
        Judgements, likewise (``ir_measures.read_trec_qrels``), with relevance, label or rel in place of score.

    Returns
    -------
    JudgedRun
        A named tuple (scores, labels, offsets, query_ids, docids) of the queries of ``qrels``. The documents of a query
        are those retrieved, in the order of trec_eval (of equal scores the greater name first), with the label 0 where
        they have no judgement or a grade below 0; then the judged ones that were not retrieved, with the score -inf.

    Notes
    -----
    A judged query that the run does not answer has no document retrieved: it counts 0, as with the option ``-c`` of
    trec_eval. Leave such queries out of ``qrels`` for the mean over those answered. trec_eval compares scores in
    float32. `from_run` keeps grades below 0.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> from plrank_fast.interchange import align_run
    >>> judged = align_run({"q": {"a": 1.0, "x": 0.5}}, {"q": {"a": 1, "b": 1}})
    >>> judged.scores, judged.labels, judged.docids
    (array([ 1. ,  0.5, -inf]), array([1., 0., 1.]), ['a', 'x', 'b'])
    >>> plr.ndcg(judged.scores, judged.labels, offsets=judged.offsets).round(4)
    array([0.6131])
    """
    retrieved, judged = _by_name(run, "run"), _by_name(qrels, "qrels")
    validation.warn_if_qrels_first(*(chain(*map(dict.values, each.values())) for each in (retrieved, judged)))
    must = "run must have at least one of the queries of qrels"
    none = f"{must}, such as {next(iter(judged), None)!r}, got none, but {next(iter(retrieved), None)!r}"
    validation.require(not retrieved or not judged or retrieved.keys() & judged.keys(), none)
    scores, labels, docids, lengths = [], [], [], [0]
    for query, label_of in judged.items():
        score_of = retrieved.get(query, {})
        documents = sorted(score_of, key=lambda document: (score_of[document], document), reverse=True)
        documents += [document for document in label_of if document not in score_of]
        scores += [score_of.get(document, -np.inf) for document in documents]
        labels += [max(label_of.get(document, 0.0), 0.0) for document in documents]
        docids += documents
        lengths.append(len(documents))
    return JudgedRun(np.array(scores), np.array(labels), np.cumsum(lengths), list(judged), docids)


def _by_name(given: Run, name: str) -> dict[str, dict[str, float]]:
    """Return ``{query: {document: value}}`` with texts for names and numbers for values."""
    if hasattr(given, "to_dict") and not isinstance(given, Iterable):  # the classes of ranx
        given = given.to_dict()
    if not isinstance(given, Mapping):
        queries, documents, values = _columns_of(given, name)
        return _of_columns(queries, documents, values, name)
    nested: Mapping[Any, Mapping[Any, float]] = given
    for query, documents in nested.items():
        expected = "a mapping from documents to scores"
        validation.of_type(isinstance(documents, Mapping), f"{name}[{query!r}]", expected, type(documents).__name__)
    queries = validation.identifier_strings(list(nested), f"queries of {name}", len(nested))
    names = [document for documents in nested.values() for document in documents]
    values = [value for documents in nested.values() for value in documents.values()]
    named = zip(
        validation.identifier_strings(names, f"documents of {name}", len(names)),
        validation.real_array(values, name).tolist(),
        strict=True,
    )
    return {
        query: dict(islice(named, len(documents))) for query, documents in zip(queries, nested.values(), strict=True)
    }


def _of_columns(queries: Any, documents: Any, values: Any, name: str) -> dict[str, dict[str, float]]:
    """Return ``{query: {document: value}}`` from the names and the value of each row."""
    nested: dict[str, dict[str, float]] = {}
    columns = zip(
        validation.identifier_strings(queries, f"queries of {name}", len(queries)),
        validation.identifier_strings(documents, f"documents of {name}", len(queries)),
        validation.real_array(values, name).tolist(),
        strict=True,
    )
    for index, (query, document, value) in enumerate(columns):
        of_query = nested.setdefault(query, {})
        if document in of_query:
            once = f"{name} must have each document of a query once"
            validation.require(False, f"{once}, got {document!r} of {query!r} again at index {index}")
        of_query[document] = value
    return nested


def _columns_of(given: Any, name: str) -> Sequence[Any]:
    """Return three columns of a data frame or of rows: the names of queries and of documents, and the values."""
    columns = validation.column_names(given, name)
    if columns is not None:
        queries, documents, values = validation.columns_of(given, name, _fields(columns, name))
        return queries, documents, validation.numbers_of_column(values, name)
    expected = f"a mapping from queries to scores, a data frame, or {ROWS}"
    is_path = isinstance(given, (str, bytes, os.PathLike))
    remedy = ": read the file with ir_measures.read_trec_run or read_trec_qrels" if is_path else ""
    is_rows = isinstance(given, Iterable) and not is_path
    validation.of_type(is_rows, name, expected, type(given).__name__ + remedy)
    rows = _of_rows(given, name)
    used = f"{name} must have rows, got an iterator without any: once read, it has none left"
    validation.require(rows or not isinstance(given, Iterator), used)
    return list(zip(*rows, strict=True)) or [()] * 3


def _of_rows(given: Iterable[Any], name: str) -> list[list[Any]]:
    """Return the query, the document and the value of each row, by the names of its fields if it has any."""
    places: dict[tuple[str, ...], list[int]] = {(): [0, 1, 2]}
    rows = []
    for index, row in enumerate(given):
        fields, values = (tuple(row), tuple(row.values())) if isinstance(row, Mapping) else ((), row)
        if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
            validation.of_type(False, name, f"{ROWS}, if not a mapping", f"{row!r} at index {index}")
        if FIELDS.intersection(named := getattr(row, "_fields", ())):
            fields = named
        if fields not in places:
            places[fields] = [fields.index(field) for field in _fields(fields, name)]
        if not fields and len(values) != 3:
            remedy = "pass a data frame with columns such as qid, docno and score"
            got = f"{row!r} at index {index}: {remedy}"
            validation.require(False, f"{name} must have {ROWS} or rows with names of fields, got {got}")
        rows.append([values[place] for place in places[fields]])
    return rows


def _fields(fields: Sequence[str], name: str) -> list[str]:
    """Return the fields with the query, the document and the value."""
    of_value = [SCORES, LABELS] if name == "run" else [LABELS, SCORES]
    known = next((names for names in of_value if set(names).intersection(fields)), of_value[0])
    found = [[field for field in names if field in fields] for names in (QUERIES, DOCUMENTS, known)]
    for names, present in zip((QUERIES, DOCUMENTS, known), found, strict=True):
        others = f", or {', '.join(names[1:])}" if names[1:] else ""
        validation.require(present, f"{name} must have a field {names[0]}{others}, got {list(fields)}")
    one = f"{name} must have one field of {', '.join(LABELS)}, got {' and '.join(found[2])}"
    validation.require(len(found[2]) == 1, one)
    return [present[0] for present in found]


def _nested(values: Any, offsets: ArrayLike, query_ids: Iterable[Any] | None, docids: Iterable[Any] | None) -> Any:
    """Return ``{query: {document: value}}``, after a check that names are distinct."""
    starts = validation.query_offsets(offsets, len(values))
    queries = _names(query_ids, "query_ids", starts.size - 1, np.arange(starts.size - 1))
    documents = _names(docids, "docids", len(values), np.arange(len(values)) - np.repeat(starts[:-1], np.diff(starts)))
    validation.distinct(queries, range(len(queries)), "query_ids must be distinct")
    nested: dict[str, dict[str, Any]] = {}
    for query, start, stop in zip(queries, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        validation.distinct(documents[start:stop], range(start, stop), "docids must be distinct in a query")
        if stop > start:
            nested[query] = dict(zip(documents[start:stop], values[start:stop], strict=True))
    return nested


def _names(given: Iterable[Any] | None, argument: str, number: int, default: IntArray) -> list[str]:
    return validation.identifier_strings(default.tolist() if given is None else given, argument, number)
