import numpy as np
from numpy.typing import NDArray

LARGEST_SPREAD: float

def relative_weights(scores: NDArray[np.float64], highest: float) -> NDArray[np.float64]: ...
def arrival(scores: NDArray[np.float64], wanted: float) -> tuple[float, float]: ...
