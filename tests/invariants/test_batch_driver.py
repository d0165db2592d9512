"""The driver of batches: rounds as long as their queries take, and a look for Ctrl-C after each.

Mutants of the driver, each seen failing here or where it says: the cost of a query never learnt; no look for Ctrl-C
after a round; the last query or task of a round left out, or no look after it (test_batches.py::test_teams,
test_interrupts.py::test_work_can_be_cut_finely); every thread, or every task, in the workspace of the first
(test_batches.py::test_teams); the blocks of a long query drawn or added out of order
(test_batches.py::test_one_long_query, test_stochastic_rank.py); streams seeded by the thread (test_batches.py).
"""

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables

pytestmark = pytest.mark.chosen_path

OFFSETS = plr.offsets_from_group(np.full(2000, 3))
SCORES = np.random.default_rng(0).normal(size=OFFSETS[-1])


def rounds():
    """How many rounds a call on all queries takes."""
    before = runtime_variables.looks()
    plr.dcg(SCORES, SCORES + 5.0, plr.dcg_weights(3), offsets=OFFSETS, n_threads=1)
    return runtime_variables.looks() - before


def test_rounds_are_as_long_as_queries_take(costs):
    """Mutants: the cost of a query never learnt; no look for Ctrl-C after a round.

    A round of 20 us by the estimate holds two dozen queries. If they turn out dearer than a round, each has one of
    its own; if cheaper, all soon fit into one."""
    costs(round_ns=2e4, learnt_factor=1e9)
    dear = rounds()
    assert dear > 1900
    costs(learnt_factor=1e-9)
    assert 3 <= rounds() < 20
    costs(round_ns=5e7)
    assert rounds() == 1
