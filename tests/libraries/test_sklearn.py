"""The ranker for scikit-learn: what it optimises, and that it goes through scikit-learn's own machinery."""

import contextlib
import pickle
from datetime import date

import numpy as np
import pytest

import plrank_fast as plr
from problems import features

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from scipy import sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from plrank_fast.sklearn import PlackettLuceRanker  # noqa: E402

X, Y, QID = features()


def those_that_do_not_apply(estimator):
    """A document with weight 2 is not the document twice, and a row without weight not no row: both rank."""
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "weights are those of queries, not of rows"
        for kind in ("dense", "sparse")
    } | {"check_sample_weights_not_overwritten": "weights that differ within a query are refused"}


def of_trees():
    """The rankers of the boosting libraries that are installed, by the names of their queries."""
    with contextlib.suppress(ImportError):
        yield plr.lightgbm.Ranker(n_estimators=5, min_child_samples=1, n_jobs=1), "qid"
    with contextlib.suppress(ImportError):
        yield plr.catboost.Ranker(iterations=5, depth=3, thread_count=1), "group_id"


OTHERS = list(of_trees())
CHECKS = parametrize_with_checks(
    [PlackettLuceRanker(), PlackettLuceRanker(None, gain="linear", metric="dcg"), *(each for each, _ in OTHERS)],
    expected_failed_checks=those_that_do_not_apply,
)
RANKERS = pytest.mark.parametrize(
    ("ranker", "name"), [(PlackettLuceRanker(5), "qid"), *OTHERS], ids=lambda each: type(each).__module__
)


# before 1.8 they are a generator, which pytest is about to refuse
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    """All but the checks of weights of rows. Mutant: a parameter changed in ``__init__``."""
    check(estimator)


@RANKERS
def test_routed_pipeline_and_search(ranker, name):
    """Queries and weights reach ``fit`` and ``score``. Mutants: ``score`` without ``sample_weight``, which a routed
    pipeline passes on; no requests; the queries of other folds."""
    option = next(
        each for each in ("alpha", "reg_lambda", "l2_leaf_reg") if each in {"l2_leaf_reg", *ranker.get_params()}
    )
    weight = np.random.default_rng(0).integers(1, 3, size=QID.max() + 1)[QID].astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(ranker).set_params(**{option: 0.5})
        asking.set_fit_request(sample_weight=True, **{name: True})
        asking.set_score_request(sample_weight=True, **{name: True})
        pipeline = make_pipeline("passthrough", asking)
        given = {name: QID, "sample_weight": weight, "groups": QID}
        search = GridSearchCV(
            pipeline, {f"{type(ranker).__name__.lower()}__{option}": [0.5]}, cv=GroupKFold(3), error_score="raise"
        )
        search.fit(X, Y, **given)
        scores = cross_val_score(pipeline, X, Y, cv=GroupKFold(3), params=given, error_score="raise")
    assert search.best_score_ == pytest.approx(scores.mean())
    for (train, test), score in zip(GroupKFold(3).split(X, Y, QID), scores, strict=True):
        fitted = clone(asking).fit(X[train], Y[train], sample_weight=weight[train], **{name: QID[train]})
        expected = fitted.score(X[test], Y[test], sample_weight=weight[test], **{name: QID[test]})
        assert score == pytest.approx(expected)
        assert score != pytest.approx(fitted.score(X[test], Y[test], **{name: QID[test]}))
        with pytest.raises(ValueError, match=f"^{name} must be given to score, as the ranker was fitted on 20 queries"):
            fitted.score(X[test], Y[test])


