"""A trained network on disk, which scores new documents with NumPy alone."""

from __future__ import annotations

import base64
import html
import os
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._shared.archive import Arrays, interpreting, read_archive, write_archive
from plrank_fast._shared.pictures import png_of
from plrank_fast.data import RankingData, normalize_queries
from plrank_fast.sampling import sample_rankings
from plrank_fast.training.config import TrainingConfig, with_tuples
from plrank_fast.training.evaluation import Metrics
from plrank_fast.training.learning_curve import learning_curve
from plrank_fast.validation import FloatArray, RandomState, RankingArray, count, real

MODEL = "model.plrank"  # its name in the folder of a run
RAW = ": the model takes features that are normalised within queries; pass offsets to have raw ones normalised"
DOCS_PER_CHUNK = 8192  # bounds the memory of the hidden layers


@dataclass(frozen=True, eq=False)
class RankingModel:
    """A trained scoring network; `load_model` reads one.

    Attributes
    ----------
    n_features : int
        Columns of the features that it takes.
    config : TrainingConfig
        The settings of its training, such as ``config.normalize_features`` and ``config.hidden``.
    epoch : int
        Epoch of the training run in which it was the best.
    train : str
        Name of the training data.
    weights : dict of str to ndarray of float32
        Weights by PyTorch's names in ``Sequential(Linear, Sigmoid, ..., Linear)``: ``"0.weight"`` has shape
        (units, n_features), ``"0.bias"`` (units,), then ``"2.weight"`` and so on.
    history : list of dict of str to float
        Metrics on the validation data, of the untrained network and after each epoch.
    """

    n_features: int
    config: TrainingConfig
    epoch: int
    train: str
    weights: Arrays
    history: list[Metrics] = field(default_factory=list)

    def __repr__(self) -> str:
        layers = " ".join(map(str, (self.n_features, *self.config.hidden, 1)))
        return f"RankingModel(layers={layers}, epoch={self.epoch}, train={self.train!r})"

    def _repr_html_(self) -> str:
        """Return the learning curve as a picture, where there are one and Matplotlib."""
        text = f"<code>{html.escape(repr(self))}</code>"
        if not self.history or find_spec("matplotlib") is None:
            return text
        shown = base64.b64encode(png_of(self.plot(), dpi=80)).decode()
        return f'{text}<br><img src="data:image/png;base64,{shown}" alt="learning curve">'

    def plot(self) -> Any:
        """Draw the metrics on the validation data by epoch.

        Returns
        -------
        matplotlib.figure.Figure
            The learning curve; ``figure.savefig("curve.png")`` writes it to a file.
        """
        validation.require(self.history, "the model must have a history: it was saved without one")
        return learning_curve(self.history, self.config, self.epoch, self.train)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which `load_model` reads. Equal models give equal bytes.

        Parameters
        ----------
        path : path-like
            The file, which is replaced in one step.
        """
        header = {name: getattr(self, name) for name in ("n_features", "epoch", "train", "history")}
        write_archive(path, "model", {**header, "config": asdict(self.config)}, self.weights)

    def sample_rankings(
        self,
        features: ArrayLike,
        n_samples: int,
        cutoff: int | None = None,
        *,
        offsets: ArrayLike | None = None,
        rng: RandomState = None,
    ) -> RankingArray:
        """Draw rankings from the Plackett-Luce policy of the model's scores.

        Parameters
        ----------
        features : array_like, shape (n_docs, n_features)
            Features as `predict` takes them.
        n_samples : int
            Rankings drawn for each query, N.
        cutoff : int, optional
            Ranks, K; all of the longest query by default.
        offsets : array_like of int, shape (n_queries + 1,), optional
            Where each query starts. With them, raw features are normalised here if they were for training.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.

        Returns
        -------
        ndarray of int32, shape (n_samples, min(K, D)), or (n_queries, n_samples, K) with ``offsets``
        """
        scores = self.predict(features, offsets=offsets)
        return sample_rankings(scores, n_samples, cutoff, offsets=offsets, rng=rng)

    def predict(self, features: ArrayLike, *, offsets: ArrayLike | None = None) -> FloatArray:
        """Score documents; higher scores rank first.

        The score of a document does not depend on the other documents, not even in its last bit, unless their features
        are normalised together.

        Parameters
        ----------
        features : array_like, shape (n_docs, n_features)
            Features, normalised within each query by `plrank_fast.data.normalize_queries` unless
            ``config.normalize_features`` is False, or raw with ``offsets``.
        offsets : array_like of int, shape (n_queries + 1,), optional
            Where each query starts. With them, raw features are normalised here if they were for training.

        Returns
        -------
        ndarray of float64, shape (n_docs,)

        Examples
        --------
        >>> import plrank_fast as plr
        >>> model = plr.load_model("runs/letor/model.plrank")           # doctest: +SKIP
        >>> data = plr.data.load_letor("S3.txt")                        # doctest: +SKIP
        >>> scores = model.predict(data.features, offsets=data.offsets) # doctest: +SKIP
        """
        matrix = validation.as_array(features, "features")
        validation.require(
            matrix.shape[1:] == (self.n_features,),
            f"features must have shape (n_docs, {self.n_features}), for the model was trained with {self.n_features} "
            f"features, got {matrix.shape}",
        )
        normalized = self.config.normalize_features
        if offsets is not None and normalized:
            starts = validation.query_offsets(offsets, len(matrix))
            matrix = validation.real_array(matrix, "features", (2,))
            empty = np.zeros(len(matrix)), starts, np.arange(starts.size - 1), ""
            matrix = normalize_queries(RankingData(matrix, *empty)).features
        chunks = [np.zeros(0)]
        for start in range(0, len(matrix), DOCS_PER_CHUNK):
            units = validation.real_array(matrix[start : start + DOCS_PER_CHUNK], "features", (2,))
            if normalized:
                validation.within(units.reshape(-1), "features", 0.0, 1.0, RAW)
            for layer in range(0, len(self.weights), 2):
                if layer:
                    units = 0.5 + 0.5 * np.tanh(0.5 * units)  # the logistic function, without overflow
                # The last bits of a matrix product by BLAS depend on the numbers of documents and threads.
                units = np.einsum("df,uf->du", units, self.weights[f"{layer}.weight"].astype(np.float64))
                units += self.weights[f"{layer}.bias"]
            chunks.append(units[:, 0])
        return np.concatenate(chunks)


def weight_shapes(n_features: int, hidden: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of weights and biases of a network by name."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (inputs, units) in enumerate(pairwise((n_features, *hidden, 1))):
        shapes |= {f"{2 * layer}.weight": (units, inputs), f"{2 * layer}.bias": (units,)}
    return shapes


def model_file(path: str | os.PathLike[str]) -> str:
    """Return the name of a model's file, which may be given by the folder of its run."""
    is_path = isinstance(path, (str, bytes, os.PathLike))
    validation.of_type(is_path, "path", "the path of a file", validation.shown(path))
    name = os.fsdecode(path)
    return os.path.join(name, MODEL) if os.path.isdir(name) else name


