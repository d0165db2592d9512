from typing import Any

import numpy as np
from numpy.typing import NDArray

def finite_copy(values: Any) -> NDArray[np.float64] | None: ...
