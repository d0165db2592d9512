"""The scoring network; only this module and `ranks` use PyTorch in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plrank_fast._shared.archive import Arrays
from plrank_fast._shared.extras import import_extra
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.ranks import ALONE, Ranks

if TYPE_CHECKING:
    import torch
else:
    torch = import_extra("torch", "train")

DOCS_PER_CHUNK = 65_536  # documents scored at once outside training; bounds the memory of the hidden layers


class ScoringNetwork:
    """Multi-layer perceptron with sigmoid units that gives every document a score, and its optimizer.

    PyTorch's global generator does not change.
    """

    def __init__(self, n_features: int, config: TrainingConfig) -> None:
        hidden = config.hidden
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            layers = []
            for inputs, units in zip((n_features, *hidden), hidden, strict=False):
                layers += [torch.nn.Linear(inputs, units), torch.nn.Sigmoid()]
            self._layers = torch.nn.Sequential(*layers, torch.nn.Linear((n_features, *hidden)[-1], 1))
            if config.initialization == "glorot":
                for layer in self._layers[::2]:
                    torch.nn.init.xavier_uniform_(layer.weight)
                    torch.nn.init.zeros_(layer.bias)
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        self._parameters = list(self._layers.parameters())
        self._optimizer = kinds[config.optimizer](self._parameters, lr=config.learning_rate)
        self._output: Any = None  # of the last call of `forward`, with its graph

    def forward(self, features: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Compute the scores of a batch, along whose gradient `step` goes, shape (n_docs,)."""
        self._output = self._layers(self._inputs(features)).squeeze(1)
        scores: npt.NDArray[np.float64] = self._output.detach().numpy().astype(np.float64)
        return scores

    def step(self, ascent: npt.NDArray[np.float64], ranks: Ranks = ALONE) -> None:
        """Change the weights so that the scores of all ranks' last `forward` move along ``ascent``."""
        self._optimizer.zero_grad()
        self._output.backward(torch.from_numpy(-ascent).to(self._output.dtype))  # optimizers minimise
        self._output = None
        ranks.add_up([weights.grad for weights in self._parameters])
        self._optimizer.step()

    def scores(self, features: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Compute the scores of documents without a graph, shape (n_docs,)."""
        with torch.no_grad():
            chunks = [
                self._layers(self._inputs(features[start : start + DOCS_PER_CHUNK])).squeeze(1)
                for start in range(0, len(features), DOCS_PER_CHUNK)
            ]
        return np.concatenate([np.zeros(0), *(chunk.numpy() for chunk in chunks)])

    def _inputs(self, features: npt.NDArray[Any]) -> Any:
        return torch.as_tensor(np.ascontiguousarray(features), dtype=self._parameters[0].dtype)

    def weights(self) -> Arrays:
        """Return copies of all weights by name."""
        return {name: tensor.numpy().copy() for name, tensor in self._layers.state_dict().items()}

    def set_weights(self, weights: Arrays) -> None:
        """Set the weights to those that `weights` returned for a network of the same shape."""
        self._layers.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})

    def moments(self) -> Arrays:
        """Return the optimizer's moments and step counts by name; empty for plain SGD."""
        state = self._optimizer.state_dict()["state"]
        return {
            f"{index}/{name}": tensor.numpy().copy()
            for index, entry in state.items()
            for name, tensor in entry.items()
            if tensor is not None  # some versions list a momentum of None for SGD
        }

    def moments_after_a_step(self) -> Arrays:
        """Return the moments after a step without a gradient, which leaves the weights as they are."""
        for weights in self._parameters:
            weights.grad = torch.zeros_like(weights)
        self._optimizer.step()
        return self.moments()

    def set_moments(self, moments: Arrays) -> None:
        """Set the optimizer's state to one that `moments` returned."""
        state: dict[int, dict[str, Any]] = {}
        for key, array in moments.items():
            index, _, name = key.partition("/")
            state.setdefault(int(index), {})[name] = torch.tensor(array)
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})


def set_model_threads(n_threads: int) -> None:
    """Set the threads of PyTorch's own products.

    More than one split the sums of a product differently, which changes the last bits of the weights. PyTorch also sets
    the default of OpenMP: after this call, -1 and not None means all processors for the library.
    """
    torch.set_num_threads(n_threads)
