import numpy as np
from numpy.typing import NDArray

PRECISION: int
RECALL: int
RECIPROCAL_RANK: int
EXPECTED_RECIPROCAL_RANK: int
RANK_BIASED_PRECISION: int
AVERAGE_RELEVANCE_POSITION: int

def dcg(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_threads: int,
    out: NDArray[np.float64],
) -> None: ...
def metric(
    kind: int,
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    offsets: NDArray[np.int64],
    cutoff: int,
    parameter: float,
    empty: float,
    n_threads: int,
    out: NDArray[np.float64],
) -> None: ...
def ranking_log_prob(
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    rankings: NDArray[np.int32],
    n_threads: int,
    out: NDArray[np.float64],
) -> None: ...