@RANKERS
def test_columns_of_frames(ranker, name):
    """Their names and their order are as in ``fit``, and they hold numbers: LightGBM ends the process at a text of
    Polars. Mutants: columns read by position in ``predict`` or ``score``; text handed on."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {f"x{index}": column for index, column in enumerate(X.T)}
    for frame in pandas.DataFrame, polars.DataFrame:
        known, turned = frame(columns), frame(dict(reversed(columns.items())))
        fitted = pickle.loads(pickle.dumps(clone(ranker).fit(known, Y, **{name: QID})))
        np.testing.assert_allclose(fitted.predict(known), clone(ranker).fit(X, Y, **{name: QID}).predict(X))
        for call in (fitted.predict, lambda of, fitted=fitted: fitted.score(of, Y, **{name: QID})):
            with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
                call(turned)
        for wrong in (np.resize(["red", "blue"], Y.size), [date(2020, 1, 1)] * Y.size):
            with pytest.raises(TypeError, match=r"^column 'new' of X must hold numbers, got .*: .*or leave it out$"):
                clone(ranker).fit(frame({**columns, "new": wrong}), Y, **{name: QID})


@RANKERS
@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "coo_array"])
def test_sparse_features(ranker, name, kind):
    """The results equal arrays'. Mutant: CatBoost's refusal of sparse arrays passed on."""
    holes = np.where(X > 1.0, X, 0.0)
    rows = getattr(sparse, kind)(holes)
    fitted = clone(ranker).fit(rows, Y, **{name: QID})
    np.testing.assert_allclose(
        fitted.predict(rows), clone(ranker).fit(holes, Y, **{name: QID}).predict(holes), atol=1e-4
    )


def test_labels_below_0_have_no_ndcg():
    """Mutants: a query followed whose ideal is near 0, or left out where it is negative."""
    signed = Y - 1e-9
    for estimator in PlackettLuceRanker(gain="linear"), PlackettLuceRanker(metric="dcg"):
        with pytest.raises(ValueError, match=r"^y must be (at least 0|from 0)"):
            estimator.fit(X, signed, qid=QID)
    ranker = PlackettLuceRanker(gain="linear", metric="dcg").fit(X, signed, qid=QID).set_params(metric="ndcg")
    with pytest.raises(ValueError, match=r"^y must be at least 0, got -1e-09 at index .*: NDCG is a share"):
        ranker.score(X, signed, qid=QID)


@RANKERS
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_equal_scores_are_averaged_as_scikit_learn_does(ranker, name, gain):
    """A constant feature gives all rows of a query one score, which are sorted by label once up and once down.

    Mutants: the order of the rows in ``score``; the option not handed on."""
    labels, groups = np.array([3, 2, 1, 0, 2, 0, 0]), np.array([0, 0, 0, 0, 1, 1, 1])
    flat = np.zeros((labels.size, X.shape[1]))

    def score(labels, ties):
        own, options = clone(ranker), {"ties": ties, "gain": gain, "cutoff": 3}
        if name == "group_id":
            own.set_params(eval_metric=plr.boosting.RankingMetric(**options))
        elif isinstance(own, PlackettLuceRanker):
            own.set_params(**options)
        else:
            own.score_metric = plr.boosting.RankingMetric(**options)
        return own.fit(X, Y, **{name: QID}).score(flat, labels, **{name: groups})

    gains = labels if gain == "linear" else 2**labels - 1
    queries = [gains[groups == query] for query in (0, 1)]
    theirs = [sklearn.metrics.ndcg_score([each], [np.zeros(each.size)], k=3) for each in queries]
    turned = np.concatenate([labels[groups == query][::-1] for query in (0, 1)])
    assert score(labels, "index") == pytest.approx(1.0)
    assert score(turned, "index") < 0.7
    for given in (labels, turned):
        assert score(given, "average") == pytest.approx(np.mean(theirs))


def test_same_bits_every_time_and_any_order_of_rows(on_team):
    """Rows of a query need not stand together. Mutants: offsets of the rows as they come; labels not reordered; the
    ideal DCG by as many threads as there are processors, whatever ``n_threads`` says."""
    ranker = PlackettLuceRanker(5).fit(X, Y, qid=QID)
    for n_threads in (1, 2):
        fitted = on_team(n_threads, lambda n_threads: PlackettLuceRanker(5, n_threads=n_threads).fit(X, Y, qid=QID))
        assert (fitted.coef_ == ranker.coef_).all()
    order = np.random.default_rng(0).permutation(Y.size)
    shuffled = PlackettLuceRanker(5).fit(X[order], Y[order], qid=QID[order])
    np.testing.assert_allclose(shuffled.coef_, ranker.coef_, atol=1e-4)
    assert shuffled.score(X[order], Y[order], qid=QID[order]) == pytest.approx(ranker.score(X, Y, qid=QID))
    named = PlackettLuceRanker(5).fit(X, Y, qid=np.array([f"query {q}" for q in QID]))
    assert (named.coef_ == ranker.coef_).all()
    np.testing.assert_allclose(
        PlackettLuceRanker(5).fit(sparse.csr_array(X), Y, qid=QID).coef_, ranker.coef_, atol=1e-4
    )


def test_sampled_rankings_are_rows_of_their_queries():
    """Queries as they first appear. Mutants: indices within the query; queries by identifier; the padding taken for
    a row."""
    ranker = PlackettLuceRanker(5).fit(X, Y, qid=QID)
    order = np.random.default_rng(1).permutation(Y.size)
    rankings = ranker.sample_rankings(X[order], 3, qid=QID[order], random_state=0)
    appear = QID[order][np.sort(np.unique(QID[order], return_index=True)[1])]
    assert rankings.shape == (appear.size, 3, np.bincount(QID).max())
    for query, drawn in zip(appear, rankings, strict=True):
        rows = np.flatnonzero(QID[order] == query)
        for ranking in drawn:
            assert (np.sort(ranking[ranking >= 0]) == rows).all()
            assert (ranking[rows.size :] == -1).all()
    again = ranker.sample_rankings(X[order], 3, qid=QID[order], random_state=0)
    assert (again == rankings).all()
    states = [np.random.RandomState(5) for _ in range(2)]
    with pytest.raises(ValueError, match="n_samples must be at least 1"):  # which draws nothing
        ranker.sample_rankings(X, 0, random_state=states[0])
    by_state = [ranker.sample_rankings(X, 1, 2, random_state=state) for state in states]
    assert (by_state[0] == by_state[1]).all()
    assert by_state[0].shape == (1, 1, 2)


def test_grid_search_over_groups_of_queries():
    """Metadata routing takes qid to fit and to score. Mutant: ``score`` without qid, which finds one long query."""
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = PlackettLuceRanker(5).set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(ranker, {"alpha": [1e-3, 10.0]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, Y, qid=QID, groups=QID)
        assert search.best_params_ == {"alpha": 1e-3}
        folds = []
        for train, test in GroupKFold(3).split(X, Y, QID):
            fitted = PlackettLuceRanker(5, alpha=1e-3).fit(X[train], Y[train], qid=QID[train])
            folds.append(fitted.score(X[test], Y[test], qid=QID[test]))
        assert search.best_score_ == pytest.approx(np.mean(folds))


def test_fit_without_qid_warns_where_it_takes_many_queries_for_one():
    """A search does so without metadata routing. Mutants: no warning; one for a single query, or a short list."""
    search = GridSearchCV(PlackettLuceRanker(5), {"alpha": [0.1]}, cv=GroupKFold(3), refit=False)
    many, labels, qid = features(60)
    with pytest.warns(UserWarning, match="fit takes all .* qid was not given: .*enable_metadata_routing=True"):
        search.fit(many, labels, groups=qid)
    PlackettLuceRanker().fit(many, labels, qid=np.zeros(labels.size))
    PlackettLuceRanker().fit(X[:200], Y[:200])


def test_score_without_qid_is_refused():
    """Where queries would run into each other, and where a pipeline drops ``qid``. Mutant: scored as one."""
    pipeline = make_pipeline(StandardScaler(), PlackettLuceRanker()).fit(X, Y, plackettluceranker__qid=QID)
    message = r"qid must be given to score, .* 30 queries: a pipeline .*enable_metadata_routing=True"
    with pytest.raises(ValueError, match=message):
        pipeline[-1].score(X, Y)
    with pytest.raises(ValueError, match=message):
        pipeline.score(X, Y, qid=QID)
    assert PlackettLuceRanker().fit(X[:9], Y[:9]).score(X[:9], Y[:9]) <= 1.0


def test_weights_are_those_of_queries():
    """A query of weight 2 is the query twice, of weight 0 none. Mutants: weights left out of the fit, or the score."""
    weight = np.random.default_rng(0).integers(0, 3, size=QID.max() + 1)[QID].astype(float)
    twice, kept = weight == 2, weight > 0
    X2, Y2 = np.vstack([X[kept], X[twice]]), np.append(Y[kept], Y[twice])
    QID2 = np.append(QID[kept], 1000 + QID[twice])
    weighted = PlackettLuceRanker(5, alpha=0.1).fit(X, Y, qid=QID, sample_weight=weight)
    repeated = PlackettLuceRanker(5, alpha=0.1).fit(X2, Y2, qid=QID2)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert abs(weighted.coef_ - PlackettLuceRanker(5, alpha=0.1).fit(X, Y, qid=QID).coef_).max() > 1e-2
    score = weighted.score(X, Y, qid=QID, sample_weight=weight)
    assert score == pytest.approx(weighted.score(X2, Y2, qid=QID2))
    weight[0] += 1
    with pytest.raises(ValueError, match="sample_weight must be the same for all documents of a query"):
        PlackettLuceRanker().fit(X, Y, qid=np.sort(QID), sample_weight=weight)


def test_masked_arrays_are_refused():
    """Rather than read with the values that they hide. Mutant: scikit-learn's conversion alone."""
    hidden_X, hidden_y = np.ma.array(X, mask=X > 1), np.ma.array(Y, mask=Y > 2)
    ranker = PlackettLuceRanker().fit(X, Y, qid=QID)
    for method in (ranker.fit, ranker.score):
        for name, data in (("X", (hidden_X, Y)), ("y", (X, hidden_y))):
            with pytest.raises(TypeError, match=f"{name} must not be a masked array"):
                method(*data, qid=QID)
    with pytest.raises(TypeError, match="X must not be a masked array"):
        ranker.predict(hidden_X)


