from typing import Any

import numpy as np
from numpy.typing import NDArray

GUMBEL: int
NORMAL: int

def stochastic_rank(
    noise: int,
    inverse_sigma: float,
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_samples: int,
    given: NDArray[np.float64] | None,
    key: NDArray[np.uint64],
    first_query: int,
    n_threads: int,
    out: NDArray[np.float64],
) -> None: ...
def lone_stochastic_rank(
    noise: int,
    inverse_sigma: float,
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    n_samples: Any,
    rng: Any,
    n_threads: Any,
    out: Any,
    first_query: Any,
) -> NDArray[np.float64] | None: ...
