from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

def evaluate(
    loss: str,
    scores: Any,
    labels: Any,
    offsets: Any,
    n_threads: Any,
    out: Any,
    scale: float = 1.0,
    finite: bool = True,
    not_negative: bool = False,
    at_most_one: bool = False,
    gains: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None,
    limited: bool = False,
    cutoff: Any = None,
    discounts_past_cutoff: bool = False,
    distance_weight: float = 0.0,
    rng: Any = None,
    ties_at_random: bool = False,
    first_query: Any = 0,
    n_derivatives: int = 1,
) -> Any: ...
