"""Elementary functions of the kernels against extended precision, at every SIMD level of this machine."""

import os
import subprocess
import sys

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import _introselect

LEVELS = ("baseline", "avx2", "avx512")


def available_levels():
    best = LEVELS.index(plr.build_info()["simd"])
    return [level for level in LEVELS[: best + 1] if level in plr.build_info()["simd_levels"]]


def largest_error_of_log():
    """Relative error over the uniforms that samplers use, near 0 and near 1, and over all normal numbers."""
    rng = np.random.default_rng(0)
    x = np.concatenate([
        (2 * rng.integers(0, 2**52, 400_000) + 1) * 2.0**-53,
        (2 * np.arange(4096) + 1) * 2.0**-53,
        1 - (2 * np.arange(4096) + 1) * 2.0**-53,
        np.ldexp(rng.uniform(0.5, 1, 100_000), rng.integers(-1020, 1024, 100_000)),
        np.sqrt(0.5) * (1 + np.arange(-512, 512) * 2.0**-52),
        1 + np.arange(1, 1025) * 2.0**-52,
    ])  # fmt: skip
    x = np.concatenate([x, np.full(-x.size % 8, 0.5)])
    exact = np.log(x.astype(np.longdouble))
    return float(np.max(np.abs((_introselect.vector_log(x) - exact) / exact)))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs an extended long double as reference")
@pytest.mark.parametrize("level", available_levels())
def test_log_relative_error(level):
    """Below 4.5e-16 (2 ulp). Mutant: the low part of ln 2 left out."""
    code = "from test_vector_math import largest_error_of_log; print(largest_error_of_log())"
    environment = {**os.environ, "PLRANK_FAST_SIMD": level, "PYTHONPATH": os.pathsep.join(
        [os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])}  # fmt: skip
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(answer.stdout) < 4.5e-16


def test_unknown_level_is_an_import_error():
    environment = {**os.environ, "PLRANK_FAST_SIMD": "mmx"}
    answer = subprocess.run(
        [sys.executable, "-c", "import plrank_fast"], env=environment, capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert "PLRANK_FAST_SIMD must be one of baseline, avx2, avx512, got 'mmx'" in answer.stderr
