"""The comparison of integrals of sets in docs/methods.md runs, and its rival converges to what it should be."""

import itertools
import runpy
from pathlib import Path

import numpy as np

import plrank_fast as plr

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "partitioned_preference.py"))


def test_rules_converge_to_the_sum_over_orders():
    """Mutants: W of all documents; the slope of the substitution left out; the trapezoid rule without du / u."""
    scores = np.random.default_rng(1).normal(size=7)
    orders = np.array(list(itertools.permutations(range(3))))
    true = np.log(np.exp(plr.ranking_log_prob(scores, orders)).sum())
    for rule, options in (("midpoint", (400, 4.0)), ("reference", ()), ("ours", ())):
        assert abs(EXAMPLE[rule](scores, 3, *options) - true) < 1e-10


def test_comparison(capsys):
    """Each row is printed, and more nodes err less. Mutant: the best power in both columns."""
    rows = EXAMPLE["main"](["--problems", "2", "--turns", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)
    for plain_24, best_24, plain_96, best_96, plain_1000, best_1000, ours in rows.values():
        assert plain_24 >= plain_96 >= plain_1000 > 1e-3 > best_24 > 1e-12 > ours
        assert max(best_96, best_1000) < 1e-9
