"""Objectives and metrics in LightGBM, XGBoost and CatBoost themselves, and every trap that was met there."""

import contextlib
import inspect
import pickle

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import boosting
from plrank_fast import xgboost as plrank_xgboost
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.data import generate

plrank_lightgbm = pytest.importorskip("plrank_fast.lightgbm", exc_type=ImportError)

TRAIN = generate("yahoo", 60, n_features=12)
TEST = generate("yahoo", 60, n_features=12, split="test")
SIZES, TEST_SIZES = np.diff(TRAIN.offsets), np.diff(TEST.offsets)
QUERY = np.repeat(np.arange(SIZES.size), SIZES)
QUIET = {"lambda_l2": 1.0, "metric": "None", "verbosity": -1, "num_threads": 1}


@pytest.fixture
def lightgbm():
    return pytest.importorskip("lightgbm")


@pytest.fixture
def xgboost():
    return pytest.importorskip("xgboost")


@pytest.fixture
def catboost():
    pytest.importorskip("plrank_fast.catboost", exc_type=ImportError)
    return pytest.importorskip("catboost")


def mean_ndcg(scores, data=TEST):
    return plr.ndcg(scores, plr.gains(data.labels), plr.dcg_weights(10), offsets=data.offsets).mean()


CATBOOST = {"depth": 4, "thread_count": 1, "bootstrap_type": "No"}
CONSTANT = mean_ndcg(np.zeros(TEST.n_docs))


@pytest.fixture
def calls(monkeypatch):
    """Scores, offsets and derivatives of each call of an objective."""
    done, derivatives = [], BoostingObjective.derivatives

    def recorded(self, scores, labels, offsets=None, **options):
        result = derivatives(self, scores, labels, offsets, **options)
        done.append((np.array(scores), np.array(offsets), result))
        return result

    monkeypatch.setattr(BoostingObjective, "derivatives", recorded)
    return done


class LightGBM:
    """One way to train for the tests that are the same in both libraries."""

    def __init__(self, library):
        self.library, self.adapter = library, plrank_lightgbm
        self.dropping_all = {"boosting": "dart", "drop_rate": 1.0, "skip_drop": 0.0}

    def data(self, *, weights=None, start=None, group=True):
        weights = None if weights is None else np.repeat(weights, SIZES)
        return self.library.Dataset(
            TRAIN.features, TRAIN.labels, group=SIZES if group else None, weight=weights, init_score=start,
            free_raw_data=False,
        )  # fmt: skip

    def train(self, objective, rounds, data=None, model=None, **parameters):
        return self.library.train(
            QUIET | {"objective": objective} | parameters, data or self.data(), rounds, init_model=model
        )  # fmt: skip

    def scores(self, model):
        return model.predict(TRAIN.features)

    def done(self, model):
        return model.current_iteration()


class XGBoost:
    """One way to train with XGBoost."""

    def __init__(self, library):
        self.library, self.adapter = library, plrank_xgboost
        # since 3.4, trees drop others without a booster of their own, and "dart" warns
        own = tuple(map(int, library.__version__.split(".")[:2])) < (3, 4)
        self.dropping_all = {"rate_drop": 1.0} | ({"booster": "dart"} if own else {})

    def data(self, *, labels=TRAIN.labels, weights=None, start=None, group=True):
        matrix = self.library.DMatrix(TRAIN.features, labels, base_margin=start)
        if group:
            matrix.set_group(SIZES)
        if weights is not None:
            matrix.set_weight(weights)
        return matrix

    def train(self, objective, rounds, data=None, model=None, **parameters):
        parameters = {"learning_rate": 0.1, "nthread": 1} | parameters
        return self.library.train(parameters, data or self.data(), rounds, obj=objective, xgb_model=model)

    def scores(self, model):
        return model.predict(self.library.DMatrix(TRAIN.features))

    def done(self, model):
        return model.num_boosted_rounds()


@pytest.fixture(params=[LightGBM, XGBoost])
def trees(request):
    return request.param(request.getfixturevalue(request.param.__name__.lower()))


@pytest.mark.parametrize("weights", [None, np.where(np.arange(SIZES.size) % 2, 0.0, 3.0)], ids=["", "weights"])
def test_rounds_by_hand(trees, weights, calls, monkeypatch):
    """The library passes on what the framework-free objective takes: scores from the start that was given, labels,
    offsets, and weights, which neither library applies to custom objectives; XGBoost has one for each query.

    Mutants: sizes of groups for offsets, labels for scores; derivatives in float64, which the library converts; the
    start or the weights forgotten.
    """
    start = np.random.default_rng(0).normal(size=TRAIN.n_docs)
    trees.train(trees.adapter.Objective(method="exact"), 3, trees.data(weights=weights, start=start))
    monkeypatch.undo()
    assert len(calls) == 3
    for scores, offsets, result in calls:
        np.testing.assert_array_equal(offsets, TRAIN.offsets)
        by_hand = BoostingObjective(method="exact").derivatives(scores, TRAIN.labels, TRAIN.offsets, weights=weights)
        np.testing.assert_array_equal(result, np.float32(by_hand), strict=True)
    moved = [np.ptp(scores - start) for scores, *_ in calls[:2]]
    assert moved[0] < 1e-6 < moved[1]


