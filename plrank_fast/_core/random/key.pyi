from typing import Any

import numpy as np
from numpy.typing import NDArray

def stream_key(rng: Any) -> NDArray[np.uint64] | None: ...
