"""Dask: partitions hold whole queries, and two workers grow the same trees as one process.

The workers are threads of this process, which saves the seconds that processes take to start.
"""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dask.dataframe", reason="dask is not installed; `make test-all` installs it")
pytest.importorskip("distributed", reason="distributed is not installed; `make test-all` installs it")

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd

from plrank_fast.dask import group_sizes, query_numbers, whole_queries

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 8


def cut(values, sizes):
    """A Dask array in partitions of these sizes."""
    return da.from_array(values, chunks=(tuple(sizes), *((size,) for size in values.shape[1:])))


def frame(values, sizes):
    """A data frame or series in such partitions; Dask knows nothing of them."""
    ends = np.cumsum([0, *sizes])
    return dd.from_delayed([dask.delayed(values.iloc[a:b]) for a, b in pairwise(ends)], meta=values)


# --- partitions

IDENTIFIERS = np.array([4, 4, 4, 1, 1, 9, 9, 9, 9, 9, 9, 2, 7, 7])  # queries of 3, 2, 6, 1 and 2 documents
WHOLE, HALVES = cut(IDENTIFIERS, (14,)), cut(IDENTIFIERS, (4, 10))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((3, 2, 6, 3), (3, 2, 6, 3)),  # nothing to do
        ((4, 10), (5, 9)),
        ((6, 2, 2, 4), (11, 3)),  # a query over four partitions, of which two hold nothing else
        ((5, 0, 6, 3), (5, 6, 3)),
        ((0, 4, 10, 0), (5, 9)),
        ((1,) * 14, (3, 2, 6, 1, 2)),
    ],
)
@pytest.mark.parametrize("kind", ["array", "unknown", "frame"])
def test_no_query_is_split(sizes, expected, kind):
    """Rows stay in order and together. Mutants: the end moved back to where the query begins; empty partitions
    kept."""
    rows = np.arange(14)
    features = np.column_stack([rows, -rows])
    if kind == "frame":
        qid, X, y = frame(pd.Series(IDENTIFIERS), sizes), frame(pd.DataFrame(features), sizes), cut(rows, sizes)
    else:
        qid, X, y = cut(IDENTIFIERS, sizes), cut(features, sizes), cut(rows, sizes)
        if kind == "unknown":
            qid, X = (each.map_blocks(np.copy, dtype=each.dtype) for each in (qid, X))
            qid._chunks, X._chunks = ((np.nan,) * len(sizes),), ((np.nan,) * len(sizes), (2,))
    results = whole_queries(qid, X, y)
    for result, values in zip(results, (IDENTIFIERS, features, rows), strict=True):
        assert np.array_equal(np.asarray(result.compute()), values)
        found = [len(part) for part in dask.compute(*np.ravel(result.to_delayed()))]
        assert tuple(size for size in found if size) == expected
    if tuple(size for size in sizes if size) == expected:
        assert all(result is given for result, given in zip(results, (qid, X, y), strict=True))
    else:
        assert results[2].chunks == (expected,)
        with pytest.raises(ValueError, match=r"^qid has a query that is split between partitions \d and \d: call"):
            group_sizes(qid)
    sizes_of_queries = group_sizes(results[0])
    assert np.array_equal(sizes_of_queries.compute(), [3, 2, 6, 1, 2])
    assert sizes_of_queries.npartitions == results[0].npartitions
    of_partitions = dask.compute(*sizes_of_queries.to_delayed())
    assert tuple(part.sum() for part in of_partitions if part.size) == expected
    numbers = query_numbers(results[0])
    assert np.array_equal(numbers.compute(), np.repeat(np.arange(5), [3, 2, 6, 1, 2]))
    assert [part.size for part in dask.compute(*numbers.to_delayed())] == [
        len(part) for part in dask.compute(*np.ravel(results[0].to_delayed()))
    ]


@pytest.mark.parametrize(
    ("qid", "others", "error", "message"),
    [
        (np.arange(3), (), TypeError, "^qid must be a Dask array, data frame or series, got ndarray"),
        (WHOLE, ([1, 2],), TypeError, r"^collections\[0\] must be a Dask .* got list"),
        (HALVES, (WHOLE,), ValueError, r"^collections\[0\] .* got 1 of them"),
        (HALVES, (HALVES, cut(IDENTIFIERS, (5, 9))), ValueError,
         r"^collections\[1\] must have the rows of qid in each partition, got 5 at index 0"),
        (cut(np.array([1.0, np.nan, np.nan]), (2, 1)), (), ValueError, "^qid must not be missing, got nan"),
        (cut(np.array([1, 2, 1]), (2, 1)), (), ValueError, "^qid must keep each query's documents together"),
        (HALVES, (da.zeros((14, 4), chunks=((4, 10), 2)),), ValueError,
         r"^collections\[0\] must be partitioned by rows only, got \(2,\) parts by columns"),
    ],
)  # fmt: skip
def test_wrong_collections(qid, others, error, message):
    with pytest.raises(error, match=message):
        whole_queries(qid, *others)


