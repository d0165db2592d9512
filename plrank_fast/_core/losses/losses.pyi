from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class LossKind(IntEnum):
    POINTWISE_SQUARED = 0
    POINTWISE_LOGISTIC = 1
    SOFTMAX_CROSS_ENTROPY = 2
    LIST_MLE = 3
    BUCKET_ORDER = 4
    PAIRWISE_LOGISTIC = 5
    LAMBDA_LOSS = 6
    APPROX_NDCG = 7
    SOFT_RANK = 8

def evaluate_loss(
    kind: int,
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    offsets: NDArray[np.int64],
    cutoff: int,
    discounts: NDArray[np.float64],
    discounts_past_cutoff: bool,
    scale: float,
    distance_weight: float,
    key: NDArray[np.uint64] | None,
    first_query: int,
    n_threads: int,
    values: NDArray[np.float64],
    gradient: NDArray[np.float64] | None,
    hessian: NDArray[np.float64] | None = None,
) -> None: ...
def lone_loss(
    kind: int,
    scores: Any,
    labels: Any,
    lowest_label: float,
    highest_label: float,
    as_gains: bool,
    cutoff: Any,
    discounts: NDArray[np.float64],
    discounts_past_cutoff: bool,
    scale: float,
    distance_weight: float,
    n_threads: Any,
    first_query: Any,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...
