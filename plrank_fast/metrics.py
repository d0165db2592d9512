"""Metrics of the deterministic ranking: documents in descending order of score, the lower index first on ties.

All are called ``metric(scores, relevance, ...)``: scores come first, unlike in ``sklearn.metrics``, whose functions
take ``(y_true, y_score)``. ``cutoff=K`` limits a metric to the first K ranks; ``dcg`` and ``ndcg`` take rank weights
too, by default 1 / log2(k + 1). A document with the score -inf was not retrieved and has no rank; it counts among all
documents and all relevant ones of its query, as in trec_eval a judged document that the run lacks. The second
argument depends on the metric:

==============================  ===========================================================================
metric                          second argument
==============================  ===========================================================================
``dcg``, ``ndcg``, ``rbp``      gains, for graded labels ``gains(labels)``; the labels themselves are linear
                                gains, which scikit-learn and trec_eval have
``err``                         grades, from which it computes gains
``precision``, ``recall``,      relevant if above 0, so that grades and gains give the same result
``ap``, ``mrr``, ``success``
``average_relevance_position``  weights, not negative
==============================  ===========================================================================
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.ranking import metrics as _metrics
from plrank_fast._core.runtime.arguments import plain_query
from plrank_fast.rank_weights import satisfaction
from plrank_fast.validation import FloatArray


def dcg(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike | None = None,
    *,
    cutoff: int | None = None,
    offsets: ArrayLike | None = None,
    ties: validation.RankTies = "index",
    n_threads: int | None = None,
) -> FloatArray:
    r"""Compute the metric of each query's deterministic ranking, by default DCG.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; -inf for a document that was not retrieved.
    relevance : array_like, shape (n_docs,)
        Gains, of any sign: ``gains(labels)`` for graded labels, the labels themselves for linear gains.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Weight of each rank; DCG's by default, 1 / log2(k + 1).
    cutoff : int, optional
        Ranks that count, K; by default as many as there are rank weights, or all.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    ties : {"index", "average"}
        "index": of equal scores the document with the lower index comes first. "average": the mean over all orders of
        equal scores, which scikit-learn's ``dcg_score`` gives; it does not depend on the order of the documents.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; 0 for an empty query.

    Notes
    -----
    .. math:: \sum_{k \le K} \theta_k \rho_{y_k}

    The cost is O(D + K log K) per query, as the K best are selected and not sorted.

    Other metrics that are linear in the rank weights can be computed with this function: precision with averaged ties
    is ``dcg(scores, relevance > 0, precision_weights(K), ties="average")``.

    Source of the mean over ties: McSherry and Najork, "Computing information retrieval performance measures
    efficiently in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.dcg([0.1, 0.9], [1, 0], plr.dcg_weights(2)).round(3)
    array([0.631])
    >>> plr.dcg([0.5, 0.5, 0.5], [0, 0, 3], cutoff=1, ties="average")
    array([1.])
    """
    return dcg_or_share(scores, relevance, rank_weights, cutoff, offsets, ties, n_threads)


@overload
def ndcg(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike | None = None, *, cutoff: int | None = None,
    offsets: ArrayLike | None = None, normalize: Literal["query"] = "query", empty: float = 0.0,
    ties: validation.RankTies = "index", n_threads: int | None = None,
) -> FloatArray: ...  # fmt: skip
@overload
def ndcg(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike | None = None, *, cutoff: int | None = None,
    offsets: ArrayLike | None = None, normalize: Literal["dataset"], empty: float = 0.0,
    ties: validation.RankTies = "index", n_threads: int | None = None,
) -> float: ...  # fmt: skip
@overload
def ndcg(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike | None = None, *, cutoff: int | None = None,
    offsets: ArrayLike | None = None, normalize: validation.Normalization, empty: float = 0.0,
    ties: validation.RankTies = "index", n_threads: int | None = None,
) -> FloatArray | float: ...  # fmt: skip
def ndcg(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike | None = None,
    *,
    cutoff: int | None = None,
    offsets: ArrayLike | None = None,
    normalize: validation.Normalization = "query",
    empty: float = 0.0,
    ties: validation.RankTies = "index",
    n_threads: int | None = None,
) -> FloatArray | float:
    """Compute NDCG: the DCG of the deterministic ranking over the ideal DCG.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; -inf for a document that was not retrieved.
    relevance : array_like, shape (n_docs,)
        Gains, not negative (``dcg`` takes any sign): ``gains(labels)`` for graded labels, as in LightGBM and XGBoost;
        the labels themselves for linear gains, as in scikit-learn and trec_eval.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Weight of each rank, not negative; DCG's by default, 1 / log2(k + 1). They need not descend: the ideal
        ranking has the highest gain at the rank of the highest weight (see ``ideal_dcg``).
    cutoff : int, optional
        Ranks that count, K; by default as many as there are rank weights, or all.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    normalize : {"query", "dataset"}
        "query": every query's DCG over its own ideal DCG. "dataset": total DCG over total ideal DCG, which weights
        queries by their ideal DCG, as in the papers on PL-Rank.
    empty : float
        Value of a query whose ideal DCG is 0 (no relevant documents, or no documents): 0 in scikit-learn, 1 in
        LightGBM and XGBoost. With "dataset", the value if that holds for all queries.
    ties : {"index", "average"}
        "index": of equal scores the document with the lower index comes first. "average": the mean over all orders of
        equal scores, which scikit-learn's ``dcg_score`` gives; it does not depend on the order of the documents.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64, or a float with "dataset"

    Notes
    -----
    The cost is O(D + K log K) per query, the ideal ranking included.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> scores, labels, offsets = [0.1, 0.9, 0.3, 0.2], [1, 0, 2, 0], [0, 2, 4]
    >>> plr.ndcg(scores, plr.gains(labels), cutoff=10, offsets=offsets).round(3)
    array([0.631, 1.   ])
    >>> round(plr.ndcg(scores, plr.gains(labels), plr.dcg_weights(10), offsets=offsets, normalize="dataset"), 3)
    0.908
    """
    by_query = type(normalize) is str and normalize == "query"
    if by_query or validation.choice(normalize, "normalize", validation.Normalization) == "query":
        return dcg_or_share(scores, relevance, rank_weights, cutoff, offsets, ties, n_threads, True, empty)
    of_no_query = validation.real(empty, "empty", or_nan=True)
    total_ideal = ideal_dcg(relevance, rank_weights, cutoff=cutoff, offsets=offsets, n_threads=n_threads).sum()
    total = dcg_or_share(scores, relevance, rank_weights, cutoff, offsets, ties, n_threads).sum()
    return float(total / total_ideal) if total_ideal != 0.0 else of_no_query


def ideal_dcg(
    relevance: ArrayLike,
    rank_weights: ArrayLike | None = None,
    *,
    cutoff: int | None = None,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the DCG of the best ranking of each query, by which NDCG divides.

    The best ranking has the highest gain at the rank of the highest weight, and so on.

    Parameters
    ----------
    relevance : array_like, shape (n_docs,)
        Gains, not negative: ``gains(labels)`` for graded labels, the labels themselves for linear gains.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Weight of each rank, not negative and in any order; DCG's by default, 1 / log2(k + 1).
    cutoff : int, optional
        Ranks that count, K; by default as many as there are rank weights, or all.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        The highest DCG of each query, 0 if it has no relevant document.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.ideal_dcg([0.0, 3.0, 1.0], cutoff=2).round(3)
    array([3.631])
    >>> plr.ideal_dcg([0.0, 3.0, 1.0], [0.30, 0.35, 0.20])
    array([1.35])
    """
    weights = validation.ABSENT if rank_weights is None else rank_weights
    gains = validation.real_array(relevance, "relevance", n_threads=n_threads)
    batch = validation.batch(
        np.zeros_like(gains), gains, weights, offsets, n_threads, lowest=0.0, why=validation.A_SHARE
    )
    return _metrics.ideal_dcg(batch, validation.ranks(cutoff))


