"""Spark: the tasks of a barrier stage grow the trees of one process, on two workers of this machine.

Features have fewer values than XGBoost has bins: it merges sketches of the workers' values otherwise, and cuts
elsewhere by what each worker holds.
"""

import os
import shutil
import sys

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; `make test-all` installs it")
pytest.importorskip("pyarrow", reason="pyarrow is not installed; `make test-all` installs it")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Spark needs Java", allow_module_level=True)

import pandas as pd
import xgboost
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import plrank_fast as plr
from plrank_fast.spark import train
from plrank_fast.xgboost import Metric, Objective

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning:pyspark"),
]
NAMES = list("abcde")
PARAMETERS = {"learning_rate": 0.3, "max_depth": 3, "base_score": 0.0}
COLUMNS = {"features": NAMES, "label": "grade", "qid": "query", "n_workers": 2}


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in here.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table():
    """Short lists of low grades, then long ones, in no order: a worker by itself would take other units."""
    rng = np.random.default_rng(0)
    lengths = np.array([12] * 30 + [150] * 10)
    query = np.repeat(np.arange(40), lengths)
    X = np.rint(10 * rng.normal(size=(query.size, 5))) / 10
    y = np.clip(np.rint(X[:, 0] + X[:, 1] ** 2 / 2 + rng.normal(size=query.size) / 2), 0, 4)
    y[query < 30] = np.minimum(y[query < 30], 2)
    table = pd.DataFrame(X, columns=NAMES)
    table["grade"], table["query"] = y, [f"q{each:02d}" for each in query]
    table["weight"], table["held_out"] = rng.uniform(0.5, 2.0, 40)[query], query % 4 == 0
    table.loc[::17, "c"] = np.nan
    return table.iloc[rng.permutation(query.size)].reset_index(drop=True)


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table.replace({np.nan: None})).coalesce(1).cache()


def alone(table, objective, rounds, weighted=False, **options):
    """XGBoost in this process; ``evals`` is another table."""
    matrices = []
    for part in (table, options.pop("evals", None)):
        if part is not None:
            part = part.sort_values("query", kind="stable")
            matrices.append(xgboost.DMatrix(part[NAMES].to_numpy(), part["grade"]))
            offsets = plr.offsets_from_qid(part["query"].to_numpy())
            matrices[-1].set_group(np.diff(offsets))
            if weighted:
                matrices[-1].set_weight(part["weight"].to_numpy()[offsets[:-1]])
    options["evals"] = [(matrix, "held_out") for matrix in matrices[1:]]
    parameters = PARAMETERS | {"nthread": 1}
    return xgboost.train(parameters, matrices[0], rounds, obj=objective, verbose_eval=False, **options)


def assert_same(found, expected, table):
    """Predictions to the rounding of float32, and the trees' splits."""
    rows = xgboost.DMatrix(table[NAMES].to_numpy())
    assert expected.predict(rows).std() > 0.05
    np.testing.assert_allclose(found.predict(rows), expected.predict(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{"method": "exact"}, {"method": "cmc"}])
def test_two_workers_grow_the_trees_of_one_process(frame, table, options):
    """Mutants: a partition at random; documents in another order; the weights left out, or of documents; ranks by
    host, which changes the streams of "cmc"; the unit of each worker."""
    found = train(frame, PARAMETERS, 8, obj=Objective(**options), weight="weight", **COLUMNS)
    assert_same(found, alone(table, Objective(**options), 8, weighted=True), table)


def test_arrays_and_held_out_queries(frame, table):
    """One column of arrays is the same as its columns, and training ends where it ends in one process.

    Mutants: held-out queries that train, too; a metric that is to fall; features in another order.
    """
    stop = {"custom_metric": Metric(), "early_stopping_rounds": 2}
    arrays = frame.withColumn("all", sql.array(*NAMES))
    columns = COLUMNS | {"features": "all", "held_out": "held_out"}
    found = train(arrays, PARAMETERS, 60, obj=Objective(), **columns, **stop)
    held_out = table["held_out"]
    expected = alone(table[~held_out], Objective(), 60, evals=table[held_out], maximize=True, **stop)
    assert found.num_boosted_rounds() == expected.num_boosted_rounds() < 60
    assert found.best_iteration == expected.best_iteration
    assert_same(found, expected, table)


