"""Elementary functions of the kernels against extended precision, at every SIMD level of this machine.

Mutants tried for every function: its first coefficients changed in their 12th digit (of the rough ones in the 6th; a
change of later ones does not reach the last place of the result); for exponentials and logarithms also ln 2 cut to its
upper part, and that part rounded to a whole double.
"""

import ctypes
import functools
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr

ROOT = Path(__file__).parents[2]
SETUP = runpy.run_path(str(ROOT / "setup.py"))
LEVELS = SETUP["LEVEL_FLAGS"]


def available_levels():
    best = list(LEVELS).index(plr.build_info()["simd"])
    return [level for level in list(LEVELS)[: best + 1] if level in plr.build_info()["simd_levels"]]


@functools.cache
def functions(level):
    """``vector_functions.c``, compiled as a kernel of this level is."""
    folder = tempfile.mkdtemp()
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))
    flags = [*SETUP["KERNEL_FLAGS"], *LEVELS[level], f"-DPLR_ISA={level}", f"-DPLR_ISA_{level.upper()}=1"]
    flags += ["-fvisibility=default", "-fPIC", "-shared", f"-I{ROOT / SETUP['KERNELS']}", "-lm"]
    source = Path(__file__).with_name("vector_functions.c")
    subprocess.run([*compiler, source, *flags, "-o", f"{folder}/functions.so"], check=True)
    library = ctypes.CDLL(f"{folder}/functions.so")
    shutil.rmtree(folder)
    return library


pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs an extended long double as reference")
every_level = pytest.mark.parametrize("level", available_levels())


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def evaluate(name, level, x):
    """Both results of a function; ``x`` of any length."""
    padded = np.concatenate([x, np.full(-x.size % 8, x[-1])])
    first, second = np.empty_like(padded), np.empty_like(padded)
    arrays = [ctypes.c_void_p(array.ctypes.data) for array in (padded, first, second)]
    getattr(functions(level), name)(*arrays, ctypes.c_size_t(padded.size))
    return first[: x.size], second[: x.size]


def relative_error(result, exact):
    return float(np.max(np.abs((result - exact) / exact)))


def signed_magnitudes(rng, lowest, highest, n):
    """Numbers of both signs whose logarithms are uniform."""
    return rng.choice([-1.0, 1.0], n) * np.exp(rng.uniform(np.log(lowest), np.log(highest), n))


def multiples_of_log_2():
    """The ends of the reduced range, (n + 1/2) ln 2, and the doubles around them; and multiples of ln 2."""
    middles = np.arange(-2041, 2042) * (np.log(2.0) / 2)
    return np.concatenate([middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])


def extended(x):
    return x.astype(np.longdouble)


def exponents(rng):
    return np.concatenate([
        rng.uniform(-708, 708, 200_000),
        rng.uniform(-1, 1, 200_000),
        signed_magnitudes(rng, 1e-300, 30.0, 100_000),
        multiples_of_log_2(),
        [0.0, -0.0, 708.0, -708.0],
    ])  # fmt: skip


def exponents_of_2(rng):
    return np.concatenate([-rng.uniform(0, 999, 100_000), -rng.uniform(0, 2, 50_000), -np.arange(999) / 2])


def uniforms(rng):
    """Those that samplers use, near 0, near 1 and between."""
    return np.concatenate([
        (2 * rng.integers(0, 2**52, 400_000) + 1) * 2.0**-53,
        (2 * np.arange(4096) + 1) * 2.0**-53,
        1 - (2 * np.arange(4096) + 1) * 2.0**-53,
    ])  # fmt: skip


def normal_numbers(rng):
    return np.concatenate([
        np.ldexp(rng.uniform(0.5, 1, 100_000), rng.integers(-1020, 1024, 100_000)),
        np.sqrt(0.5) * (1 + np.arange(-512, 512) * 2.0**-52),
        1 + np.arange(1, 1025) * 2.0**-52,
    ])  # fmt: skip


