"""The cost of ``import plrank_fast`` on top of NumPy."""

import subprocess
import sys


def track_import_milliseconds():
    program = "import numpy, time; t = time.perf_counter(); import plrank_fast; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    return 1e3 * min(runs)


track_import_milliseconds.unit = "ms"