def test_rounds_of_dart(trees, monkeypatch):
    """Scores without the trees that were dropped are no new training, and say nothing about the first tree.

    Mutants: rounds counted by scores (0, 1, 0 ...); the warning of a tree without a split by scores; another training
    of the same objective, on the same data, counted on.
    """
    rounds, raw, data = [], BoostingObjective._raw_derivatives, trees.data()
    monkeypatch.setattr(
        BoostingObjective, "_raw_derivatives", lambda *given: rounds.append(given[-1]) or raw(*given)
    )  # fmt: skip
    objective = trees.adapter.Objective(method="cmc", first_round=3)
    for _ in range(2):
        trees.train(objective, 6, data, **trees.dropping_all)
    assert rounds == 2 * [3, 4, 5, 6, 7, 8]


def test_the_threads_of_the_library_are_borrowed(trees, monkeypatch):
    """The library's threads spin after a loop of its own. Mutant: the metric on other threads."""
    borrowed = []
    monkeypatch.setattr(boosting, "threads_of", lambda name: contextlib.nullcontext(borrowed.append(name)))
    trees.train(trees.adapter.Objective(), 1)
    trees.adapter.Metric().evaluate(np.zeros(TRAIN.n_docs), TRAIN.labels, TRAIN.offsets)
    assert borrowed == 2 * [trees.library.__name__]


def test_without_groups(trees):
    """An error, and one that says what to do. Mutant: all documents taken for one query."""
    with pytest.raises(ValueError, match=r"no groups.*: (pass group=|call set_group\(numpy\.diff\()"):
        trees.train(trees.adapter.Objective(), 1, trees.data(group=False))


def test_resumed_training_equals_uninterrupted(trees):
    """In both libraries to the last bit on this data. Mutants: ``first_round`` ignored, the seed without the round."""
    whole = trees.scores(trees.train(trees.adapter.Objective(method="cmc"), 12))
    half = trees.train(trees.adapter.Objective(method="cmc"), 5)
    objective = trees.adapter.Objective(method="cmc", first_round=trees.done(half))
    resumed = trees.scores(trees.train(objective, 7, model=half))
    np.testing.assert_allclose(resumed, whole, rtol=1e-6, atol=1e-6)
    wrong = trees.scores(trees.train(trees.adapter.Objective(method="cmc"), 7, model=half))
    assert np.abs(wrong - whole).max() > 1e-3


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_scores_have_the_gain_of_the_objective(library, request):
    """Labels are gains here, and 2**300 is none. Mutants: exponential gains in ``score``, or in histories."""
    request.getfixturevalue(library)
    linear, labels = {"gain": "linear"}, TRAIN.labels * 100.0
    if library == "lightgbm":
        ranker = plrank_lightgbm.Ranker(objective=plrank_lightgbm.Objective(**linear), n_estimators=3, verbosity=-1)
        score = ranker.fit(TRAIN.features, labels, qid=QUERY).score(TRAIN.features, labels, qid=QUERY)
    else:
        ranker = plr.catboost.Ranker(loss_function=BoostingObjective(**linear), iterations=3, **CATBOOST)
        data = TRAIN.features, labels, QUERY
        score = ranker.fit(*data, eval_set=data).score(*data)
        assert ranker.evals_result_["validation"]["ndcg_plrank@10_linear"][-1] == pytest.approx(score)
    expected = RankingMetric(**linear).evaluate(ranker.predict(TRAIN.features), labels, TRAIN.offsets)
    assert score == pytest.approx(expected, abs=1e-12)


