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
    arguments = ["--queries", "40", "--sessions", "300", "20000", "--seeds", "1"]
    arguments += ["--policies", "production", "--picture", str(picture)]
    ndcg = runpy.run_path(str(EXAMPLE))["main"](arguments)
    assert ndcg.shape == (1, 2, 1, 5)
    few, many = ndcg[0, :, 0]
    assert few[4] == many[4] == max(*few, *many)
    assert many[2] > few[2]
    assert np.isfinite(ndcg).all()
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("candidates", [[], ["--candidates", "200"]], ids=["all", "candidates"])
def test_two_towers(capsys, candidates):
    """Slates get better. Mutants: the gradient uphill; of candidates, put at their places among themselves."""
    pytest.importorskip("torch", reason="torch is not installed")
    main = runpy.run_path(str(EXAMPLE.with_name("two_towers.py")))["main"]
    shares, medians, others = main(["--items", "3000", "--slates", "20", "--steps", "50", *candidates])
    assert np.mean(shares[-10:]) > np.mean(shares[:10]) + 0.2
    assert set(medians) >= {"scores", "draws", "policy gradient", "backward"}
    assert min(*medians.values(), *others.values()) > 0.0
    assert "of the slates had a purchase" in capsys.readouterr().out
