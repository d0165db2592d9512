"""Other libraries return the numbers on the page, and the calls that the page names return them too."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "other_libraries.md").read_text()
TABLES = [
    [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.M)
]
COLUMNS = TABLES[0][0][1:]
ROWS = {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in TABLES[0][2:]}


def problem(text):
    """Metric, cutoff, grades and scores of a row."""
    metric, cutoff, grades = re.match(r"(\w+)(?:@| at )?(\d*), grades ([-\d ]+\d)", text).groups()
    grades = np.array(grades.split(), dtype=int)
    scores = np.zeros(len(grades)) if "equal scores" in text else -np.arange(float(len(grades)))
    return metric, int(cutoff or 0), grades, scores


def of_trec_eval(metric, cutoff, grades, scores):
    ir_measures = pytest.importorskip("ir_measures")
    from plrank_fast.interchange import to_qrels, to_run

    if metric == "ERR" and not shutil.which("perl"):
        pytest.skip("gdeval's program is written in Perl")
    name = {"NDCG": "nDCG", "precision": "P"}.get(metric, metric)
    measure = getattr(ir_measures, name) @ cutoff if cutoff else getattr(ir_measures, name)
    offsets = [0, len(grades)]
    return ir_measures.calc_aggregate([measure], to_qrels(grades, offsets), to_run(scores, offsets))[measure]


def of_scikit_learn(metric, cutoff, grades, scores):
    metrics = pytest.importorskip("sklearn.metrics")
    return getattr(metrics, f"{metric.lower()}_score")([grades], [scores], k=cutoff)


def of_lightgbm(metric, cutoff, grades, scores):
    lightgbm = pytest.importorskip("lightgbm")
    dataset = lightgbm.Dataset(np.zeros((len(grades), 1)), grades, group=[len(grades)], init_score=scores)
    parameters = {"objective": "lambdarank", "metric": {"AP": "map"}.get(metric, metric.lower()), "eval_at": [cutoff]}
    values = {}
    lightgbm.train(
        {**parameters, "verbosity": -1},
        dataset,
        1,  # a tree without splits
        valid_sets=[dataset],
        valid_names=["all"],
        callbacks=[lightgbm.record_evaluation(values)],
    )
    return next(iter(values["all"].values()))[0]


def of_xgboost(metric, cutoff, grades, scores):
    xgboost = pytest.importorskip("xgboost")
    matrix = xgboost.DMatrix(np.zeros((len(grades), 1)), grades)
    matrix.set_group([len(grades)])
    matrix.set_base_margin(scores)
    name = {"NDCG": "ndcg", "AP": "map", "precision": "pre"}[metric]
    booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": f"{name}@{cutoff}", "base_score": 0}, matrix, 0)
    return float(booster.eval(matrix).rpartition(":")[2])


def of_catboost(metric, cutoff, grades, scores):
    utils = pytest.importorskip("catboost.utils")
    name = {"AP": "MAP", "precision": "PrecisionAt", "RR": "MRR"}.get(metric, metric)
    name += f":top={cutoff}" if cutoff else ""
    return utils.eval_metric(grades, scores, name, group_id=np.zeros(len(grades), dtype=int))[0]


def of_plrank_fast(metric, cutoff, grades, scores):
    if metric in ("NDCG", "DCG"):
        value = getattr(plr, metric.lower())(scores, plr.gains(grades), cutoff=cutoff)
    else:
        name = {"RR": "mrr"}.get(metric, metric.lower())
        value = getattr(plr, name)(scores, grades, cutoff or None)
    return value[0]


OF = {
    "trec_eval": of_trec_eval,
    "scikit-learn": of_scikit_learn,
    "LightGBM": of_lightgbm,
    "XGBoost": of_xgboost,
    "CatBoost": of_catboost,
    "plrank_fast": of_plrank_fast,
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("library", COLUMNS)
@pytest.mark.parametrize("run", ROWS)
def test_metrics(run, library):
    """Mutants: a digit of the page; the gain or the order of ties of another library."""
    told = ROWS[run][library]
    if not told:
        pytest.skip("the library does not have this metric")
    if told == "error":
        with pytest.raises(Exception, match=r"(?i)negative|label"):
            OF[library](*problem(run))
        return
    found = f"{OF[library](*problem(run)):.3f}"
    assert found.removeprefix("0") == told


@pytest.mark.parametrize(
    ("run", "library", "call"),
    [
        ("NDCG@3, grades 0 2 3 0 1 in this order", "trec_eval", lambda s, g: plr.ndcg(s, g, cutoff=3)),
        ("NDCG@3, grades 0 3 1 2, equal scores", "scikit-learn", lambda s, g: plr.ndcg(s, g, cutoff=3, ties="average")),
        ("NDCG@3, grades 0 3 1 2, equal scores", "CatBoost", lambda s, g: plr.ndcg(s, np.sort(g), cutoff=3)),
        ("NDCG@3, grades 0 0 0", "LightGBM", lambda s, g: plr.ndcg(s, plr.gains(g), cutoff=3, empty=1.0)),
        ("NDCG@3, grades -1 2 1", "trec_eval", lambda s, g: plr.ndcg(s, np.maximum(g, 0), cutoff=3)),
        ("DCG@3, grades 0 2 3 0 1", "CatBoost", lambda s, g: plr.dcg(s, g, cutoff=3)),
        ("AP@2, grades 0 2 3 0 1", "LightGBM", lambda s, g: plr.ap(s, g, 2) * 3 / 2),
        ("precision at 5, grades 1 0 1", "XGBoost", lambda s, g: plr.precision(s, g, min(5, 3))),
        ("ERR@3, grades 0 2 3 0 1", "trec_eval", lambda s, g: plr.err(s, g, 3, max_label=4)),
    ],
)
def test_our_calls_give_their_numbers(run, library, call):
    """Mutants: without each option."""
    *_, grades, scores = problem(run)
    assert f"{call(scores, grades)[0]:.3f}".removeprefix("0") == ROWS[run][library]


def test_equal_scores_in_ir_measures():
    """Four documents are tied, of which d2 is relevant. Mutants: the order of names on the page."""
    ir_measures = pytest.importorskip("ir_measures")
    names = [f"d{number}" for number in range(4)]
    judged = {"q": {name: int(name == "d2") for name in names}}
    measures = [ir_measures.RR, ir_measures.RR @ 10, ir_measures.Compat(p=0.8)]
    values = ir_measures.calc_aggregate(measures, judged, {"q": dict.fromkeys(names, 0.0)})
    in_turn = ir_measures.calc_aggregate(measures, judged, {"q": dict(zip(names, range(4, 0, -1), strict=True))})
    assert (values[measures[0]], values[measures[1]]) == (1 / 2, 1 / 3)
    assert values[measures[2]] == in_turn[measures[2]]


def test_equal_scores_in_scikit_learn():
    """The last row comes first without averages. Mutant: ``ignore_ties`` left out."""
    dcg_score = pytest.importorskip("sklearn.metrics").dcg_score
    assert dcg_score([[1, 2, 3]], [[0, 0, 0]], k=1, ignore_ties=True) == 3
    assert dcg_score([[1, 2, 3]], [[0, 0, 0]], k=1) == 2


def test_equal_scores_in_torch():
    """Lists of 17 and more are in another order. Mutants: ``stable=True`` left out or given to all."""
    torch = pytest.importorskip("torch")
    rows, equal = torch.arange(40), torch.zeros(40)
    assert torch.equal(torch.sort(equal, descending=True, stable=True).indices, rows)
    assert not torch.equal(torch.argsort(equal, descending=True), rows)
    assert not torch.equal(torch.topk(equal, 10).indices, rows[:10])


FEATURES, GRADES = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3


def handed_over(library, options, rounds=3):
    """The scores that a Python objective sees in each round, and the sizes of the queries."""
    seen, sizes = [], []

    def objective(scores, data):
        seen.append(np.array(scores))
        sizes.append(data.get_group() if library == "lightgbm" else np.diff(data.get_uint_info("group_ptr")))
        return scores - data.get_label(), np.ones_like(scores)

    module = pytest.importorskip(library)
    if library == "lightgbm":
        dataset = module.Dataset(FEATURES, GRADES, group=[20, 20])
        parameters = {"objective": objective, "verbosity": -1, "min_data_in_leaf": 2, "metric": "None", **options}
        if options.get("cv"):
            del parameters["cv"]
            module.cv(
                parameters, dataset, rounds, nfold=3, stratified=False, feval=lambda scores, data: ("m", 0.0, True)
            )
        else:
            trained = module.train(parameters, dataset, rounds)
            seen.append(trained.predict(FEATURES))
    else:
        matrix = module.DMatrix(FEATURES, GRADES)
        matrix.set_group([20, 20])
        if options.get("cv"):
            module.cv({}, matrix, rounds, nfold=2, obj=objective, custom_metric=lambda scores, data: ("m", 0.0))
        else:
            module.train({"disable_default_eval_metric": 1, **options}, matrix, rounds, obj=objective)
    return seen, sizes


def newton_leaves(gradient, curvature, leaves, penalty):
    """Return -sum g / (sum h + penalty) of each row's leaf."""
    _, leaf = np.unique(leaves, return_inverse=True)
    return (-np.bincount(leaf, gradient) / (curvature * np.bincount(leaf) + penalty))[leaf]


