"""A trained network on disk, which scores new documents with NumPy alone."""

from __future__ import annotations

import base64
import html
import os
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._shared.archive import Arrays, interpreting, read_archive, require_arrays, write_archive
from plrank_fast._shared.pictures import png_of
from plrank_fast.chunks import query_chunks
from plrank_fast.data import RankingData, normalize_queries
from plrank_fast.data.ranking_data import finite_features, in_order_of
from plrank_fast.sampling import sample_rankings
from plrank_fast.training.config import TrainingConfig, with_tuples
from plrank_fast.training.evaluation import History, Metrics
from plrank_fast.training.learning_curve import learning_curve
from plrank_fast.validation import FloatArray, RandomState, RankingArray, count, real

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RankingModel", "load_model"]


def __dir__() -> list[str]:
    return __all__


MODEL = "model.plrank"  # its name in the folder of a run
DOCS_PER_CHUNK = 8192  # about so many in whole queries; bounds the memory of the hidden layers


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
    feature_names : tuple of str, optional
        Names of the features, if the training data had them: the columns of frames are found by them.
    """

    n_features: int
    config: TrainingConfig
    epoch: int
    train: str
    weights: Arrays
    history: list[Metrics] = field(default_factory=list)
    feature_names: tuple[str, ...] | None = None

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

    def plot(self) -> Figure:
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
        header = {name: getattr(self, name) for name in ("n_features", "epoch", "train", "history", "feature_names")}
        write_archive(path, "model", {**header, "config": asdict(self.config)}, self.weights)

    def sample_rankings(
        self,
        features: ArrayLike | RankingData,
        n_samples: int,
        cutoff: int | None = None,
        *,
        offsets: ArrayLike | None = None,
        rng: RandomState = None,
    ) -> RankingArray:
        """Draw rankings from the Plackett-Luce policy of the model's scores.

        Parameters
        ----------
        features : array_like, DataFrame or RankingData, shape (n_docs, n_features)
            Features as `predict` takes them.
        n_samples : int
            Rankings drawn for each query, N.
        cutoff : int, optional
            Ranks, K; all of the longest query by default.
        offsets : array_like of int, shape (n_queries + 1,), optional
            Where each query starts, as `predict` takes them.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.

        Returns
        -------
        ndarray of int32, shape (n_samples, min(K, D)), or (n_queries, n_samples, K) with ``offsets``
        """
        scores = self.predict(features, offsets=offsets)
        offsets = features.offsets if isinstance(features, RankingData) else offsets
        return sample_rankings(scores, n_samples, cutoff, offsets=offsets, rng=rng)

    def predict(self, features: ArrayLike | RankingData, *, offsets: ArrayLike | None = None) -> FloatArray:
        """Score documents; higher scores rank first.

        Features are normalised within each query as they were for training, unless ``config.normalize_features`` is
        False; to normalise them twice changes nothing. The score of a document does not depend on the other documents,
        not even in its last bit, but for this.

        Parameters
        ----------
        features : array_like, DataFrame or RankingData, shape (n_docs, n_features)
            Features as they were given for training. A model that has ``feature_names`` takes the columns of these
            names of a data frame or a data set.
        offsets : array_like of int, shape (n_queries + 1,), optional
            Where each query starts. A RankingData has its own; otherwise a model that normalises features needs them.

        Returns
        -------
        ndarray of float64, shape (n_docs,)

        Examples
        --------
        >>> import plrank_fast as plr
        >>> model = plr.load_model("runs/letor/model.plrank")           # doctest: +SKIP
        >>> data = plr.data.load_letor("S3.txt")                        # doctest: +SKIP
        >>> scores = model.predict(data)                                # doctest: +SKIP
        >>> scores = model.predict(data.features, offsets=data.offsets) # doctest: +SKIP
        """
        if isinstance(features, RankingData):
            validation.goes_with(offsets, "offsets", False, "features that are no RankingData")
            offsets, features = features.offsets, in_order_of(self.feature_names, features, "features").features
        named = validation.column_names(features, "features")
        if named is not None and self.feature_names is not None:
            by_text = {str(each): each for each in named}
            wanted = [by_text.get(each, each) for each in self.feature_names]
            features = validation.numbers_of_columns(features, "features", wanted)
        matrix = validation.numbers(features, "features")
        validation.require(
            matrix.shape[1:] == (self.n_features,),
            f"features must have shape (n_docs, {self.n_features}), for the model was trained with {self.n_features} "
            f"features, got {matrix.shape}",
        )
        finite_features(matrix, self.feature_names)
        normalized = self.config.normalize_features
        validation.require(
            not normalized or offsets is not None,
            f"offsets must be given, such as [0, {len(matrix)}] for one query: the model normalises features within "
            "each query, as for its training",
        )
        starts = np.arange(len(matrix) + 1) if offsets is None else validation.query_offsets(offsets, len(matrix))
        scores = [np.zeros(0)]
        for chunk in query_chunks(starts, -(-len(matrix) // DOCS_PER_CHUNK) or 1):
            units: Any = validation.real_array(matrix[chunk.docs], "features", (2,))
            if normalized:
                units = normalize_queries(RankingData(units, np.zeros(len(units)), chunk.offsets)).features
            for layer in range(0, len(self.weights), 2):
                if layer:
                    units = 0.5 + 0.5 * np.tanh(0.5 * units)  # the logistic function, without overflow
                # The last bits of a matrix product by BLAS depend on the numbers of documents and threads.
                units = np.einsum("df,uf->du", units, self.weights[f"{layer}.weight"].astype(np.float64))
                units += self.weights[f"{layer}.bias"]
            scores.append(units[:, 0])
        return np.concatenate(scores)


def weight_shapes(n_features: int, hidden: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of weights and biases of a network by name."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (inputs, units) in enumerate(pairwise((n_features, *hidden, 1))):
        shapes |= {f"{2 * layer}.weight": (units, inputs), f"{2 * layer}.bias": (units,)}
    return shapes


def weights_like(n_features: int, hidden: tuple[int, ...]) -> Arrays:
    """Return arrays with the names, shapes and type of the weights of a network, which take no memory."""
    return {name: np.broadcast_to(np.float32(0), shape) for name, shape in weight_shapes(n_features, hidden).items()}


def read_history(entries: Any, config: TrainingConfig) -> History:
    """Return the history in a file, each entry of which must have the metrics of an evaluation."""
    names = config.metric_names
    for metrics in entries:
        if metrics.keys() != set(names):
            expected = ", ".join(sorted(names))
            raise ValueError(f"its history has {', '.join(sorted(metrics))}, where its settings mean {expected}")
    return History({name: real(metrics[name], name) for name in names} for metrics in entries)


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
        history = read_history(header["history"], config)
        if history and epoch >= len(history):
            raise ValueError(f"its history ends before epoch {epoch}")
        names = header.get("feature_names")
        if names is not None:
            names = tuple(validation.identifier_strings(names, "feature_names", n_features))
        require_arrays(weights, weights_like(n_features, config.hidden))
    return RankingModel(n_features, config, epoch, header["train"], weights, history, names)
