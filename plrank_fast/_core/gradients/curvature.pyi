import numpy as np
from numpy.typing import NDArray

def total_curvature(
    ascent: NDArray[np.float64], diagonal: NDArray[np.float64] | None, n_threads: int | None
) -> float: ...
def divided(
    ascent: NDArray[np.float64],
    diagonal: NDArray[np.float64] | None,
    divisor: float,
    least: float,
    n_threads: int | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
