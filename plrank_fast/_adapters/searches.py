"""Checks that rankers make in pipelines and searches of scikit-learn: rows, columns, queries and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.offsets import offsets_from_qid
from plrank_fast.validation import FloatArray, IntArray

BaseEstimator: Any = import_extra("sklearn.base", "sklearn").BaseEstimator if find_spec("sklearn") else object
LONGEST_WITHOUT_QID = 200  # documents that count as one query without a warning


def metadata_routing(name: str) -> str:
    """Return how a ranker comes by the queries, an argument of this name, within a pipeline or a search."""
    requests = f".set_fit_request({name}=True).set_score_request({name}=True)"
    return (
        f"a pipeline or a search passes {name} on only with sklearn.set_config(enable_metadata_routing=True), to a "
        f"ranker with {requests}"
    )


def warn_of_one_query(n_docs: int, name: str = "qid") -> None:
    """Warn that ``fit`` takes many documents for one query."""
    if n_docs > LONGEST_WITHOUT_QID:
        validation.warn(
            f"fit takes all {n_docs} documents for one query, as {name} was not given: "
            f"{metadata_routing(name)}. Pass {name}=numpy.zeros(len(y)) if they are of one query"
        )


def require_queries(qid: Any, n_queries: int, name: str = "qid") -> None:
    """Refuse a ``score`` without queries unless the ranker was fitted on one."""
    fitted = f"as the ranker was fitted on {n_queries} queries: {metadata_routing(name)}"
    validation.require(qid is not None or n_queries == 1, f"{name} must be given to score, {fitted}")


def offsets_of(qid: Any, n_docs: int, name: str = "qid") -> IntArray:
    """Return the offsets of the queries, a single one by default."""
    if qid is None:
        return validation.query_offsets([0, n_docs], n_docs)
    return offsets_from_qid(
        validation.one_entry_each(validation.query_identifiers(qid, name), name, n_docs, "documents")
    )


def weights_of(sample_weight: Any, offsets: IntArray, order: IntArray | None = None) -> FloatArray:
    """Return the weights of queries from their documents' weights, not all 0."""
    weights = validation.weights_of_queries(sample_weight, offsets, "sample_weight", order)
    validation.require(weights.any(), "sample_weight must not be zero for all queries")
    return weights


def checked_data(ranker: Any, X: Any, y: Any, others: Sequence[Any] = ()) -> tuple[Any, Any]:
    """Return the data of ``fit`` after scikit-learn's checks; frames stay what they are.

    ``others`` are columns that need not hold numbers.
    """
    checks = import_extra("sklearn.utils.validation", "sklearn")
    X, y = validation.unmasked(X, "X"), validation.unmasked(y, "y")
    if has_columns(X, others):
        X, y = checks.validate_data(ranker, X, y, skip_check_array=True)
        checks.check_consistent_length(X, y)
        return X, checks.column_or_1d(y, warn=True)
    X, y = checks.validate_data(
        ranker, X, y, accept_sparse="csr", ensure_all_finite=False, ensure_min_samples=2, y_numeric=True
    )  # fmt: skip
    return _matrix(X), y


def require_fitted(ranker: Any) -> None:
    """Refuse to predict before ``fit``."""
    import_extra("sklearn.utils.validation", "sklearn").check_is_fitted(ranker)


def checked_features(ranker: Any, X: Any, others: Sequence[Any] = ()) -> Any:
    """Return other features, whose columns are as in ``fit``, in the same order."""
    checks = import_extra("sklearn.utils.validation", "sklearn")
    X = validation.unmasked(X, "X")
    if has_columns(X, others):
        return checks.validate_data(ranker, X, reset=False, skip_check_array=True)
    return _matrix(checks.validate_data(ranker, X, reset=False, accept_sparse="csr", ensure_all_finite=False))


def _matrix(X: Any) -> Any:
    """Return sparse features as a matrix with 32-bit indices, since boosters do not take, or warn of, sparse arrays."""
    if not hasattr(X, "tocsr"):
        return X
    matrix = import_extra("scipy.sparse", "sklearn").csr_matrix(X)
    places = (each.astype(np.int32) if matrix.nnz < 2**31 else each for each in (matrix.indices, matrix.indptr))
    return type(matrix)((matrix.data, *places), shape=matrix.shape)


def has_columns(X: Any, others: Sequence[Any] = ()) -> bool:
    """Return whether features have columns of their own, and check that these hold numbers.

    Boosters do not name the column that holds others, and LightGBM ends the process at a text of Polars.
    """
    names = validation.column_names(X, "X")
    if names is None:
        return bool(others)
    for each, column in zip(names, validation.columns_of(X, "X", names), strict=True):
        if each not in others and str(getattr(column, "dtype", "")) != "category":
            validation.numbers_of_column(column, f"column {each!r} of X")
    return True