@pytest.mark.parametrize("sizes", [(5, 9), (4, 10)])
def test_sparse_arrays_become_matrices(sizes):
    """Neither library concatenates the arrays. Mutants: only arrays of queries that are moved; dense ones."""
    sparse = pytest.importorskip("scipy.sparse")
    rows = np.eye(14)
    X = cut(rows, sizes).map_blocks(sparse.csr_array, meta=sparse.csr_array((0, 0)))
    _, X = whole_queries(cut(IDENTIFIERS, sizes), X)
    parts = dask.compute(*np.ravel(X.to_delayed()))
    assert [type(part) for part in parts] == 2 * [sparse.csr_matrix]
    assert np.array_equal(sparse.vstack(parts).toarray(), rows)


# --- training on two workers


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def problem():
    """Short lists of low grades, then long ones: a worker by itself would take other units, and another cutoff."""
    rng = np.random.default_rng(0)
    lengths = np.array([12] * 30 + [150] * 10)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = rng.normal(size=(offsets[-1], 5))
    y = np.clip(np.rint(X[:, 0] + X[:, 1] ** 2 / 2 + rng.normal(size=offsets[-1]) / 2), 0, 4)
    y[: offsets[30]] = np.minimum(y[: offsets[30]], 2)
    return X, y, np.repeat(np.arange(lengths.size), lengths), offsets


@pytest.fixture(scope="module")
def partitions(problem, client):
    """Identifiers, features and labels in two partitions, one on each worker; the end of the first was moved."""
    X, y, qid, offsets = problem
    sizes = (355, offsets[-1] - 355)  # the end is within the last of the short lists
    workers = client.scheduler_info()["workers"]
    placed = []
    for collection in whole_queries(*(cut(values, sizes) for values in (qid, X, y))):
        parts = dask.compute(*np.ravel(collection.to_delayed()), scheduler="synchronous")
        held = [client.scatter(part, workers=[worker]) for part, worker in zip(parts, workers, strict=True)]
        arrays = [da.from_delayed(each, part.shape, dtype=part.dtype) for each, part in zip(held, parts, strict=True)]
        placed.append(client.persist(da.concatenate(arrays)))
        distributed.wait(placed)
    return placed


@pytest.mark.parametrize("options", [{}, {"metric": "dcg"}, {"curvature": "hessian", "cutoff": 5}, {"method": "cmc"}])
def test_xgboost_on_two_workers(client, problem, partitions, options):
    """The model of one process, to the rounding of float32; and the metric.

    Mutants: the unit of each worker by itself; the largest gain likewise; XGBoost's mean
    of the workers' metrics; random streams of each worker that begin with its first query, or are apart by worker.
    """
    xgboost = pytest.importorskip("xgboost")
    import xgboost.dask as dask_xgboost

    from plrank_fast.xgboost import Metric, Objective

    X, y, qid, _ = problem
    parameters = {"learning_rate": 0.3, "base_score": 0.0, "max_depth": 3, "nthread": 1}
    objective = Objective(**{"method": "exact"} | options)
    whole = xgboost.DMatrix(X, y, qid=qid)
    history = {}
    alone = xgboost.train(
        parameters, whole, ROUNDS, obj=objective, custom_metric=Metric(), evals=[(whole, "train")],
        evals_result=history, verbose_eval=False,
    )  # fmt: skip
    identifiers, features, labels = partitions
    far_apart = identifiers.astype(np.int64) * 2**32  # which XGBoost takes for one query
    matrix = dask_xgboost.DaskDMatrix(client, features, labels, qid=query_numbers(far_apart))
    assert len(matrix.worker_map) == 2
    both = dask_xgboost.train(
        client, parameters, matrix, ROUNDS, obj=objective, custom_metric=Metric(), evals=[(matrix, "train")],
        verbose_eval=False,
    )  # fmt: skip
    expected = alone.predict(whole)
    assert expected.std() > 0.05
    np.testing.assert_allclose(both["booster"].predict(whole), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        both["history"]["train"]["ndcg_plrank@10"], history["train"]["ndcg_plrank@10"], rtol=1e-6
    )


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored:UserWarning")
@pytest.mark.parametrize(("method", "chosen"), [("auto", "exact"), ("cmc", "cmc")])
def test_lightgbm_workers_choose_alike(client, partitions, method, chosen, monkeypatch):
    """One worker has short lists, the other long ones. Mutants: the choice by a worker's own lists; streams from 0."""
    lightgbm = pytest.importorskip("lightgbm")
    from plrank_fast.lightgbm import Objective

    seen, prepared = [], Objective._prepared
    monkeypatch.setattr(Objective, "_prepared", lambda *given: seen.append(prepared(*given)) or seen[-1])
    ranker = lightgbm.DaskLGBMRanker(
        objective=Objective(method=method), client=client, tree_learner="data", n_estimators=2, reg_lambda=1.0,
        metric="None", verbosity=-1,
    )  # fmt: skip
    identifiers, features, labels = partitions
    ranker.fit(features, labels, group=group_sizes(identifiers))
    assert [data.method for data in seen] == [chosen] * 2
    assert len({data.first_query for data in seen}) == (2 if method == "cmc" else 1)


# --- documents


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored:UserWarning")
def test_documented_blocks_run():
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    text = (ROOT / "docs" / "scaling.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    exec(compile(block, "docs/scaling.md", "exec"), {})
