"""Training from Python: data in, a model out."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any, Literal, TypedDict, Unpack
from warnings import warn

import numpy as np

from plrank_fast._shared.interruption import deferred_interrupt
from plrank_fast._shared.progress_bar import make_bar
from plrank_fast.data import RankingData
from plrank_fast.data.ranking_data import finite_features, in_order_of
from plrank_fast.offsets import offsets_from_qid
from plrank_fast.training.config import DEFAULT_EPOCHS, TrainingConfig
from plrank_fast.training.model import RankingModel
from plrank_fast.training.parts import Part
from plrank_fast.training.results import PROGRESS, UNTRAINED, show_progress
from plrank_fast.training.trainer import TrainingRun
from plrank_fast.validation import (
    Gain,
    LossName,
    Method,
    MetricName,
    hinted,
    known_settings,
    of_type,
    require,
    threads,
    within,
)

HELD_OUT = 5  # one query in so many chooses the best epoch where no validation data are given


class Settings(TypedDict, total=False):
    """The settings of `TrainingConfig`, all of them optional."""

    preset: Literal["default", "sigir22"]
    method: Method | LossName
    metric: MetricName
    cutoff: int
    gain: Gain
    max_label: float | None
    samples: int | Literal["dynamic", "sigir22"]
    objective: Literal["query", "dataset", "dcg", "disparity"]
    empty: float | Literal["drop"]
    normalize_features: bool
    hidden: tuple[int, ...]
    initialization: Literal["pytorch", "glorot"]
    optimizer: Literal["sgd", "adam"]
    learning_rate: float
    batch_queries: int
    seed: int


@hinted
def train(
    data: Any,
    validation: Any = None,
    *,
    epochs: int | None = None,
    minutes: float | None = None,
    patience: int | None = None,
    quiet: bool = False,
    n_threads: int | None = None,
    **settings: Unpack[Settings],
) -> RankingModel:
    """Train a scoring network on expected NDCG@10 or another metric, and return the best epoch's.

    Ctrl-C ends the training after the present batch and returns the best model so far.

    Parameters
    ----------
    data : RankingData, DataFrame, or tuple (features, labels, qid)
        The training queries. A data frame has the columns "label" and "qid", and all others are features, whose names
        the model keeps: it finds the columns of other frames by them.
    validation : RankingData, DataFrame, or tuple (features, labels, qid), optional
        The queries that choose the best epoch, by the expectation of the metric. By default every fifth query of
        ``data``, which then does not train.
    epochs : int, optional
        Passes over the training queries; 100 by default, or no limit with ``minutes``.
    minutes : float, optional
        Time after which training ends.
    patience : int, optional
        Training ends after so many epochs without a better one.
    quiet : bool
        Whether to show no progress bar.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.
    **settings
        Fields of ``plrank_fast.training.config.TrainingConfig``: ``metric="ndcg"``, ``cutoff=10``, ``method="auto"``,
        ``max_label=None``, ``objective="query"``, ``hidden=(32, 32)``, ``learning_rate=0.003``, ``batch_queries=32``,
        ``optimizer="adam"``, ``normalize_features=True``, ``seed=0``, ``empty=0.0``, ``samples="dynamic"``,
        ``initialization="pytorch"``, ``preset="default"``. ``python -m plrank_fast train --help`` describes them.

    Returns
    -------
    RankingModel
        The model: ``predict``, ``sample_rankings``, ``save``, ``plot``, and ``history``, the metrics by epoch.

    Raises
    ------
    ValueError
        If the data have no relevant document, or training diverges.
    ImportError
        If PyTorch or tqdm is missing.

    Warns
    -----
    UserWarning
        If no epoch ends within ``minutes``.

    Notes
    -----
    Equal data and settings give equal models, bit for bit, for any number of threads.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> data = plr.data.generate("yahoo", 60, n_features=5)
    >>> model = plr.train(data, epochs=3, quiet=True)
    >>> model
    RankingModel(layers=5 32 32 1, epoch=3, train='yahoo profile, train, seed 0')
    >>> test = plr.data.generate("yahoo", 20, n_features=5, split="test")
    >>> scores = model.predict(test.features, offsets=test.offsets)
    """
    known_settings(settings, [field.name for field in fields(TrainingConfig)], train)
    config = TrainingConfig.from_preset(**settings)
    threads(n_threads)
    training = held_out = in_single_precision(ranking_data(data, "data"), "data")
    chosen = np.zeros(len(training), dtype=bool)
    if validation is None:
        require(len(training) > 1, "data must have two queries or more without validation, got 1")
        chosen[HELD_OUT - 1 :: HELD_OUT] = True
        chosen[-1] |= not chosen.any()
    else:
        held_out = in_single_precision(ranking_data(validation, "validation"), "validation")
        held_out = in_order_of(training.feature_names, held_out, "validation")
        columns = training.n_features, held_out.n_features
        require(columns[0] == columns[1], f"validation must have the {columns[0]} features of data, got {columns[1]}")
    queries = np.flatnonzero(chosen) if validation is None else np.arange(len(held_out))
    parts = {
        "train": Part.selected(training, np.flatnonzero(~chosen), normalized=config.normalize_features),
        "vali": Part.selected(held_out, queries, normalized=config.normalize_features),
    }
    run = TrainingRun(
        config, None, parts, None, epochs=DEFAULT_EPOCHS if epochs is minutes is None else epochs, minutes=minutes,
        patience=patience, n_threads=-1 if n_threads is None else n_threads,
    )  # fmt: skip
    with deferred_interrupt() as interrupted, make_bar("train", 1.0, PROGRESS, quiet=quiet) as bar:
        stopped = run.train(interrupted=interrupted, observer=partial(show_progress, bar))
    if stopped == "minutes" and not run.progress.epoch:
        warn(f"{UNTRAINED}: pass more than minutes={minutes}", stacklevel=3)
    return run.best_model()


def in_single_precision(data: RankingData, name: str) -> RankingData:
    """Return a data set whose features are finite in the type in which networks are trained."""
    features: Any = data.features
    largest = float(np.finfo(np.float32).max)
    within(features, f"features of {name}", -largest, largest, ", the range of float32: rescale them")
    finite_features(features, data.feature_names)  # they may have been changed
    return data


def ranking_data(data: Any, name: str) -> RankingData:
    """Return a data set from any of the kinds that `train` takes."""
    if isinstance(data, RankingData):
        return data
    if isinstance(data, tuple) and len(data) == 3:
        features, labels, qid = data
        ids = np.asarray(qid)
        offsets = offsets_from_qid(ids)
        return RankingData(features, labels, offsets, ids[offsets[:-1]], name)
    kinds = "a RankingData, a data frame, or a tuple (features, labels, qid)"
    of_type(hasattr(data, "columns"), name, kinds, type(data).__name__)
    return RankingData.from_frame(data, name=name)
