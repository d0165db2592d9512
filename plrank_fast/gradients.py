"""Gradients of the expected metric of a Plackett-Luce policy with respect to its scores."""

from __future__ import annotations

from typing import Literal, TypeAlias, overload

from numpy.typing import ArrayLike

from plrank_fast import _estimates
from plrank_fast._core.gradients.conditional import CONDITIONAL as _CONDITIONAL
from plrank_fast._core.gradients.pl_rank import PL_RANK_2 as _PL_RANK_2
from plrank_fast._core.gradients.pl_rank_groups import PL_RANK_3 as _PL_RANK_3
from plrank_fast._core.gradients.policy_gradient import PLACEMENT as _PLACEMENT
from plrank_fast.validation import FloatArray, Noise, RandomState, Sampler

Pair: TypeAlias = tuple[FloatArray, FloatArray]


@overload
def pl_rank_3(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    n_samples: int = 100, rankings: ArrayLike | None = None, rng: RandomState = None, sampler: Sampler = "auto",
    hessian: Literal[False] = False, n_threads: int | None = None, out: FloatArray | None = None,
) -> FloatArray: ...  # fmt: skip
@overload
def pl_rank_3(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    n_samples: int = 100, rankings: ArrayLike | None = None, rng: RandomState = None, sampler: Sampler = "auto",
    hessian: Literal[True], n_threads: int | None = None, out: Pair | None = None,
) -> Pair: ...  # fmt: skip
@overload
def pl_rank_3(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    n_samples: int = 100, rankings: ArrayLike | None = None, rng: RandomState = None, sampler: Sampler = "auto",
    hessian: bool, n_threads: int | None = None, out: FloatArray | Pair | None = None,
) -> FloatArray | Pair: ...  # fmt: skip
def pl_rank_3(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: Sampler = "auto",
    hessian: bool = False,
    n_threads: int | None = None,
    out: FloatArray | Pair | None = None,
) -> FloatArray | Pair:
    r"""Estimate the gradient of the expected metric with PL-Rank-3.

    The metric of a ranking y is sum_k theta_k rho_{y_k}, and its expectation is over rankings drawn from the
    Plackett-Luce distribution of ``scores``. The estimate is the mean over the rankings; it is unbiased.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Rankings drawn for each query, N.
    rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
        Rankings to use instead of drawing, each of length K or more, or of all documents.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    hessian : bool
        Whether to estimate the diagonal of the Hessian too, in O(N D) after sampling. It is unbiased, but has far more
        variance than with ``pl_rank_cmc``. Do not pass it to boosted trees as their curvature: see the notes of
        ``pl_rank_exact``.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; with ``hessian`` a pair of arrays. Untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent. With ``hessian`` a pair
        (gradient, Hessian diagonal).

    Notes
    -----
    With :math:`R_k = \sum_{x \ge k} \theta_x \rho_{y_x}`, S_k the sum of w = exp(score) over the items not placed
    before rank k, and r the rank of item d, one ranking contributes

    .. math:: g_d = R_{r + 1} + w_d \left(\rho_d \sum_{j \le r} \frac{\theta_j}{S_j}
              - \sum_{j \le r} \frac{R_j}{S_j}\right)

    For an item that is not placed, the first term is 0 and r = K. The cost after sampling is O(D + N K) per query,
    below the O(N D) of the published algorithm, because items that a ranking leaves out share two sums. For given
    rankings of up to 30,000 items the error is below 1e-12 of the sum of the absolute terms at every distance of the
    scores; for longer rankings it grows in proportion. Source: Oosterhuis, "Learning-to-Rank at the Speed of Sampling",
    SIGIR 2022 (whose pseudo-code divides by S in place of the running S').

    Examples
    --------
    >>> import plrank_fast as plr
    >>> gradient = plr.pl_rank_3([0.5, 0.1, -0.2], [0, 1, 3], plr.dcg_weights(2), n_samples=1000, rng=0)
    >>> bool(gradient[2] > 0 > gradient[0])
    True
    """
    return _estimates.sampled(
        _PL_RANK_3, scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out,
        hessian,
    )  # fmt: skip


