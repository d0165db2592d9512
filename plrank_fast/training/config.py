"""The settings that determine a training run: equal settings and data give equal networks, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from plrank_fast.training.gradient_methods import AUTO, LOSSES, available_methods

OPTIMIZERS = ("sgd", "adam")
NORMALIZATIONS = ("dataset", "query")
DISPARITY = "disparity"
OBJECTIVES = (*NORMALIZATIONS, DISPARITY)
DYNAMIC_START, DYNAMIC_GROWTH, DYNAMIC_EPOCHS, DYNAMIC_LIMIT = 10, 90, 40, 1000


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a run; the defaults of network and optimizer are those of the PL-Rank papers.

    Parameters
    ----------
    method : str
        Gradient estimator, one of `plrank_fast.training.gradient_methods.available_methods`.
    cutoff : int
        K: the metric is NDCG@K.
    samples : int or "dynamic"
        Rankings per query and gradient. "dynamic" starts at 10, grows linearly by 90 every 40 epochs and stops at 1000.
    objective : {"dataset", "query", "disparity"}
        NDCG, normalised by the mean ideal DCG of the training set or by each query's own; or, to be minimised, the
        squared disparity of exposure (`plrank_fast.fairness`), with gains over the query's ideal DCG as merit. Losses
        bring an objective of their own; for them this is the normalisation of the NDCG that chooses the best epoch.
    normalize_features : bool
        Min-max normalisation of the features within each query.
    hidden : tuple of int
        Sigmoid units in each hidden layer.
    optimizer : {"sgd", "adam"}
        How steps are taken.
    learning_rate : float
        Step size; the gradient of a batch is the sum over its queries.
    batch_queries : int
        Queries per step.
    seed : int
        Of the initial weights, the order of the queries, and the sampled rankings.

    Raises
    ------
    ValueError
        Naming the first setting that is out of its range.
    """

    method: str = "auto"
    cutoff: int = 10
    samples: int | Literal["dynamic"] = "dynamic"
    objective: str = "dataset"
    normalize_features: bool = True
    hidden: tuple[int, ...] = (32, 32)
    optimizer: str = "sgd"
    learning_rate: float = 0.01
    batch_queries: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        choices = {"method": available_methods(), "objective": OBJECTIVES, "optimizer": OPTIMIZERS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.objective == DISPARITY and self.method in LOSSES:
            raise ValueError(f"objective {DISPARITY} needs a method that estimates gradients, got {self.method!r}")
        for name in ("cutoff", "batch_queries"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.samples != "dynamic" and (not isinstance(self.samples, int) or self.samples < 1):
            raise ValueError(f"samples must be at least 1 or 'dynamic', got {self.samples!r}")
        if any(units < 1 for units in self.hidden):
            raise ValueError(f"hidden must be layer sizes of at least 1, got {self.hidden}")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate must be positive and finite, got {self.learning_rate}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2**63 - 1, got {self.seed}")

    @property
    def normalization(self) -> str:
        """How NDCG is normalised where it is shown."""
        return "query" if self.objective == DISPARITY else self.objective

    @property
    def chosen_by(self) -> str:
        """Metric on the validation data that chooses the best epoch: what training is after, lower for disparity."""
        if self.objective == DISPARITY:
            return DISPARITY
        return f"ndcg_{self.normalization}" if self.method in LOSSES else f"expected_ndcg_{self.normalization}"

    def samples_in_epoch(self, epoch: int) -> int:
        """Rankings per query in an epoch, counted from 0; one is enough for what "auto" may choose."""
        if self.method == AUTO:
            return 1
        if self.samples == "dynamic":
            return min(DYNAMIC_LIMIT, DYNAMIC_START + DYNAMIC_GROWTH * epoch // DYNAMIC_EPOCHS)
        return self.samples

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file; `from_json` takes them back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Rebuild the settings from `to_json`."""
        return cls(**{**values, "hidden": tuple(values["hidden"])})
