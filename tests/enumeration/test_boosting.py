"""plrank_fast.boosting against enumeration of all rankings, its units, its rounds and its errors."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import boosting, reference
from plrank_fast._methods import registry
from plrank_fast.boosting import LEAST_CURVATURE, BoostingObjective, RankingMetric

LABELS = np.array([0, 2, 1, 1, 1, 1, 1, 0, 3, 0, 0])  # queries: graded, alike, empty, graded, without relevant ones
OFFSETS = np.array([0, 4, 7, 7, 9, 11])
SCORES = np.array([0.3, -0.2, 1.1, 0.0, 0.4, 0.2, 0.9, 0.5, -0.5, 1.0, 0.0])
THETA = plr.dcg_weights(2)


def ndcg_derivatives(derivative):
    """Derivative of the sum of expected NDCG@2 by enumeration; 0 where all labels are alike."""
    result = np.zeros(LABELS.size)
    for start, stop in itertools.pairwise(OFFSETS):
        labels = LABELS[start:stop]
        if labels.size and np.ptp(labels):
            relevance = 2.0**labels - 1
            ideal = (np.sort(relevance)[::-1][:2] * THETA[: labels.size]).sum()
            result[start:stop] = derivative(SCORES[start:stop], relevance / ideal, THETA)
    return result


def derivatives(**options):
    settings = {"method": "exact", "cutoff": 2, "rtol": 1e-9, "shrinkage": 1.0} | options
    return BoostingObjective(**settings).derivatives(SCORES, LABELS, OFFSETS)


def test_hessian_curvature_against_enumeration():
    """Mutants: the diagonal alone, its sign kept, the smaller of the two."""
    gradient, diagonal = map(ndcg_derivatives, (reference.exact_gradient, reference.exact_hessian_diagonal))
    larger = np.maximum(np.abs(gradient), np.abs(diagonal))
    assert (np.abs(diagonal) > np.abs(gradient)).any() or (np.abs(diagonal) < np.abs(gradient)).any()
    descent, curvature = derivatives(curvature="hessian")
    np.testing.assert_allclose(descent, -gradient / larger.mean(), atol=1e-7)
    np.testing.assert_allclose(curvature, larger / larger.mean() + LEAST_CURVATURE, atol=1e-7)


@pytest.mark.parametrize("method", ["exact", "cmc", "pl_rank_3"])
@pytest.mark.parametrize("curvature", ["gradient", "hessian"])
def test_independent_of_every_scale(method, curvature):
    """Gains, rank weights and query weights in other units change nothing; curvature is positive, 1 on average.

    Mutants: the unit taken before query weights, LEAST_CURVATURE added before dividing.
    """
    options = {"method": method, "curvature": curvature, "shrinkage": 1.0, "gain": "linear", "rtol": 1e-8}
    weights = np.array([1.0, 2.0, 1.0, 0.5, 3.0])
    expected = BoostingObjective(rank_weights=THETA, **options).derivatives(SCORES, LABELS, OFFSETS, weights=weights)
    for scale in (1e-9, 1e9):
        objective = BoostingObjective(rank_weights=THETA * scale, **options)
        scaled = objective.derivatives(SCORES, LABELS * scale, OFFSETS, weights=weights * scale)
        np.testing.assert_allclose(scaled, expected, atol=1e-7)
    assert (expected[1] > 0).all()
    assert expected[1].mean() == pytest.approx(1.0 + LEAST_CURVATURE)


def test_dcg_weighs_queries_by_their_gain():
    """Mutant: "dcg" divided by the ideal."""
    gradient, _ = derivatives(metric="dcg")
    dcg = plr.pl_rank_exact(SCORES, plr.gains(LABELS), THETA, offsets=OFFSETS, rtol=1e-9)
    dcg[np.r_[4:7, 9:11]] = 0.0
    np.testing.assert_allclose(gradient, -dcg / np.abs(dcg).mean(), atol=1e-7)


def test_gains():
    """A function of the labels, by name or given; "linear" is the label."""
    np.testing.assert_array_equal(derivatives(gain=plr.gains), derivatives())
    np.testing.assert_array_equal(derivatives(gain=lambda labels: labels), derivatives(gain="linear"))
    assert not np.allclose(derivatives(gain="linear")[0], derivatives()[0])


def test_query_weights_of_each_call():
    """Mutants: weights that stay when the next call has others, or none."""
    objective = BoostingObjective(method="exact", cutoff=2, rtol=1e-9, shrinkage=1.0)
    assert objective.derivatives(SCORES, LABELS, OFFSETS, weights=[2, 1, 1, 1, 1])[0][:4].all()
    without, _ = objective.derivatives(SCORES, LABELS, OFFSETS, weights=[0, 1, 1, 1, 1])
    assert np.flatnonzero(without).tolist() == [7, 8]
    np.testing.assert_array_equal(objective.derivatives(SCORES, LABELS, OFFSETS), derivatives())


@pytest.mark.parametrize("method", registry.METHODS)
def test_names_of_methods(method):
    """Every estimator by its name, with its options. Mutants: a table of its own; no ``n_samples``, ``rtol``."""
    gradient, _ = BoostingObjective(method=method, cutoff=2, n_samples=500).derivatives(SCORES, LABELS, OFFSETS)
    assert np.corrcoef(gradient, derivatives()[0])[0, 1] > 0.95
    other, _ = BoostingObjective(method=method, cutoff=2, n_samples=499, rtol=0.1).derivatives(SCORES, LABELS, OFFSETS)
    assert (gradient != other).any()


@pytest.mark.parametrize(("length", "method"), [(8, "cmc"), (30, "cmc"), (70, "exact"), (400, "exact")])
def test_method_that_costs_less_than_trees(length, method):
    """By default exact on long lists only. Mutants: the cost of a batch in place of a document's; the two exchanged."""
    labels, scores = np.arange(3 * length) % 3, np.linspace(0, 1, 3 * length)
    offsets = np.arange(4) * length
    auto, named = (BoostingObjective(method=name).derivatives(scores, labels, offsets) for name in ("auto", method))
    np.testing.assert_array_equal(auto, named)


