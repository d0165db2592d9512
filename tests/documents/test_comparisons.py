"""Examples behind tables and pictures of the documents run, their rivals are what they should be, and all learn."""

import itertools
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr

ROOT = Path(__file__).parents[2]


def example(name):
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


@pytest.fixture(autouse=True)
def threads_of_torch():
    """An example may set their number."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


# --- docs/benchmarks.md: the generated sets


def test_generated_sets(capsys):
    """On a tiny set. Mutant: the training queries scored."""
    pytest.importorskip("lightgbm")
    sizes = ["--queries", "40", "--features", "12", "--epochs", "3"]
    (row,) = example("generated_sets")["main"](["--shapes", "yahoo", "--seeds", "0", *sizes]).values()
    # what these few documents give; trained and scored on the same ones, trees reach 0.95
    assert all(0.5 < value < 0.8 for value in row)
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split() == ["yahoo", "0", *(f"{value:.3f}" for value in row)]


def test_documented_order_of_generated_sets():
    """Linear < network < trees on every seed, by margins that no rounding makes. Mutant: a row of the earlier table."""
    section = (ROOT / "docs" / "benchmarks.md").read_text().partition("## The generated sets")[2]
    for shape, (queries, features) in example("generated_sets")["SIZES"].items():
        size = f"{queries} queries" + (f", {features} features" if features else "")
        assert re.search(rf"^\| {shape}, {size} \|", section, re.M | re.I), size
    rows = re.findall(r"^\|[^|]*\| (\d) \| \.(\d{3}) \| \.(\d{3}) \| \.(\d{3}) \|$", section, re.M)
    assert [int(seed) for seed, *_ in rows] == [0, 1, 2] * 3
    for seed, linear, network, trees in rows:
        assert int(linear) + 10 <= int(network) <= int(trees) - 10, seed


# --- docs/benchmarks.md: marginalised Plackett-Luce


def test_marginalized_rival_converges_to_the_exact_probabilities_and_gradient():
    """Mutants: the chances of a neighbour counted; the convolution or the ranks one off; density for that above."""
    torch, rival = pytest.importorskip("torch"), example("marginalized_plackett_luce")
    scores, relevance, offsets, theta = rival["problem"](12, 1.0, 3)
    probabilities = rival["placement_probabilities"](torch.tensor(scores), 4, 200, 1e-15).numpy()
    exact = plr.rank_probabilities(scores.ravel(), 4, offsets=offsets)
    np.testing.assert_allclose(probabilities.reshape(-1, 4), exact, atol=1e-9)
    gradient = rival["marginalized_gradient"](scores, relevance, theta, 200)
    exact = plr.pl_rank_exact(scores.ravel(), relevance.ravel(), theta, offsets=offsets, rtol=1e-10)
    np.testing.assert_allclose(gradient.ravel(), exact, atol=1e-7 * np.abs(exact).max())


def test_marginalized(capsys, tmp_path):
    """Every row is printed, more nodes err less, and frequencies are near. Mutant: rows of one document mixed up."""
    picture = tmp_path / "picture.png"
    arguments = ["--shapes", "D = 24", "--queries", "1", "--seconds", "0", "--picture", str(picture)]
    rows = example("marginalized_plackett_luce")["main"](arguments)["D = 24"]
    errors = [row[3] for row in rows if row[0] == "marginalised"]
    assert errors == sorted(errors, reverse=True)
    assert max(row[3] for row in rows if row[0] == "pl_rank_exact") < 1e-3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 14 + 8
    assert float(lines[-1].split()[-1]) < 0.01 < float(lines[-2].split()[-1]) < 0.1
    assert picture.read_bytes()[:4] == b"\x89PNG"


# --- docs/methods.md: integrals of sets


def test_rules_of_sets_converge_to_the_sum_over_orders():
    """Mutants: W of all documents; the slope of the substitution left out; the trapezoid rule without du / u."""
    rules, scores = example("partitioned_preference"), np.random.default_rng(1).normal(size=7)
    orders = np.array(list(itertools.permutations(range(3))))
    true = np.log(np.exp(plr.ranking_log_prob(scores, orders)).sum())
    for rule, options in (("midpoint", (400, 4.0)), ("reference", ()), ("ours", ())):
        assert abs(rules[rule](scores, 3, *options) - true) < 1e-10


def test_integrals_of_sets(capsys):
    """Each row is printed, and more nodes err less. Mutant: the best power in both columns."""
    rows = example("partitioned_preference")["main"](["--problems", "2", "--turns", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)
    for plain_24, best_24, plain_96, best_96, plain_1000, best_1000, ours in rows.values():
        assert plain_24 >= plain_96 >= plain_1000 > 1e-3 > best_24 > 1e-12 > ours
        assert max(best_96, best_1000) < 1e-9


# --- docs/slates.md


def test_learning_from_clicks(capsys, tmp_path):
    """More sessions teach more; what needs no log is the same. Mutant: nobody clicks."""
    picture = tmp_path / "clicks.png"
    arguments = ["--queries", "40", "--sessions", "300", "20000", "--seeds", "1"]
    arguments += ["--policies", "production", "--picture", str(picture)]
    ndcg = example("learning_from_clicks")["main"](arguments)
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
    main = example("two_towers")["main"]
    shares, medians, others = main(["--items", "3000", "--slates", "20", "--steps", "50", *candidates])
    assert np.mean(shares[-10:]) > np.mean(shares[:10]) + 0.1
    assert set(medians) >= {"scores", "draws", "policy gradient", "backward"}
    assert min(*medians.values(), *others.values()) > 0.0
    assert "of the slates had a purchase" in capsys.readouterr().out
