"""StochasticRank: the gradient of the expected metric of scores with noise."""

from __future__ import annotations

from numpy.typing import ArrayLike

from plrank_fast import _estimates, validation
from plrank_fast._core.gradients.stochastic_rank import STOCHASTIC_RANK as _STOCHASTIC_RANK
from plrank_fast.validation import FloatArray, RandomState


def stochastic_rank(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    noise: validation.Noise = "gumbel",
    sigma: float = 1.0,
    offsets: ArrayLike | None = None,
    n_samples: int = 100,
    rng: RandomState = None,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Estimate the gradient of the expected metric of scores with noise, by StochasticRank.

    Documents are ranked by u = f + sigma noise. The metric of a ranking y is sum_k theta_k rho_{y_k}; the estimate is
    the mean over draws of the noise and unbiased.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    noise : {"gumbel", "normal"}
        With Gumbel noise and ``sigma`` 1 rankings are drawn from the Plackett-Luce distribution of the scores, and the
        expectation is the gradient of ``pl_rank_exact``.
    sigma : float
        Scale of the noise, positive.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Draws of the noise for each query, N.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
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
    With phi the density of the noise and k the rank of i among all documents but j, one draw contributes

    .. math:: g_j = \sum_{i \ne j,\; k \le K} \phi(u_i - f_j) (\theta_k - \theta_{k + 1}) (\rho_j - \rho_i)

    The noise of document j is integrated out. (The published code of the SIGIR 2022 paper masks the placed documents in
    place of the others, and is biased by 6 to 54 %.)

    The cost is O(D log D + N (D + K log K + M K)), below the O(N D K) of the definition: the contribution of a draw is
    smooth in the score, and computed for M nodes in place of D documents (16 to 32 per interval of up to 5.25 sigma
    with Gumbel noise and of 10 sigma with normal noise; never more nodes than documents). Interpolation and the density
    at nodes err by less than 2e-7 of the largest density. Densities that underflow are 0. ``pl_rank_exact`` computes
    the expectation without sampling, for both kinds of noise. Source: Ustimenko and Prokhorenkova,
    "StochasticRank: Global Optimization of Scale-Free Discrete Functions", ICML 2020; with Gumbel noise: Oosterhuis,
    SIGIR 2022.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> gradient = plr.stochastic_rank([0.5, 0.1, -0.2], [0, 1, 3], plr.dcg_weights(2), n_samples=1000, rng=0)
    >>> bool(gradient[2] > 0 > gradient[0])
    True
    """
    return _estimates.sampled(
        _STOCHASTIC_RANK, scores, relevance, rank_weights, offsets, n_samples, None, rng, "auto", n_threads, out,
        False, False, noise, sigma,
    )  # fmt: skip
