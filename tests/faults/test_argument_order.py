"""Arguments in the order of other libraries, gains for grades, forgotten offsets: told where they can be, and not by
mistake.

False alarms were counted on the labels of five real files and three generated sets, by batch and by query, beside
scores of seven kinds (each feature column among them): none in 23,583 calls where relevance is labels, gains or
inverse-propensity clicks. An alarm needs relevance that is nearly nowhere the same beside scores that are few different
whole numbers. Grades were never taken for gains, in 1,312 calls with those labels and 60,000 with ratings up to 5, 7
and 10.
"""

import warnings
from functools import partial

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import losses
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.compat import sigir22
from public_calls import BATCHES, OTHERS

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 5, size=40).astype(float)
SCORES = RNG.normal(size=40)
DISCOUNTS = plr.dcg_weights(40)


def silent(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*arguments, **options)


OF_BOTH = [
    name for name, call in BATCHES.items()
    if "scores" in call.parameters and {"relevance", "labels"} & call.parameters.keys()
    and call.options.get("relevance", True) is not None
]  # fmt: skip


@pytest.mark.parametrize("name", OF_BOTH)
def test_order_of_scikit_learn(name):
    """Grades, gains or clicks first. Mutants: no look at all; one in some functions alone; the line of this package
    told, not the caller's."""
    for labels in (LABELS, plr.gains(LABELS), (LABELS > 2).astype(float)):
        with pytest.warns(UserWarning, match=r"scores look like grades.*scores come first here, \(scores, ") as caught:
            BATCHES[name](labels, SCORES, plr.dcg_weights(5))
        assert all(warning.filename.endswith("public_calls.py") for warning in caught)


def test_order_of_the_research_code():
    """Mutants: only the first two weights compared; no hint where the lengths differ."""
    for weights in (DISCOUNTS, DISCOUNTS.astype(np.float32)):
        with pytest.warns(UserWarning, match=r"scores look like the rank weights of DCG: .*plrank_fast.compat.sigir22"):
            plr.pl_rank_3(weights, LABELS, SCORES, n_samples=2)
    with pytest.raises(ValueError, match=r"relevance must .*, got shape \(40,\) for 2 scores: the order here is \(sc"):
        plr.pl_rank_3(plr.dcg_weights(2), LABELS, SCORES)
    with pytest.raises(ValueError, match=r"for 10 scores$"):
        plr.pl_rank_3(SCORES[:10], LABELS, plr.dcg_weights(10))
    nearly = DISCOUNTS.copy()
    nearly[-1] -= 1e-5
    silent(plr.pl_rank_3, nearly, LABELS, plr.dcg_weights(3), n_samples=2)


def test_research_code_in_its_own_order():
    """The published order is right where it is asked for. Mutant: the hint given there, too."""
    silent(sigir22.PL_rank_3, plr.dcg_weights(5), LABELS, SCORES, n_samples=2)
    with pytest.raises(ValueError, match="labels must have one entry per score") as caught:
        sigir22.lambdaloss(plr.dcg_weights(5), LABELS, plr.dcg_weights(10))
    assert "the order here" not in str(caught.value)


NO_ALARM = {
    "whole relevance": (RNG.integers(0, 3, size=60), RNG.permutation(60)),
    "zeros to begin with": (np.zeros(60), RNG.normal(size=60)),
    "positions": (-np.arange(60), RNG.normal(size=60)),
    "few documents": (np.array([0, 1, 0, 1, 0, 1, 1, 0]), RNG.normal(size=8)),
    "clicks over propensities": (RNG.integers(0, 3, size=60), RNG.binomial(1, 0.3, size=60) * RNG.uniform(1, 9, 60)),
    "levels": (RNG.integers(0, 3, size=60), RNG.choice([0.25, 0.5, 1.5], size=60)),
    "counts": (RNG.choice([0, 40, 100, 250], size=60), RNG.normal(size=60)),
    "negative whole scores": (RNG.integers(-3, 3, size=60), RNG.normal(size=60)),
    "scores with halves": (RNG.permutation(np.repeat(np.arange(6) / 2, 10)), RNG.normal(size=60)),
}


@pytest.mark.parametrize("name", NO_ALARM)
def test_no_false_alarms(name):
    """Mutants: any whole scores taken for grades; scores that are all the same; few documents judged; relevance that is
    whole, or is not but comes in levels, or is mostly 0."""
    scores, relevance = NO_ALARM[name]
    for order in (slice(None), slice(None, None, -1)):
        silent(plr.dcg, scores[order], relevance[order], cutoff=5)


OF_GRADES = plr.err, losses.lambda_rank, losses.lambda_loss, losses.approx_ndcg, losses.soft_rank
TAKE_GRADES = {"gains": plr.gains, **{function.__name__: partial(function, SCORES) for function in OF_GRADES}}