FUNCTIONS = {  # arguments, the exact function, the largest relative error
    "exp_": (exponents, np.exp, 4.5e-16),
    "exp_flush": (exponents, np.exp, 4.5e-16),
    "expm1_": (exponents, np.expm1, 1.2e-15),  # from -0.7 to -0.35 its own cancellation takes units of the last place
    "rough_exp2": (exponents_of_2, np.exp2, 7.7e-8),
    "log_": (lambda rng: np.concatenate([uniforms(rng), normal_numbers(rng)]), np.log, 4.5e-16),
    "log1p_unit": (
        lambda rng: np.concatenate([uniforms(rng), np.exp(-rng.uniform(0, 700, 100_000)), [1.0]]), np.log1p, 4.5e-16
    ),
    "rough_log": (lambda rng: np.concatenate([normal_numbers(rng), rng.uniform(0.5, 2, 100_000)]), np.log, 2e-6),
}  # fmt: skip
ZEROS = {  # arguments at which a result is 0
    "exp_flush": [np.nextafter(-708.0, -np.inf), -709.0, -1e10, np.finfo(float).min, -np.inf],
    "expm1_": [0.0],
    "rough_exp2": [-1100.0, -1e9, -(2.0**50)],
}


@every_level
@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name, level, rng):
    """Mutants: the result of ``exp_flush`` below -708 kept, or flushed below -700; exp less 1 for ``expm1``; the
    logarithm not corrected for the rounding of 1 + e."""
    arguments, exact, largest = FUNCTIONS[name]
    x = arguments(rng)
    x = x[x != 0] if name == "expm1_" else x
    assert relative_error(evaluate(name, level, x)[0], exact(extended(x))) < largest
    if name in ZEROS:
        assert not evaluate(name, level, np.array(ZEROS[name]))[0].any()


@every_level
def test_rough_square_root_and_inverse(level, rng):
    x = np.exp(rng.uniform(-700, 700, 100_000))
    root, inverse = evaluate("rough_square_root_and_inverse", level, x)
    assert relative_error(root, np.sqrt(extended(x))) < 5e-6
    assert relative_error(inverse, 1 / extended(x)) < 5e-6
    assert not evaluate("rough_square_root_and_inverse", level, np.zeros(1))[0].any()


def mills_ratio(x):
    """Phi(-x) over the density at x, the integral of exp(-x t - t^2 / 2) over t > 0, by the double exponential rule."""
    u = np.arange(-4.5, 3.0, 1 / np.longdouble(64), dtype=np.longdouble)
    half_pi = np.arccos(np.longdouble(0))
    t = np.exp(half_pi * np.sinh(u))
    dt = half_pi * np.cosh(u) * t / 64
    return np.array([np.sum(np.exp(-one * t - t * t / 2) * dt) for one in x.astype(np.longdouble)])


@every_level
def test_normal_tail(level, rng):
    """Relative errors grow with the square of the argument, whose rounding alone gives that."""
    x = np.concatenate([rng.uniform(0, 8, 1500), rng.uniform(0, 37, 1500), np.exp(-rng.uniform(0, 40, 200)), [0.0]])
    density = np.exp(-(extended(x) ** 2) / 2) / np.sqrt(4 * np.arccos(np.longdouble(0)))
    tail = density * mills_ratio(x)
    scale = np.maximum(1, x * x)
    first, second = evaluate("normal_tail", level, x)
    assert np.max(np.abs(first / tail - 1) / scale) < 1.3e-15
    assert np.max(np.abs(second / density - 1) / scale) < 1.3e-15
    far, density = evaluate("normal_tail", level, np.array([40.0, 1e10, 1e200, np.finfo(float).max]))
    assert not far.any()
    assert not density.any()


@every_level
def test_sin_cos(level, rng):
    """The argument is 2 pi u; errors are relative to the result, as u is reduced exactly."""
    u = np.concatenate([uniforms(rng), np.arange(8) / 8, np.arange(1, 8) / 8 - 2.0**-53, np.arange(8) / 8 + 2.0**-53])
    u = u[u < 1]
    quarter = np.round(4 * u)
    angle = np.arccos(np.longdouble(0)) * extended(4 * u - quarter)
    sine, cosine = np.sin(angle), np.cos(angle)
    turned = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)]
    for which, result in enumerate(evaluate("sin_cos", level, u)):
        exact = np.choose(quarter.astype(int) % 4, [pair[which] for pair in turned])
        nonzero = exact != 0
        assert relative_error(result[nonzero], exact[nonzero]) < 4.5e-16
        assert not result[~nonzero].any()


def test_unknown_level_is_an_import_error():
    environment = {**os.environ, "PLRANK_FAST_SIMD": "mmx"}
    answer = subprocess.run(
        [sys.executable, "-c", "import plrank_fast"], env=environment, capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert "PLRANK_FAST_SIMD must be one of baseline, avx2, avx512, got 'mmx'" in answer.stderr
