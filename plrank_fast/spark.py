"""XGBoost on Spark with an objective of this library: the tasks of a barrier stage train on whole queries.

``xgboost.spark.SparkXGBRanker`` takes the name of an objective alone; `train` takes a function::

    booster = train(
        frame, {"learning_rate": 0.1}, 100, obj=plrank_fast.xgboost.Objective(), n_workers=4,
        features=["bm25", "clicks"], label="grade", qid="query",
    )

Spark moves all documents of a query to one task, and queries to tasks in the order of ``qid``. XGBoost's workers
exchange sums: the trees are those of ``xgboost.train`` on the same documents in this order, up to rounding, and to the
values at which XGBoost cuts features that have more values than bins.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.offsets import offsets_from_qid

__all__ = ["train"]


def __dir__() -> list[str]:
    return __all__


EXTRA = "spark"
SAME = {"weight", "held_out"}  # columns of queries
ROW = "__row"  # the document's place in the frame


@validation.hinted
def train(
    frame: Any,
    parameters: dict[str, Any],
    num_boost_round: int = 10,
    *,
    obj: Callable[..., Any],
    features: str | Sequence[str],
    label: str,
    qid: str,
    n_workers: int,
    weight: str | None = None,
    held_out: str | None = None,
    custom_metric: Callable[..., Any] | None = None,
    early_stopping_rounds: int | None = None,
    timeout: int = 300,
) -> Any:
    """Train XGBoost on a Spark data frame, as one process would by ``xgboost.train``.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A row for each document, in any order and partitions.
    parameters : dict
        Parameters of XGBoost.
    num_boost_round : int
        Number of trees.
    obj : callable
        The objective, such as ``plrank_fast.xgboost.Objective()``; it is copied to the workers, which must have this
        library installed.
    features : str or sequence of str
        Columns of numbers; or a column of arrays of them, or of ``pyspark.ml`` vectors. Null is a missing value.
    label : str
        Column of grades.
    qid : str
        Column of query identifiers, of any type that Spark sorts.
    n_workers : int
        Number of tasks, all of which run at once: Spark waits for as many free slots.
    weight : str, optional
        Column of the query's weight, the same for all of its documents.
    held_out : str, optional
        Boolean column, the same for all documents of a query: true for queries that evaluate and do not train.
    custom_metric : callable, optional
        The metric of the queries ``held_out``, such as ``plrank_fast.xgboost.Metric()``.
    early_stopping_rounds : int, optional
        End the training where so many trees have not raised the metric; the booster has a ``best_iteration``.
    timeout : int
        Seconds after which a worker gives up on another one that does not answer.

    Returns
    -------
    xgboost.Booster

    Raises
    ------
    Exception
        Spark's own, a ``PythonException`` or ``Py4JJavaError``:
        with the text of the error of a task: a missing query or label, a weight that differs within a query, a worker
        that died. No model is returned in part.

    Notes
    -----
    A task holds its documents in memory, as float32, and takes as many threads as ``spark.task.cpus``. Documents of a
    query keep their order in the frame, so that sampled methods too depend on it alone, where it has one.
    """
    names = _columns(frame, {"label": label, "qid": qid, "weight": weight, "held_out": held_out})
    listed = [features] if isinstance(features, str) else list(features)
    validation.require(len(listed) > 0, "features must name one column or more, got none")
    listed = list(_columns(frame, {f"features[{i}]": name for i, name in enumerate(listed)}).values())
    validation.of_type(isinstance(parameters, dict), "parameters", "a dict", type(parameters).__name__)
    validation.of_type(callable(obj), "obj", "a function, such as an Objective", type(obj).__name__)
    validation.goes_with(custom_metric, "custom_metric", held_out is not None, "held_out")
    validation.goes_with(early_stopping_rounds, "early_stopping_rounds", custom_metric is not None, "custom_metric")
    options: dict[str, Any] = {"num_boost_round": validation.count(num_boost_round, "num_boost_round", 1), "obj": obj}
    if custom_metric is not None:
        options["custom_metric"] = custom_metric
    if early_stopping_rounds is not None:
        options["early_stopping_rounds"] = validation.count(early_stopping_rounds, "early_stopping_rounds", 1)
        options["maximize"] = True
    sql = import_extra("pyspark.sql.functions", EXTRA)
    chosen = [sql.col(f"`{of}`").alias(name) for name, of in names.items() if name == "qid"]
    chosen += [_numbers(frame, of, name, "double").alias(name) for name, of in names.items() if name != "qid"]
    chosen += [_numbers(frame, name, "features", "float").alias(f"feature {i}") for i, name in enumerate(listed)]
    placed = frame.select(*chosen, sql.monotonically_increasing_id().alias(ROW))
    n_workers = validation.count(n_workers, "n_workers", 1)
    placed = placed.repartitionByRange(n_workers, "qid").sortWithinPartitions("qid", ROW).drop(ROW)
    stage = _Stage(dict(parameters), options, validation.count(timeout, "timeout", 1))
    (model,) = placed.mapInArrow(stage, "model binary", barrier=True).collect()
    return import_extra("xgboost", "xgboost").Booster(model_file=bytearray(model[0]))


def _columns(frame: Any, wanted: dict[str, Any]) -> dict[str, str]:
    """Return the names of the columns that are given, which the frame must have."""
    validation.of_type(hasattr(frame, "mapInArrow"), "frame", "a pyspark.sql.DataFrame", type(frame).__name__)
    for argument, name in wanted.items():
        if name is not None:
            known = isinstance(name, str) and name in frame.columns
            validation.require(known, f"{argument} must name a column of frame, got {validation.shown(name)}")
    return {argument: name for argument, name in wanted.items() if name is not None}


def _numbers(frame: Any, name: str, argument: str, precision: str) -> Any:
    """Return a column of numbers, or of arrays of them for features, in this precision."""
    sql, types = (import_extra(f"pyspark.sql.{module}", EXTRA) for module in ("functions", "types"))
    kind, column = frame.schema[name].dataType, sql.col(f"`{name}`")
    if argument == "features" and type(kind).__name__ == "VectorUDT":
        return import_extra("pyspark.ml.functions", EXTRA).vector_to_array(column, "float32")
    inner = kind.elementType if argument == "features" and isinstance(kind, types.ArrayType) else kind
    got = f"must be a column of numbers, got {name!r} of {kind.simpleString()}: cast or encode it"
    validation.require(isinstance(inner, (types.NumericType, types.BooleanType)), f"{argument} {got}")
    return column.cast(precision if inner is kind else f"array<{precision}>")


@dataclass
class _Stage:
    """The work of each task: it trains on the batches of its partition, together with the others."""

    parameters: dict[str, Any]
    options: dict[str, Any]
    timeout: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Train, and yield the model from the first task."""
        arrow, xgboost = import_extra("pyarrow", EXTRA), import_extra("xgboost", "xgboost")
        collective = import_extra("xgboost.collective", "xgboost")
        context = import_extra("pyspark", EXTRA).BarrierTaskContext.get()
        documents = _Documents(list(batches))
        rank, tasks = context.partitionId(), context.getTaskInfos()
        tracker, arguments = None, {}
        if rank == 0:
            host = socket.gethostbyname(tasks[0].address.rpartition(":")[0] or tasks[0].address)
            tracker = import_extra("xgboost.tracker", "xgboost").RabitTracker(
                n_workers=len(tasks), host_ip=host, sortby="task", timeout=self.timeout
            )
            tracker.start()
            arguments = tracker.worker_args()
        shared = [json.loads(each) for each in context.allGather(json.dumps([arguments, documents.ends]))]
        _require_whole([ends for _, ends in shared])
        arguments = shared[0][0] | {"dmlc_task_id": f"{rank:08d}", "dmlc_timeout": self.timeout}
        failure = ""
        try:
            with collective.CommunicatorContext(**arguments):
                matrix = documents.matrix(held_out=False)
                evaluated = [(documents.matrix(held_out=True), "held_out")] if "custom_metric" in self.options else []
                parameters = {"nthread": context.cpus()} | self.parameters
                booster = xgboost.train(parameters, matrix, evals=evaluated, verbose_eval=False, **self.options)
        except Exception as error:  # the others fail, too, for want of this worker
            first: BaseException = error
            while first.__context__ is not None:  # the end of the communication may fail after it
                first = first.__context__
            failure = f"worker {rank}: {type(first).__name__}: {first}"
        failures = "\n".join(filter(None, context.allGather(failure)))
        validation.require(not failures, failures, RuntimeError)
        if tracker is not None:
            tracker.wait_for(self.timeout)
            yield arrow.RecordBatch.from_pydict({"model": [bytes(booster.save_raw("ubj"))]})


