"""The comparison with marginalised Plackett-Luce in docs/note.md runs, and its rival is what it should be."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr

torch = pytest.importorskip("torch", reason="torch is not installed")
EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "marginalized_plackett_luce.py"))


def test_rival_converges_to_the_exact_probabilities_and_gradient():
    """Mutants: the chances of a neighbour counted; the convolution or the ranks one off; density for that above."""
    scores, relevance, offsets, theta = EXAMPLE["problem"](12, 1.0, 3)
    probabilities = EXAMPLE["placement_probabilities"](torch.tensor(scores), 4, 200, 1e-15).numpy()
    exact = plr.rank_probabilities(scores.ravel(), 4, offsets=offsets)
    np.testing.assert_allclose(probabilities.reshape(-1, 4), exact, atol=1e-9)
    gradient = EXAMPLE["marginalized_gradient"](scores, relevance, theta, 200)
    exact = plr.pl_rank_exact(scores.ravel(), relevance.ravel(), theta, offsets=offsets, rtol=1e-10)
    np.testing.assert_allclose(gradient.ravel(), exact, atol=1e-7 * np.abs(exact).max())


def test_comparison(capsys, tmp_path):
    """Every row is printed, more nodes err less, and frequencies are near. Mutant: rows of one document mixed up."""
    threads = torch.get_num_threads()
    picture = tmp_path / "picture.png"
    try:
        arguments = ["--shapes", "D = 24", "--queries", "1", "--seconds", "0", "--picture", str(picture)]
        rows = EXAMPLE["main"](arguments)["D = 24"]
    finally:
        torch.set_num_threads(threads)
    errors = [row[3] for row in rows if row[0] == "marginalised"]
    assert errors == sorted(errors, reverse=True)
    assert max(row[3] for row in rows if row[0] == "pl_rank_exact") < 1e-3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 14 + 8
    assert float(lines[-1].split()[-1]) < 0.01 < float(lines[-2].split()[-1]) < 0.1
    assert picture.read_bytes()[:4] == b"\x89PNG"
