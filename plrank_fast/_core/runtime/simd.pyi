from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS: tuple[str, ...]
VECTOR_FUNCTIONS: dict[str, int]

def build_record() -> dict[str, Any]: ...
def level_name() -> str: ...
def evaluate_vector_function(
    name: str, level: str, x: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> None: ...