def test_the_groups_of_other_libraries_are_refused_with_their_replacement():
    """Mutants: the hint for a function with offsets; a method that ignores the argument."""
    ranker = PlackettLuceRanker().fit(X, Y, qid=QID)
    for method in (ranker.fit, ranker.score):
        with pytest.raises(
            TypeError, match=r"keyword argument .*: pass qid=numpy.repeat\(range\(len\(group\)\), group\)$"
        ):
            method(X, Y, group=[2, 3])


@pytest.mark.parametrize(
    ("message", "parameters", "labels", "qid"),
    [
        ("qid must have one entry for each", {}, Y, QID[1:]),
        ("qid must not be missing", {}, Y, np.where(QID == 3, np.nan, QID)),
        ("y must be from 0 to 200", {}, -Y, QID),
        ("gain must be one of", {"gain": "log"}, Y, QID),
        ("alpha must be at least 0", {"alpha": -1.0}, Y, QID),
        ("tol must be positive", {"tol": 0.0}, Y, QID),
        ("max_iter must be at least 1", {"max_iter": 0}, Y, QID),
        ("cutoff must be at least 0", {"cutoff": -1}, Y, QID),
    ],
)
def test_errors_name_the_argument(message, parameters, labels, qid):
    with pytest.raises(ValueError, match=message):
        PlackettLuceRanker(**parameters).fit(X, labels, qid=qid)


def test_score_takes_one_label_for_each_document():
    """Mutant: any number of labels ordered as the documents are."""
    ranker = PlackettLuceRanker(max_iter=50).fit(X, Y, qid=QID)
    for labels in (Y[:-1], np.append(Y, 1), Y[:1]):
        with pytest.raises(ValueError, match=f"y must have one entry for each of the {Y.size} documents"):
            ranker.score(X, labels, qid=QID)
