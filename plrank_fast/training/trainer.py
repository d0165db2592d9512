"""The training loop, which alternates between the gradient of a batch and a step of the network.

The state of a run is that of its last epoch end: a run that is stopped within an epoch begins this epoch anew. All
random numbers are keyed by (seed, epoch, batch), so it then comes to the result of an uninterrupted one, on any number
of threads, and up to rounding on any number of processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import plrank_fast as plr
from plrank_fast import fairness
from plrank_fast._shared.archive import Arrays, interpreting, read_archive, write_archive
from plrank_fast._shared.memory import require_bytes
from plrank_fast.data import RankingData
from plrank_fast.named_metrics import LabelledMetric, labelled_metric
from plrank_fast.training.config import DCG, DISPARITY, TrainingConfig, with_tuples
from plrank_fast.training.evaluation import Metrics, evaluate_scores
from plrank_fast.training.gradient_methods import gradient, resolve_method
from plrank_fast.training.model import RankingModel, weight_shapes
from plrank_fast.training.network import Optimizer, ScoringNetwork, set_model_threads
from plrank_fast.training.ranks import ALONE, Ranks
from plrank_fast.training.sources import Source, Splits
from plrank_fast.validation import count, real

CHECKPOINT = "checkpoint.plrank"
CHECKPOINT_SECONDS = 10.0  # the most whole epochs that a kill loses take
# of float32: itself, its best value, its gradient and the two moments of Adam, three of them also at the last epoch end
BYTES_OF_A_WEIGHT = 32
ORDER, SAMPLING = range(2)  # keys of the random streams
REASONS = (None, "minutes", "patience", "epochs", "interrupted")  # None: go on; later ones take precedence

Observer = Callable[["TrainingRun"], None]


@dataclass
class Progress:
    """Progress of a run up to the end of an epoch, which with the weights is its whole state.

    ``total_seconds`` are those of the run, an epoch that was stopped included. ``history`` has the metrics on the
    validation data, of the untrained network and after each epoch, so that an epoch's number is their index.
    """

    epoch: int = 0
    total_seconds: float = 0.0
    history: list[Metrics] = field(default_factory=list)
    best_epoch: int = 0


class TrainingRun:
    """A network in training, with its data, settings and folder.

    ``config`` determines the result, ``source`` says where the data ``splits`` came from, and ``folder`` is that of the
    checkpoint, or both are None; it must exist when training begins, and the caller locks it. ``epochs`` and
    ``minutes``, of which at least one is necessary, limit the training, that before a resume included, and so does
    ``patience``, the number of epochs without a better one. ``n_threads`` are those of the gradient; PyTorch has one,
    as more may change the last bits of the result. The state at the last epoch end is saved at the beginning, at the
    end, at an interrupt, and at epoch ends ``checkpoint_seconds`` apart. The first of the ``ranks`` writes; their other
    arguments, except for threads, must be equal.
    """

    def __init__(
        self,
        config: TrainingConfig,
        source: Source | None,
        splits: Splits,
        folder: str | os.PathLike[str] | None,
        *,
        epochs: int | None = None,
        minutes: float | None = None,
        patience: int | None = None,
        n_threads: int = -1,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        ranks: Ranks = ALONE,
    ) -> None:
        if epochs is None and minutes is None:
            raise ValueError("epochs or minutes must be given")
        self.epochs = epochs if epochs is None else count(epochs, "epochs", 0)
        self.minutes = minutes if minutes is None else real(minutes, "minutes", at_least=0.0)
        self.patience = patience if patience is None else count(patience, "patience", 1)
        self.checkpoint_seconds = real(checkpoint_seconds, "checkpoint_seconds", at_least=0.0)
        set_model_threads(1)
        self.config = config
        self.source = source
        self.splits = splits
        self.folder = None if folder is None else Path(folder)
        self.n_threads = n_threads
        self.ranks = ranks
        self.progress = Progress()
        self.batch = 0  # in the epoch under way
        train = splits["train"]
        needed = BYTES_OF_A_WEIGHT * sum(map(prod, weight_shapes(train.n_features, config.hidden).values()))
        hidden = " ".join(map(str, config.hidden))
        require_bytes(needed, f"hidden {hidden} and {train.n_features} features mean a network that")
        self.network = ScoringNetwork(train.n_features, config.hidden, config.seed, config.initialization)
        self._optimizer = Optimizer(config.optimizer, self.network, config.learning_rate)
        self.method = resolve_method(config.method, train.offsets, config.cutoff, config.metric)
        self._highest = config.max_label
        if config.metric == "err" and self._highest is None:
            self._highest = max(float(part.labels.max()) for part in splits.values())
        self._metric = self._training_metric()
        self._fingerprints = {name: part.fingerprint() for name, part in splits.items()}
        self._state: Arrays = {}
        self._keep_state(is_best=True)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        *,
        epochs: int | None = None,
        minutes: float | None = None,
        cache: str | None = None,
        ranks: Ranks = ALONE,
        **settings: Any,
    ) -> TrainingRun:
        """Continue from the checkpoint in a folder, up to new limits or, without any, those of the earlier run.

        The number of ranks may differ from the earlier run's. ``cache`` is a folder for parsed LETOR files; the other
        arguments are those of the constructor. Data that have changed since are refused.
        """
        path = Path(folder) / CHECKPOINT
        header, arrays = read_archive(path, "checkpoint")
        with interpreting(path, "checkpoint"):
            config, source = TrainingConfig(**with_tuples(header["config"])), Source(**with_tuples(header["source"]))
            fingerprints: dict[str, str] = header["fingerprints"]
            progress = Progress(**header["progress"])
        if epochs is None and minutes is None:
            epochs, minutes = header["epochs"], header["minutes"]
        with ranks.one_before_others() if cache else nullcontext():
            splits = source.load(normalize=config.normalize_features, cache=cache)
        settings = {"patience": header["patience"], **settings}
        run = cls(config, source, splits, folder, epochs=epochs, minutes=minutes, ranks=ranks, **settings)
        for name in sorted(fingerprints.keys() | run._fingerprints.keys()):
            if fingerprints.get(name) != run._fingerprints.get(name):
                raise ValueError(f"{name} data are not those that {path} was trained with")
        run.progress, run._state = progress, arrays
        with interpreting(path, "checkpoint"):
            run._return_to_epoch_end()
        return run

    @property
    def best_weights(self) -> Arrays:
        """The weights of the best epoch."""
        return _group(self._state, "best")

    @property
    def batches_per_epoch(self) -> int:
        """Steps of one pass over the training queries."""
        return -(-self.splits["train"].n_queries // self.config.batch_queries)

    @property
    def epochs_done(self) -> float:
        """Epochs that are done, with the share of the one under way."""
        return self.progress.epoch + self.batch / self.batches_per_epoch

    @property
    def share_done(self) -> float:
        """Share of the run that is done, from 0 to 1, by the limit that comes first."""
        seconds = None if self.minutes is None else 60 * self.minutes
        parts = ((self.epochs_done, self.epochs), (self.progress.total_seconds, seconds))
        return max(min(1.0, part / whole) if whole else 1.0 for part, whole in parts if whole is not None)

    def train(self, *, interrupted: Callable[[], bool] = lambda: False, observer: Observer = lambda run: None) -> str:
        """Train until a limit or until ``interrupted()``, and return which: an entry of ``REASONS``.

        ``observer`` is called with the run after every batch. After an error, such as a ConnectionError if another rank
        has ended, the last checkpoint is still there.
        """
        self._return_to_epoch_end()
        data = {f"{name} data": fingerprint for name, fingerprint in self._fingerprints.items()}
        self.ranks.require_equal({"settings": asdict(self.config), **data, "epoch": self.progress.epoch})
        start = time.perf_counter() - self.progress.total_seconds

        def look_at_clock() -> None:
            self.progress.total_seconds = time.perf_counter() - start

        def finished() -> str | None:
            look_at_clock()
            reason = None
            if self.minutes is not None and self.progress.total_seconds >= 60 * self.minutes:
                reason = "minutes"
            if self.patience is not None and self.progress.epoch - self.progress.best_epoch >= self.patience:
                reason = "patience"
            if self.epochs is not None and self.progress.epoch >= self.epochs:
                reason = "epochs"
            if interrupted():
                reason = "interrupted"
            return REASONS[self.ranks.highest(REASONS.index(reason))]

        if not self.progress.history:
            self._end_epoch()  # that of the untrained network
        self.save()  # reports a folder that cannot be written before any work
        order = self._query_order()
        while not (reason := finished()):
            self._step(order)
            if self.batch == self.batches_per_epoch:
                self.progress.epoch += 1
                self.batch = 0
                self._end_epoch()
                order = self._query_order()
                look_at_clock()
                if time.perf_counter() - self._saved_at >= self.checkpoint_seconds:
                    self.save()
            observer(self)
        self.save()
        look_at_clock()
        return reason

    def save(self) -> None:
        """Replace the checkpoint in one step by the state at the last epoch end."""
        self._saved_at = time.perf_counter()
        if not self.ranks.first or self.folder is None:
            return
        header = {name: getattr(self, name) for name in ("epochs", "minutes", "patience")}
        header |= {"config": asdict(self.config), "source": asdict(self.source) if self.source else None}
        header |= {"fingerprints": self._fingerprints, "progress": vars(self.progress)}
        write_archive(self.folder / CHECKPOINT, "checkpoint", header, self._state)
        self._saved_at = time.perf_counter()

    def evaluate(self, data: RankingData) -> Metrics:
        """Evaluate the present network on one of the splits; all ranks must call this together, and share the work."""
        own = self.network.scores(data.features[self.ranks.share(data.offsets).docs])
        scores = np.concatenate(self.ranks.gathered(own))
        return evaluate_scores(
            scores, data.labels, data.offsets, cutoff=self.config.cutoff, n_threads=self.n_threads,
            empty=self.config.empty, with_disparity=self.config.objective == DISPARITY,
            metric=self.config.metric, max_label=self._highest,
        )  # fmt: skip

    def best_model(self) -> RankingModel:
        """Return the network of the best epoch."""
        train = self.splits["train"]
        progress = self.progress
        return RankingModel(
            train.n_features, self.config, progress.best_epoch, train.name, self.best_weights, list(progress.history)
        )

    def _training_metric(self) -> LabelledMetric:
        """Return the metric of the training data, that of gains over the ideal DCG for NDCG.

        Disparity is proportional to the square of merit and decreases with the number of documents. Merit is scaled so
        that the mean disparity of the training queries at equal scores is 1, which suits the step length of NDCG.
        """
        train = self.splits["train"]
        name: Any = self.config.metric
        metric = labelled_metric(
            name, train.labels, train.offsets, cutoff=self.config.cutoff, gain=plr.gains, max_label=self._highest
        )
        if not (train.labels > 0.0).any():
            raise ValueError(f"labels of {train.name} must include a relevant document (above 0)")
        if self.config.objective == DCG or name != "ndcg":
            return metric
        relevance, rank_weights = metric.relevance, metric.rank_weights
        ideal = plr.ideal_dcg(relevance, rank_weights, offsets=train.offsets)
        if self.config.normalization == "dataset":
            ideal = np.full(train.n_queries, ideal.mean())
        relevance /= np.repeat(np.where(ideal > 0, ideal, 1.0), train.list_lengths)
        if self.config.objective == DISPARITY:
            equal = plr.exposure(np.zeros(train.n_docs), rank_weights, offsets=train.offsets)
            mean = fairness.disparity(equal, relevance, offsets=train.offsets)[0].mean()
            relevance /= np.sqrt(mean) if mean > 0 else 1.0
        return metric

    def _query_order(self) -> npt.NDArray[np.int64]:
        key = self._key(ORDER, self.progress.epoch)
        return np.random.Generator(np.random.PCG64(key)).permutation(self.splits["train"].n_queries)

    def _step(self, order: npt.NDArray[np.int64]) -> None:
        config, epoch, train = self.config, self.progress.epoch, self.splits["train"]
        first = self.batch * config.batch_queries
        rows, offsets = train.rows_of(order[first : first + config.batch_queries])
        share = self.ranks.share(offsets)
        rows = rows[share.docs]
        scores = self.network.scores_with_graph(train.features[rows])
        values = scores.detach().numpy().astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"learning_rate {config.learning_rate} made training diverge in epoch {epoch + 1}")
        settings: dict[str, Any] = {
            "offsets": share.offsets,
            "first_query": share.first_query,
            "n_samples": config.samples_in_step(epoch, self.batch, train.n_queries),
            "rng": self._key(SAMPLING, epoch, self.batch),
            "n_threads": self.n_threads,
        }
        metric = self._metric.of_documents(rows)
        if config.objective == DISPARITY:
            ascent = -fairness.disparity_gradient(
                values, metric.relevance, metric.rank_weights, **settings | {"method": self.method}
            )[1]
        else:
            ascent = gradient(self.method, values, metric, labels=train.labels[rows], **settings)
        self._optimizer.ascend(scores, ascent, self.ranks)
        self.batch += 1

    def _end_epoch(self) -> None:
        """Evaluate the network, and keep the state."""
        progress, quality = self.progress, self.config.quality
        metrics = self.evaluate(self.splits["vali"])
        is_best = not progress.history or quality(metrics) >= quality(progress.history[progress.best_epoch])
        if is_best:
            progress.best_epoch = progress.epoch
        progress.history.append(metrics)
        self._keep_state(is_best)

    def _keep_state(self, is_best: bool) -> None:
        """Keep weights and optimizer, and the weights as the best ones by the metric that chooses the epoch."""
        best = {} if is_best else self.best_weights
        self._state = {}  # it and the new state are not in memory at the same time
        groups = {"network": self.network.weights(), "optimizer": self._optimizer.state()}
        groups["best"] = best or groups["network"]
        self._state = {f"{group}/{name}": array for group, part in groups.items() for name, array in part.items()}

    def _return_to_epoch_end(self) -> None:
        """Give network and optimizer the state that was kept."""
        self.batch = 0
        self.network.set_weights(_group(self._state, "network"))
        self._optimizer.set_state(_group(self._state, "optimizer"))

    def _key(self, *key: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.config.seed, spawn_key=key)


def _group(arrays: Arrays, group: str) -> Arrays:
    """Return the arrays of one group of a checkpoint, without the group's prefix."""
    return {name[len(group) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{group}/")}