def three_times(scores, data):
    """Return derivatives with curvatures of 3."""
    return scores - data.get_label(), np.full_like(scores, 3.0)


class TestObjectives:
    """The table of objectives. Mutants: a cell of another library; the penalty or the curvature left out."""

    def test_parts_weights_and_leaves_of_lightgbm(self):
        lightgbm = pytest.importorskip("lightgbm")
        places = np.tile(np.arange(20), 2)
        dataset = lightgbm.Dataset(FEATURES, GRADES, group=[20, 20], position=places, free_raw_data=False)
        part = dataset.construct().subset(list(range(30))).construct()
        np.testing.assert_array_equal(part.get_group(), [20, 10])
        assert part.get_position() is None

        def predicted(**options):
            parameters = {"objective": three_times, "verbosity": -1, "min_data_in_leaf": 2, "metric": "None"}
            parameters |= {"learning_rate": 1.0, "lambda_l2": 2.0}
            dataset = lightgbm.Dataset(FEATURES, GRADES, group=[20, 20], **options)
            return (trained := lightgbm.train(parameters, dataset, 1)), trained.predict(FEATURES)

        trained, values = predicted()
        leaves = trained.predict(FEATURES, pred_leaf=True).ravel()
        np.testing.assert_allclose(values, newton_leaves(-1.0 * GRADES, 3.0, leaves, 2.0), rtol=1e-6)
        np.testing.assert_array_equal(values, predicted(weight=np.repeat([1.0, 9.0], 20))[1])
        np.testing.assert_array_equal(values, predicted(position=places)[1])

    @pytest.mark.filterwarnings("ignore:(?s).*booster=dart")  # deprecated in 3.4
    def test_parts_weights_and_leaves_of_xgboost(self):
        xgboost = pytest.importorskip("xgboost")

        class Batches(xgboost.DataIter):
            def reset(self):
                self.rows = [slice(0, 10), slice(10, 40)]

            def next(self, take):
                if not self.rows:
                    return False
                rows = self.rows.pop(0)
                take(data=FEATURES[rows], label=GRADES[rows], qid=(np.arange(40) // 20)[rows])
                return True

        in_batches = xgboost.QuantileDMatrix(Batches())
        np.testing.assert_array_equal(in_batches.get_uint_info("group_ptr"), [0, 10, 20, 40])
        for gap in (2**32, 0.5):
            matrix = xgboost.DMatrix(FEATURES, GRADES, qid=np.repeat([0, gap], 20))
            np.testing.assert_array_equal(matrix.get_uint_info("group_ptr"), [0, 40])
        matrix = xgboost.DMatrix(FEATURES, GRADES, qid=np.arange(40) // 20)
        assert not matrix.slice(range(30), allow_groups=True).get_uint_info("group_ptr").size

        parameters = {"lambda": 2.0, "eta": 1.0, "base_score": 0.0, "disable_default_eval_metric": 1}
        values = []
        for weights in ([1.0, 1.0], [1.0, 9.0]):
            matrix.set_weight(weights)
            trained = xgboost.train(parameters, matrix, 1, obj=three_times)
            values.append(trained.predict(matrix))
        leaves = trained.predict(matrix, pred_leaf=True).ravel()
        np.testing.assert_allclose(values[0], newton_leaves(-1.0 * GRADES, 3.0, leaves, 2.0), rtol=1e-5)
        np.testing.assert_array_equal(*values)
        dropped, _ = handed_over("xgboost", {"booster": "dart", "rate_drop": 1.0, "skip_drop": 0.0})
        assert not np.ptp(dropped, axis=1).any()

    def test_lightgbm(self):
        lightgbm = pytest.importorskip("lightgbm")
        seen, sizes = handed_over("lightgbm", {})
        assert seen[0].shape == (40,)
        assert not seen[0].any()
        assert seen[1].any()
        np.testing.assert_array_equal(sizes[0], [20, 20])
        dropped, _ = handed_over("lightgbm", {"boosting": "dart", "drop_rate": 1.0, "skip_drop": 0.0})
        assert not np.any(dropped[:3])
        with pytest.raises(lightgbm.basic.LightGBMError, match="RF mode do not support custom objective"):
            handed_over("lightgbm", {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5})
        constant, _ = handed_over("lightgbm", {"bagging_by_query": True, "bagging_freq": 1, "bagging_fraction": 0.5})
        assert np.ptp(constant[-1]) == 0
        _, sizes = handed_over("lightgbm", {"cv": True})
        assert not all(set(each) == {20} for each in sizes)

    def test_lightgbm_needs_a_feature_that_can_be_split(self):
        """The first round raises otherwise (docs/boosting.md). Mutant: the parameter of the training alone."""
        lightgbm = pytest.importorskip("lightgbm")
        from plrank_fast.lightgbm import Objective

        def train(**of_dataset):
            parameters = {"objective": Objective(), "min_data_in_leaf": 5, "metric": "None", "verbosity": -1}
            dataset = lightgbm.Dataset(np.arange(40.0)[:, np.newaxis], GRADES, group=[20, 20], params=of_dataset)
            dataset.construct()
            return lightgbm.train(parameters | of_dataset, dataset, 1)

        assert train(min_data_in_leaf=5).num_trees() == 1
        with pytest.raises(lightgbm.basic.LightGBMError, match="num_features"):
            train(min_data_in_leaf=20)

    def test_xgboost(self):
        seen, sizes = handed_over("xgboost", {"num_parallel_tree": 3})
        assert len(seen) == 3
        assert seen[0].shape == (40,)
        assert (seen[0] == 0.5).all()
        np.testing.assert_array_equal(sizes[0], [20, 20])
        assert (handed_over("xgboost", {"base_score": 0.25})[0][0] == 0.25).all()
        _, sizes = handed_over("xgboost", {"cv": True})
        assert all(set(each) == {20} for each in sizes)

    @pytest.mark.filterwarnings("ignore:(?s)Failed to optimize method")  # by Numba, which is optional
    def test_catboost(self):
        catboost = pytest.importorskip("catboost")
        blocks = []

        class Objective:
            def calc_ders_range(self, scores, labels, weights):
                blocks.append((len(scores), scores[0], 1.0 if weights is None else max(weights)))
                return [(labels[row] - scores[row], -3.0) for row in range(len(scores))]

        rows, labels, query = np.random.default_rng(0).normal(size=(1500, 2)), np.arange(1500) % 3, np.arange(1500)
        pool = catboost.Pool(rows, labels, group_id=query // 750, baseline=np.full(1500, 0.25))
        pool.set_group_weight(np.where(query < 750, 1.0, 9.0))
        options = {"iterations": 1, "verbose": False, "allow_writing_files": False, "boosting_type": "Plain"}
        catboost.CatBoost({"loss_function": Objective(), "eval_metric": "RMSE", **options}).fit(pool)
        assert 0 < max(size for size, *_ in blocks) <= 1000
        assert {first for _, first, _ in blocks} == {0.25}
        assert max(heaviest for *_, heaviest in blocks) == 9.0  # derivatives do not have it
        with pytest.raises(catboost.CatBoostError, match="unsuitable"):
            catboost.Pool(rows, labels, group_id=query / 750)

        options |= {"learning_rate": 1.0, "l2_leaf_reg": 2.0}
        pool = catboost.Pool(rows, labels, group_id=query // 750)
        model = catboost.CatBoost({"loss_function": Objective(), "eval_metric": "RMSE", **options}).fit(pool)
        expected = newton_leaves(-1.0 * labels, 3.0, model.calc_leaf_indexes(pool)[:, 0], 2.0)
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-6)


class TestDraws:
    """The table of draws. Mutants: a number of the page."""

    def test_numpy(self):
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match="Fewer non-zero entries in p than size"):
            rng.choice(3, 3, p=[0.5, 0.5, 0.0], replace=False)
        first = np.array([rng.choice(3, 2, p=[0.6, 0.3, 0.1], replace=False) for _ in range(4000)])
        frequency = ((first[:, 0] == 0) & (first[:, 1] == 1)).mean()  # 0.6 * 0.3 / 0.4 = 0.45, deviation 0.008
        assert abs(frequency - 0.45) < 0.05  # more than 6 deviations

    def test_torch(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(RuntimeError, match=r"2\^24"):
            torch.multinomial(torch.ones(2**24 + 1), 1)
        assert sorted(torch.multinomial(torch.tensor([1.0, 0.0, 0.0]), 3).tolist()) == [0, 1, 2]
        generator = torch.Generator().manual_seed(0)
        rows = torch.tensor([[0.6, 0.3, 0.1]]).expand(4000, 3)
        drawn = torch.multinomial(rows, 2, generator=generator).numpy()
        assert abs(((drawn[:, 0] == 0) & (drawn[:, 1] == 1)).mean() - 0.45) < 0.05

    def test_jax(self):
        jax = pytest.importorskip("jax")
        low, high = re.search(r"(-[\d.]+) to ([\d.]+)", PAGE).groups()
        ends = dict(re.findall(r"([\d.]+) in (\w+)", PAGE[PAGE.index("JAX's noise ends") :]))
        for name in ("bfloat16", "float16"):  # 2**16 draws meet their ends
            largest = jax.random.gumbel(jax.random.key(0), (2**16,), dtype=name).max()
            assert ends.pop(f"{float(largest):.2f}") == name
        assert ends == {f"{-np.log(-np.log1p(-(2.0**-52))):.2f}": "float64"}
        noise = np.asarray(jax.random.gumbel(jax.random.key(0), (2**22,), dtype="float32"))
        single = np.finfo(np.float32)
        assert f"{-np.log(-np.log(single.tiny.astype(float))):.2f}" == low
        assert f"{-np.log(-np.log1p(-single.epsneg.astype(float) * 2)):.2f}" == high
        assert float(low) - 0.01 <= noise.min()
        assert noise.max() <= float(high) + 0.01


class TestLists:
    """The table of arrays of lists. Mutants: a row of another library."""

    def test_pandas_and_polars(self):
        pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
        columns = {"query": ["b", "b", "a"], "row": [0, 1, 2]}
        assert list(pandas.DataFrame(columns).groupby("query").first().index) == ["a", "b"]
        kept = polars.DataFrame(columns).group_by("query", maintain_order=True).first()
        assert kept["query"].to_list() == ["b", "a"]

    def test_jagged_tensors(self):
        torch = pytest.importorskip("torch")
        base = torch.arange(8.0).reshape(2, 4)
        view = torch.nested.narrow(base, 1, torch.tensor([1, 0]), torch.tensor([2, 3]), layout=torch.jagged)
        assert view.offsets()[0] != 0
        assert view.values().numel() == 8

    def test_arrow_and_awkward(self):
        arrow, awkward = pytest.importorskip("pyarrow"), pytest.importorskip("awkward")
        cut = arrow.array([[9.0], [1.0, 2.0]])[1:]
        assert (cut.offsets[0].as_py(), len(cut.values), len(cut.flatten())) == (1, 3, 2)
        cut = awkward.Array([[9.0], [1.0, 2.0]])[1:]
        assert (cut.layout.offsets[0], len(cut.layout.content)) == (1, 3)
