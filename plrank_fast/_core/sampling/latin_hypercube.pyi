import numpy as np
from numpy.typing import NDArray

def sample_rankings(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_samples: int,
    cutoff: int,
    key: NDArray[np.uint64],
    first_query: int,
    n_threads: int,
    rankings: NDArray[np.int32],
) -> None: ...
