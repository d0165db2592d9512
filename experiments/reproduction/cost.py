"""Table 2 and Figure 1: the cost of the gradients of an epoch, against the cutoff K and the list length D.

All cutoffs of a method are timed in succession. An epoch of the papers includes the network's passes: they are timed
once per set and added to every method.
"""

from __future__ import annotations

import time
from functools import cache, lru_cache

import numpy as np

import plrank_fast as plr
from plrank_fast.benchmarks.epoch_cost import Workload, fastest_in_turn, seconds_per_epoch
from plrank_fast.data import PROFILES
from plrank_fast.validation import FloatArray
from reproduction.published import ALL, PUBLISHED, cell_of, method_of
from reproduction.results import Figures, Part

QUERIES = {"yahoo": 96, "mslr": 24, "istella": 12}  # queries of the sample
LENGTHS, LENGTH_CUTOFF, LENGTH_QUERIES = (10, 30, 100, 300, 1000), 10, 4
SECONDS = 0.04  # ours and NumPy's each take so long; longer calls are not repeated


def cost_part(shapes: list[str], cutoffs: list[int]) -> Part:
    """Plan the seconds per epoch by set and method, a cell for all cutoffs, and the network's by set."""
    cells: list[Figures] = [{"set": shape, "network": True} for shape in shapes]
    cells += [{"set": shape, **cell_of(each), "cutoffs": cutoffs} for shape in shapes for each in ALL]
    return Part("cost", "Table 2 and Figure 1: cost of an epoch", cells, measure)


def length_part() -> Part:
    """Plan the seconds per query by list length at one cutoff."""
    cells = [{**cell_of(each), "lengths": list(LENGTHS), "cutoff": LENGTH_CUTOFF} for each in ALL]
    return Part("length", "Figure 1, second half: cost against list length", cells, measure)


def measure(cell: Figures, number: int) -> Figures:
    """Measure seconds per epoch, ours and NumPy's, at each cutoff or length; at cutoffs also the relative error."""
    if "network" in cell:
        return {"network_seconds": _network_seconds(cell["set"])}
    method = method_of(cell)
    if "lengths" in cell:
        places = [(_of_length(length), cell["cutoff"]) for length in cell["lengths"]]
    else:
        places = [(_workload(cell["set"]), cutoff) for cutoff in cell["cutoffs"]]
    in_numpy = method if method in PUBLISHED else None
    seconds, numpy_seconds = zip(
        *(seconds_per_epoch(method, *place, SECONDS, in_numpy, number) for place in places), strict=True
    )
    result: Figures = {"seconds": seconds, "numpy_seconds": numpy_seconds if in_numpy else None}
    if "set" in cell:
        pairs = [(method.call(*place, number)(), _exact(cell["set"], place[1])) for place in places]
        result["error"] = [float(np.linalg.norm(own - truth) / np.linalg.norm(truth)) for own, truth in pairs]
    return result


_workload = lru_cache(maxsize=None)(lambda shape: Workload.of_profile(shape, QUERIES[shape]))
_of_length = lru_cache(maxsize=None)(lambda length: Workload.of_length(length, LENGTH_QUERIES))


@cache
def _exact(shape: str, cutoff: int) -> FloatArray:
    workload = _workload(shape)
    return np.asarray(
        plr.pl_rank_exact(
            workload.scores, workload.relevance, workload.rank_weights(cutoff), offsets=workload.offsets, rtol=1e-9
        )
    )


def _network_seconds(shape: str) -> float:
    """Measure the seconds of the network's passes of an epoch on a sample of documents in PyTorch."""
    from plrank_fast.training.config import TrainingConfig
    from plrank_fast.training.network import ScoringNetwork, set_model_threads

    set_model_threads(1)
    workload, config = _workload(shape), TrainingConfig(optimizer="sgd", learning_rate=1e-9)
    features = np.random.default_rng(0).random((workload.scores.size, PROFILES[shape].n_features), dtype=np.float32)
    network = ScoringNetwork(features.shape[1], config)

    def step() -> None:
        network.forward(features)
        network.step(workload.relevance)

    step()
    return fastest_in_turn(step, seconds=SECONDS, clock=time.process_time)[0] * workload.per_epoch
