from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class EstimatorKind(IntEnum):
    METRIC = 0
    PL_RANK_1 = 1
    PL_RANK_2 = 2
    PL_RANK_3 = 3
    CONDITIONAL = 4
    POLICY = 5
    PLACEMENT = 6
    POLICY_WITH_BASELINE = 7
    PLACEMENT_WITH_BASELINE = 8
    EXPOSURE = 9
    LOG_PROB = 10
    PL_RANK_3_PLAIN = 11

def estimate(
    kind: int,
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    offsets: Any,
    n_samples: Any,
    rankings: Any,
    rng: Any,
    sampler: Any,
    n_threads: Any,
    out: Any,
    first_query: Any,
    hessian: Any = False,
) -> Any: ...
def log_prob_gradient(
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    rankings: NDArray[np.int32],
    cotangent: NDArray[np.float64],
    n_threads: int | None,
) -> NDArray[np.float64]: ...
