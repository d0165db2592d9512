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


@pytest.fixture
def one_torch_thread():
    """Threads of tiny networks cost more than they save."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_torch_thread")
def test_cross_encoder():
    """Mutant: `scores.backward(-leaf.grad)`."""
    before, after, _ = main_of("cross_encoder.py")
    assert before < 0.4
    assert after > 0.65


@pytest.mark.usefixtures("one_torch_thread")
def test_retrieval_policy():
    """Mutants: the reward minimised; documents of another query read."""
    before, after = main_of("retrieval_policy.py", "torch")
    assert before < 0.3
    assert after > 0.6


@pytest.mark.usefixtures("one_torch_thread")
def test_preference_optimisation():
    """Mutants: the gradient ascended; log-probabilities in place of log-ratios; the prompt's token counted."""
    before, after = main_of("preference_optimisation.py", "torch")
    assert before == 0.0
    assert after > 0.9


@pytest.mark.usefixtures("one_torch_thread")
def test_scaling_costs():
    """Every step of training has a cost, and features are floats of four bytes."""
    found, size = runpy.run_path(str(FOLDER.parent / "scaling_costs.py"))["costs"](2000, 4, 20, rounds=1)
    assert len(found) == 4
    assert all(cost > 0 for cost in found.values())
    assert size == 16


@pytest.mark.usefixtures("one_torch_thread")
def test_epoch_of_the_published_loop(capsys, monkeypatch):
    """Runs with the project's own reference implementation; a row for each N and K."""
    arguments = ["--queries", "4", "--cutoffs", "5", "--samples", "5", "10", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["sigir22_epoch.py", *arguments])
    runpy.run_path(str(FOLDER.parent / "sigir22_epoch.py"))["main"]()
    assert len(capsys.readouterr().out.splitlines()) == 4
