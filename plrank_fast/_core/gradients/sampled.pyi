from typing import Any

import numpy as np
from numpy.typing import NDArray

def estimate(
    estimator: str,
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
    baseline: Any = False,
) -> Any: ...
def log_prob_gradient(
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    rankings: NDArray[np.int32],
    cotangent: NDArray[np.float64],
    n_threads: int | None,
) -> NDArray[np.float64]: ...
