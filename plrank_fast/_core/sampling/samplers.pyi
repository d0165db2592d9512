from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLER_NAMES: tuple[str, ...]

def sample_rankings(
    scores: Any, n_samples: Any, cutoff: Any, offsets: Any, rng: Any, sampler: Any, n_threads: Any, first_query: Any
) -> NDArray[np.int32]: ...
def items_of_words(scores: NDArray[np.float64], words: NDArray[np.uint64]) -> NDArray[np.int32]: ...
def terms_of_costs(
    scores: NDArray[np.float64], cutoff: int, n_samples: int
) -> tuple[list[list[float]], list[bool]]: ...
