"""Losses of the methods that PL-Rank is compared with: one value per query, and the gradient to descend.

Every function takes ``(scores, labels, *, offsets=None, ..., n_threads=None, out=None)`` and returns ``(values,
gradient)``: one value for each query, shape (n_queries,), and the derivative of their sum by each score, shape
(n_docs,). Losses descend: step against these gradients, and along the gradients of ``plrank_fast``. Labels are grades;
the losses that optimise NDCG compute gains from them. ``exposure_matching`` takes a target in place of labels.

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
``exposure_matching``       expected exposures, towards a target            16 times or more ``expected_metric``
==========================  ==============================================  =========================================

D documents, R of them relevant, K ranks that count. Queries are processed in parallel and give the same bits for any
number of threads; a batch gives the same bits as its queries one by one. ``plrank_fast.reference`` has the losses in
NumPy.

Values, and the derivative by each score, err by at most 1e-12 of the sum of their own absolute terms, at any distance
of the scores, for lists of up to 10,000 documents; for longer ones the error grows in proportion. A logarithm counts as
a term of at least 1, and a difference of gains as two terms; the rank probabilities of ``soft_rank`` have an absolute
error of 1e-12. Scores times a slope, or over a temperature or sigma, are rounded before they are subtracted, so an
offset common to all scores should not be many times as large as their differences. ``make hunt`` searches for
exceptions. ``exposure_matching`` has the errors of ``exposure``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.losses import bucket_order as _bucket_order
from plrank_fast._core.losses import likelihood as _likelihood
from plrank_fast._core.losses import losses as _losses
from plrank_fast._core.losses import pairs as _pairs
from plrank_fast._core.losses import ranks as _ranks
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast._core.runtime.arguments import plain_query
from plrank_fast.exposure_targets import exposure_matching
from plrank_fast.rank_weights import GRADES_OR_GAINS, Gain, checked_gain, gains_by
from plrank_fast.validation import FloatArray, RandomState

__all__ = [
    "approx_ndcg", "exposure_matching", "lambda_loss", "lambda_rank", "list_mle", "pairwise_logistic", "pointwise",
    "soft_rank", "softmax_cross_entropy",
]  # fmt: skip

LossAndGradient = tuple[FloatArray, FloatArray]


def __dir__() -> list[str]:
    return __all__


POINTWISE_KINDS: dict[str, object] = {
    "squared": _likelihood.POINTWISE_SQUARED,
    "logistic": _likelihood.POINTWISE_LOGISTIC,
}


def pointwise(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    kind: validation.Pointwise = "squared",
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute a pointwise loss, which compares each document's score with its own label.

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
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    .. math:: \sum_d (f_d - y_d)^2 \quad\text{or}\quad \sum_d \ln(1 + e^{f_d}) - y_d f_d

    The cost is O(D). Sources: Cossock and Zhang, "Subset ranking using regression", COLT 2006, equation 8 without its
    weights; Li, Burges and Wu, "McRank", NIPS 2007, for classification.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> losses.pointwise([0.5, 2.0], [1.0, 1.0])
    (array([1.25]), array([-1.,  2.]))
    """
    validation.choice(kind, "kind", validation.Pointwise)
    lowest, highest = (0.0, 1.0) if kind == "logistic" else (-np.inf, np.inf)
    return _evaluate(POINTWISE_KINDS[kind], scores, labels, offsets, n_threads, out, lowest=lowest, highest=highest)


