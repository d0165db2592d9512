"""How much a process has computed: what tells one that hangs from one that a busy machine keeps waiting."""

from __future__ import annotations

import os
from pathlib import Path


def processor_seconds(process: int) -> float:
    """Of a process, of its threads, and of the children that it has waited for; 0 where Linux does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
