from typing import Any

import numpy as np
from numpy.typing import NDArray

def stochastic_rank(
    scores: Any,
    relevance: Any,
    rank_weights: Any,
    offsets: Any,
    noise: Any,
    sigma: Any,
    n_samples: Any,
    rng: Any,
    n_threads: Any,
    out: Any,
    first_query: Any,
    given: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]: ...
