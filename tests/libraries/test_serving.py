"""Trained trees in what serves and explains them: ONNX, treelite, SHAP, and the text that search engines read."""

import json

import numpy as np
import pytest

from plrank_fast import boosting
from plrank_fast import xgboost as plrank_xgboost

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
plrank_lightgbm = pytest.importorskip("plrank_fast.lightgbm", exc_type=ImportError)

N_FEATURES, CATEGORY = 6, 2


def queries(seed=0):
    """Features in float32, a tenth of them missing, one a category of 70 values; grades; sizes of queries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(800, N_FEATURES)).astype(np.float32)
    X[:, CATEGORY] = rng.integers(70, size=800)
    worth = X[:, 0] + X[:, 1] ** 2 + X[:, CATEGORY] % 3 + rng.normal(size=800)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.clip(np.rint(worth), 0, 4), [20] * 40


def trained(library, categorical=True, rounds=60, **parameters):
    """A booster that early stopping has ended, or all its rounds, and the scores of its best one."""
    (X, labels, groups), (vali_X, vali_labels, vali_groups) = queries(), queries(1)
    if library == "lightgbm":
        train = lightgbm.Dataset(X, labels, group=groups, categorical_feature=[CATEGORY] if categorical else [])
        booster = lightgbm.train(
            {"objective": plrank_lightgbm.Objective(), "lambda_l2": 1.0, "metric": "None", "verbosity": -1,
             "num_threads": 1, **parameters},
            train, rounds, valid_sets=[train.create_valid(vali_X, vali_labels, group=vali_groups)],
            feval=plrank_lightgbm.Metric(), callbacks=[lightgbm.early_stopping(5, verbose=False)],
        )  # fmt: skip
        assert rounds > booster.best_iteration > 2
        return booster, booster.predict(X)
    kinds = ["c" if categorical and i == CATEGORY else "q" for i in range(N_FEATURES)]
    names = {"feature_types": kinds, "feature_names": list("abcdef"), "enable_categorical": True}
    matrices = [xgboost.DMatrix(X, labels, **names), xgboost.DMatrix(vali_X, vali_labels, **names)]
    matrices[0].set_group(groups)
    matrices[1].set_group(vali_groups)
    booster = xgboost.train(
        {"learning_rate": 0.3, "nthread": 1, **parameters}, matrices[0], rounds, obj=plrank_xgboost.Objective(),
        custom_metric=plrank_xgboost.Metric(), evals=[(matrices[1], "vali")], early_stopping_rounds=5,
        verbose_eval=False,
    )  # fmt: skip
    assert booster.num_boosted_rounds() > booster.best_iteration + 1 > 2
    return booster, booster.predict(matrices[0], iteration_range=(0, booster.best_iteration + 1))


def by_onnx(model, X):
    onnxmltools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    session = pytest.importorskip("onnxruntime").InferenceSession
    types = pytest.importorskip("onnxmltools.convert.common.data_types")
    convert = onnxmltools.convert_xgboost if isinstance(model, xgboost.Booster) else onnxmltools.convert_lightgbm
    graph = convert(model, initial_types=[("x", types.FloatTensorType([None, N_FEATURES]))])
    return session(graph.SerializeToString()).run(None, {"x": X})[0]


def by_treelite(model, X):
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    read = treelite.frontend.from_xgboost if isinstance(model, xgboost.Booster) else treelite.frontend.from_lightgbm
    return treelite.gtil.predict(read(model), X)


def by_shap(model, X):
    explainer = pytest.importorskip("shap", reason="shap is not installed").TreeExplainer(model)
    return np.sum(explainer.shap_values(X), axis=1) + explainer.expected_value


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("serve", [by_onnx, by_treelite, by_shap])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_scores_are_equal(library, serve):
    """Values are missing, a feature is a category, and early stopping has ended the training.

    Mutants: either name of LightGBM's objective as it was (ONNX refuses); XGBoost with all its trees, with names of
    features (ONNX refuses) or with the name rank:ndcg (ONNX gives classes of 0).
    """
    booster, expected = trained(library)
    before = booster.save_raw() if library == "xgboost" else booster.model_to_string()
    X = queries()[0]
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(np.ravel(serve(boosting.portable(booster), X)), expected, rtol=1e-5, atol=2e-6)
    assert before == (booster.save_raw() if library == "xgboost" else booster.model_to_string())


def test_a_renamed_lightgbm_model_is_a_ranker():
    """Both names change, a feature of such a name does not, and its copy is the same. Mutant: the first name only."""
    booster, expected = trained("lightgbm", categorical=False)
    model = boosting.portable(booster)
    text = model.model_to_string()
    assert text.count("\nobjective=lambdarank\n") == text.count("\n[objective: lambdarank]\n") == 1
    assert np.array_equal(model.predict(queries()[0]), expected)
    assert boosting.portable(model).model_to_string() == text


def test_text_for_search_engines(tmp_path):
    """XGBoost reads it as its own ranker, of as many trees. Mutants: types left out; the name that XGBoost gives."""
    booster, expected = trained("xgboost", categorical=False)
    text = boosting.portable(booster, "json")
    learner = json.loads(text)["learner"]
    assert learner["objective"]["name"] == "rank:ndcg"
    assert learner["feature_names"] == list("abcdef")
    assert learner["feature_types"] == ["float"] * N_FEATURES
    (tmp_path / "model.json").write_text(text)
    read = xgboost.Booster(model_file=tmp_path / "model.json")
    matrix = xgboost.DMatrix(queries()[0], feature_names=list("abcdef"), feature_types=["float"] * N_FEATURES)
    np.testing.assert_array_equal(read.predict(matrix), expected)


@pytest.mark.parametrize(
    ("booster", "form", "error", "message"),
    [
        (lambda: "model.txt", "booster", TypeError, "^booster must be a Booster of LightGBM or XGBoost .* got str"),
        (lambda: None, "onnx", ValueError, "^form must be"),
        (lambda: trained("lightgbm")[0], "json", ValueError, "^form must be 'booster' for a model of LightGBM"),
        (lambda: trained("xgboost")[0], "json", ValueError, r"^booster must have no categorical features .* \[2\]"),
        (lambda: trained("lightgbm", False, linear_tree=True)[0], "booster", ValueError, "^booster .* linear"),
        (lambda: lightgbm.train({"objective": "binary", "verbosity": -1}, lightgbm.Dataset(np.eye(2), [0, 1]), 1),
         "booster", ValueError, "^booster must be trained with an objective of plrank_fast, .* got 'binary sigmoid:1'"),
        (lambda: xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(np.eye(2), [0, 1]), 1),
         "booster", ValueError, "^booster must be trained .* got 'binary:logistic'"),
    ],
)  # fmt: skip
def test_wrong_models(booster, form, error, message):
    """Mutants: any objective renamed, whose scores are then not those of the model."""
    with pytest.raises(error, match=message):
        boosting.portable(booster(), form)