def load_model(path: str | os.PathLike[str]) -> RankingModel:
    """Read a model that ``python -m plrank_fast train`` has written, with NumPy alone.

    Parameters
    ----------
    path : path-like
        The file, or the folder of the run, in which it is ``model.plrank``.

    Returns
    -------
    RankingModel
        The model; its method ``predict`` scores documents.

    Raises
    ------
    ValueError
        If the file, which the message names, is damaged, of another version, or no model.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> model = plr.load_model("runs/letor/model.plrank")               # doctest: +SKIP
    >>> scores = model.predict(features, offsets=[0, len(features)])    # doctest: +SKIP
    """
    path = model_file(path)
    header, weights = read_archive(path, "model")
    with interpreting(path, "model"):
        n_features = count(header["n_features"], "n_features", 1)
        config = TrainingConfig(**with_tuples(header["config"]))
        epoch = count(header["epoch"], "epoch", 0)
        if not isinstance(header["train"], str):
            raise TypeError(f"train must be a name, got {header['train']!r}")
        history = [
            {name: real(value, name) for name, value in metrics.items()} for metrics in header.get("history", [])
        ]
        shapes = weight_shapes(n_features, config.hidden)
        for name in sorted(shapes.keys() | weights.keys()):
            held = weights[name].shape if name in weights else "none"
            if held != shapes.get(name):
                raise ValueError(f"its header describes {name} of shape {shapes.get(name, 'none')}, it holds {held}")
            if weights[name].dtype != np.float32 or not np.isfinite(weights[name]).all():
                raise ValueError(f"its {name} are not all finite numbers of type float32")
    return RankingModel(n_features, config, epoch, header["train"], weights, history)
