import numpy as np
from numpy.typing import NDArray

METRIC: int
PL_RANK_1: int
PL_RANK_2: int
PL_RANK_3: int
CONDITIONAL: int
POLICY: int
PLACEMENT: int
POLICY_WITH_BASELINE: int
PLACEMENT_WITH_BASELINE: int
PL_RANK_3_PLAIN: int

def sampled_estimate(
    variant: int,
    sampler: int,
    pilot: bool,
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_samples: int,
    rankings: NDArray[np.int32] | None,
    key: NDArray[np.uint64],
    first_query: int,
    n_threads: int,
    out: NDArray[np.float64],
    hessian: NDArray[np.float64],
) -> None: ...