def test_cutoff_beyond_the_longest_list():
    """It costs no memory and changes nothing. Mutants: all weights made (too big an array); cut to the last list."""
    for cutoff in (2**59, 4):
        np.testing.assert_array_equal(
            derivatives(cutoff=cutoff), derivatives(rank_weights=plr.dcg_weights(4), cutoff=None)
        )
        metric = RankingMetric(cutoff=cutoff)
        assert metric.name == f"ndcg_plrank@{cutoff}"
        assert metric.evaluate(SCORES, LABELS, OFFSETS) == RankingMetric(cutoff=4).evaluate(SCORES, LABELS, OFFSETS)


@pytest.mark.parametrize("method", ["cmc", "pl_rank_3"])
def test_noise_is_fresh_each_round_and_a_round_repeats(method):
    """Mutants: the seed alone, the round alone, a counter that explicit rounds advance."""
    objective = BoostingObjective(method=method, seed=5, n_samples=2)
    rounds = [objective.derivatives(SCORES + step, LABELS, OFFSETS)[0] for step in range(3)]
    assert not np.allclose(rounds[0], rounds[1])  # PL is the same at SCORES + step: only the noise differs
    assert not np.allclose(rounds[1], rounds[2])
    for number in (2, 0, 1):
        fresh = BoostingObjective(method=method, seed=5, n_samples=2)
        again, _ = fresh.derivatives(SCORES + number, LABELS, OFFSETS, round_number=number)
        np.testing.assert_array_equal(again, rounds[number])
        np.testing.assert_array_equal(
            objective.derivatives(SCORES + number, LABELS, OFFSETS, round_number=number)[0], rounds[number]
        )
    later = BoostingObjective(method=method, seed=5, n_samples=2, first_round=1)
    np.testing.assert_array_equal(later.derivatives(SCORES + 1, LABELS, OFFSETS)[0], rounds[1])
    np.testing.assert_array_equal(later.derivatives(SCORES + 2, LABELS, OFFSETS)[0], rounds[2])
    other = BoostingObjective(method=method, seed=6, n_samples=2)
    assert not np.allclose(other.derivatives(SCORES, LABELS, OFFSETS)[0], rounds[0])