class TestLightGBM:
    """Traps of LightGBM alone."""

    def test_scikit_learn_interface_equals_native(self, lightgbm):
        """Trees are equal, cloned and pickled, with a metric. Mutants: group and weight swapped; labels for scores; a
        fifth keyword with a default, as LightGBM passes as many arguments as the call has parameters."""
        base = pytest.importorskip("sklearn.base")
        native = LightGBM(lightgbm)
        expected = native.scores(native.train(plrank_lightgbm.Objective(method="cmc"), 8))
        ranker = lightgbm.LGBMRanker(
            objective=plrank_lightgbm.Objective(method="cmc"), reg_lambda=1.0, metric="None", n_estimators=8,
            verbosity=-1, n_jobs=1,
        )  # fmt: skip
        evaluation = {"eval_X": TEST.features, "eval_y": TEST.labels}
        if "eval_X" not in inspect.signature(lightgbm.LGBMRanker.fit).parameters:  # of an older version
            evaluation = {"eval_set": [(TEST.features, TEST.labels)]}
        for estimator in (ranker, base.clone(ranker), pickle.loads(pickle.dumps(ranker))):
            estimator.fit(
                TRAIN.features, TRAIN.labels, group=SIZES, **evaluation, eval_group=[TEST_SIZES],
                eval_metric=[plrank_lightgbm.Metric(), plrank_lightgbm.Metric(expected=True)],
            )  # fmt: skip
            np.testing.assert_array_equal(estimator.predict(TRAIN.features), expected)
            values = estimator.evals_result_["valid_0"]
            assert values["ndcg_plrank@10"][-1] == pytest.approx(mean_ndcg(estimator.predict(TEST.features)))
            assert len(values["ndcg_expected@10"]) == 8
        fitted = pickle.loads(pickle.dumps(ranker))
        np.testing.assert_array_equal(fitted.predict(TRAIN.features), expected)
        np.testing.assert_array_equal(  # again, on the objective that has trained before
            ranker.fit(TRAIN.features, TRAIN.labels, group=SIZES).predict(TRAIN.features), expected
        )  # fmt: skip

    def test_ranker_of_searches(self, lightgbm):
        """It is an ``LGBMRanker``; a search sets options of its objective, and scores all candidates by one metric.

        Mutants: the other options of the objective reset; labels as gains in the score; ``reg_lambda`` of LightGBM.
        """
        sklearn = pytest.importorskip("sklearn")
        from sklearn.model_selection import GridSearchCV, GroupKFold

        options = {"n_estimators": 4, "verbosity": -1, "n_jobs": 1}
        ranker = plrank_lightgbm.Ranker(objective=plrank_lightgbm.Objective(method="cmc", seed=3), **options)
        folds = list(GroupKFold(3).split(TRAIN.features, groups=QUERY))
        with sklearn.config_context(enable_metadata_routing=True):
            ranker.set_fit_request(qid=True).set_score_request(qid=True)
            search = GridSearchCV(ranker, {"objective__cutoff": [7], "num_leaves": [5]}, cv=folds, refit=False)
            search.fit(TRAIN.features, TRAIN.labels, qid=QUERY)
        assert ranker.objective.cutoff is None
        objective = plrank_lightgbm.Objective(method="cmc", seed=3, cutoff=7)
        plain = lightgbm.LGBMRanker(objective=objective, reg_lambda=1.0, metric="None", num_leaves=5, **options)
        for fold, (known, held_out) in enumerate(folds):
            sizes = np.diff(plr.offsets_from_qid(QUERY[known]))
            scores = plain.fit(TRAIN.features[known], TRAIN.labels[known], group=sizes).predict(
                TRAIN.features[held_out]
            )
            offsets = plr.offsets_from_qid(QUERY[held_out])
            expected = plr.ndcg(scores, plr.gains(TRAIN.labels[held_out]), cutoff=10, offsets=offsets).mean()
            assert search.cv_results_[f"split{fold}_test_score"][0] == pytest.approx(expected, abs=1e-12)

    def test_cross_validation_never_cuts_queries(self, lightgbm):
        """``lightgbm.cv`` keeps queries together for objectives that it knows, and else only if told to.

        Mutants: no look at the rows of the subset (it then trains on fragments without a word), by either of the two.
        """
        selection = pytest.importorskip("sklearn.model_selection")
        data, metric = LightGBM(lightgbm).data, plrank_lightgbm.Metric()
        own = plrank_lightgbm.Objective(method="cmc")
        other = lambda scores, data: (scores - data.get_label(), np.ones_like(scores))  # noqa: E731
        for objective, feval in (own, None), (other, metric):  # each refuses by itself
            options = {"nfold": 3, "stratified": False, "feval": feval}
            with pytest.raises(ValueError, match=r"query in the data set must be all or none.*GroupKFold"):
                lightgbm.cv(QUIET | {"objective": objective}, data(), 2, **options)
        both = [metric, plrank_lightgbm.Metric(gain="linear")]
        result = lightgbm.cv(QUIET | {"objective": own}, data(), 4, folds=selection.GroupKFold(3), feval=both)
        assert result["valid ndcg_plrank@10_linear-mean"][-1] > result["valid ndcg_plrank@10-mean"][-1] > CONSTANT

    def test_groups_that_change_in_place(self):
        """Mutants: groups and weights of the last round recognised by identity; the kept array not a copy."""
        labels, scores = np.array([0.0, 2.0, 1.0, 0.0, 1.0, 3.0]), np.linspace(0.0, 1.0, 6)
        objective, group, weight = plrank_lightgbm.Objective(), np.array([2, 2, 2]), np.repeat([1.0, 2.0, 2.0], 2)
        for sizes, weights in (([2, 2, 2], [1, 1, 2, 2, 2, 2]), ([2, 2, 2], [3, 3, 1, 1, 2, 2]), ([2, 1, 3], weight)):
            group[:], weight[:] = sizes, np.repeat([3.0, 2.0, 2.0], sizes) if weights is weight else weights
            expected = plrank_lightgbm.Objective()(labels, scores, weight.copy(), group.copy())
            np.testing.assert_array_equal(objective(labels, scores, weight, group), expected)

    def test_threads_that_share_an_objective(self, monkeypatch):
        """Each gets the derivatives of its own groups, wherever another thread comes between.

        Mutants: groups of the last call of any thread; a warning of a tree that never was, as these are at the same
        scores.
        """
        labels, scores = TRAIN.labels[:60], np.linspace(0.0, 1.0, 60)
        objective, groups = plrank_lightgbm.Objective(method="exact"), [np.array([60]), np.full(30, 2)]
        expected = [objective(labels, scores, None, group)[0] for group in groups]

        def interrupted(_):
            with monkeypatch.context() as once:
                once.setattr(plrank_lightgbm, "_is_dataset", lambda _: False)
                np.testing.assert_array_equal(objective(labels, scores, None, groups[1])[0], expected[1])
            return False

        monkeypatch.setattr(plrank_lightgbm, "_is_dataset", interrupted)
        np.testing.assert_array_equal(objective(labels, scores, None, groups[0])[0], expected[0])

    def test_parameters_that_only_its_own_objectives_heed(self, lightgbm):
        """They are named in a warning. Mutant: only the first of them."""
        parameters = {"objective": plrank_lightgbm.Objective(), "label_gain": [0, 1, 3, 7, 15],
                      "lambdarank_truncation_level": 5}  # fmt: skip
        with pytest.warns(UserWarning, match=r"^label_gain, lambdarank_truncation_level only .*: pass gain, cutoff"):
            lightgbm.train(QUIET | parameters, LightGBM(lightgbm).data(), 2)

    def test_trees_without_splits_are_told(self, lightgbm):
        """``bagging_by_query`` takes all rows from any custom objective. Mutants: told each round; told of training."""
        options = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
        native = LightGBM(lightgbm)
        for before in None, native.train(plrank_lightgbm.Objective(), 2):
            with pytest.warns(UserWarning, match=r"first tree has no split: .*bagging_by_query=True") as told:
                native.train(plrank_lightgbm.Objective(), 5, model=before, **options)
            assert len(told) == 1

    def test_positions_have_no_effect(self, lightgbm):
        """Once, in a training. Mutants: no word; a warning each round."""
        positioned = lightgbm.Dataset(
            TRAIN.features, TRAIN.labels, group=SIZES, position=np.concatenate([np.arange(size) for size in SIZES]),
        )  # fmt: skip
        with pytest.warns(UserWarning, match=r"^position only .*: .*off_policy\.relevance_from_clicks$") as told:
            LightGBM(lightgbm).train(plrank_lightgbm.Objective(), 3, positioned)
        assert len(told) == 1


