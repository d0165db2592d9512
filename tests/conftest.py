"""Fixtures shared by the tests."""

import os
from pathlib import Path

import pytest

from plrank_fast import _threads


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
