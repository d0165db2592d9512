import numpy as np
from numpy.typing import NDArray

def vector_log(x: NDArray[np.float64]) -> NDArray[np.float64]: ...
