"""The example of docs/slates.md runs as a reader would run it, and learns what the page says."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "learning_from_clicks.py"


def test_learning_from_clicks(capsys, tmp_path):
    """More sessions teach more; what needs no log is the same. Mutant: nobody clicks."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    picture = tmp_path / "clicks.png"
    arguments = ["--queries", "40", "--sessions", "300", "20000", "--seeds", "1", "--picture", str(picture)]
    ndcg = runpy.run_path(str(EXAMPLE))["main"](arguments)
    assert ndcg.shape == (2, 1, 5)
    few, many = ndcg[:, 0]
    assert few[4] == many[4] == max(*few, *many)
    assert many[2] > few[2]
    assert np.isfinite(ndcg).all()
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert picture.read_bytes()[:4] == b"\x89PNG"