def test_a_worker_without_documents(spark, table):
    """Mutant: an empty partition is read as any other."""
    one = table[table["query"] == "q39"]
    found = train(spark.createDataFrame(one.drop(columns="held_out")), PARAMETERS, 3, obj=Objective(), **COLUMNS)
    assert_same(found, alone(one, Objective(), 3), one)


def dying(how):
    """An objective of which one worker ends in the second round; a closure, since workers do not import tests."""
    rounds = []

    def objective(scores, matrix):
        rounds.append(scores)
        if len(rounds) == 2 and xgboost.collective.get_rank() == 1:
            if how == "exits":
                os._exit(1)
            raise RuntimeError("no third tree")
        return np.ones(scores.shape), np.ones(scores.shape)

    return objective


@pytest.mark.parametrize("how", ["exits", "raises"])
def test_a_worker_that_dies_ends_the_job(frame, how):
    """The other one neither hangs nor returns a model, and the error says why. Mutant: errors that are not shared."""
    with pytest.raises(Exception, match="worker 1: RuntimeError: no third" if how == "raises" else "crashed"):
        train(frame, PARAMETERS, 5, obj=dying(how), timeout=20, **COLUMNS)


def test_cut_queries_are_refused(spark, table, monkeypatch):
    """Mutant: no check."""
    rows = table.sort_values("query", kind="stable")[[*NAMES, "grade", "query"]].values.tolist()
    halves = spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), [*NAMES, "grade", "query"])
    monkeypatch.setattr(type(halves), "repartitionByRange", lambda self, n, *by: self.coalesce(n))
    with pytest.raises(Exception, match="qid must not be in two partitions, got q33 in two"):
        train(halves, PARAMETERS, 2, obj=Objective(), **COLUMNS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": None}, "qid must not be missing, got 2 rows"),
        ({"grade": None}, "label must not be missing, got 2 rows"),
        ({"weight": 9.0}, "weight must be the same for all documents of a query"),
        ({"held_out": None}, "held_out must be the same for all documents of a query"),
    ],
)
def test_faults_of_rows(spark, table, change, message):
    """Mutants: no check; nulls as a query of their own."""
    few = table[table["query"] < "q04"].astype(object).replace({np.nan: None})
    (name, value), rows = *change.items(), few[few["query"] == "q02"].index[:2]
    few.loc[rows, name] = value
    schema = (
        ", ".join(f"{each} double" for each in [*NAMES, "grade"]) + ", query string, weight double, held_out boolean"
    )
    given = spark.createDataFrame(few.values.tolist(), schema)
    columns = COLUMNS | {"weight": "weight", "held_out": "held_out", "custom_metric": Metric()}
    with pytest.raises(Exception, match=message):
        train(given, PARAMETERS, 2, obj=Objective(), **columns)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"frame": 3}, TypeError, "^frame must be a pyspark.sql.DataFrame, got int"),
        ({"parameters": []}, TypeError, "^parameters must be a dict, got list"),
        ({"obj": "rank:ndcg"}, TypeError, "^obj must be a function.*got str"),
        ({"label": "rank"}, ValueError, "^label must name a column of frame, got 'rank'"),
        ({"features": ["a", 3]}, ValueError, r"^features\[1\] must name a column of frame, got 3"),
        ({"features": []}, ValueError, "^features must name one column or more"),
        ({"features": "query"}, ValueError, "^features must be a column of numbers, got 'query' of string: cast"),
        ({"n_workers": 0}, ValueError, "^n_workers must be at least 1, got 0"),
        ({"custom_metric": Metric()}, ValueError, "custom_metric"),
        ({"early_stopping_rounds": 2}, ValueError, "early_stopping_rounds"),
    ],
)
def test_wrong_arguments(frame, change, error, message):
    given = COLUMNS | {"frame": frame, "parameters": {}, "obj": Objective()} | change
    with pytest.raises(error, match=message):
        train(**given)