class TestRounds:
    """The objective counts rounds when nobody says which one it is."""

    @staticmethod
    def noise(objective, scores, labels=LABELS):
        return objective.derivatives(scores, labels, OFFSETS)[0]

    def test_a_training_that_starts_over_repeats(self):
        """Mutant: the count goes on."""
        objective = BoostingObjective(method="cmc")
        first = [self.noise(objective, SCORES * step) for step in range(3)]
        second = [self.noise(objective, SCORES * step) for step in range(3)]
        np.testing.assert_array_equal(first, second)

    def test_a_round_without_a_split_is_no_new_start(self):
        """Scores stay where they began: the next round has other rankings. Mutant: every return to the start counts."""
        objective = BoostingObjective(method="cmc")
        rounds = [self.noise(objective, SCORES) for _ in range(3)]
        assert not np.allclose(rounds[0], rounds[1])
        assert not np.allclose(rounds[1], rounds[2])

    def test_start_is_known_by_all_scores(self):
        """A new start needs every score back where it was. Mutant: only those that are looked at first."""
        labels, scores = np.arange(300) % 3, np.zeros(300)
        objective = BoostingObjective(method="cmc")
        rounds = []
        for moved in (None, 0, -1):
            scores[:] = 0.0
            if moved is not None:
                scores[moved] = 1e-9
            rounds.append(objective.derivatives(scores, labels)[0])
        assert not np.allclose(rounds[0], rounds[1])
        assert not np.allclose(rounds[0], rounds[2])
        assert not np.allclose(rounds[1], rounds[2])

    def test_data_sets_are_counted_apart(self):
        """In cross-validation one objective serves all folds in turn.

        Mutants: one count for all; fewer data sets kept than there are folds.
        """
        objective = BoostingObjective(method="cmc")
        folds = [np.roll(LABELS, shift) + np.arange(LABELS.size) % (shift + 2) for shift in range(20)]
        alone = [[self.noise(BoostingObjective(method="cmc", first_round=number), SCORES * (1 + number), fold)
                  for number in range(2)] for fold in folds]  # fmt: skip
        for number in range(2):
            for fold, expected in zip(folds, alone, strict=True):
                np.testing.assert_array_equal(self.noise(objective, SCORES * (1 + number), fold), expected[number])

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))])
    def test_a_copy_begins_anew(self, duplicate):
        """Mutant: ``copy.copy`` shares the counts."""
        objective = BoostingObjective(method="cmc", first_round=3, cutoff=2, gain=plr.gains)
        first = self.noise(objective, SCORES)
        other = duplicate(objective)
        np.testing.assert_array_equal(self.noise(other, SCORES), first)
        assert repr(other) == repr(objective)
        np.testing.assert_array_equal(self.noise(objective, SCORES * 2), self.noise(other, SCORES * 2))


def test_data_set_is_prepared_once(monkeypatch):
    """And again when labels change under it. Mutants: prepared each round; the old gains kept."""
    calls, gains = [], boosting.gains_by
    monkeypatch.setattr(boosting, "gains_by", lambda *arguments: calls.append(1) or gains(*arguments))
    objective, labels = BoostingObjective(), LABELS.astype(float)
    for step in range(3):
        objective.derivatives(SCORES * step, labels, OFFSETS)
    assert len(calls) == 1
    labels[0] = 3
    changed, _ = objective.derivatives(SCORES, labels, OFFSETS)
    assert len(calls) == 2
    np.testing.assert_array_equal(changed, BoostingObjective().derivatives(SCORES, labels, OFFSETS)[0])