class TestXGBoost:
    """Traps of XGBoost alone."""

    @pytest.mark.parametrize("method", ["exact", "cmc"])
    @pytest.mark.parametrize("goes_on", [False, True])
    def test_trees_without_splits_are_told(self, xgboost, method, goes_on):
        """With "cmc" their leaf moves all scores alike. Mutants: told by scores, which move; told of other trees."""
        native = XGBoost(xgboost)
        before = native.train(plrank_xgboost.Objective(), 3) if goes_on else None
        with pytest.warns(UserWarning, match="^the first tree has no split") as told:
            native.train(plrank_xgboost.Objective(method=method), 3, model=before, gamma=1e9)
        assert len(told) == 1

    def test_metric_equals_its_own(self, xgboost):
        """With queries without relevant documents counted as XGBoost counts them. Mutants: ``empty`` 0, K of 9."""
        labels = np.where(QUERY % 5, TRAIN.labels, 0)
        data, history = XGBoost(xgboost).data(labels=labels), {}
        xgboost.train(
            {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "nthread": 1}, data, 5, evals=[(data, "train")],
            custom_metric=lambda *given: ("ours", plrank_xgboost.Metric(empty=1.0)(*given)[1]),
            evals_result=history, verbose_eval=False,
        )  # fmt: skip
        np.testing.assert_allclose(history["train"]["ours"], history["train"]["ndcg@10"], atol=2e-6)

    @pytest.mark.parametrize("expected", [False, True])
    def test_early_stopping_knows_that_higher_is_better(self, xgboost, expected):
        """It goes by the beginning of the name, and XGBoost's own metric is off, though no parameter says so.

        Mutants: "expected_ndcg@10", which stops at the worst round; the own metric left on, or switched off in vain.
        """
        test, history = xgboost.DMatrix(TEST.features, TEST.labels), {}
        test.set_group(TEST_SIZES)
        model = xgboost.train(
            {"learning_rate": 0.3, "nthread": 1}, XGBoost(xgboost).data(), 200, obj=plrank_xgboost.Objective(),
            custom_metric=plrank_xgboost.Metric(expected=expected), evals=[(test, "test")], early_stopping_rounds=5,
            evals_result=history, verbose_eval=False,
        )  # fmt: skip
        (values,) = history["test"].values()
        assert model.best_iteration == np.argmax(values)
        assert 1 < model.best_iteration < 194

    @pytest.mark.parametrize("metric", [plrank_xgboost.Metric(), RankingMetric()])
    def test_ranker_has_no_queries_for_metrics(self, xgboost, metric):
        """It calls with labels and scores of one query. Mutant: AttributeError of an array."""
        ranker = xgboost.XGBRanker(eval_metric=metric, n_estimators=1)
        with pytest.raises(TypeError, match=r"xgboost\.train\(custom_metric=\.\.\.\)|plrank_fast\.xgboost"):
            ranker.fit(
                TRAIN.features, TRAIN.labels, group=SIZES, eval_set=[(TEST.features, TEST.labels)],
                eval_group=[TEST_SIZES],
            )  # fmt: skip


