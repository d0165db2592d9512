import numpy as np
from numpy.typing import NDArray

def relative_weights(scores: NDArray[np.float64], highest: float) -> NDArray[np.float64]: ...