@pytest.mark.parametrize(
    ("labels", "seen"), [(plr.gains(LABELS), "1, 3, 7, 15"), (np.tile([0.0, 1.0, 3.0, 7.0], 10), "1, 3, 7")]
)
@pytest.mark.parametrize("name", TAKE_GRADES)
def test_gains_for_grades(name, labels, seen):
    """The second are the lowest that can be told from grades. Mutants: no look in one of the functions; compiled
    shortcuts that look from 14 on."""
    silent(TAKE_GRADES[name], LABELS)
    with pytest.warns(UserWarning, match=f"labels look like gains, {seen} and no grade in between") as caught:
        TAKE_GRADES[name](labels)
    assert {warning.filename for warning in caught} == {__file__}


NO_GAINS = {
    "scale up to 3": np.tile([0.0, 1.0, 3.0], 20), "two grades": np.tile([0.0, 1.0, 7.0], 20),
    "with 2": np.tile([1.0, 3.0, 7.0, 2.0], 20), "few": np.tile([1.0, 3.0, 7.0], 3),
    "0 to 10": np.tile(np.arange(11.0), 3), "with 0.5": np.tile([1.0, 3.0, 7.0, 0.5], 20),
    "zeros": np.zeros(40), "none": np.empty(0),
}  # fmt: skip


@pytest.mark.parametrize("labels", NO_GAINS.values(), ids=NO_GAINS)
def test_grades_that_are_none_of_it(labels):
    """Mutants: the highest alone looked at; 1, 3 and 7 not asked for; nine labels judged."""
    silent(plr.gains, labels)


LONG = np.linspace(-1.0, 1.0, 10_001)
OF_LISTS = "sample_rankings", "ranking_", "PlackettLuce", "ips", "doubly", "rips", "iips", "pseudo"
OF_LISTS += ("fit_strengths", "normalised")  # the shape of rankings tells; PyTorch and JAX have their test
ONE_QUERY = r"all 10001 documents count as one query: pass offsets, or offsets=\[0, 10001\] if they are one"


@pytest.mark.parametrize(
    "name", [name for name in (*BATCHES, *OTHERS) if not name.startswith(OF_LISTS) and "reward" not in name]
)
def test_a_batch_without_offsets(name):
    """Mutants: no warning in compiled code, or for arrays that it does not read itself."""
    call = BATCHES[name] if name in BATCHES else OTHERS[name]
    for relevance in (np.abs(LONG), np.abs(LONG)[::-1]):
        with pytest.raises(UserWarning, match=ONE_QUERY):
            silent(call, LONG, relevance, np.ones(2), 0)


@pytest.mark.parametrize("name", ["pl_rank_3", "exposure", "value_and_gradient pl_rank_3", "list_mle", "dcg"])
def test_a_list_is_no_batch(name):
    """Mutants: a warning for ten thousand documents, or beside offsets; one from each of two functions, or told at a
    line of this package."""
    for scores, offsets in ((LONG, None), (LONG[1:], None), (LONG, [0, LONG.size])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            BATCHES[name](scores, np.abs(scores), np.ones(2), offsets=offsets)
        assert len(caught) == (offsets is None and scores.size == LONG.size)
        assert all(warning.filename.endswith("public_calls.py") for warning in caught)


LEARNING = (
    *(method.function.__name__ for method in ESTIMATORS.values()), "value_and", "pairwise", "lambda_", "approx", "soft",
    "expected_ap cutoff gradient",
)  # fmt: skip
OF_LEARNING = [name for name in BATCHES if name.startswith(LEARNING) and "reward" not in name and "hvp" not in name]
ALIKE = "no query has documents of different (relevance|labels), so there is nothing to learn: check .* queries start"


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_in_which_nothing_can_be_learned(name):
    """Told by gradients, and by losses whose gradient is 0. Mutants: no warning in one of them, or for arrays that
    compiled code does not read; one for a single query, or where the last one tells; one from a metric, or from a
    function that hands on what it has computed; the line of this package told."""
    call, zeros = BATCHES[name], np.zeros(40)
    last = np.append(np.zeros(39), 1.0)
    for scores in (SCORES, SCORES.tolist()):
        if name in OF_LEARNING:
            with pytest.warns(UserWarning, match=ALIKE) as caught:
                call(scores, zeros, plr.dcg_weights(5), offsets=[0, 7, 40])
            assert [warning.filename.rpartition("/")[2] for warning in caught] == ["public_calls.py"]
        else:
            silent(call, scores, zeros, plr.dcg_weights(5), offsets=[0, 7, 40])
        silent(call, scores, last, plr.dcg_weights(5), offsets=[0, 7, 40])
        silent(call, scores, zeros, plr.dcg_weights(5))
