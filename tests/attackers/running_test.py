"""Plugin of pytest that writes down which test is running, and ends the process where one computes for too long.

The file's name is in ``RUNNING_TEST``. With ``-x`` the last test that was written down is the one that failed.
"""

import os
import resource
from pathlib import Path

SECONDS = float(os.environ.get("SECONDS_OF_A_TEST", "90"))  # of the processor; no test takes a third of it


def pytest_runtest_logstart(nodeid):
    Path(os.environ["RUNNING_TEST"]).write_text(nodeid)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    end = int(usage.ru_utime + usage.ru_stime + SECONDS) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
