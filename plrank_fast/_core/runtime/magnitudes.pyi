import numpy as np
from numpy.typing import NDArray

LIMIT_EXPONENT: int

def all_finite(values: NDArray[np.float64]) -> bool: ...
def each_within_limits(values: NDArray[np.float64]) -> bool: ...
