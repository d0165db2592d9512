from typing import Any

import numpy as np
from numpy.typing import NDArray

NOISE_NAMES: tuple[str, ...]
SMALLEST_TOLERANCE: float

def expectations(
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    offsets: Any,
    rtol: Any,
    noise: Any,
    sigma: Any,
    n_threads: Any,
    out: Any,
    value: bool,
    gradient: bool,
    hessian: Any = False,
    exposure: bool = False,
    direction: NDArray[np.float64] | None = None,
) -> Any: ...
def solve_unchecked(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    rtol: float,
    normal: bool,
    gradient: NDArray[np.float64],
    hessian: NDArray[np.float64] | None,
) -> tuple[float, int, int]: ...
def rank_probabilities(scores: Any, cutoff: Any, offsets: Any, n_threads: Any, out: Any) -> NDArray[np.float64]: ...