def _require_whole(ends: list[list[str]]) -> None:
    """Require that no query is in two partitions, by the first and last query of each."""
    cut = [before[-1] for before, after in pairwise(filter(None, ends)) if before[-1] == after[0]]
    validation.require(not cut, f"qid must not be in two partitions, got {', '.join(cut[:1])} in two")


class _Documents:
    """The documents of a partition, sorted by query."""

    def __init__(self, batches: list[Any]) -> None:
        table = import_extra("pyarrow", EXTRA).Table.from_batches(batches) if batches else None
        self.label, self.sizes, self.ends = np.zeros(0), np.zeros(0, dtype=np.int64), []
        self.features, self.of_queries = np.zeros((0, 1), dtype=np.float32), {}
        if table is None or table.num_rows == 0:
            return
        for name in ("qid", "label"):
            missing = table[name].null_count
            validation.require(missing == 0, f"{name} must not be missing, got {missing} rows of a partition without")
        qid, self.label = table["qid"].to_numpy(), table["label"].to_numpy()
        self.ends = [str(qid[0]), str(qid[-1])]
        offsets = np.asarray(offsets_from_qid(qid))
        self.sizes = np.diff(offsets)
        for name in SAME & set(table.column_names):
            values = table[name].to_numpy()
            same = np.repeat(values[offsets[:-1]], self.sizes) == values
            validation.each(same, values, name, "be the same for all documents of a query, and not missing")
            self.of_queries[name] = values[offsets[:-1]]
        columns = [table[name].combine_chunks() for name in table.column_names if name.startswith("feature ")]
        parts = [_as_array(column) for column in columns]
        self.features = np.concatenate([part.reshape(table.num_rows, -1) for part in parts], axis=1)

    def matrix(self, held_out: bool) -> Any:
        """Return the documents of the queries that train, or of those that are held out."""
        queries = self.of_queries.get("held_out", np.zeros(self.sizes.size)) == held_out
        rows = slice(None) if queries.all() else np.repeat(queries, self.sizes)
        matrix = import_extra("xgboost", "xgboost").DMatrix(self.features[rows], self.label[rows])
        matrix.set_group(self.sizes[queries])
        if "weight" in self.of_queries:
            matrix.set_weight(self.of_queries["weight"][queries])
        return matrix


def _as_array(column: Any) -> NDArray[np.float32]:
    """Return a column of numbers, or of arrays of as many numbers each, in the order of its rows."""
    if not hasattr(column, "flatten") or not hasattr(column, "value_lengths"):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float32)
    lengths = column.value_lengths()
    fits = lengths.null_count == 0 and len(lengths.unique()) == 1
    validation.require(fits, "features must be arrays of one length in all rows, and not missing")
    return np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
