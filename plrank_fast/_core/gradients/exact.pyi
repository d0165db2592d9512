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
    unchecked: bool = False,
    exposure: bool = False,
) -> Any: ...
def effort(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    rtol: float,
    gradient: NDArray[np.float64],
    hessian: NDArray[np.float64] | None,
) -> tuple[int, int]: ...
def rank_probabilities(scores: Any, cutoff: Any, offsets: Any, n_threads: Any, out: Any) -> NDArray[np.float64]: ...
