import numpy as np
from numpy.typing import NDArray

LIMIT_EXPONENT: int

def all_finite(array: NDArray[np.float64]) -> bool: ...
def each_within_limits(array: NDArray[np.float64]) -> bool: ...
