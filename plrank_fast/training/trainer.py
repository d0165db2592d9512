"""The training loop, which alternates between the gradient of a batch and a step of the network.

The state of a run is its state at the last epoch end: a run that is stopped within an epoch begins this epoch anew. All
random numbers are keyed by (seed, epoch, batch), so it then comes to the result of an uninterrupted one, on any number
of threads, and up to rounding on any number of processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from plrank_fast._shared.archive import Arrays, interpreting
from plrank_fast._shared.memory import require_bytes
from plrank_fast.chunks import query_chunks
from plrank_fast.data import RankingData
from plrank_fast.training.batches import Batches
from plrank_fast.training.checkpoint import CHECKPOINT, Checkpoint, Limits, Progress
from plrank_fast.training.config import DISPARITY, TrainingConfig
from plrank_fast.training.evaluation import History, Metrics, evaluate_scores
from plrank_fast.training.loss import Loss
from plrank_fast.training.model import RankingModel, weight_shapes
from plrank_fast.training.network import ScoringNetwork, set_model_threads
from plrank_fast.training.parts import Part
from plrank_fast.training.ranks import ALONE, Ranks
from plrank_fast.training.sources import Source, Splits
from plrank_fast.validation import real

CHECKPOINT_SECONDS = 10.0  # the most whole epochs that a kill loses take
# of float32: itself, its best value, its gradient and the two moments of Adam, three of them also at the last epoch end
BYTES_OF_A_WEIGHT = 32
NUMBERS_AT_ONCE = 2**20  # features of documents that are scored at once; bounds the memory of their copies
REASONS = (None, "minutes", "patience", "epochs", "interrupted")  # None: go on; later ones take precedence

Observer = Callable[["TrainingRun"], None]


class TrainingRun:
    """A network in training, with its data, settings and folder.

    ``config`` determines the result, ``source`` says where the data ``splits``, or parts of data sets, came from, and
    ``folder`` is that of the checkpoint, or both are None; it must exist when training begins, and the caller locks it.
    ``epochs`` and ``minutes``, of which at least one is necessary, limit the training, that before a resume included,
    and so does ``patience``, the number of epochs without a better one. ``n_threads`` are those of the gradient;
    PyTorch has one, as more may change the last bits of the result. The state at the last epoch end is saved at the
    beginning, at the end, at an interrupt, and at epoch ends ``checkpoint_seconds`` apart. The first of the ``ranks``
    writes; their other arguments, except for threads, must be equal.
    """

    def __init__(
        self,
        config: TrainingConfig,
        source: Source | None,
        splits: Mapping[str, RankingData | Part],
        folder: str | os.PathLike[str] | None,
        *,
        epochs: int | None = None,
        minutes: float | None = None,
        patience: int | None = None,
        n_threads: int = -1,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        ranks: Ranks = ALONE,
    ) -> None:
        self.limits: Limits = Limits.checked(epochs, minutes, patience)
        self.checkpoint_seconds: float = real(checkpoint_seconds, "checkpoint_seconds", at_least=0.0)
        set_model_threads(1)
        self.config = config
        self.source = source
        self.parts: dict[str, Part] = {name: Part.of(split) for name, split in splits.items()}
        self.splits: Splits = {name: part.documents for name, part in self.parts.items()}
        self.folder: Path | None = None if folder is None else Path(folder)
        self.n_threads = n_threads
        self.ranks = ranks
        self.progress: Progress = Progress()
        self.batch: int = 0  # in the epoch under way
        train, n_features = self.splits["train"], self.parts["train"].data.n_features
        needed = BYTES_OF_A_WEIGHT * sum(map(prod, weight_shapes(n_features, config.hidden).values()))
        hidden = " ".join(map(str, config.hidden))
        require_bytes(needed, f"hidden {hidden} and {n_features} features mean a network that")
        self.network: ScoringNetwork = ScoringNetwork(n_features, config)
        self._highest = config.max_label
        if config.metric == "err" and self._highest is None:
            self._highest = max(float(part.labels.max()) for part in self.splits.values())
        self.batches: Batches = Batches(self.parts["train"], config.batch_queries, config.seed, ranks)
        self.loss: Loss = Loss(config, train, self._highest, n_threads)
        self._fingerprints = {name: part.fingerprint() for name, part in self.splits.items()}
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
        arguments are the constructor's. Data that have changed since are refused.
        """
        path = Path(folder) / CHECKPOINT
        config, source, earlier, fingerprints, progress, state = Checkpoint.read(Path(folder))
        if epochs is None and minutes is None:
            epochs, minutes, _ = earlier
        with ranks.one_before_others() if cache else nullcontext():
            splits = source.load(normalize=config.normalize_features, cache=cache)
        settings = {"patience": earlier.patience, **settings}
        run = cls(config, source, splits, folder, epochs=epochs, minutes=minutes, ranks=ranks, **settings)
        for name in sorted(fingerprints.keys() | run._fingerprints.keys()):
            if fingerprints.get(name) != run._fingerprints.get(name):
                raise ValueError(f"{name} data are not those that {path} was trained with")
        run.progress, run._state = progress, state
        with interpreting(path, "checkpoint"):
            run._return_to_epoch_end()
        return run

    @property
    def best_weights(self) -> Arrays:
        """The weights of the best epoch."""
        return _group(self._state, "best")

    @property
    def epochs_done(self) -> float:
        """Epochs that are done, with the share of the one under way."""
        return self.progress.epoch + self.batch / len(self.batches)

    @property
    def share_done(self) -> float:
        """Share of the run that is done, from 0 to 1, by the limit that comes first."""
        seconds = None if self.limits.minutes is None else 60 * self.limits.minutes
        parts = ((self.epochs_done, self.limits.epochs), (self.progress.total_seconds, seconds))
        return max(min(1.0, part / whole) if whole else 1.0 for part, whole in parts if whole is not None)

    def train(self, *, interrupted: Callable[[], bool] = lambda: False, observer: Observer = lambda run: None) -> str:
        """Train until a limit or until ``interrupted()``, and return which: an entry of ``REASONS``.

        ``observer`` is called with the run after every batch. After an error, such as a ConnectionError if another rank
        has ended, the last checkpoint is still there.
        """
        self._return_to_epoch_end()
        data = {f"{name} data": fingerprint for name, fingerprint in self._fingerprints.items()}
        self.ranks.require_equal({"settings": asdict(self.config), **data, "epoch": self.progress.epoch})
        limits, start = self.limits, time.perf_counter() - self.progress.total_seconds

        def look_at_clock() -> None:
            self.progress.total_seconds = time.perf_counter() - start

        def finished() -> str | None:
            look_at_clock()
            reason = None
            if limits.minutes is not None and self.progress.total_seconds >= 60 * limits.minutes:
                reason = "minutes"
            if limits.patience is not None and self.progress.epoch - self.progress.best_epoch >= limits.patience:
                reason = "patience"
            if limits.epochs is not None and self.progress.epoch >= limits.epochs:
                reason = "epochs"
            if interrupted():
                reason = "interrupted"
            return REASONS[self.ranks.highest(REASONS.index(reason))]

        if not self.progress.history:
            self._end_epoch()  # of the untrained network
        self.save()  # reports a folder that cannot be written before any work
        reason = finished()
        while not reason:
            for batch in self.batches.of_epoch(self.progress.epoch):
                scores = self.network.forward(batch.features)
                if not np.isfinite(scores).all():
                    rate, epoch = self.config.learning_rate, batch.epoch + 1
                    raise ValueError(f"learning_rate {rate} made training diverge in epoch {epoch}")
                self.network.step(self.loss.ascent(scores, batch), self.ranks)
                self.batch = batch.number + 1
                if self.batch == len(self.batches):
                    self.progress.epoch += 1
                    self.batch = 0
                    self._end_epoch()
                    look_at_clock()
                    if time.perf_counter() - self._saved_at >= self.checkpoint_seconds:
                        self.save()
                observer(self)
                reason = finished()
                if reason:
                    break
        self.save()
        look_at_clock()
        return reason

    def save(self) -> None:
        """Replace the checkpoint in one step by the state at the last epoch end."""
        self._saved_at = time.perf_counter()
        if not self.ranks.first or self.folder is None or self.source is None:
            return
        whole = Checkpoint(self.config, self.source, self.limits, self._fingerprints, self.progress, self._state)
        whole.write(self.folder)
        self._saved_at = time.perf_counter()

    def evaluate(self, data: RankingData | Part) -> Metrics:
        """Evaluate the present network on one of the splits; all ranks must call this together, and share the work."""
        part = Part.of(data)
        documents, share = part.documents, self.ranks.share(part.documents.offsets)
        first, n_numbers = share.docs.start, int(share.offsets[-1]) * part.data.n_features
        own = [np.zeros(0)]
        for chunk in query_chunks(share.offsets, -(-n_numbers // NUMBERS_AT_ONCE) or 1):
            docs = slice(first + chunk.docs.start, first + chunk.docs.stop)
            own.append(self.network.scores(part.features_of(docs, chunk.offsets)))
        scores = np.concatenate(self.ranks.gathered(np.concatenate(own)))
        return evaluate_scores(
            scores, documents.labels, documents.offsets, cutoff=self.config.cutoff, n_threads=self.n_threads,
            empty=self.config.empty, with_disparity=self.config.objective == DISPARITY,
            metric=self.config.metric, gain=self.config.gain, max_label=self._highest,
        )  # fmt: skip

    def best_model(self) -> RankingModel:
        """Return the network of the best epoch."""
        train = self.parts["train"].data
        progress = self.progress
        return RankingModel(
            train.n_features, self.config, progress.best_epoch, train.name, self.best_weights,
            History(progress.history), train.feature_names,
        )  # fmt: skip

    def _end_epoch(self) -> None:
        """Evaluate the network, and keep the state."""
        progress, quality = self.progress, self.config.quality
        metrics = self.evaluate(self.parts["vali"])
        is_best = not progress.history or quality(metrics) >= quality(progress.history[progress.best_epoch])
        if is_best:
            progress.best_epoch = progress.epoch
        progress.history.append(metrics)
        self._keep_state(is_best)

    def _keep_state(self, is_best: bool) -> None:
        """Keep weights and optimizer, and the weights as the best ones by the metric that chooses the epoch."""
        best = {} if is_best else self.best_weights
        self._state = {}  # it and the new state are not in memory at the same time
        groups = {"network": self.network.weights(), "optimizer": self.network.moments()}
        groups["best"] = best or groups["network"]
        self._state = {f"{group}/{name}": array for group, part in groups.items() for name, array in part.items()}

    def _return_to_epoch_end(self) -> None:
        """Give network and optimizer the state that was kept."""
        self.batch = 0
        self.network.set_weights(_group(self._state, "network"))
        self.network.set_moments(_group(self._state, "optimizer"))


def _group(arrays: Arrays, group: str) -> Arrays:
    """Return the arrays of one group of a checkpoint, without the group's prefix."""
    return {name[len(group) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{group}/")}
