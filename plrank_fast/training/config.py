"""The settings that determine a training run: equal settings and data give equal networks, bit for bit.

A preset is a set of values for all of them. "default" learns well on small and large sets. "sigir22" has the settings
of the published code of the SIGIR 2022 paper (HarrieO/2022-SIGIR-plackett-luce, ``run.py`` and ``utils/nnmodel.py``).
That code also trains in float64, removes features that are constant within every query, does not choose a best epoch,
and ends a run after 200 minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from plrank_fast._methods.registry import AUTO
from plrank_fast.named_metrics import TITLES, check_metric, checked_scale
from plrank_fast.validation import Gain, LossName, Method, MetricName, choice, count, flag, of_type, real, shown

LOSSES = get_args(LossName)
DATASET, DCG, DISPARITY, DROP = "dataset", "dcg", "disparity", "drop"
DEFAULT_EPOCHS = 100  # a run without limits has so many
DYNAMIC_START, DYNAMIC_GROWTH, DYNAMIC_EPOCHS, DYNAMIC_LIMIT = 10, 90, 40, 1000
# Weights are float32; the first step of Adam multiplies the rate by ten.
HIGHEST_LEARNING_RATE = {"sgd": 3e38, "adam": 3e37}

# The differences of a preset from the defaults of the fields, and its title in the report and in the help.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "sigir22": {
        "method": "pl_rank_3",
        "cutoff": 5,
        "samples": "sigir22",
        "objective": DCG,
        "empty": DROP,
        "initialization": "glorot",
        "optimizer": "sgd",
        "learning_rate": 0.001,
        "batch_queries": 256,
    },
}
PRESET_TITLES = {
    "default": "settings that learn well on small and large sets",
    "sigir22": "the settings of the published code of the SIGIR 2022 paper",
}


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training run, whose default layers are the PL-Rank papers'.

    `from_preset` takes from a preset what is not given; the constructor keeps the preset's name alone.

    Parameters
    ----------
    preset : str
        Values of the settings that are not given, "default" or "sigir22".
    method : str
        Gradient estimator or loss; "auto" is "exact", or one sample of "cmc" where that is far cheaper.
    metric : {"ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"}
        Metric whose expectation is maximised, and chooses the best epoch: NDCG or DCG of gains, precision, recall, the
        reciprocal rank of the first relevant document (MRR), expected reciprocal rank (ERR), success (whether one of
        the K is relevant, the hit rate), or average precision. Losses have an objective of their own; for them this
        metric of the ranking by score chooses the best epoch.
    cutoff : int
        Ranks that count, K.
    gain : {"exponential", "linear"}
        Gain of a label in NDCG and DCG, reported values included: 2^label - 1, or the label itself.
    max_label : float, optional
        Highest grade of the scale in "err"; the highest label of all data by default.
    samples : int, "dynamic" or "sigir22"
        Rankings per query and gradient. "dynamic", the schedule of the SIGIR 2022 paper, starts at 10, grows linearly
        by 90 every 40 epochs and stops at 1000. "sigir22", the schedule of its code, grows by steps instead of epochs,
        and the first step of each epoch takes 200 times the square root of the epoch's number from 0, rounded up, at
        least 1.
    objective : {"query", "dataset", "dcg", "disparity"}
        Objective where the metric is "ndcg". "query" is NDCG, the mean over queries of DCG over the query's ideal DCG.
        "dataset" is the NDCG of the PL-Rank papers: mean DCG over the mean ideal DCG of the data set, so that queries
        with many relevant documents count more. "dcg" is DCG itself, which lengthens the steps by that mean.
        "disparity", to be minimised, is the squared disparity of exposure (`plrank_fast.fairness`), with gains over the
        query's ideal DCG as merit, as a share of its value at equal scores. Losses have an objective of their own; for
        them this is the NDCG that chooses the best epoch.
    empty : float or "drop"
        NDCG of a query without relevant documents in the mean over queries (trec_eval and scikit-learn take 0, LightGBM
        takes 1); "drop" leaves such queries out.
    normalize_features : bool
        Min-max normalisation of the features within each query.
    hidden : tuple of int
        Sigmoid units in each hidden layer.
    initialization : {"pytorch", "glorot"}
        Distribution of the initial weights: PyTorch's for linear layers, uniform in +-1 / sqrt(inputs) for weights and
        biases; or Keras's, uniform in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010), biases 0.
    optimizer : {"sgd", "adam"}
        PyTorch's optimizer that takes the steps.
    learning_rate : float
        Step size; the gradient of a batch is the sum over its queries.
    batch_queries : int
        Queries per step.
    seed : int
        Seed of the initial weights, the order of the queries, and the sampled rankings.
    """

    preset: Literal["default", "sigir22"] = "default"
    method: Method | LossName = "auto"
    metric: MetricName = "ndcg"
    cutoff: int = 10
    gain: Gain = "exponential"
    max_label: float | None = None
    samples: int | Literal["dynamic", "sigir22"] = "dynamic"
    objective: Literal["query", "dataset", "dcg", "disparity"] = "query"
    empty: float | Literal["drop"] = 0.0
    normalize_features: bool = True
    hidden: tuple[int, ...] = (32, 32)
    initialization: Literal["pytorch", "glorot"] = "pytorch"
    optimizer: Literal["sgd", "adam"] = "adam"
    learning_rate: float = 0.003
    batch_queries: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(TrainingConfig).items():
            if (names := names_of(hint)) and name not in ("samples", "empty"):
                choice(getattr(self, name), name, names)
        if self.objective == DISPARITY and self.method in LOSSES:
            raise ValueError(f"objective {DISPARITY} needs a method that estimates gradients, got {self.method!r}")
        estimator = AUTO if self.method in LOSSES else self.method
        check_metric(self.metric, method=estimator, max_label=checked_scale(self.max_label))
        if self.metric != "ndcg" and self.objective != "query":
            raise ValueError(f"objective must be 'query' with metric={self.metric!r}, got {self.objective!r}")
        if isinstance(self.samples, str):
            choice(self.samples, "samples", ("dynamic", "sigir22"))
        else:
            count(self.samples, "samples", 1)
        if self.empty != DROP:
            real(self.empty, "empty")
        flag(self.normalize_features, "normalize_features")
        of_type(isinstance(self.hidden, (tuple, list)), "hidden", "a tuple of integers", shown(self.hidden))
        for units in self.hidden:
            count(units, "hidden", 1)
        real(self.learning_rate, "learning_rate", above=0.0, at_most=HIGHEST_LEARNING_RATE[self.optimizer])
        count(self.cutoff, "cutoff", 1)
        count(self.batch_queries, "batch_queries", 1)
        count(self.seed, "seed", 0, 2**63 - 1)

    @property
    def normalization(self) -> str:
        """Normalisation of NDCG in the objective."""
        return {DISPARITY: "query", DCG: DATASET}.get(self.objective, self.objective)

    @property
    def chosen_by(self) -> str:
        """Metric on the validation data that chooses the best epoch; a lower disparity is better."""
        if self.objective == DISPARITY:
            return DISPARITY
        name = self.metric if self.metric != "ndcg" else f"ndcg_{self.normalization}"
        return name if self.method in LOSSES else f"expected_{name}"

    @property
    def quality_name(self) -> str:
        """That metric in words."""
        if self.objective == DISPARITY:
            return "disparity"
        words = f"{'' if self.method in LOSSES else 'expected '}{'dataset ' if self.normalization == DATASET else ''}"
        return f"{words}{TITLES[self.metric]}@{self.cutoff}"

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics of an evaluation, in its order."""
        names = ["ndcg_query", "ndcg_dataset", "expected_ndcg_query", "expected_ndcg_dataset"]
        names += [] if self.metric == "ndcg" else [self.metric, f"expected_{self.metric}"]
        return (*names, DISPARITY) if self.objective == DISPARITY else tuple(names)

    def quality(self, metrics: Mapping[str, float]) -> float:
        """Return the metric that chooses the best epoch, with its sign changed if lower is better."""
        return -metrics[DISPARITY] if self.objective == DISPARITY else metrics[self.chosen_by]

    def samples_in_step(self, epoch: int, batch: int, n_queries: int) -> int:
        """Return the rankings per query in a step, epochs and batches counted from 0; 1 is enough for "auto"."""
        if self.method == AUTO:
            return 1
        if self.samples == "dynamic":
            return min(DYNAMIC_LIMIT, DYNAMIC_START + DYNAMIC_GROWTH * epoch // DYNAMIC_EPOCHS)
        if self.samples == "sigir22":
            if batch == 0:  # the published code sets this count when an epoch begins and the other one after each step
                return max(1, math.ceil(200 * math.sqrt(epoch)))
            epochs = epoch + batch * self.batch_queries / n_queries
            return min(DYNAMIC_LIMIT, round(DYNAMIC_START + DYNAMIC_GROWTH * epochs / DYNAMIC_EPOCHS))
        return self.samples

    @classmethod
    def from_preset(cls, preset: str = "default", **changes: Any) -> TrainingConfig:
        """Take all settings from a preset except those given."""
        return cls(**{"preset": preset, **PRESETS.get(preset, {}), **changes})

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from the preset's."""
        preset = TrainingConfig.from_preset(self.preset)
        names = (field.name for field in fields(self) if getattr(self, field.name) != getattr(preset, field.name))
        return {name: getattr(self, name) for name in names}


def names_of(hint: Any) -> tuple[str, ...]:
    """Return the names that a setting of this type can have."""
    parts = (name for part in get_args(hint) for name in get_args(part) or (part,))
    return tuple(name for name in parts if isinstance(name, str))


def with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of settings or of a source, of which JSON and argparse make lists of tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def describe_preset(name: str) -> str:
    """Describe a preset and its differences from the defaults in one line."""
    settings = ", ".join(f"{setting} {value}" for setting, value in PRESETS[name].items())
    return PRESET_TITLES[name] + (f" ({settings})" if settings else "")
