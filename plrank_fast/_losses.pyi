import numpy as np
from numpy.typing import NDArray

POINTWISE_SQUARED: int
POINTWISE_LOGISTIC: int
SOFTMAX_CROSS_ENTROPY: int
LIST_MLE: int
PAIRWISE_LOGISTIC: int
LAMBDA_LOSS: int
APPROX_NDCG: int
SOFT_RANK: int

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
    gradient: NDArray[np.float64],
) -> None: ...
