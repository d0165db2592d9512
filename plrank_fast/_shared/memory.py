"""Check of available memory, as Linux grants more than there is and kills the process that fills it."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import numpy as np

CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # versions 2 and 1


def available_bytes() -> float:
    """Return the available bytes within the limits of machine, container and process."""
    left = [float(number) for number in map(_number_in, CONTAINER_LIMITS) if number]
    if kilobytes := _number_in("/proc/meminfo", "MemAvailable: *"):
        left.append(1024.0 * int(kilobytes))
    else:
        left.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    left += [] if limit == resource.RLIM_INFINITY else [float(limit)]
    return min(left)


def _number_in(path: str, before: str = "^") -> str | None:
    try:
        found = re.search(rf"{before}(\d+)", Path(path).read_text())
    except OSError:
        return None
    return found and found[1]


def require_bytes(needed: float, what: str, remedy: str = "") -> None:
    """Raise MemoryError if ``needed`` bytes are not available."""
    available = available_bytes()
    if needed > available:
        raise MemoryError(f"{what} needs {needed / 1e9:.1f} GB of the {available / 1e9:.1f} GB available{remedy}")
    try:
        np.empty(int(needed), dtype=np.uint8)  # what a limit of the process leaves is not known; no page is touched
    except MemoryError:
        problem = f"{what} needs {needed / 1e9:.1f} GB, more than the limit of this process leaves{remedy}"
        raise MemoryError(problem) from None
