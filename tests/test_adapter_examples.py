"""The examples of the adapters run as a reader would run them, and learn what they say."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "adapters"


def main_of(name, *libraries):
    """Result of an example's ``main``; skipped where a library is not installed."""
    for library in libraries:
        pytest.importorskip(library, reason=f"{library} is not installed")
    return runpy.run_path(str(FOLDER / name))["main"]()


def test_torch_training():
    before, after = main_of("torch_training.py", "torch")
    assert before < 0.7
    assert after > 0.85


def test_sklearn_search():
    assert main_of("sklearn_search.py", "sklearn") > 0.85


def test_jax_training():
    before, after = main_of("jax_training.py", "jax")
    assert before < 0.75
    assert after > 0.85
