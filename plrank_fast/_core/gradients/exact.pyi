from typing import Any

import numpy as np
from numpy.typing import NDArray

def solve_batch(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    rtol: float,
    n_threads: int,
    gradient: NDArray[np.float64] | None,
    hessian: NDArray[np.float64] | None,
    value: NDArray[np.float64] | None,
    missed: NDArray[np.float64],
    normal: bool = False,
    inverse_sigma: float = 1.0,
) -> None: ...
def effort(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    rtol: float,
    gradient: NDArray[np.float64],
    hessian: NDArray[np.float64] | None,
) -> tuple[int, int]: ...
def rank_probabilities_batch(
    scores: NDArray[np.float64], offsets: NDArray[np.int64], n_threads: int, probabilities: NDArray[np.float64]
) -> None: ...
def lone_value_and_gradient(
    scores: Any, relevance: Any, rank_weights: Any, rtol: Any, smallest_tolerance: float, n_threads: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...
def lone_solution(
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    rtol: Any,
    smallest_tolerance: float,
    normal: bool,
    inverse_sigma: float,
    n_threads: Any,
    out: Any,
    hessian: Any,
    value: bool,
) -> Any: ...
def lone_rank_probabilities(scores: Any, cutoff: Any, n_threads: Any) -> NDArray[np.float64] | None: ...
def lone_exposure(scores: Any, rank_weights: Any, n_threads: Any, out: Any) -> NDArray[np.float64] | None: ...
