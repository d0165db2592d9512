"""The scoring network; only this module and `ranks` use PyTorch in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._shared.extras import import_extra
from plrank_fast.training.ranks import ALONE, Ranks

torch = import_extra("torch", "train")

DOCS_PER_CHUNK = 65_536  # documents scored at once outside training; bounds the memory of the hidden layers


class ScoringNetwork:
    """Multi-layer perceptron with sigmoid units that gives every document a score.

    `TrainingConfig` describes the arguments. PyTorch's global generator does not change.
    """

    def __init__(self, n_features: int, hidden: tuple[int, ...], seed: int, initialization: str = "pytorch") -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = []
            for inputs, units in zip((n_features, *hidden), hidden, strict=False):
                layers += [torch.nn.Linear(inputs, units), torch.nn.Sigmoid()]
            self._layers = torch.nn.Sequential(*layers, torch.nn.Linear((n_features, *hidden)[-1], 1))
            if initialization == "glorot":
                for layer in self._layers[::2]:
                    torch.nn.init.xavier_uniform_(layer.weight)
                    torch.nn.init.zeros_(layer.bias)

    def parameters(self) -> Any:
        """Return the parameters, for an optimizer of PyTorch."""
        return self._layers.parameters()

    def scores_with_graph(self, features: npt.NDArray[np.float32]) -> Any:
        """Compute scores as a tensor of shape (n_docs,) that autograd can differentiate."""
        return self._layers(self._inputs(features)).squeeze(1)

    def scores(self, features: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Compute the scores of documents, shape (n_docs,)."""
        with torch.no_grad():
            chunks = [
                self._layers(self._inputs(features[start : start + DOCS_PER_CHUNK])).squeeze(1)
                for start in range(0, len(features), DOCS_PER_CHUNK)
            ]
        return np.concatenate([np.zeros(0), *(chunk.numpy() for chunk in chunks)])

    def _inputs(self, features: npt.NDArray[Any]) -> Any:
        return torch.as_tensor(np.ascontiguousarray(features), dtype=next(self.parameters()).dtype)

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return copies of all weights by name."""
        return {name: tensor.numpy().copy() for name, tensor in self._layers.state_dict().items()}

    def set_weights(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Set the weights to those that `weights` returned for a network of the same shape."""
        self._layers.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})


class Optimizer:
    """Optimizer that takes steps along a gradient with respect to the scores, with a state that can be saved."""

    def __init__(self, name: str, network: ScoringNetwork, learning_rate: float) -> None:
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        self._weights = list(network.parameters())
        self._optimizer = kinds[name](self._weights, lr=learning_rate)

    def ascend(self, scores: Any, gradient: npt.NDArray[np.float64], ranks: Ranks = ALONE) -> None:
        """Change the weights so that the ``scores`` of all ranks (from `scores_with_graph`) move along ``gradient``."""
        self._optimizer.zero_grad()
        scores.backward(torch.from_numpy(-gradient).to(scores.dtype))  # optimizers minimise
        ranks.add_up([weights.grad for weights in self._weights])
        self._optimizer.step()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return moments and step counts by name; empty for plain SGD."""
        state = self._optimizer.state_dict()["state"]
        return {
            f"{index}/{name}": tensor.numpy().copy()
            for index, entry in state.items()
            for name, tensor in entry.items()
            if tensor is not None  # some versions list a momentum of None for SGD
        }

    def set_state(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set the state to one that `state` returned."""
        state: dict[int, dict[str, Any]] = {}
        for key, array in arrays.items():
            index, _, name = key.partition("/")
            state.setdefault(int(index), {})[name] = torch.tensor(array)
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})


def set_model_threads(n_threads: int) -> None:
    """Set the threads of PyTorch's own products.

    More than one split the sums of a product differently, which changes the last bits of the weights. PyTorch also sets
    the default of OpenMP: after this call, -1 and not None means all processors for the library.
    """
    torch.set_num_threads(n_threads)