def test_a_worker_without_documents():
    """Derivatives of none, in float32. Mutant: none of them written as float64."""
    found = plrank_xgboost.Objective().derivatives(np.zeros(0), np.zeros(0), [0])
    assert [(each.shape, each.dtype) for each in found] == [((0,), np.float32)] * 2


def test_objectives_of_other_libraries(lightgbm, xgboost):
    """The error names the right one. Mutants: AttributeError of a data set; a data set without groups blamed."""
    native = {LightGBM: LightGBM(lightgbm), XGBoost: XGBoost(xgboost)}
    with pytest.raises(TypeError, match=r"xgboost\.DMatrix, as xgboost\.train\(obj=.*got Dataset"):
        native[LightGBM].train(plrank_xgboost.Objective(), 1)
    with pytest.raises(TypeError, match=r"lightgbm\.Dataset.* as by LGBMRanker, got .*DMatrix"):
        native[XGBoost].train(plrank_lightgbm.Objective(), 1)
    for library in native.values():
        with pytest.raises(TypeError, match=r"Objective or Metric of plrank_fast\.lightgbm"):
            library.train(BoostingObjective(), 1)


class TestCatBoost:
    """Tree by tree."""

    @staticmethod
    def pool(catboost, data=TRAIN, **options):
        return catboost.Pool(
            data.features, data.labels, group_id=np.repeat(np.arange(data.n_queries), np.diff(data.offsets)), **options
        )

    def test_leaves_are_newton_steps(self, catboost):
        """Mutants: weights not set, gradient for the step, the labels left in, ``l2_leaf_reg`` of CatBoost's own; no
        weights of queries passed to the objective."""
        start = np.random.default_rng(0).normal(size=TRAIN.n_docs).astype(np.float32).astype(np.float64)
        weights = np.where(np.arange(SIZES.size) % 2, 1.0, 3.0)
        pool = self.pool(catboost, baseline=start[:, np.newaxis], weight=np.repeat(weights, SIZES))
        objective = BoostingObjective(method="exact")
        model = plr.catboost.train(CATBOOST | {"learning_rate": 0.5}, pool, 2, objective=objective)
        scores = start.copy()
        leaves, values = model.calc_leaf_indexes(TRAIN.features), model.get_leaf_values().reshape(2, -1)
        for number in range(2):
            gradient, curvature = objective.derivatives(scores, TRAIN.labels, TRAIN.offsets, weights=weights)
            for leaf in np.unique(leaves[:, number]):
                inside = leaves[:, number] == leaf
                step = -gradient[inside].sum() / (curvature[inside].sum() + 30.0 * curvature.mean())
                assert values[number, leaf] == pytest.approx(0.5 * step, rel=1e-4, abs=1e-5)
            scores += values[number, leaves[:, number]]
        np.testing.assert_array_equal(pool.get_weight(), np.repeat(weights, SIZES))  # the caller's pool is as it was
        np.testing.assert_array_equal(np.ravel(pool.get_baseline()), start)

    def test_group_weights(self, catboost):
        """CatBoost applies them to trees, and hides them from metrics. Mutants: taken; dropped by the ranker."""
        weights = np.repeat(np.where(np.arange(SIZES.size) % 2, 1.0, 3.0), SIZES)
        with pytest.raises(ValueError, match=r"^pool must not have group_weight, .*: pass weight="):
            plr.catboost.train(CATBOOST, self.pool(catboost, group_weight=weights), 2)
        expected = plr.catboost.train(CATBOOST, self.pool(catboost, weight=weights), 3).predict(TEST.features)
        ranker = plr.catboost.Ranker(iterations=3, **CATBOOST)
        ranker.fit(TRAIN.features, TRAIN.labels, QUERY, group_weight=weights)
        np.testing.assert_array_equal(ranker.predict(TEST.features), expected)

    def test_no_team_of_threads_for_each_tree(self, catboost, monkeypatch):
        """CatBoost may wait for the end of one for ever; the model that is returned is one of its own.

        Mutants: trees of ``catboost.CatBoost``, which compute importances; ``thread_count`` not handed to the leaves.
        """
        asked, base = [], catboost.core._CatBoostBase
        leaves = base._base_calc_leaf_indexes
        monkeypatch.setattr(base, "_calc_fstr", lambda *_: pytest.fail("importances of a single tree"))
        monkeypatch.setattr(
            base, "_base_calc_leaf_indexes", lambda *given: asked.append(given[-2]) or leaves(*given)
        )  # fmt: skip
        model = plr.catboost.train(CATBOOST, self.pool(catboost), 2, eval_pool=self.pool(catboost, TEST))
        monkeypatch.undo()
        assert asked == [1] * 4
        assert type(model) is catboost.CatBoost
        assert model.get_feature_importance(thread_count=1).sum() == pytest.approx(100.0)

    def test_parameters_by_other_names(self, catboost):
        """CatBoost itself takes these names. Mutants: names not made CatBoost's own; ``iterations`` dropped, or what
        the features are divided by."""
        settings = {"learning_rate": 0.3, "depth": 3, "iterations": 5, "l2_leaf_reg": 7.0, "random_seed": 5,
                    "loss_function": BoostingObjective(cutoff=3), "verbose": 0, "thread_count": 1}  # fmt: skip
        renamed = {"eta": 0.3, "max_depth": 3, "n_estimators": 5, "reg_lambda": 7.0, "random_state": 5,
                   "objective": BoostingObjective(cutoff=3), "silent": True, "thread_count": 1}  # fmt: skip
        expected, model = (plr.catboost.train(given, self.pool(catboost)) for given in (settings, renamed))
        assert model.tree_count_ == 5
        np.testing.assert_array_equal(model.predict(TEST.features), expected.predict(TEST.features))
        coarse = plr.catboost.train(renamed | {"border_count": 1}, self.pool(catboost))
        assert max(map(len, coarse.get_borders().values())) == 1

    @pytest.mark.parametrize(
        ("parameters", "options", "error", "message"),
        [
            ({"loss_function": "YetiRank"}, {}, TypeError, "objective must be a BoostingObjective, got 'YetiRank'"),
            ({"eval_metric": "NDCG"}, {}, TypeError, "metric must be a RankingMetric, got 'NDCG'"),
            ({"boosting_type": "Ordered"}, {}, ValueError, "boosting_type must be 'Plain' where trees .*got 'Ordered'"),
            ({"od_type": "IncToDec"}, {}, ValueError, "od_type must be 'Iter'"),
            ({"model_shrink_rate": 0.1}, {}, ValueError, "model_shrink_rate cannot be used where trees are fitted one"),
            ({"n_estimators": 3}, {"num_boost_round": 3}, Exception, "only one of the parameters iterations, n_est"),
            ({"num_boost_round": 3}, {"num_boost_round": 3}, ValueError, "num_boost_round must be given once"),
            ({"od_wait": 3}, {}, ValueError, "eval_pool must be given for early_stopping_rounds"),
            ({"no_such_parameter": 3}, {}, Exception, "no_such_parameter"),
            ({"iterations": 0}, {}, ValueError, "iterations must be at least 1"),
        ],
    )
    def test_parameters_that_are_refused(self, catboost, parameters, options, error, message):
        """By name, and none is dropped without a word. Mutants: an entry missing in ``OF_MODELS``; AttributeError."""
        with pytest.raises(error, match=message):
            plr.catboost.train(CATBOOST | parameters, self.pool(catboost), **options)

    def test_printed_rounds(self, catboost, capfd):
        """The metric's, and nothing of the trees. Mutant: ``verbose`` handed on to each tree."""
        plr.catboost.train(CATBOOST | {"verbose": 2}, self.pool(catboost), 5, eval_pool=self.pool(catboost, TEST))
        lines = capfd.readouterr().out.splitlines()
        assert [line.split(":")[0] for line in lines] == ["1", "3"]
        assert all("ndcg_plrank@10" in line for line in lines)

    def test_seeds_of_trees(self, catboost, monkeypatch):
        """They follow the number of the round. Mutants: the same for all trees; rounds counted from 0."""
        seeds, tree = [], plr.catboost._Tree
        monkeypatch.setattr(plr.catboost, "_Tree", lambda s: seeds.append(s["random_seed"]) or tree(s))
        objective = BoostingObjective(first_round=3)
        plr.catboost.train(CATBOOST | {"random_seed": 5}, self.pool(catboost), 2, objective=objective)
        assert seeds == [8, 9]

    @pytest.mark.parametrize("baseline", [False, True])
    def test_resumed_rounds(self, catboost, baseline):
        """From ``init_model`` as in one go, up to rounding. Mutants: rounds from 0; the baseline twice; the metric of
        the new trees alone."""
        start = {"baseline": np.random.default_rng(0).normal(size=(TRAIN.n_docs, 1))} if baseline else {}

        def train(rounds, init_model=None):
            pool, history = self.pool(catboost, **start), {}
            return plr.catboost.train(
                CATBOOST, pool, rounds, objective=BoostingObjective(method="cmc"),
                init_model=init_model, eval_pool=pool, evals_result=history,
            ), history["ndcg_plrank@10"]  # fmt: skip

        (whole, values), (resumed, last) = train(4), train(2, train(2)[0])
        np.testing.assert_allclose(last, values[2:], atol=1e-5)
        assert resumed.tree_count_ == 4
        np.testing.assert_allclose(resumed.predict(TRAIN.features), whole.predict(TRAIN.features), atol=1e-5)

    def test_cross_validation(self, catboost):
        """Each fold is a training on the other queries. Mutants: folds of documents; the spread of all for the mean;
        an option left out."""
        pool, folds = self.pool(catboost), 3
        options = {"metric": RankingMetric(cutoff=3), "objective": BoostingObjective(cutoff=3)}
        result = plr.catboost.cv(CATBOOST, pool, 4, fold_count=folds, partition_random_seed=1, **options)
        fold_of_query = np.random.default_rng(1).permutation(TRAIN.n_queries) % folds
        histories = []
        for fold in range(folds):
            rows = (fold_of_query == fold)[QUERY]
            history = {}
            plr.catboost.train(
                CATBOOST, pool.slice(np.flatnonzero(~rows)), 4, eval_pool=pool.slice(np.flatnonzero(rows)),
                evals_result=history, **options,
            )  # fmt: skip
            histories.append(history["ndcg_plrank@3"])
        np.testing.assert_array_equal(result["test-ndcg_plrank@3-mean"], np.mean(histories, axis=0))
        np.testing.assert_array_equal(result["test-ndcg_plrank@3-std"], np.std(histories, axis=0, ddof=1))
        with pytest.raises(ValueError, match="fold_count must be at most 60, got 61"):
            plr.catboost.cv(CATBOOST, pool, 1, fold_count=61)

    def test_ranker(self, catboost):
        """scikit-learn's manner: cloned, pickled, scored. Mutants: parameters of the trees lost; a model of its own."""
        base = pytest.importorskip("sklearn.base")
        expected = plr.catboost.train(CATBOOST, self.pool(catboost), 5).predict(TEST.features)
        ranker = plr.catboost.Ranker(loss_function=BoostingObjective(), iterations=5, **CATBOOST)
        for estimator in (ranker, base.clone(ranker), pickle.loads(pickle.dumps(ranker))):
            fitted = estimator.fit(TRAIN.features, TRAIN.labels, group_id=QUERY)
            assert fitted is estimator
            np.testing.assert_array_equal(fitted.predict(TEST.features), expected)
            assert fitted.get_params().keys() == ranker.get_params().keys()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(ranker)).predict(TEST.features), expected)
        assert 0.0 < ranker.score(self.pool(catboost, TEST)) < 1.0
        start = {"baseline": -3.0 * TRAIN.labels[:, np.newaxis]}
        other = base.clone(ranker).fit(TRAIN.features, TRAIN.labels, group_id=QUERY, **start).predict(TEST.features)
        expected = plr.catboost.train(CATBOOST, self.pool(catboost, **start), 5).predict(TEST.features)
        np.testing.assert_array_equal(other, expected)
        more = base.clone(ranker).fit(self.pool(catboost), init_model=ranker)
        assert more.tree_count_ == 10

    @pytest.mark.parametrize("values", [2, 3, 40])
    def test_categories(self, catboost, values, calls):
        """The scores of training are the model's. Mutants: leaves of the pool that is trained on; of the other.

        CatBoost fails to find leaves by a category of two values in a quantised pool.
        """
        category = (
            np.minimum(TRAIN.labels, 1) + 2 * (np.arange(TRAIN.n_docs) % (values // 2))
            if values > 3
            else (np.minimum(TRAIN.labels, values - 1))
        )
        rows = [[*row, f"c{int(of)}"] for row, of in zip(TRAIN.features.tolist(), category, strict=True)]
        pool = catboost.Pool(rows, TRAIN.labels, group_id=QUERY, cat_features=[12])
        plr.catboost.train(CATBOOST, pool, 4)
        three = plr.catboost.train(CATBOOST, pool, 3)
        np.testing.assert_allclose(three.predict(pool), calls[3][0], rtol=0, atol=1e-12)
        ranker = plr.catboost.Ranker(cat_features=[12], iterations=3, **CATBOOST).fit(rows, TRAIN.labels, QUERY)
        np.testing.assert_array_equal(ranker.predict(rows), three.predict(pool))

    def test_ranker_knows_its_training(self, catboost, capfd):
        """It has ``CatBoostRanker``'s attributes. Mutants: CatBoost's own score; no history; tuples without groups."""
        ranker = plr.catboost.Ranker(iterations=30, **CATBOOST | {"learning_rate": 0.5})
        evaluation = TEST.features, TEST.labels, np.repeat(np.arange(TEST_SIZES.size), TEST_SIZES)
        ranker.fit(TRAIN.features, TRAIN.labels, QUERY, eval_set=evaluation, early_stopping_rounds=4, verbose=2)
        assert "1:\tndcg_plrank@10" in capfd.readouterr().out
        for fitted in (ranker, pickle.loads(pickle.dumps(ranker))):
            values = fitted.evals_result_["validation"]["ndcg_plrank@10"]
            assert fitted.best_iteration_ == np.argmax(values) == fitted.tree_count_ - 1 == len(values) - 5
            assert fitted.best_score_ == {"validation": {"ndcg_plrank@10": max(values)}}
            assert fitted.n_features_in_ == 12
            assert fitted.score(*evaluation) == pytest.approx(max(values), abs=1e-9)
            assert fitted.score(*evaluation) == pytest.approx(mean_ndcg(fitted.predict(TEST.features)), abs=1e-12)
            assert "_history" not in fitted.get_params()
        alone = plr.catboost.Ranker(iterations=2, **CATBOOST).fit(TRAIN.features, TRAIN.labels, QUERY)
        assert (alone.best_iteration_, alone.best_score_, alone.evals_result_) == (None, {}, {})
        assert not hasattr(plr.catboost.Ranker(), "n_features_in_")
        with pytest.raises(TypeError, match=r"eval_set must be a catboost.Pool or \(X, y, group_id\), got tuple of 2"):
            ranker.fit(TRAIN.features, TRAIN.labels, QUERY, eval_set=evaluation[:2])

    def test_early_stopping(self, catboost):
        """Mutants: the last trees kept, or not where they are asked for; a metric without the weights of queries; an
        earlier training's left in the history; of equals the last."""
        weights, history = np.arange(1.0, TEST_SIZES.size + 1), {"ndcg_plrank@10": [2.0]}

        def train(**parameters):
            return plr.catboost.train(
                CATBOOST | {"learning_rate": 0.5, **parameters}, self.pool(catboost), 100, early_stopping_rounds=4,
                eval_pool=self.pool(catboost, TEST, weight=np.repeat(weights, TEST_SIZES)), evals_result=history,
            )  # fmt: skip

        model, values = train(), history["ndcg_plrank@10"]
        assert model.tree_count_ == np.argmax(values) + 1 == len(values) - 4
        expected = RankingMetric().evaluate(model.predict(TEST.features), TEST.labels, TEST.offsets, weights=weights)
        assert expected == pytest.approx(max(values), abs=1e-9)
        assert train(use_best_model=False).tree_count_ == len(values)
        assert (
            train(eval_metric=RankingMetric(metric="success", cutoff=TEST.n_docs)).tree_count_ == 1
        )  # always the same

    def test_without_groups(self, catboost):
        with pytest.raises(ValueError, match=r"no groups.*group_id="):
            plr.catboost.train({}, catboost.Pool(TRAIN.features, TRAIN.labels), 1)
