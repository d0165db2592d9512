"""Fixtures shared by the tests."""

import os
from pathlib import Path

import pytest

from plrank_fast import build_info
from plrank_fast._core.runtime import threads as _threads


@pytest.fixture(scope="session")
def real_data():
    """Folder with the public data sets; PLRANK_FAST_DATA says where, if it is not beside the project."""
    folder = Path(os.environ.get("PLRANK_FAST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real ranking data in {folder}")
    return folder


@pytest.fixture
def costs():
    """`_threads.set_costs`, undone after the test."""
    before = _threads.set_costs()
    yield _threads.set_costs
    _threads.set_costs(**before)


@pytest.fixture
def on_team(monkeypatch, costs):
    """`on_team(n, call, ...)` is `call(..., n_threads=n)`, seen to have run on n threads, or on `team` where tasks are
    fewer. There are 64 processors, and any work is worth a further thread."""  # fmt: skip
    monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)
    costs(worth_ns=0.0)
    openmp = build_info()["openmp"]

    def run(n_threads, call, *arguments, team=None, **options):
        _threads.team_that_ran()
        result = call(*arguments, n_threads=n_threads, **options)
        size, _ = _threads.team_that_ran()
        assert size == (team or _threads.resolve_threads(n_threads) if openmp else 1)
        return result

    return run
