"""Rankings drawn from a Plackett-Luce policy, and log-probabilities of given rankings with their gradient."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.gradients.policy_gradient import LOG_PROB as _LOG_PROB
from plrank_fast._core.gradients.sampled import log_prob_gradient
from plrank_fast._core.ranking import metrics as _metrics
from plrank_fast._core.runtime.arguments import plain_query
from plrank_fast._core.sampling import samplers as _samplers
from plrank_fast.validation import FloatArray, RandomState, RankingArray


def sample_rankings(
    scores: ArrayLike,
    n_samples: int,
    cutoff: int | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: validation.Sampler = "auto",
    n_threads: int | None = None,
) -> RankingArray:
    """Draw rankings from the Plackett-Luce distribution of ``scores``.

    Items are drawn without replacement, with probabilities proportional to exp(score), for ``cutoff`` ranks.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights, the documents of all queries one after another; any finite values at any distance, or -inf. A
        document with the score -inf has weight 0 and is treated as if its query did not have it.
    n_samples : int
        Rankings drawn for each query, N.
    cutoff : int, optional
        Ranks to draw, K; all of the longest query by default.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution. "introselect" perturbs all scores with Gumbel
        noise and selects the K best. "network" sorts the noise of up to 1024 documents in a sorting network, sixteen
        rankings at once; "threshold" does so with the documents that pass a threshold, K up to some 700. "slot_table"
        draws documents with replacement from a table and skips repeats; "guide_table" does so from a table that is
        filled sooner and read more slowly. "auto" takes the fastest for each query, by number of documents, K, N and
        the spread of the scores. "introselect" replaces a sampler where that cannot draw a query's rankings.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray of int32
        Indices into the query's documents: shape (n_samples, min(K, n_docs)) without ``offsets``; with them
        (n_queries, n_samples, K), K at most the length of the longest query, filled up with -1 where a query is
        shorter. Only documents with a score above -inf count in these lengths: a ranking ends early if fewer than
        ``cutoff`` of them exist (``numpy.random.Generator.choice`` raises an error then).

    Notes
    -----
    The cost is O(D + K log K) per ranking; with "slot_table" and "guide_table" O(K) per ranking and O(D) per query.
    Source: Gumbel (1954); Kool, van Hoof and Welling (2019) for the top K; Batcher (1968) for the networks; Walker
    (1977), Chen and Asau (1974) for the tables.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.sample_rankings([2.0, 0.0, 1.0], n_samples=4, cutoff=2, rng=0).shape
    (4, 2)

    Weights may be 0; rankings then end after the items of positive weight:

    >>> import numpy as np
    >>> with np.errstate(divide="ignore"):
    ...     scores = np.log([0.0, 2.0, 0.0, 1.0])
    >>> np.sort(plr.sample_rankings(scores, n_samples=1, cutoff=3, rng=0))
    array([[1, 3]], dtype=int32)
    """
    if offsets is None:
        query = plain_query(scores, validation.ABSENT, validation.ABSENT, n_threads)
        plain = _samplers.sample_plain(query, n_samples, cutoff, rng, sampler)
        if plain is not None:
            return plain
    batch, among_all = validation.batch_that_can_be_drawn(scores, offsets, n_threads)
    number = validation.count(n_samples, "n_samples", 1)
    n_ranks = validation.ranks_that_count(cutoff, batch.longest)
    method, first = validation.choice(sampler, "sampler", validation.Sampler), validation.first_query_of(rng)
    validation.addressable((batch.n_queries, number, n_ranks), 4, "n_samples")
    rankings = _samplers.sample_rankings(batch, number, n_ranks, method, validation.source_of_keys(rng), first)
    if among_all is not None:
        _samplers.number_among_all(rankings, *among_all)
    return rankings[0] if offsets is None else rankings


def ranking_log_prob(
    scores: ArrayLike, rankings: ArrayLike, *, offsets: ArrayLike | None = None, n_threads: int | None = None
) -> FloatArray:
    r"""Compute the log-probability of rankings under the Plackett-Luce distribution of ``scores``.

    A ranking shorter than its query is a prefix, whose probability includes every continuation. The gradient is
    ``ranking_log_prob_vjp``.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights, the documents of all queries one after another; any finite values at any distance, or -inf. A
        document with the score -inf has weight 0 and is treated as if its query did not have it: a ranking that holds
        it has log-probability -inf and no gradient.
    rankings : array_like of int, shape (n_rankings, length), or (n_queries, n_rankings, length) with ``offsets``
        Indices of items within their query, best first. A ranking may end early, with -1 after its last item: a prefix
        of its own length, or the whole of a candidate set smaller than others.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``
        An empty ranking, or one of an empty query, has log-probability 0; one below the lowest double, about -1.8e308,
        has -inf. The relative error is at most 1e-12, also of a probability near 1, for rankings of up to 30,000 items,
        and in proportion to their length beyond.

    Notes
    -----
    .. math:: \ln \pi(y) = \sum_k f_{y_k} - \ln \sum_{d \notin \{y_1, \ldots, y_{k - 1}\}} e^{f_d}

    The cost is O(D + K log K) per query and O(K) per ranking; the result is exact at any distance of the scores.

    Rankings have no ties: if several items of a log share a rank, break the tie at random or by the order of display,
    or use ``bucket_log_prob``. Candidate sets from a catalogue are queries of their own: concatenate the scores of the
    candidates of each, with ``offsets``, and number the items within each set.

    Examples
    --------
    >>> import numpy as np, plrank_fast as plr
    >>> np.exp(plr.ranking_log_prob([0.0, 0.0, 0.0], [[2, 0]])).round(4)
    array([0.1667])
    """
    threads, batch = validation.threads(n_threads), offsets is not None
    possible_scores, starts, possible, all_offsets = validation.items_that_can_be_drawn(scores, offsets, n_threads)
    given = validation.given_rankings(rankings, all_offsets, None, batch, True, threads)
    given, impossible = validation.rankings_of_possible(given, starts, possible, all_offsets)
    result = _metrics.log_prob_of_checked(possible_scores, starts, given, False, threads)
    result[impossible] = -np.inf
    return result if batch else result[0]


def ranking_log_prob_vjp(
    scores: ArrayLike,
    rankings: ArrayLike,
    cotangent: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Compute the gradient of sum_i v_i log pi(y_i) with respect to the scores, for given rankings y_i and numbers v.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights, the documents of all queries one after another; any finite values at any distance, or -inf. A
        document with the score -inf has weight 0 and is treated as if its query did not have it: a ranking that holds
        it has log-probability -inf and no gradient.
    rankings : array_like of int, shape (n_rankings, length), or (n_queries, n_rankings, length) with ``offsets``
        Indices of items within their query, best first. A ranking may end early, with -1 after its last item: a prefix
        of its own length, or the whole of a candidate set smaller than others.
    cotangent : array_like, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``
        v: derivative of a scalar loss by each ranking's log-probability; of either sign, up to 2**200.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Derivative of the loss by each score.

    Notes
    -----
    With S_k the sum of w = exp(score) over the items not placed before rank k, and r the rank of item d,

    .. math:: \frac{d \ln \pi(y)}{d f_d} = 1 - \sum_{k \le r} \frac{w_d}{S_k}

    For an item that y does not place, the sum is over all ranks of y, and 0 replaces 1. The cost is O(D) per ranking
    whose v is not 0; the result is exact at any distance of the scores. ``policy_gradient`` computes the mean over
    rankings, with rewards, baselines and importance weights.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.ranking_log_prob_vjp([0.0, 0.0, 0.0], [[2, 0]], [6.0])
    array([ 1., -5.,  4.])
    """
    scores_, starts, possible, offsets_ = validation.items_that_can_be_drawn(scores, offsets, n_threads)
    batch = offsets is not None
    threads = validation.threads(n_threads)
    rankings_ = validation.given_rankings(rankings, offsets_, None, batch, True, threads)
    shape = rankings_.shape[0], rankings_.shape[1]
    cotangent_ = validation.like_rankings(cotangent, "cotangent", shape, batch, True, threads)
    out = validation.output(out, (int(offsets_[-1]),))
    rankings_, _ = validation.rankings_of_possible(rankings_, starts, possible, offsets_)
    gradient = log_prob_gradient(_LOG_PROB, scores_, starts, rankings_, cotangent_, threads)
    return validation.deliver(validation.of_all_items(gradient, possible, offsets_), out)