@pytest.mark.parametrize("labels", [np.zeros(11), np.ones(11)])
@pytest.mark.parametrize("curvature", ["gradient", "hessian"])
@pytest.mark.filterwarnings("default::UserWarning")
def test_nothing_to_learn(labels, curvature):
    """Zeros and a positive curvature, with a warning. Mutant: division by the mean of zeros."""
    with pytest.warns(UserWarning, match="no query with documents of different worth"):
        gradient, second = BoostingObjective(curvature=curvature).derivatives(SCORES, labels, OFFSETS)
    assert (gradient == 0).all()
    assert (second > 0).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cutoff": 10, "rank_weights": [1.0]}, ValueError, "only one of cutoff and rank_weights"),
        ({"method": "pl_rank_4"}, ValueError, "method must be one of 'auto', 'exact', 'cmc'"),
        ({"method": "pl_rank_2", "curvature": "hessian"}, ValueError, "method with curvature='hessian' must be one of"),
    ],
)
def test_refused_settings(options, error, message):
    with pytest.raises(error, match=message):
        BoostingObjective(**options)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((SCORES, LABELS - 1, OFFSETS), {}, "labels must be from 0 to 200"),
        ((SCORES, LABELS, OFFSETS), {"weights": [1.0]}, "weights must have one entry for each of the 5 queries"),
    ],
)
def test_refused_data(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        BoostingObjective().derivatives(*arguments, **options)


def test_refused_gain():
    with pytest.raises(ValueError, match="the gain of labels must be at least 0, got -1"):
        BoostingObjective(gain="linear").derivatives(SCORES, LABELS - 1, OFFSETS)
    BoostingObjective(gain="linear", metric="dcg").derivatives(SCORES, LABELS - 1, OFFSETS)
    objective = BoostingObjective(gain="linear", rank_weights=[1.0, -1.0])
    with pytest.raises(ValueError, match=r"rank_weights must be at least 0, got -1\.0 at index 1: NDCG is a share"):
        objective.derivatives(SCORES, LABELS, OFFSETS)
    with pytest.raises(ValueError, match=r"gain\(labels\) must have one entry per score"):
        BoostingObjective(gain=lambda labels: labels[1:]).derivatives(SCORES, LABELS, OFFSETS)


class TestRankingMetric:
    """Mean NDCG."""

    def test_rank_weights_that_do_not_descend(self):
        """The objective learns from them too. Mutants of each: the ideal ranking by descending gain, whose first
        weight is 0 here."""
        metric = RankingMetric(rank_weights=[0.0, 1.0])
        assert metric.evaluate([2.0, 1.0, 0.0], [1, 2, 0]) == 1.0
        assert metric.evaluate([1.0, 2.0, 0.0], [1, 2, 0]) == pytest.approx(1 / 3)
        gradient, _ = BoostingObjective(rank_weights=[0.0, 1.0]).derivatives(np.zeros(3), [0, 2, 0])
        assert gradient[1] < 0.0

    def test_names_tell_metrics_apart(self):
        """A library adds up the values of one name. Mutants: an option left out; rank weights by their number."""
        options = [
            {}, {"gain": "linear"}, {"gain": plr.gains}, {"rank_weights": np.ones(10)}, {"rank_weights": np.zeros(10)},
            {"empty": 1.0}, {"expected": True}, {"metric": "err"}, {"metric": "err", "max_label": 4}, {"name": "mine"},
        ]  # fmt: skip
        metrics = [RankingMetric(**each) for each in options]
        assert len({metric.name for metric in metrics}) == len(metrics)
        assert [metrics[index].name for index in (0, 1, -1)] == ["ndcg_plrank@10", "ndcg_plrank@10_linear", "mine"]
        assert repr(metrics[-1]) == "RankingMetric(cutoff=10, name='mine')"
        for wrong, error in (("a b", ValueError), ("a:b", ValueError), (3, TypeError)):
            with pytest.raises(error, match=r"^name must "):
                RankingMetric(name=wrong)

    def test_weights(self):
        """Mutant: the unweighted mean."""
        weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
        expected = plr.ndcg(SCORES, plr.gains(LABELS), THETA, offsets=OFFSETS) @ weights / weights.sum()
        assert RankingMetric(cutoff=2).evaluate(SCORES, LABELS, OFFSETS, weights=weights) == pytest.approx(expected)


@pytest.mark.parametrize("curvature", ["gradient", "hessian"])
def test_derivatives_of_a_large_set(curvature, on_team):
    """The formulas in NumPy, in ranges of 4096 documents, with the same bits on any number of threads.

    Mutants: a last range of few documents left out, or its end; the sum of one thread in other parts than with two;
    the Hessian diagonal left out; ``shrinkage`` not applied to the least curvature."""
    rng = np.random.default_rng(3)
    n_docs = 2 * 4096 + 11
    scores, labels = rng.normal(size=n_docs), rng.integers(0, 4, n_docs).astype(np.float32)
    offsets = np.append(np.arange(0, n_docs, 4), n_docs)
    objective = boosting.BoostingObjective(method="exact", curvature=curvature, shrinkage=20.0)
    data = objective._data_set(labels, offsets, None, scores)
    ascent, diagonal = objective._raw_derivatives(scores, data, 0)
    expected = np.abs(ascent) if curvature == "gradient" else np.maximum(np.abs(ascent), np.abs(diagonal))
    unit = 20.0 * expected.sum() / n_docs

    def of_team(n_threads):
        objective.n_threads = n_threads
        return objective.derivatives(scores, labels, offsets)

    results = [on_team(n_threads, of_team) for n_threads in (1, 2, 7)]
    for gradient, found in results:
        np.testing.assert_allclose(gradient, -ascent / unit, rtol=1e-14)
        np.testing.assert_allclose(found, expected / unit + 1e-3 / 20.0, rtol=1e-14)
        np.testing.assert_array_equal(gradient, results[0][0])
        np.testing.assert_array_equal(found, results[0][1])


def test_a_round_that_fails_is_not_counted():
    """It has the random numbers of the round that takes its place. Mutant: the round counted before its scores are
    found to be NaN."""
    scores, labels, offsets = np.array([0.3, 0.1, 0.2, 0.9]), np.array([1, 0, 0, 2], dtype=np.float32), [0, 4]
    failing, other = (boosting.BoostingObjective(method="cmc") for _ in range(2))
    for objective in (failing, other):
        objective.derivatives(scores, labels, offsets)
    for wrong in (np.array([0.3, np.nan, 0.2, 0.9]), np.array([0.3, np.inf, 0.2, 0.9], dtype=np.float32)):
        with pytest.raises(ValueError, match="scores must be finite, got"):
            failing.derivatives(wrong, labels, offsets)
    for _ in range(3):
        moved = scores = scores + 0.1
        results = [objective.derivatives(moved.astype(np.float32), labels, offsets) for objective in (failing, other)]
        np.testing.assert_array_equal(results[0][0], results[1][0])
