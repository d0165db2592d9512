from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class SamplerKind(IntEnum):
    AUTO = 0
    INTROSELECT = 1
    NETWORK = 2
    TABLE = 3
    THRESHOLD = 4
    GUIDE = 5

def sample_rankings(
    sampler: int,
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_samples: int,
    cutoff: int,
    key: NDArray[np.uint64],
    first_query: int,
    n_threads: int,
    rankings: NDArray[np.int32],
) -> None: ...
def lone_rankings(
    samplers: Mapping[str, int],
    scores: Any,
    n_samples: Any,
    cutoff: Any,
    rng: Any,
    sampler: Any,
    n_threads: Any,
    first_query: Any,
) -> NDArray[np.int32] | None: ...
def choice(
    kind: int, scores: NDArray[np.float64], n_samples: int, cutoff: int, asked: bool = False
) -> tuple[int, bool]: ...
def items_of_words(scores: NDArray[np.float64], words: NDArray[np.uint64], salt: int) -> NDArray[np.int32]: ...
