"""Expected metric and gradient by one call, for automatic differentiation in other libraries."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from plrank_fast import _estimates, validation
from plrank_fast._core.gradients.conditional import CONDITIONAL
from plrank_fast._core.gradients.pl_rank import PL_RANK_2
from plrank_fast._core.gradients.pl_rank_groups import PL_RANK_3
from plrank_fast._core.gradients.policy_gradient import PLACEMENT, POLICY_GRADIENT
from plrank_fast._methods.registry import AUTO, ESTIMATORS, EXACT, resolve_method
from plrank_fast.probabilities import expected_metric
from plrank_fast.validation import FloatArray, RandomState

OF_RANKINGS = {  # estimators that draw no noise of their own, whose rankings give the value too
    "cmc": CONDITIONAL,
    "pl_rank_1": PLACEMENT,
    "pl_rank_2": PL_RANK_2,
    "pl_rank_3": PL_RANK_3,
    "policy_gradient": POLICY_GRADIENT,
}


def value_and_gradient(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    stop_probability: ArrayLike | None = None,
    method: validation.Method = "auto",
    rtol: float = 1e-6,
    n_samples: int | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute the expected metric of each query and the gradient of their sum, by any estimator of the library.

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
    method : str
        "exact" (``pl_rank_exact``), "cmc" (``pl_rank_cmc``), "pl_rank_3", "pl_rank_2", "pl_rank_1", "stochastic_rank"
        or "policy_gradient". "auto" is "exact", or one sample of "cmc" if the cost model finds that far cheaper.
    rtol : float
        Relative tolerance of the exact method, from 1e-10 to below 1 (see ``pl_rank_exact`` for the bounds).
    n_samples : int, optional
        Rankings per query of sampled methods; by default 1 for "cmc" and 100 for the others.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers of sampled methods. With the same ``rng`` the gradient has the bits of the method's
        function.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Expected metric; sampled methods return the mean over ``n_samples`` rankings.
    gradient : ndarray, shape (n_docs,), float64
        Gradient of the sum of the values: the direction of ascent.

    Notes
    -----
    The exact method computes both in one pass, and is the only one that takes ``stop_probability``, so that "auto"
    chooses it then. Sampled methods draw their rankings a second time for the value, which is faster than storing them.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> values, gradient = plr.value_and_gradient([0.0, 0.0], [1, 0], [1.0], method="exact")
    >>> values.round(6), gradient.round(6)
    (array([0.5]), array([ 0.25, -0.25]))
    """
    plain = type(method) is str and n_samples is rng is None
    if not (plain and method == EXACT):
        offsets = validation.query_offsets(offsets, validation.real_array(scores, "scores").size)
        cutoff = validation.weights_of_ranks(rank_weights, offsets).shape[1]
        resolved = resolve_method(method, offsets, cutoff)
        method = "exact" if stop_probability is not None and method == AUTO else resolved
        validation.goes_with(stop_probability, "stop_probability", method == EXACT, f"method={EXACT!r}")
        validation.relative_tolerance(rtol)
        if n_samples is not None:
            n_samples = validation.count(n_samples, "n_samples", 1)
        rng = validation.check_random_state(rng)
    if method == EXACT:
        return _estimates.exact(
            scores, relevance, rank_weights, offsets, rtol, n_threads, None, value=True, gradient=True,
            stop=stop_probability,
        )  # fmt: skip
    n_threads, n_samples = validation.threads(n_threads), n_samples or ESTIMATORS[method].n_samples
    arrays = scores, relevance, rank_weights
    if method in OF_RANKINGS:
        return of_rankings(method, *arrays, offsets, n_samples, rng, n_threads, value=True)
    options: dict[str, Any] = {"offsets": offsets, "n_threads": n_threads, "n_samples": n_samples}
    options |= {"rng": validation.DrawnKey(rng)}
    gradient = ESTIMATORS[method].function(*arrays, **options)
    return expected_metric(*arrays, method="sample", **options), gradient


def of_rankings(
    method: str, scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, offsets: ArrayLike | None,
    n_samples: int | None, rng: RandomState, n_threads: int | None, **results: Any,
) -> Any:  # fmt: skip
    """Call one of ``OF_RANKINGS``; ``results`` are options of `_estimates.sampled_after_checks`."""
    return _estimates.sampled_after_checks(
        OF_RANKINGS[method], scores, relevance, rank_weights, offsets, n_samples or ESTIMATORS[method].n_samples, None,
        rng, "auto", n_threads, None, **results,
    )  # fmt: skip
