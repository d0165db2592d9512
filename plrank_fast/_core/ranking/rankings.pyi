import numpy as np
from numpy.typing import NDArray

OUT_OF_RANGE: int
DUPLICATE: int
AFTER_THE_END: int

def find_fault(
    rankings: NDArray[np.int32], offsets: NDArray[np.int64], cutoff: int, prefixes: bool = False
) -> tuple[int, tuple[int, int, int]]: ...
