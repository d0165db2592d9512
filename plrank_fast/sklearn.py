"""A linear ranker for scikit-learn, trained on the exact expected metric."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._adapters.searches import has_columns, require_queries, warn_of_one_query, weights_of
from plrank_fast._methods.registry import EXACT
from plrank_fast._shared.extras import import_extra
from plrank_fast.named_metrics import LabelledMetric, checked_ties, labelled_metric
from plrank_fast.rank_weights import GRADES_OR_GAINS, gains_of_labels
from plrank_fast.sampling import sample_rankings
from plrank_fast.validation import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy import optimize
    from sklearn import base, exceptions
    from sklearn.utils import validation as checks
else:
    base = import_extra("sklearn.base", "sklearn")
    checks = import_extra("sklearn.utils.validation", "sklearn")
    exceptions = import_extra("sklearn.exceptions", "sklearn")
    optimize = import_extra("scipy.optimize", "sklearn")

__all__ = ["PlackettLuceRanker"]


def __dir__() -> list[str]:
    return __all__


RTOL = 1e-9  # the line search compares values that differ little

_gains = partial(gains_of_labels, n_threads=1, name="y", why=GRADES_OR_GAINS)


class PlackettLuceRanker(base.BaseEstimator):  # type: ignore[misc]
    r"""Linear ranker that maximises the expected NDCG, or another metric, of rankings drawn from its distribution.

    The rankings have the Plackett-Luce distribution with the ranker's scores as log-weights.

    Training is deterministic: L-BFGS from coef = 0 on the exact expectation (``pl_rank_exact``), without samples or a
    seed. There is no intercept, which would not change a ranking. Scale the features first, for instance with
    ``StandardScaler``: both the penalty and the number of iterations depend on it.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    metric : {"ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"}
        Metric whose expectation is maximised and which ``score`` returns, at K ranks: NDCG or DCG of gains, precision,
        recall, the reciprocal rank of the first relevant document (MRR), expected reciprocal rank (ERR), success
        (whether one of the K is relevant, the hit rate), or average precision. Labels above 0 are relevant.
    gain : {"exponential", "linear"}
        Gain of a document with label y in "ndcg" and "dcg": 2**y - 1, or y.
    max_label : float, optional
        Highest grade of the scale in "err"; the highest of the labels by default.
    ties : {"index", "average"}
        Equal scores in ``score``. "average": the mean over all orders of them, as in ``sklearn.metrics.ndcg_score``,
        for "ndcg", "dcg", "precision" and "recall". "index": the order of the rows, which flatters a constant model
        where rows are sorted by label.
    alpha : float
        Penalty on the coefficients, at least 0. Without a penalty they grow until the ranking is deterministic.
    max_iter : int
        Largest number of iterations of L-BFGS.
    tol : float
        Training ends when no entry of the gradient is larger than this.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        Weights of the features.
    n_iter_ : int
        Iterations taken.
    n_queries_ : int
        Queries seen in ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if ``X`` has them.

    Notes
    -----
    With scores f = X coef, training minimises

    .. math:: -\frac{1}{Q} \sum_q \frac{E[\text{DCG@K}_q]}{\text{ideal DCG@K}_q} + \frac{\alpha}{2} |\text{coef}|^2

    ``qid`` is metadata in scikit-learn's sense: ask for it with ``set_fit_request(qid=True)`` and
    ``set_score_request(qid=True)`` under ``enable_metadata_routing``, and split with ``GroupKFold`` and ``groups=qid``.
    Rows may come in any order; the rows of a query need not follow one another.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast.sklearn import PlackettLuceRanker
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 0.0], [3.0, 1.0]])
    >>> y, qid = np.array([0, 1, 2, 0, 1]), np.array([7, 7, 7, 8, 8])
    >>> ranker = PlackettLuceRanker(cutoff=3).fit(X, y, qid=qid)
    >>> ranker.score(X, y, qid=qid)                               # mean NDCG@3
    1.0
    >>> ranker.sample_rankings(X, 2, qid=qid, random_state=0).shape    # rows of X; two queries, two rankings of each
    (2, 2, 3)
    """

    def __init__(
        self,
        cutoff: int | None = 10,
        *,
        metric: validation.MetricName = "ndcg",
        gain: validation.Gain = "exponential",
        max_label: float | None = None,
        ties: validation.RankTies = "index",
        alpha: float = 1e-4,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_threads: int | None = None,
    ) -> None:
        self.cutoff = cutoff
        self.metric = metric
        self.gain = gain
        self.max_label = max_label
        self.ties = ties
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads

    @validation.hinted
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PlackettLuceRanker:
        """Train on queries with labels.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_docs, n_features)
            A row for each document of each query.
        y : array_like, shape (n_docs,)
            Labels: grades of at least 0, or anything finite with ``gain="linear"`` and ``metric="dcg"``.
        qid : array_like, shape (n_docs,), optional
            Query of each document, integers or strings. Without it all documents belong to one query, with a warning
            if there are more than 200.
        sample_weight : array_like, shape (n_docs,), optional
            Weight of each document's query, at least 0; it must be the same for all documents of a query.

        Returns
        -------
        PlackettLuceRanker
            The fitted ranker itself.
        """
        alpha, tol = validation.real(self.alpha, "alpha", at_least=0.0), validation.real(self.tol, "tol", above=0.0)
        max_iter = validation.count(self.max_iter, "max_iter", 1)
        X, y = validation.unmasked(X, "X"), validation.unmasked(y, "y")
        has_columns(X)
        X, y = checks.validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=True)
        if qid is None:
            warn_of_one_query(X.shape[0])
        order, offsets = _by_query(qid, X.shape[0])
        features, of_labels = X[order], self._of_labels(y, order, offsets)
        shares = _query_shares(sample_weight, order, offsets)
        if self.metric == "ndcg":
            shares = of_labels.over_ideal(shares, offsets, self.n_threads)
        share_of_doc = np.repeat(shares, np.diff(offsets))

        def loss(coef: FloatArray) -> tuple[float, FloatArray]:
            values, ascent = of_labels.value_and_gradient(
                features @ coef, EXACT, offsets=offsets, rtol=RTOL, n_threads=self.n_threads
            )
            penalty = 0.5 * alpha * float(coef @ coef)
            return penalty - float(values @ shares), alpha * coef - features.T @ (share_of_doc * ascent)

        found = optimize.minimize(
            loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "gtol": tol}
        )
        if found.nit >= max_iter and not found.success:
            warnings.warn(
                f"L-BFGS has not converged in {max_iter} iterations: scale the features, or raise max_iter or alpha",
                exceptions.ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_: FloatArray = found.x
        self.n_iter_: int = int(found.nit)
        self.n_queries_: int = offsets.size - 1
        return self

    @validation.hinted
    def predict(self, X: Any) -> FloatArray:
        """Compute the score of each document; higher scores rank nearer to the top.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_docs, n_features)
            A row for each document of each query.

        Returns
        -------
        ndarray, shape (n_docs,), float64
        """
        checks.check_is_fitted(self)
        X = checks.validate_data(
            self, validation.unmasked(X, "X"), accept_sparse="csr", dtype=(np.float64, np.float32), reset=False
        )
        return np.asarray(X @ self.coef_, dtype=np.float64)

    @validation.hinted
    def sample_rankings(
        self,
        X: Any,
        n_samples: int = 1,
        cutoff: int | None = None,
        *,
        qid: ArrayLike | None = None,
        random_state: Any = None,
    ) -> NDArray[np.int64]:
        """Draw rankings from the Plackett-Luce distribution of the scores.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_docs, n_features)
            A row for each document of each query.
        n_samples : int
            Rankings drawn for each query, N.
        cutoff : int, optional
            Ranks to draw; all by default.
        qid : array_like, shape (n_docs,), optional
            Query of each document; without it all belong to one query.
        random_state : None, int, RandomState or Generator
            Source of the random numbers; the same int gives the same rankings.

        Returns
        -------
        ndarray of int64, shape (n_queries, n_samples, K)
            Rows of ``X``, queries in the order of their first documents; padded with -1 where a query is shorter.
        """
        scores = self.predict(X)
        order, offsets = _by_query(qid, scores.size)
        if isinstance(random_state, np.random.RandomState):
            random_state = validation.DrawnKey(partial(random_state.randint, 2**31))
        drawn = sample_rankings(
            scores[order], n_samples, cutoff, offsets=offsets, rng=random_state, n_threads=self.n_threads
        )
        rows = np.append(order, -1)  # the padding takes the last entry
        return rows[np.where(drawn < 0, order.size, drawn + offsets[:-1, np.newaxis, np.newaxis])]

    @validation.hinted
    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Compute the mean of the metric of the ranking by score, with 0 for queries without relevant documents.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_docs, n_features)
            A row for each document of each query.
        y : array_like, shape (n_docs,)
            Labels of at least 0.
        qid : array_like, shape (n_docs,)
            Query of each document. It may only be left out if the ranker was fitted on a single query, so that
            cross-validation cannot merge queries unnoticed.
        sample_weight : array_like, shape (n_docs,), optional
            Weight of each document's query, at least 0; it must be the same for all documents of a query.

        Returns
        -------
        float
        """
        scores = self.predict(X)
        require_queries(qid, self.n_queries_)
        order, offsets = _by_query(qid, scores.size)
        labels = checks.column_or_1d(validation.unmasked(y, "y"))
        of_labels = self._of_labels(labels, order, offsets)
        values = of_labels.of_ranking(scores[order], offsets, self.n_threads, ties=self.ties)
        return float(values @ _query_shares(sample_weight, order, offsets))

    def _of_labels(self, y: ArrayLike, order: IntArray, offsets: IntArray) -> LabelledMetric:
        """Return the metric of labels, sorted by query; NDCG needs labels of at least 0."""
        metric: validation.MetricName = validation.choice(self.metric, "metric", validation.MetricName)
        linear = validation.choice(self.gain, "gain", validation.Gain) == "linear"
        labels = validation.one_entry_each(validation.real_array(y, "y"), "y", order.size, "documents")
        if metric == "ndcg" and linear:
            validation.within(labels, "y", 0.0, np.inf, validation.A_SHARE_OF_GAINS)
        checked_ties(self.ties, metric)
        highest = self.max_label
        validation.goes_with(highest, "max_label", metric == "err", "metric='err'")
        return labelled_metric(
            metric, labels[order], offsets, cutoff=self.cutoff, max_label=highest,
            gain=(lambda grades: grades) if linear else _gains, name="y",
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = self.metric in ("err", "ndcg") or (
            self.metric == "dcg" and self.gain == "exponential"
        )
        tags.input_tags.sparse = True
        return tags


def _by_query(qid: ArrayLike | None, n_docs: int) -> tuple[IntArray, IntArray]:
    """Return the order that sorts documents by query, queries by their first documents, and the offsets then."""
    if qid is None:
        return np.arange(n_docs), np.array([0, n_docs])
    identifiers = validation.one_entry_each(validation.query_identifiers(qid), "qid", n_docs, "documents")
    _, first, query = np.unique(identifiers, return_index=True, return_inverse=True)
    query = np.argsort(np.argsort(first))[query]
    return np.argsort(query, kind="stable"), np.append(0, np.cumsum(np.bincount(query))).astype(np.int64)


def _query_shares(sample_weight: ArrayLike | None, order: IntArray, offsets: IntArray) -> FloatArray:
    """Return the share of each query in the mean over queries, (n_queries,)."""
    weights = np.ones(offsets.size - 1)
    if sample_weight is not None:
        weights = weights_of(sample_weight, offsets, order)
    return weights / max(weights.sum(), np.finfo(np.float64).tiny)
