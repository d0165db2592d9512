from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMALISATION_NAMES: tuple[str, ...]

def discounts(n_ranks: int) -> NDArray[np.float64]: ...
def dcg(
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    cutoff: Any,
    offsets: Any,
    ties: Any,
    n_threads: Any,
    result: str = "dcg",
    normalize: Any = "query",
    empty: Any = 0.0,
) -> Any: ...
def metric(
    metric: str,
    scores: Any,
    relevance: Any,
    cutoff: Any,
    offsets: Any,
    n_threads: Any,
    empty: Any = 0.0,
    parameter: float = 0.0,
    name: str = "relevance",
    not_negative: bool = False,
) -> NDArray[np.float64]: ...
def ranking_log_prob(scores: Any, rankings: Any, offsets: Any, n_threads: Any) -> NDArray[np.float64]: ...
