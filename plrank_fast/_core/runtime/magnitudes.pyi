import numpy as np
from numpy.typing import NDArray

ORDINARY_EXPONENT: int

def all_finite(values: NDArray[np.float64]) -> bool: ...
def all_ordinary(values: NDArray[np.float64]) -> bool: ...
