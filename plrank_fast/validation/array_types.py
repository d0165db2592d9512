"""Types of arrays and of sources of random numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
RankingArray: TypeAlias = NDArray[np.int32]
KeyArray: TypeAlias = NDArray[np.uint64]
RandomState: TypeAlias = "int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None"
