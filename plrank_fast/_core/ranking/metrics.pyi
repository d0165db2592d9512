from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class MetricKind(IntEnum):
    PRECISION = 0
    RECALL = 1
    RECIPROCAL_RANK = 2
    EXPECTED_RECIPROCAL_RANK = 3
    RANK_BIASED_PRECISION = 4
    AVERAGE_RELEVANCE_POSITION = 5
    AVERAGE_PRECISION = 6
    SUCCESS = 7

def dcg(
    scores: NDArray[np.float64],
    relevance: NDArray[np.float64],
    rank_weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    average_ties: bool,
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
def lone_dcg(
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    cutoff: Any,
    discounts: NDArray[np.float64],
    average_ties: bool,
    normalized: bool,
    empty: Any,
    n_threads: Any,
) -> NDArray[np.float64] | None: ...
def lone_metric(
    kind: int, scores: Any, relevance: Any, cutoff: Any, parameter: float, empty: Any, n_threads: Any
) -> NDArray[np.float64] | None: ...
