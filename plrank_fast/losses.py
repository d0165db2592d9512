"""Losses of the methods that PL-Rank is compared with: values per query, and the gradient to descend.

Every function takes ``(scores, labels, *, offsets=None, ..., n_threads=None, out=None)`` and returns ``(values,
gradient)``: one value for each query, shape (n_queries,), and the derivative of their sum by each score, shape
(n_docs,). Losses descend: step against these gradients, and along those of ``plrank_fast`` itself. Labels are grades;
the losses that optimise NDCG compute gains from them.

==========================  ==============================================  =========================================
loss                        optimises                                       cost per query
==========================  ==============================================  =========================================
``pointwise``               labels as regression or click probability       O(D)
``softmax_cross_entropy``   the document that comes first                   O(D)
``list_mle``                likelihood of a ranking by label                O(D + K log K)
``pairwise_logistic``       order of pairs                                  O(D log D + pairs of unequal labels)
``lambda_rank``             pairs, weighted by the change in NDCG           O(R D)
``lambda_loss``             a bound on NDCG                                 O(D log D + R D)
``approx_ndcg``             NDCG at smooth ranks                            O(R D)
``soft_rank``               NDCG under noise, ranks as if independent       O(R D K)
==========================  ==============================================  =========================================

D documents, R of them relevant, K ranks that count. Queries are processed in parallel and give the same bits for any
number of threads; a batch gives the same bits as its queries one by one. NumPy twins: ``plrank_fast.reference``.

Values, and the derivative by each score, err by at most 1e-12 of the sum of their own absolute terms, at any distance
of the scores. A logarithm counts as a term of at least 1, and a difference of gains as two terms; the rank
probabilities of ``soft_rank`` have an absolute error of 1e-12. Scores times a slope, or over a temperature or sigma,
are rounded before they are subtracted, so an offset common to all scores should not be many times as large as their
differences. ``make hunt`` searches for exceptions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.losses import losses as _losses
from plrank_fast._core.losses.losses import LossKind
from plrank_fast._core.runtime import threads as _threads
from plrank_fast.rank_weights import DISCOUNTS, dcg_weights, gains
from plrank_fast.validation import FloatArray, IntArray, RandomState

__all__ = [
    "approx_ndcg", "lambda_loss", "lambda_rank", "list_mle", "pairwise_logistic", "pointwise", "soft_rank",
    "softmax_cross_entropy",
]  # fmt: skip

LossAndGradient = tuple[FloatArray, FloatArray]
OutputPair = tuple[FloatArray, FloatArray]

POINTWISE_KINDS = {"squared": LossKind.POINTWISE_SQUARED, "logistic": LossKind.POINTWISE_LOGISTIC}
TIES = ("index", "random", "exact")
TRUNCATIONS = ("metric", "pairs")
ANY_LABEL = (-np.inf, np.inf)
WIDEST_GAP = 1e4  # of neighbouring scores over the scale of noise; the chance to cross it is exp(-1e4) or less


def evaluate_loss(
    loss: int,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None,
    n_threads: int | None,
    out: OutputPair | None,
    label_range: tuple[float, float] | None = None,
    as_gains: bool = False,
    as_shares: bool = False,
    cutoff: int | None = None,
    discounts_past_cutoff: bool = False,
    slope: float = 1.0,
    sigma: float | None = None,
    spread: float = 1.0,
    distance_weight: float = 0.0,
    rng: RandomState = None,
    ties_at_random: bool = False,
    first_query: int = 0,
) -> LossAndGradient:
    """Check all arguments, then evaluate the loss of ``losses`` over the batch.

    Labels are made gains ``as_gains``, and only their ratios count ``as_shares``. Scores are multiplied by ``slope``,
    whatever their distance is then worth, or divided by ``sigma`` times ``spread`` where great distances are all worth
    the same.
    """
    scale = slope if sigma is None else 1.0 / (sigma * spread)
    if offsets is None and out is None and rng is None and not ties_at_random:
        lone = _losses.lone_loss(
            loss, scores, labels, *(label_range or ANY_LABEL), as_gains, cutoff, DISCOUNTS, discounts_past_cutoff,
            scale, distance_weight, n_threads, first_query,
        )  # fmt: skip
        if lone is not None:
            return lone
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    labels_ = validation.same_length(validation.real_array(labels, "labels"), "labels", scores_)
    if label_range is not None:
        validation.within(labels_, "labels", *label_range)
    if as_gains:
        labels_ = gains(labels_)
    elif as_shares:
        validation.within_limits(labels_, "labels", offsets_)
    ranks = validation.LARGEST_COUNT if cutoff is None else validation.count(cutoff, "cutoff", 0)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    factor = 1.0
    largest = float(np.abs(scores_).max(initial=0.0))
    if largest > validation.LARGEST_MAGNITUDE:  # products with the scale may overflow
        if sigma is None:
            message = f"scores and slope have a product beyond the largest double, got {largest} and {slope}"
            validation.require(largest * slope < np.inf, message)
        else:
            scores_, factor, scale = _unit_noise(scores_, offsets_, scale), scale, 1.0
    values, gradient = np.zeros(offsets_.size - 1), np.zeros(scores_.size)
    outputs = validation.output_pair(out, values.shape, gradient.shape)
    first_query = validation.count(first_query, "first_query", 0)
    rng = validation.check_random_state(rng)
    key = validation.stream_key(rng) if ties_at_random else None
    discounts = dcg_weights(validation.longest_list(offsets_) + 1)
    _losses.evaluate_loss(
        loss, scores_, labels_, offsets_, ranks, discounts, discounts_past_cutoff, scale, distance_weight, key,
        first_query, threads, values, gradient,
    )  # fmt: skip
    if factor != 1.0:
        gradient *= factor
    for result in (values, gradient):
        validation.representable(result, "scores and labels")
    return validation.deliver(values, outputs[0]), validation.deliver(gradient, outputs[1])


def _unit_noise(scores: FloatArray, offsets: IntArray, factor: float) -> FloatArray:
    """Return scores times ``factor``, 1 over the scale of their noise.

    Where that is beyond the largest double, the gaps between the scores of the query are cut to what no pair crosses.
    """
    with np.errstate(over="ignore"):
        scaled = scores * factor
        far = np.flatnonzero(~np.isfinite(scaled))
        for query in np.unique(np.searchsorted(offsets, far, side="right")).tolist():
            part = slice(offsets[query - 1], offsets[query])
            order = np.argsort(scores[part], kind="stable")
            gaps = np.diff(scores[part][order], prepend=scores[part][order][:1]) * factor
            scaled[part][order] = np.cumsum(np.minimum(gaps, WIDEST_GAP))
    return scaled


def pointwise(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    kind: str = "squared",
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """Pointwise loss: each document's score against its own label.

    ::

        squared    sum_d (f_d - y_d)^2
        logistic   sum_d log(1 + exp(f_d)) - y_d f_d

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Any finite values for "squared"; probabilities, 0 to 1, for "logistic".
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    kind : {"squared", "logistic"}
        Regression on the labels, or cross-entropy of a click or relevance probability.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D). Sources: Cossock and Zhang, "Subset ranking using regression", COLT 2006, equation 8 without its weights; Li,
    Burges and Wu, "McRank", NIPS 2007, for classification.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> losses.pointwise([0.5, 2.0], [1.0, 1.0])
    (array([1.25]), array([-1.,  2.]))
    """
    validation.choice(kind, "kind", tuple(POINTWISE_KINDS))
    return evaluate_loss(
        POINTWISE_KINDS[kind], scores, labels, offsets=offsets, n_threads=n_threads, out=out,
        label_range=(0.0, 1.0) if kind == "logistic" else None,
    )  # fmt: skip


def softmax_cross_entropy(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """Softmax cross-entropy: the labels as a distribution over the document that comes first.

    ::

        - sum_d p_d log(exp(f_d) / sum_i exp(f_i)),   p_d = y_d / sum_i y_i

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Not negative.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query without labels above 0 or of one document.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D); exact at any distance of the scores. Sources: Cao et al., "Learning to rank: from pairwise approach to
    listwise approach" (ListNet), ICML 2007, with the softmax of the labels; with labels as weights, as here, Bruch et
    al., "An analysis of the softmax cross entropy loss for learning-to-rank with binary relevance", ICTIR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import losses
    >>> values, gradient = losses.softmax_cross_entropy([0.0, 0.0], [0, 1])
    >>> bool(np.isclose(values[0], np.log(2))), gradient
    (True, array([ 0.5, -0.5]))
    """
    return evaluate_loss(
        LossKind.SOFTMAX_CROSS_ENTROPY, scores, labels, offsets=offsets, n_threads=n_threads, out=out,
        label_range=(0.0, np.inf), as_shares=True,
    )  # fmt: skip


def list_mle(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = None,
    ties: str = "index",
    rng: RandomState = None,
    n_threads: int | None = None,
    out: OutputPair | None = None,
    first_query: int = 0,
) -> LossAndGradient:
    """ListMLE: minus the log-probability of the ranking by label under Plackett-Luce.

    ::

        sum_{k <= K} log(sum_{i >= k} exp(f_{y_i})) - f_{y_k}

    where y is a ranking by descending label. If labels are grades, many rankings agree with them, while this formula is
    for one of them: ``ties`` says which one, or that the probabilities of all are summed.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Any finite values; only their order counts.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int, optional
        Only the first K ranks count (top-K ListMLE); all by default.
    ties : {"index", "random", "exact"}
        "index": of equal labels the lower index comes first. A model trained with it learns the order of the file among
        documents of the same grade. "random": every order is equally likely, drawn anew in each call, so that on
        average over the calls the loss is its mean over all orders. "exact": minus the log-probability that the ranking
        agrees with the labels, in any order among equal ones; see ``bucket_log_prob``. It takes no cutoff.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the key of this call's random streams, for "random" ties. The same key gives the same orders for any
        number of threads. A generator is advanced by one draw; None is fresh entropy.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.
    first_query : int
        Number of the first query in the numbering of random streams. Query q of a call draws from stream
        ``first_query + q``, so a batch that is cut into chunks gives the same numbers as the whole.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query of fewer than two documents.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D + K log K), with exact ties O(D log D) and some 32 exponentials a document; exact at any distance of the scores.
    Sources: Xia et al., "Listwise approach to learning to rank:
    theory and algorithm", ICML 2008, equation 9; the cutoff: Xia, Liu and Li, "Top-k consistency of learning to rank
    methods", NIPS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import losses
    >>> values, gradient = losses.list_mle([0.0, 0.0, 0.0], [2, 1, 0])
    >>> bool(np.isclose(values[0], np.log(6)))
    True
    >>> same = losses.list_mle([1.0, 0.0, 0.0], [0, 1, 1], ties="random", rng=0)[1]  # either of the two comes first
    >>> bool(same[1] != same[2])
    True
    """
    validation.choice(ties, "ties", TIES)
    validation.goes_with(rng, "rng", ties == "random", "ties='random'")
    validation.goes_with(cutoff, "cutoff", ties != "exact", "ties='index' or ties='random'")
    return evaluate_loss(
        LossKind.BUCKET_ORDER if ties == "exact" else LossKind.LIST_MLE, scores, labels, offsets=offsets,
        n_threads=n_threads, out=out, cutoff=cutoff, rng=rng,
        ties_at_random=ties == "random", first_query=first_query,
    )  # fmt: skip


def pairwise_logistic(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    slope: float = 1.0,
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """Pairwise logistic loss (RankNet): every document with a higher label should have the higher score.

    ::

        sum_{i, j: y_i > y_j} log(1 + exp(-slope (f_i - f_j)))

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Any finite values; only their order counts.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    slope : float
        Steepness of the logistic function, positive.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query whose labels are all equal.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D log D) for the sort by label, then one step for each pair of unequal labels. Source: Burges et al., "Learning to
    rank using gradient descent" (RankNet), ICML 2005, equation 3 at target probability 1.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import losses
    >>> values, gradient = losses.pairwise_logistic([0.0, 0.0], [0, 1])
    >>> bool(np.isclose(values[0], np.log(2))), gradient
    (True, array([ 0.5, -0.5]))
    """
    return evaluate_loss(
        LossKind.PAIRWISE_LOGISTIC, scores, labels, offsets=offsets, n_threads=n_threads, out=out,
        slope=validation.factor(slope, "slope"),
    )  # fmt: skip


def lambda_rank(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = None,
    slope: float = 1.0,
    truncation: str = "metric",
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """LambdaRank: pairs weighted by how much swapping them would change NDCG@K.

    ::

        sum_{i, j: y_i > y_j} w_ij log(1 + exp(-slope (f_i - f_j))),
        w_ij = |g_i - g_j| |c(rank_i) - c(rank_j)| / ideal DCG@K

    with gains g = 2^y - 1 and c(r) = 1 / log2(1 + r) for r <= K; ``truncation`` says what c(r) is past that. Ranks are
    by descending score, of equal scores the lower index first. The gradient is LambdaRank's: the weights are held
    fixed, and the value is the loss with these weights.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200; gains are 2^label - 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int, optional
        K; all ranks by default. Only pairs with a document among the first K have a weight.
    slope : float
        Steepness of the logistic function, positive.
    truncation : {"metric", "pairs"}
        The discount c(r) of a rank past the cutoff, for a pair whose other document is among the first K. "metric": 0,
        so that the weight is the change in NDCG@K when the two are swapped; these are the weights of rax with ``topn``
        (which multiplies them by the length of the list). "pairs": 1 / log2(1 + r) as if there were no cutoff, which
        then decides only which pairs count and how long the ideal ranking is; as LightGBM's
        ``lambdarank_truncation_level`` without ``lambdarank_norm`` (its ``sigmoid`` is the slope). Without a cutoff
        both are the same.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query whose labels are all equal.
    gradient : ndarray, shape (n_docs,), float64
        The lambdas: derivative of the sum of the values by each score, weights held fixed; to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D + K log K + R (D + K)), or O(D log D + R (D + K)) with "pairs"; R documents do not have the most frequent label.
    Sources, which have no cutoff of their own: Burges, Ragno and Le, "Learning to rank with nonsmooth cost functions",
    NIPS 2006; Burges, "From RankNet to LambdaRank to LambdaMART: an overview", 2010, section 4.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.lambda_rank([1.0, 0.0, 2.0], [1, 2, 0], cutoff=2)
    >>> bool(gradient[1] < 0 < gradient[2])
    True
    """
    return evaluate_loss(
        LossKind.LAMBDA_LOSS, scores, labels, offsets=offsets, n_threads=n_threads, out=out, as_gains=True,
        cutoff=cutoff, discounts_past_cutoff=validation.choice(truncation, "truncation", TRUNCATIONS) == "pairs",
        slope=validation.factor(slope, "slope"),
    )  # fmt: skip


def lambda_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = None,
    slope: float = 1.0,
    mu: float = 10.0,
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """LambdaLoss with the weights NDCG-Loss2++.

    ::

        sum_{i, j: y_i > y_j} (w_ij + mu v_ij) log2(1 + exp(-slope (f_i - f_j))),
        v_ij = |g_i - g_j| |1 / log2(1 + m) - 1 / log2(2 + m)| / ideal DCG@K,   m = |rank_i - rank_j|

    with w_ij, g and the ranks of ``lambda_rank``. As there, the gradient holds the weights fixed (the maximisation step
    of the paper's EM procedure).

    The paper has no cutoff; this library's works as follows: pairs without a document among the first K are left out,
    ranks past K are worth nothing in w_ij, and v_ij is as without a cutoff. Others cut differently: rax keeps all pairs
    and raises v_ij of those that reach past K (Jagerman et al., "On optimizing top-K metrics for neural ranking
    models", SIGIR 2022); allRank keeps the pairs of which both are among the first K.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200; gains are 2^label - 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int, optional
        K; all ranks by default.
    slope : float
        Steepness of the logistic function, positive.
    mu : float
        Weight of the second term, positive; 10 in the paper.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query whose labels are all equal.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, weights held fixed; to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D log D + R (D + K)); R documents do not have the most frequent label. Source: Wang et al., "The LambdaLoss
    framework for ranking metric optimization", CIKM 2018, section 5.4 (NDCG-Loss2++), with its base-2 logarithm.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.lambda_loss([1.0, 0.0, 2.0], [1, 2, 0])
    >>> bool(gradient[1] < 0 < gradient[2])
    True
    """
    values, gradient = evaluate_loss(
        LossKind.LAMBDA_LOSS, scores, labels, offsets=offsets, n_threads=n_threads, out=None, as_gains=True,
        cutoff=cutoff, slope=validation.factor(slope, "slope"),
        distance_weight=validation.factor(mu, "mu"),
    )  # fmt: skip
    outputs = validation.output_pair(out, values.shape, gradient.shape)
    base_2 = 1.0 / np.log(2.0)
    with np.errstate(over="ignore"):
        values, gradient = base_2 * values, base_2 * gradient
    for result in (values, gradient):
        validation.representable(result, "scores and labels")
    return validation.deliver(values, outputs[0]), validation.deliver(gradient, outputs[1])


def approx_ndcg(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    temperature: float = 0.1,
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """ApproxNDCG: one minus NDCG at smooth ranks.

    ::

        1 - 1 / ideal DCG sum_i g_i / log2(1 + rank_i),   rank_i = 1 + sum_{j != i} sigmoid((f_j - f_i) / temperature)

    with gains g = 2^y - 1.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200; gains are 2^label - 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    temperature : float
        Positive. As it approaches 0, the smooth ranks approach the true ranks and the gradient vanishes.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query without labels above 0.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(R D) for R relevant documents: only their ranks are needed. Sources: Qin, Liu and Li, "A general approximation
    framework for direct optimization of information retrieval measures", Information Retrieval 2010, equations 9 and 15
    (their alpha is 1 / temperature); Bruch et al., "Revisiting approximate metric optimization", SIGIR 2019.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.approx_ndcg([1.0, 0.0], [0, 1])
    >>> bool(gradient[1] < 0 < values[0])
    True
    """
    return evaluate_loss(
        LossKind.APPROX_NDCG, scores, labels, offsets=offsets, n_threads=n_threads, out=out, as_gains=True,
        sigma=validation.factor(temperature, "temperature"),
    )  # fmt: skip


def soft_rank(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = None,
    sigma: float = 1.0,
    n_threads: int | None = None,
    out: OutputPair | None = None,
) -> LossAndGradient:
    """SoftRank: one minus the NDCG@K expected under normal noise, with pairwise losses treated as independent.

    ::

        1 - 1 / ideal DCG@K sum_j g_j sum_{r <= K} p_j(r) / log2(1 + r)

    with gains g = 2^y - 1. Scores have normal noise of deviation sigma, so that document i beats j with probability
    b_ij = Phi((f_i - f_j) / (sigma sqrt 2)); p_j comes from taking the other documents in, one after another ::

        p(r) <- p(r) (1 - b_ij) + p(r - 1) b_ij

    which treats the defeats of j as independent, although they share the noise of j. ``stochastic_rank`` with normal
    noise needs no such assumption.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200; gains are 2^label - 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int, optional
        K; all ranks by default.
    sigma : float
        Standard deviation of the noise, positive.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query without labels above 0.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(R D K) time, gradient included, for R relevant documents, below the O(D^3) of the paper; O(D K) memory per thread.
    Source: Taylor et al., "SoftRank: optimizing non-smooth rank metrics", WSDM 2008, equations 8 to 16.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.soft_rank([1.0, 0.0], [0, 1])
    >>> bool(gradient[1] < 0 < values[0])
    True
    """
    return evaluate_loss(
        LossKind.SOFT_RANK, scores, labels, offsets=offsets, n_threads=n_threads, out=out, as_gains=True, cutoff=cutoff,
        sigma=validation.factor(sigma, "sigma"), spread=2.0**0.5,
    )  # fmt: skip
