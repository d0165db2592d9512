import numpy as np
from numpy.typing import NDArray

def smallest(keys: NDArray[np.float64], items: NDArray[np.int32], k: int, only_guaranteed: bool = False) -> None: ...