def pl_rank_2(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: Sampler = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Estimate the gradient of the expected metric with PL-Rank-2.

    For the same rankings the result equals ``pl_rank_3`` up to rounding, at a higher cost: PL-Rank-2 serves as a
    baseline for comparisons.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Rankings drawn for each query, N.
    rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
        Rankings to use instead of drawing, each of length K or more, or of all documents.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent.

    Notes
    -----
    In the symbols of ``pl_rank_3``, one ranking contributes

    .. math:: g_d = R_{r + 1} + \sum_{k \le r} \frac{w_d}{S_k} (\theta_k \rho_d - R_k)

    The cost after sampling is O(N D K), as in its paper. Source: Oosterhuis, "Computationally Efficient Optimization
    of Plackett-Luce Ranking Models for Relevance and Fairness", SIGIR 2021.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.pl_rank_2([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]])
    array([-0.25,  0.25])
    """
    return _estimates.sampled(
        _PL_RANK_2, scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out,
    )  # fmt: skip


def pl_rank_1(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    baseline: bool = False,
    offsets: ArrayLike | None = None,
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: Sampler = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Estimate the gradient of the expected metric with PL-Rank-1, the policy gradient by placement.

    Each placement is credited with the reward from its own rank on, because it does not influence the ranks above. The
    estimate agrees with ``pl_rank_2`` and ``pl_rank_3`` in expectation only, with more variance. Its entries sum to
    zero for every single ranking.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    baseline : bool
        Whether to subtract from each reward the mean of the other rankings' at that rank, which needs two rankings.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Rankings drawn for each query, N.
    rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
        Rankings to use instead of drawing, each of length K or more, or of all documents.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent.

    Notes
    -----
    In the symbols of ``pl_rank_3``, one ranking contributes

    .. math:: g_d = R_r - \sum_{k \le r} \frac{w_d}{S_k} R_k
                  = \sum_k R_k \frac{d \ln \pi(y_k | y_{1 \ldots k - 1})}{df_d}

    With ``baseline``, R_k less its mean over the other rankings takes the place of R_k. The cost after sampling is
    O(N (D + K)) per query with a baseline, and O(D + N K) without, below the O(N D K) of the paper. Source:
    Oosterhuis, "Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and Fairness",
    SIGIR 2021.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.pl_rank_1([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]])
    array([-0.25,  0.25])
    >>> plr.pl_rank_1([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]], baseline=True)
    array([-0.5,  0.5])
    """
    return _estimates.sampled(
        _PLACEMENT, scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out,
        baseline=baseline,
    )  # fmt: skip


@overload
def pl_rank_cmc(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    n_samples: int = 1, rankings: ArrayLike | None = None, rng: RandomState = None, sampler: Sampler = "auto",
    hessian: Literal[False] = False, n_threads: int | None = None, out: FloatArray | None = None,
) -> FloatArray: ...  # fmt: skip
@overload
def pl_rank_cmc(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    n_samples: int = 1, rankings: ArrayLike | None = None, rng: RandomState = None, sampler: Sampler = "auto",
    hessian: Literal[True], n_threads: int | None = None, out: Pair | None = None,
) -> Pair: ...  # fmt: skip
@overload
def pl_rank_cmc(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    n_samples: int = 1, rankings: ArrayLike | None = None, rng: RandomState = None, sampler: Sampler = "auto",
    hessian: bool, n_threads: int | None = None, out: FloatArray | Pair | None = None,
) -> FloatArray | Pair: ...  # fmt: skip
def pl_rank_cmc(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_samples: int = 1,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: Sampler = "auto",
    hessian: bool = False,
    n_threads: int | None = None,
    out: FloatArray | Pair | None = None,
) -> FloatArray | Pair:
    r"""Estimate the gradient of the expected metric by conditional Monte Carlo, for which one ranking is enough.

    Given the order of all other documents, the estimator integrates the position of a document out exactly, and
    replaces the relevance of documents that are still to be drawn by its conditional mean.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Rankings for each query, N. In nearly all settings the error with N = 1 is below the error of ``pl_rank_3``
        with 1000.
    rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
        Rankings to use instead of drawing, each of length K or more, or of all documents.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    hessian : bool
        Whether to estimate the diagonal of the Hessian too, from the same rankings and without bias. Do not pass it to
        boosted trees as their curvature: see the notes of ``pl_rank_exact``.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; with ``hessian`` a pair of arrays. Untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent. With ``hessian`` a pair
        (gradient, Hessian diagonal).

    Notes
    -----
    With S_j and R_j the sums of w = exp(score) and of w rho over the documents not in the first j - 1 places, and c_j =
    theta_j - theta_{j+1}, one ranking contributes to a document that it does not place

    .. math:: g_d = \sum_{j \le K} c_j \left(\rho_d - \frac{R_j}{S_j}\right)
              \prod_{i < j} \left(1 - \frac{w_d}{S_i}\right) \sum_{i \le j} \frac{w_d}{S_i}

    A placed document counts among the remaining ones from its own rank on; otherwise the formula is the same.

    The cost after sampling is O(N D K), without exponentials. The estimate is unbiased at N = 1 for any rank weights
    and relevance. Its variance is 100 (peaked scores) to 1,000,000 times smaller than ``pl_rank_3`` has at equal N.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> scores, relevance = [0.5, 0.1, -0.2], [0, 1, 3]
    >>> gradient, diagonal = plr.pl_rank_cmc(scores, relevance, plr.dcg_weights(2), rng=0, hessian=True)
    >>> bool(gradient[2] > 0 > gradient[0])
    True
    """
    return _estimates.sampled(
        _CONDITIONAL, scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out,
        hessian,
    )  # fmt: skip


@overload
def pl_rank_exact(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    stop_probability: ArrayLike | None = None, rtol: float = 1e-6, hessian: Literal[False] = False,
    noise: Noise = "gumbel", sigma: float = 1.0, n_threads: int | None = None, out: FloatArray | None = None,
) -> FloatArray: ...  # fmt: skip
@overload
def pl_rank_exact(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    stop_probability: ArrayLike | None = None, rtol: float = 1e-6, hessian: Literal[True], noise: Noise = "gumbel",
    sigma: float = 1.0, n_threads: int | None = None, out: Pair | None = None,
) -> Pair: ...  # fmt: skip
@overload
def pl_rank_exact(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None,
    stop_probability: ArrayLike | None = None, rtol: float = 1e-6, hessian: bool, noise: Noise = "gumbel",
    sigma: float = 1.0, n_threads: int | None = None, out: FloatArray | Pair | None = None,
) -> FloatArray | Pair: ...  # fmt: skip
def pl_rank_exact(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    stop_probability: ArrayLike | None = None,
    rtol: float = 1e-6,
    hessian: bool = False,
    noise: Noise = "gumbel",
    sigma: float = 1.0,
    n_threads: int | None = None,
    out: FloatArray | Pair | None = None,
) -> FloatArray | Pair:
    r"""Compute the gradient of the expected metric, and its Hessian diagonal, without sampling.

    The metric of a ranking y is sum_k theta_k rho_{y_k}; its expectation is over rankings drawn from the Plackett-Luce
    distribution of ``scores``, or over the descending order of scores with normal noise.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    stop_probability : array_like, shape (n_docs,), optional
        The probability, from 0 to 1, that a reader who reaches a document stops there; None means 0. The metric is then
        a cascade metric, such as the reciprocal rank (MRR), success (hit rate) or ERR.
    rtol : float
        Relative tolerance, from 1e-10 to below 1, for each query: the norm of the gradient's error is at most ``rtol``
        times the norm of the gradient, or times max|theta| max|rho| / 1000 if that is larger. The error of the Hessian
        diagonal has the corresponding bound. Below 1e-10 rounding errors would dominate. If ``sigma`` is not 1, the
        bounds hold for sigma times the gradient and sigma squared times the Hessian diagonal.
    hessian : bool
        Whether to compute the diagonal of the Hessian too, which takes 1.1 to 1.3 times as long. Do not pass it to
        boosted trees as their curvature: see the notes.
    noise : {"gumbel", "normal"}
        Noise of the scores. Gumbel noise with ``sigma`` 1 is the Plackett-Luce model, normal noise Thurstone's, Case V.
    sigma : float
        Scale of the noise, positive.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; with ``hessian`` a pair of arrays. Untouched if the call fails or is interrupted.

    Returns
    -------
    gradient : ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent.
    hessian : ndarray, shape (n_docs,), float64
        Second derivative by each score; only with ``hessian=True``.

    Raises
    ------
    ArithmeticError
        If the error is found to exceed ``rtol``; the message has the tolerance reached. This has been seen near 1e-10
        for rank weights that go up and down over hundreds of ranks.
    MemoryError
        If O(D + K) memory per thread cannot be allocated; the message gives the size.

    Notes
    -----
    Let item d arrive after an Exp(w_d) time, w = exp(score): the first K to arrive are a Plackett-Luce ranking. Given
    the time t, the other items have arrived independently of each other, with probabilities p_j = 1 - exp(-w_j t) = 1 -
    q_j, and the coefficient of z^m in a product over them is the probability that m have arrived:

    .. math:: E = \int \sum_d \rho_d w_d q_d \sum_m \theta_{m + 1} [z^m] \prod_{i \ne d} (q_i + p_i z)\, dt

    Gauss-Legendre quadrature on a map of t that follows the arrivals integrates E and its derivatives.

    With ``stop_probability``, a reader goes down the ranking and stops at document d with probability s_d, and a
    document counts if the reader comes to it:

    .. math:: \sum_k \theta_k \rho_{y_k} \prod_{i < k} (1 - s_{y_i})

    With r relevant or not, 1 or 0, and c = (2^label - 1) / 2^max_label, this is the reciprocal rank at K for rank
    weights 1, 1/2, ..., 1/K and ``relevance = stop_probability = r``, success at K (the hit rate) for rank weights 1
    and the same two, and ERR at K (Chapelle et al., CIKM 2009) for rank weights 1, 1/2, ..., 1/K and ``relevance =
    stop_probability = c``. The integral is the same with q_i + (1 - s_i) p_i z for the factors of the others. The
    error bounds hold unchanged.

    With ``noise="normal"`` rankings are the descending order of u = score + sigma z, z independent standard normal.
    Items arrive at t = -u, with normal densities in place of w q and p_j = Phi((score_j + t) / sigma).
    ``stochastic_rank(noise="normal")`` estimates this expectation, which is the objective of SoftRank without its
    assumption of independence.

    The cost is O(Q D K) with Q = 16 to 40 nodes at ``rtol=1e-6`` and scores of unit variance, more for wide spreads and
    for K near D. Normal noise takes up to three times as long as Gumbel noise up to 316 documents, and more for longer
    lists, where for Gumbel noise documents of small weight share their cost. Threads share the queries of a batch, and
    the nodes and documents of a long query. Results are bit-identical for any number of threads and whatever the other
    queries of the batch are; they may differ from one SIMD level to another.

    The Hessian diagonal is indefinite, and at equal scores, where boosting starts, it sums to 0 over each query. If it
    is passed to LightGBM or XGBoost, with either sign, no tree ever splits, and neither library warns. Pass the
    absolute value of the gradient in its place; docs/boosting.md has the recipe.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.pl_rank_exact([0.0, 0.0], [1.0, 0.0], [1.0]).round(6)
    array([ 0.25, -0.25])
    >>> plr.pl_rank_exact([0.0, 0.0], [1.0, 0.0], [1.0], noise="normal").round(6)  # 1 / sqrt(4 pi)
    array([ 0.282095, -0.282095])
    """
    return _estimates.exact(
        scores, relevance, rank_weights, offsets, rtol, n_threads, out, False, True, hessian, noise, sigma,
        stop_probability,
    )  # fmt: skip
