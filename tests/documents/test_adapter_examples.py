"""The examples of the adapters run as a reader would run them, and learn what they say."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "adapters"


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


def test_scaling_costs():
    """Every step of training has a cost, and features are floats of four bytes."""
    pytest.importorskip("torch", reason="torch is not installed")
    import torch

    threads = torch.get_num_threads()
    try:
        found, size = runpy.run_path(str(FOLDER.parent / "scaling_costs.py"))["costs"](2000, 4, 20, rounds=1)
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 4
    assert all(cost > 0 for cost in found.values())
    assert size == 16


def test_epoch_of_the_published_loop(capsys, monkeypatch):
    """Runs with the project's own twin; a row for each N and K."""
    pytest.importorskip("torch", reason="torch is not installed")
    arguments = ["--queries", "4", "--cutoffs", "5", "--samples", "5", "10", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["sigir22_epoch.py", *arguments])
    import torch

    threads = torch.get_num_threads()
    try:
        runpy.run_path(str(FOLDER.parent / "sigir22_epoch.py"))["main"]()
    finally:
        torch.set_num_threads(threads)
    assert len(capsys.readouterr().out.splitlines()) == 4