def softmax_cross_entropy(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the softmax cross-entropy, with the labels as a distribution over the document that comes first.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Not negative. A query without labels above 0, or of a single document, has the loss 0.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    .. math:: -\sum_d \frac{y_d}{\sum_i y_i} \ln \frac{e^{f_d}}{\sum_i e^{f_i}}

    The cost is O(D); the result is exact at any distance of the scores. Sources: Cao et al., "Learning to rank: from
    pairwise approach to listwise approach" (ListNet), ICML 2007, takes the softmax of the labels; Bruch et al., "An
    analysis of the softmax cross entropy loss for learning-to-rank with binary relevance", ICTIR 2019, takes them as
    weights, which this function does.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import losses
    >>> values, gradient = losses.softmax_cross_entropy([0.0, 0.0], [0, 1])
    >>> bool(np.isclose(values[0], np.log(2))), gradient
    (True, array([ 0.5, -0.5]))
    """
    return _evaluate(
        _likelihood.SOFTMAX_CROSS_ENTROPY, scores, labels, offsets, n_threads, out, lowest=0.0, limited=True
    )


def list_mle(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = None,
    ties: validation.LabelTies = "index",
    rng: RandomState = None,
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the ListMLE loss: minus the log-probability of the ranking by label under Plackett-Luce.

    If labels are grades, many rankings agree with them. ``ties`` chooses one of them, or sums the probabilities of all.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Any finite values; only their order counts. A query of fewer than two documents has the loss 0.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int, optional
        Only the first K ranks count (top-K ListMLE); all by default.
    ties : {"index", "random", "exact"}
        "index": of equal labels the lower index comes first. A model trained with it learns the order of the file among
        documents of the same grade. "random": each call draws an order, all equally likely, so that the loss averages
        over the calls to its mean over all orders. "exact": minus the log-probability that the ranking agrees with the
        labels, in any order among equal ones (see ``bucket_log_prob``); with a cutoff also among all documents after
        rank K and those tied with it, which count whole.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the key of this call's random streams, for "random" ties. The same key gives the same orders for any
        number of threads. A generator is advanced by one draw; None is fresh entropy.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    With y a ranking by descending label, the loss is

    .. math:: \sum_{k \le K} \ln\left(\sum_{i \ge k} e^{f_{y_i}}\right) - f_{y_k}

    The cost is O(D + K log K), with exact ties O(D log D) and some 32 exponentials a document. The result is exact at
    any distance of the scores. Sources: Xia et al., "Listwise approach to learning to rank: theory and algorithm", ICML
    2008, equation 9; for the cutoff, Xia, Liu and Li, "Top-k consistency of learning to rank methods", NIPS 2009.

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
    validation.choice(ties, "ties", validation.LabelTies)
    validation.goes_with(rng, "rng", ties == "random", "ties='random'")
    return _evaluate(
        _bucket_order.BUCKET_ORDER if ties == "exact" else _likelihood.LIST_MLE, scores, labels, offsets, n_threads,
        out, cutoff=cutoff, rng=rng, ties_at_random=ties == "random",
    )  # fmt: skip


def pairwise_logistic(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    slope: float = 1.0,
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the pairwise logistic loss (RankNet): documents with higher labels should have higher scores.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Any finite values; only their order counts. A query whose labels are all equal has the loss 0.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    slope : float
        Steepness of the logistic function, positive.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    With s the slope, the loss is

    .. math:: \sum_{i, j: y_i > y_j} \ln\left(1 + e^{-s (f_i - f_j)}\right)

    The sort by label costs O(D log D), and each pair of unequal labels one step. Source: Burges et al., "Learning to
    rank using gradient descent" (RankNet), ICML 2005, equation 3 at target probability 1.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import losses
    >>> values, gradient = losses.pairwise_logistic([0.0, 0.0], [0, 1])
    >>> bool(np.isclose(values[0], np.log(2))), gradient
    (True, array([ 0.5, -0.5]))
    """
    return _evaluate(
        _pairs.PAIRWISE_LOGISTIC, scores, labels, offsets, n_threads, out, scale=validation.factor(slope, "slope")
    )


def lambda_rank(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = 10,
    slope: float = 1.0,
    truncation: validation.Truncation = "metric",
    gain: Gain = "exponential",
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the LambdaRank loss, which weights pairs by how much swapping them would change NDCG@K.

    The gradient is LambdaRank's: the weights are held fixed, and the value is the loss with these weights. It is 0 for
    a query whose labels are all equal.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200, whose gains are 2^label - 1; with another ``gain``, any labels whose gains are not negative.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int or None
        K; None: all ranks. Only pairs with a document among the first K have a weight.
    slope : float
        Steepness of the logistic function, positive.
    truncation : {"metric", "pairs"}
        The discount c(r) of a rank past the cutoff, for a pair whose other document is among the first K. "metric": 0,
        so that the weight is the change in NDCG@K when the two are swapped; rax has these weights with ``topn`` (and
        multiplies them by the length of the list). "pairs": 1 / log2(1 + r), so that the cutoff decides only which
        pairs count and how long the ideal ranking is; LightGBM has these weights with ``lambdarank_truncation_level``
        and without ``lambdarank_norm`` (its ``sigmoid`` is the slope). Without a cutoff both are equal.
    gain : {"exponential", "linear"} or callable
        Gain of a label: 2^label - 1, the label itself, or a function from all labels to as many gains.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    .. math:: \sum_{i, j: y_i > y_j} w_{ij} \ln\left(1 + e^{-s (f_i - f_j)}\right),
              \quad w_{ij} = |g_i - g_j| |c(r_i) - c(r_j)| / N

    s is the slope, N the ideal DCG@K, g = 2^y - 1 are the gains and c(r) = 1 / log2(1 + r) for r <= K the discounts;
    ``truncation`` says what c(r) is past that. Ranks r are by descending score, of equal scores the lower index first.

    The cost is O(D + K log K + R (D + K)), or O(D log D + R (D + K)) with "pairs", for R documents with a label above
    0. Sources, which have no cutoff of their own: Burges, Ragno and Le, "Learning to rank with nonsmooth cost
    functions", NIPS 2006; Burges, "From RankNet to LambdaRank to LambdaMART: an overview", 2010, section 4.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.lambda_rank([1.0, 0.0, 2.0], [1, 2, 0], cutoff=2)
    >>> bool(gradient[1] < 0 < gradient[2])
    True
    """
    of_pairs = validation.choice(truncation, "truncation", validation.Truncation) == "pairs"
    return _evaluate(
        _pairs.LAMBDA_LOSS, scores, labels, offsets, n_threads, out, scale=validation.factor(slope, "slope"),
        gain=checked_gain(gain), cutoff=cutoff, discounts_past_cutoff=of_pairs,
    )  # fmt: skip


def lambda_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = 10,
    slope: float = 1.0,
    mu: float = 10.0,
    gain: Gain = "exponential",
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the LambdaLoss with the weights NDCG-Loss2++.

    The gradient holds the weights fixed, which is the maximisation step of the paper's EM procedure. A query whose
    labels are all equal has the loss 0.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200, whose gains are 2^label - 1; with another ``gain``, any labels whose gains are not negative.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int or None
        K; None: all ranks. Only pairs with a document among the first K have a weight.
    slope : float
        Steepness of the logistic function, positive.
    mu : float
        Weight of the second term, positive; 10 in the paper.
    gain : {"exponential", "linear"} or callable
        Gain of a label: 2^label - 1, the label itself, or a function from all labels to as many gains.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    With s the slope, N the ideal DCG@K and m = abs(r_i - r_j), the loss is

    .. math:: \sum_{i, j: y_i > y_j} (w_{ij} + \mu v_{ij}) \log_2\left(1 + e^{-s (f_i - f_j)}\right),
              \quad v_{ij} = |g_i - g_j| \left|\frac{1}{\log_2(1 + m)} - \frac{1}{\log_2(2 + m)}\right| / N

    The weights w_ij, gains g and ranks r are defined as in ``lambda_rank``. The cost is O(D log D + R (D + K)) for R
    documents with a label above 0. Source: Wang et al., "The LambdaLoss framework for ranking metric optimization",
    CIKM 2018, section 5.4 (NDCG-Loss2++), with its base-2 logarithm.

    The paper has no cutoff. Here a cutoff leaves out pairs without a document among the first K and makes ranks past K
    worth nothing in w_ij; it does not change v_ij. Others cut differently: rax keeps all pairs and raises v_ij of those
    that reach past K (Jagerman et al., "On optimizing top-K metrics for neural ranking models", SIGIR 2022); allRank
    keeps the pairs of which both are among the first K.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.lambda_loss([1.0, 0.0, 2.0], [1, 2, 0])
    >>> bool(gradient[1] < 0 < gradient[2])
    True
    """
    return _evaluate(
        _pairs.LAMBDA_LOSS, scores, labels, offsets, n_threads, out, scale=validation.factor(slope, "slope"),
        gain=checked_gain(gain), cutoff=cutoff, distance_weight=validation.factor(mu, "mu"),
    )  # fmt: skip


def approx_ndcg(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    temperature: float = 0.1,
    gain: Gain = "exponential",
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the ApproxNDCG loss: one minus NDCG at smooth ranks.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200, whose gains are 2^label - 1; with another ``gain``, any labels whose gains are not negative.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    temperature : float
        Positive. As it approaches 0, the smooth ranks approach the true ranks and the gradient vanishes.
    gain : {"exponential", "linear"} or callable
        Gain of a label: 2^label - 1, the label itself, or a function from all labels to as many gains.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    With gains g = 2^y - 1, N the ideal DCG, T the temperature and the logistic function sigma, the loss is

    .. math:: 1 - \frac{1}{N} \sum_i \frac{g_i}{\log_2(1 + r_i)},
              \quad r_i = 1 + \sum_{j \ne i} \sigma\left(\frac{f_j - f_i}{T}\right)

    A query without labels above 0 has the loss 0. The cost is O(R D) for R relevant documents, as only their ranks are
    needed. Sources: Qin, Liu and Li, "A general approximation framework for direct optimization of information
    retrieval measures", Information Retrieval 2010, equations 9 and 15 (their alpha is 1 / temperature); Bruch et al.,
    "Revisiting approximate metric optimization", SIGIR 2019.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.approx_ndcg([1.0, 0.0], [0, 1])
    >>> bool(gradient[1] < 0 < values[0])
    True
    """
    scale = 1.0 / validation.factor(temperature, "temperature")
    return _evaluate(_ranks.APPROX_NDCG, scores, labels, offsets, n_threads, out, scale=scale, gain=checked_gain(gain))


def soft_rank(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    cutoff: int | None = 10,
    sigma: float = 1.0,
    gain: Gain = "exponential",
    n_threads: int | None = None,
    out: LossAndGradient | None = None,
) -> LossAndGradient:
    r"""Compute the SoftRank loss: one minus the NDCG@K expected under normal noise, with defeats as if independent.

    ``stochastic_rank`` with normal noise estimates the gradient without that assumption.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        The documents of all queries one after another; any finite values.
    labels : array_like, shape (n_docs,)
        Grades, 0 to 200, whose gains are 2^label - 1; with another ``gain``, any labels whose gains are not negative.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    cutoff : int or None
        K; None: all ranks.
    sigma : float
        Standard deviation of the noise, positive.
    gain : {"exponential", "linear"} or callable
        Gain of a label: 2^label - 1, the label itself, or a function from all labels to as many gains.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : pair of ndarray, shapes (n_queries,) and (n_docs,), float64, optional
        Where to write values and gradient.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query; 0 for an empty query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    With gains g = 2^y - 1 and N the ideal DCG@K, the loss is

    .. math:: 1 - \frac{1}{N} \sum_j g_j \sum_{r \le K} \frac{p_j(r)}{\log_2(1 + r)}

    Scores have normal noise of deviation sigma, so that document i beats j with probability b_ij = Phi((f_i - f_j) /
    (sigma sqrt 2)). The rank probabilities p_j follow from p(r) <- p(r) (1 - b_ij) + p(r - 1) b_ij for each other
    document i in turn. This treats the defeats of j as independent, although they share the noise of j. A query without
    labels above 0 has the loss 0.

    The time is O(R D K) for R relevant documents, gradient included, where the paper needs O(D^3); each thread takes
    O(D K) memory. Source: Taylor et al., "SoftRank: optimizing non-smooth rank metrics", WSDM 2008, equations 8 to 16.

    Examples
    --------
    >>> from plrank_fast import losses
    >>> values, gradient = losses.soft_rank([1.0, 0.0], [0, 1])
    >>> bool(gradient[1] < 0 < values[0])
    True
    """
    scale = 1.0 / (validation.factor(sigma, "sigma") * 2.0**0.5)
    return _evaluate(
        _ranks.SOFT_RANK, scores, labels, offsets, n_threads, out, scale=scale, gain=checked_gain(gain), cutoff=cutoff
    )


def _evaluate(
    loss: object,
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike | None,
    n_threads: int | None,
    out: LossAndGradient | None,
    lowest: float = -np.inf,
    highest: float = np.inf,
    scale: float = 1.0,
    gain: Gain | None = None,
    cutoff: int | None = None,
    discounts_past_cutoff: bool = False,
    distance_weight: float = 0.0,
    rng: RandomState = None,
    ties_at_random: bool = False,
    limited: bool = False,
) -> LossAndGradient:
    """Compute a loss and its gradient.

    Labels lie from ``lowest`` to ``highest``; those of ``limited`` magnitude enter products. The losses that approach
    NDCG have a ``gain`` of labels.
    """
    if offsets is None:
        query = plain_query(scores, labels, validation.ABSENT, n_threads)
        plain = _losses.evaluate_plain(
            loss, query, out, lowest, highest, scale, gain, cutoff, discounts_past_cutoff, distance_weight, rng,
            ties_at_random,
        )  # fmt: skip
        if plain is not None:
            return plain
    batch = validation.batch(
        scores, labels, validation.ABSENT, offsets, n_threads, "labels", limited=limited, lowest=lowest, highest=highest
    )
    if batch.found_in_scores & _magnitudes.TOO_LARGE:
        validation.require(
            float(np.abs(batch.scores_array()).max()) * scale < np.inf,
            "scores times the slope, or over temperature or sigma, are beyond the largest double, got a factor of "
            f"{scale:g}: divide both by the same number",
        )
    to_gains = gain == "exponential" and not batch.found_in_relevance & _magnitudes.NO_SMALL_GRADE
    relevance = None
    if gain is not None and not to_gains:
        relevance = gains_by(gain, batch.relevance_array(), n_threads, GRADES_OR_GAINS)
        starts = validation.query_offsets(offsets, batch.n_items)
        validation.limited_gains(relevance, "the gain of labels", starts, True, n_threads)
    n_ranks, first = validation.ranks(cutoff), validation.first_query_of(rng)
    outputs = validation.output_pair(out, (batch.n_queries,), (batch.n_items,))
    source = validation.source_of_keys(rng) if ties_at_random else validation.check_random_state(rng)
    values, gradient, _, finite = _losses.evaluate(
        loss, batch, n_ranks, scale, to_gains, relevance, discounts_past_cutoff, distance_weight, ties_at_random,
        source, first,
    )  # fmt: skip
    if not finite:
        validation.representable(values, "scores and labels")
    if batch.n_queries > 1 and _magnitudes.all_zero(gradient):
        validation.warn_if_nothing_to_learn(batch, "labels")
    return validation.deliver(values, outputs[0]), validation.deliver(gradient, outputs[1])
