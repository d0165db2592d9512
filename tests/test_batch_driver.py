"""The driver of batches: every query once, rounds as long as their queries take, and a look for Ctrl-C after each.

Mutants of ``_batch.pyx``, each seen failing: the last query of a round left out (here, and wherever values are
compared); the cost of a query never learnt; no look for Ctrl-C after a round; every thread in the workspace of the
first (test_threads.py); the blocks of a long query used up out of order (test_pl_rank.py, test_threads.py).
"""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import _threads

OFFSETS = plr.offsets_from_group(np.full(2000, 3))
SCORES = np.random.default_rng(0).normal(size=OFFSETS[-1])


@pytest.fixture
def set_costs():
    before = _threads.set_costs()
    yield _threads.set_costs
    _threads.set_costs(**before)


def rounds():
    """How many rounds a call on all queries takes."""
    before = _threads.looks()
    plr.dcg(SCORES, SCORES + 5.0, plr.dcg_weights(3), offsets=OFFSETS, n_threads=1)
    return _threads.looks() - before


def test_rounds_are_as_long_as_queries_take(set_costs):
    """A round of 20 us by the estimate holds two dozen queries. If they turn out dearer than a round, each has one of
    its own; if cheaper, all soon fit into one."""
    set_costs(round_ns=2e4, learnt_factor=1e9)
    dear = rounds()
    assert dear > 1900
    set_costs(learnt_factor=1e-9)
    assert 3 <= rounds() < 20
    set_costs(round_ns=5e7)
    assert rounds() == 1


def test_every_query_once(set_costs):
    """Whatever the length of rounds and chunks."""
    alone = SCORES.reshape(-1, 3)
    order = np.argsort(-alone, axis=1)
    expected = np.take_along_axis(alone + 5.0, order, 1) @ plr.dcg_weights(3)
    for round_ns in (1.0, 2e4, 1e6, 5e7):
        set_costs(round_ns=round_ns)
        for n_threads in (1, 2, 7):
            found = plr.dcg(SCORES, SCORES + 5.0, plr.dcg_weights(3), offsets=OFFSETS, n_threads=n_threads)
            np.testing.assert_allclose(found, expected, rtol=1e-14)
