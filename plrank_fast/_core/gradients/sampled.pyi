from collections.abc import Mapping
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

def traits(kind: int) -> tuple[bool, bool]: ...
def run_estimator(
    kind: int,
    sampler: int,
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64] | None,
    rank_weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_samples: int,
    rankings: NDArray[np.int32] | None,
    key: NDArray[np.uint64],
    first_query: int,
    n_threads: int,
    out: NDArray[np.float64],
    hessian: NDArray[np.float64],
    rewards: NDArray[np.float64] | None = None,
) -> None: ...
def lone_estimate(
    kind: int,
    samplers: Mapping[str, int],
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    n_samples: Any,
    fewest_samples: int,
    rng: Any,
    sampler: Any,
    n_threads: Any,
    out: Any,
    first_query: Any,
    hessian: Any,
) -> Any: ...
