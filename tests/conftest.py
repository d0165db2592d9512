"""Fixtures shared by the tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    """Folder with the public data sets; PLRANK_FAST_DATA says where, if it is not beside the project."""
    folder = Path(os.environ.get("PLRANK_FAST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real ranking data in {folder}")
    return folder