def precision(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the share of the first K documents that are relevant.

    K is ``cutoff`` even where a query has fewer documents; without a cutoff it is the number of documents retrieved.
    For K = 0 the value is 0.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Documents above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; 0 for an empty query.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.precision([0.3, 0.2, 0.1], [0, 1, 2], cutoff=2)
    array([0.5])
    """
    return of_relevance("precision", scores, relevance, cutoff, offsets, n_threads)


def recall(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    empty: float = 0.0,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the share of a query's relevant documents that are among the first K.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Documents above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    empty : float
        Value of a query without relevant documents.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; ``empty`` for an empty query.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.recall([0.3, 0.2, 0.1], [0, 1, 2], cutoff=2)
    array([0.5])
    """
    of_no_query = validation.real(empty, "empty", or_nan=True)
    return of_relevance("recall", scores, relevance, cutoff, offsets, n_threads, of_no_query)


def ap(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    empty: float = 0.0,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    r"""Compute the average precision: the mean of the precision at the rank of each relevant document.

    Relevant documents past the cutoff count 0, as in trec_eval's ``map_cut``. The mean over the queries is MAP.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Documents above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    empty : float
        Value of a query without relevant documents.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; ``empty`` for an empty query.

    Notes
    -----
    With R relevant documents in the query, R_k of them in its first k ranks, the value is

    .. math:: \frac{1}{R} \sum_{k \le K,\; y_k \text{ relevant}} \frac{R_k}{k}

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.ap([0.3, 0.2, 0.1, 0.0], [1, 0, 0, 2])
    array([0.75])
    """
    of_no_query = validation.real(empty, "empty", or_nan=True)
    return of_relevance("ap", scores, relevance, cutoff, offsets, n_threads, of_no_query)


def mrr(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the reciprocal rank of the first relevant document, 0 where none of the first K is relevant.

    Its mean over the queries is the mean reciprocal rank, MRR (Voorhees, TREC-8, 1999).

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Documents above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; 0 for an empty query.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.mrr([0.3, 0.2, 0.1], [0, 1, 2])
    array([0.5])
    """
    return of_relevance("mrr", scores, relevance, cutoff, offsets, n_threads)


def success(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Return 1 if any of the first K documents is relevant, else 0: Success@K, also called hit rate.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Documents above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; 0 for an empty query.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.success([0.3, 0.2, 0.1], [0, 0, 1], cutoff=2)
    array([0.])
    """
    return of_relevance("success", scores, relevance, cutoff, offsets, n_threads)


def err(
    scores: ArrayLike,
    labels: ArrayLike,
    cutoff: int | None = None,
    *,
    max_label: float | None = None,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    r"""Compute the expected reciprocal rank (ERR) of the document that satisfies a user, who then stops.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    labels : array_like, shape (n_docs,)
        Grades, at least 0, and not gains, which are computed here.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    max_label : float, optional
        Highest grade of the scale; the highest in ``labels`` by default.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; 0 for an empty query.

    Notes
    -----
    Document d satisfies the user with probability R_d = (2^label_d - 1) / 2^max_label, and the value is

    .. math:: \sum_{k \le K} \frac{1}{k} R_{y_k} \prod_{i < k} (1 - R_{y_i})

    Source: Chapelle et al., "Expected reciprocal rank for graded relevance", CIKM 2009, equation 5.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.err([0.3, 0.2, 0.1], [0, 1, 2])
    array([0.3125])
    """
    chances, divisor = satisfaction(labels, max_label, n_threads=n_threads)
    return of_relevance("err", scores, chances, cutoff, offsets, n_threads, parameter=divisor, argument="labels")


def rbp(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    persistence: float = 0.8,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    r"""Compute the rank-biased precision: gain per document inspected by a user who continues with probability p.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Gains, of any sign; from 0 to 1 if the value is to lie there. For graded labels ``gains(labels) /
        gains(highest)``.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    persistence : float
        Probability p that the user looks at the next rank, 0 <= p < 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; 0 for an empty query.

    Notes
    -----
    .. math:: (1 - p) \sum_{k \le K} p^{k - 1} \rho_{y_k}

    ``dcg`` with ``rbp_weights`` gives the same values. Source: Moffat and Zobel, "Rank-biased precision for measurement
    of retrieval effectiveness", TOIS 2008, equation 2.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.rbp([0.3, 0.2, 0.1], [0, 1, 1], persistence=0.5)
    array([0.375])
    """
    p = validation.real(persistence, "persistence", at_least=0.0, below=1.0)
    return of_relevance("rbp", scores, relevance, cutoff, offsets, n_threads, parameter=p)


def average_relevance_position(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    empty: float = 0.0,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    r"""Compute the average rank of the relevant documents among the first K, weighted by relevance.

    Lower is better.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first. -inf: not retrieved.
    relevance : array_like, shape (n_docs,)
        Weights, not negative.
    cutoff : int, optional
        Ranks that count, K; all of each query by default. The K best are selected and not sorted, in O(D + K log K).
    empty : float
        Value where none of the first K documents is relevant.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        One value per query; ``empty`` for an empty query.

    Notes
    -----
    .. math:: \frac{\sum_{k \le K} k \rho_{y_k}}{\sum_{k \le K} \rho_{y_k}}

    Source: Zhu, "Recall, precision and average precision", 2004; Joachims, Swaminathan and Schnabel, "Unbiased
    learning-to-rank with biased feedback", WSDM 2017, optimise it.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.average_relevance_position([0.3, 0.2, 0.1], [0, 1, 1])
    array([2.5])
    """
    of_no_query = validation.real(empty, "empty", or_nan=True)
    return of_relevance(
        "average_relevance_position", scores, relevance, cutoff, offsets, n_threads, of_no_query, lowest=0.0
    )


def dcg_or_share(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike | None,
    cutoff: int | None,
    offsets: ArrayLike | None,
    ties: validation.RankTies,
    n_threads: int | None,
    over_ideal: bool = False,
    empty: float = 0.0,
) -> FloatArray:
    """Compute `dcg`, or `ndcg` if ``over_ideal``; ``empty`` is the value of an empty query too."""
    weights = validation.ABSENT if rank_weights is None else rank_weights
    if offsets is None:
        query = plain_query(scores, relevance, weights, n_threads)
        plain = _metrics.dcg_plain(query, cutoff, ties, over_ideal, empty)
        if plain is not None:
            return plain
    of_no_query = validation.real(empty, "empty", or_nan=True)
    lowest = 0.0 if over_ideal else -np.inf
    batch = validation.batch(
        scores, relevance, weights, offsets, n_threads, lowest=lowest, why=validation.A_SHARE, unretrieved=True
    )
    average = validation.choice(ties, "ties", validation.RankTies) == "average"
    return _metrics.dcg(batch, validation.ranks(cutoff), average, over_ideal, of_no_query)


def of_relevance(
    name: str,
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None,
    offsets: ArrayLike | None,
    n_threads: int | None,
    empty: float = 0.0,
    parameter: float = 1.0,
    argument: str = "relevance",
    lowest: float = -np.inf,
) -> FloatArray:
    """Compute a metric without rank weights; ``argument`` is the name of the relevance in messages."""
    if offsets is None:
        query = plain_query(scores, relevance, validation.ABSENT, n_threads)
        plain = _metrics.metric_plain(name, query, cutoff, empty, parameter, lowest == 0.0)
        if plain is not None:
            return plain
    batch = validation.batch(
        scores, relevance, validation.ABSENT, offsets, n_threads, argument, lowest=lowest, unretrieved=True
    )
    return _metrics.metric(name, batch, validation.ranks(cutoff), empty, parameter)
