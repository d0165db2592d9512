"""Each metric by its name: what is maximised is the expectation of what the metrics of rankings report.

The truth is a sum over all rankings of each query, with the functions of `plrank_fast.metrics`.
"""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast.boosting import BoostingObjective, RankingMetric

LENGTHS = [4, 0, 1, 5, 3, 4]
OFFSETS = plr.offsets_from_group(LENGTHS)
RNG = np.random.default_rng(11)
SCORES = RNG.normal(size=OFFSETS[-1])
LABELS = np.array([0, 2, 1, 0, 1, 3, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1.5])  # none relevant in the last but one
GAINS = plr.gains(LABELS)
HIGHEST = 4.0
BATCH = {"offsets": OFFSETS}
EXACT = {"ndcg": 1e-8, "dcg": 1e-8}
OF_RANKING = {
    "ndcg": lambda scores, docs, cutoff: plr.ndcg(scores, GAINS[docs], cutoff=cutoff),
    "dcg": lambda scores, docs, cutoff: plr.dcg(scores, GAINS[docs], cutoff=cutoff),
    "precision": lambda scores, docs, cutoff: plr.precision(scores, LABELS[docs], cutoff),
    "recall": lambda scores, docs, cutoff: plr.recall(scores, LABELS[docs], cutoff),
    "mrr": lambda scores, docs, cutoff: plr.mrr(scores, LABELS[docs], cutoff),
    "err": lambda scores, docs, cutoff: plr.err(scores, LABELS[docs], cutoff, max_label=HIGHEST),
    "success": lambda scores, docs, cutoff: plr.success(scores, LABELS[docs], cutoff),
    "ap": lambda scores, docs, cutoff: plr.ap(scores, LABELS[docs], cutoff),
}
every = pytest.mark.parametrize("metric", OF_RANKING)


def of_rankings(metric, scores, cutoff):
    """The metric of each query's ranking by descending score, for queries with documents."""
    queries = itertools.pairwise(OFFSETS)
    return [OF_RANKING[metric](scores[a:b], slice(a, b), cutoff)[0] for a, b in queries if b > a]


def scale(metric):
    return {"max_label": HIGHEST} if metric == "err" else {}


def truth(metric, scores=SCORES, cutoff=3):
    """The expectation of each query and the gradient of each score, over all rankings."""
    values, gradient = np.zeros(len(LENGTHS)), np.zeros(scores.size)
    for query, (first, last) in enumerate(itertools.pairwise(OFFSETS)):
        if last > first:
            docs, rankings = slice(first, last), np.array(list(itertools.permutations(range(last - first))))
            reported = [OF_RANKING[metric](-np.argsort(ranking), docs, cutoff)[0] for ranking in rankings]
            chances = np.exp(plr.ranking_log_prob(scores[docs], rankings))
            values[query] = chances @ reported
            gradient[docs] = plr.ranking_log_prob_vjp(scores[docs], rankings, chances * reported)
    return values, gradient


@every
@pytest.mark.parametrize("cutoff", [1, 3, 9])
def test_objective_and_metric_of_trees(metric, cutoff):
    """Values, and gradients with weights of queries.

    Mutants: ``empty`` for lists without relevant documents in DCG, and wherever a metric is 0;
    labels for gains; 1 / k or no weight of a rank; no stop; K of the longest list; AP without the factors; no
    test of all rankings being equally good, which trains on rounding.
    """
    options = {"metric": metric, "cutoff": cutoff, **scale(metric)}
    values, ascent = truth(metric, cutoff=cutoff)
    expected = RankingMetric(**options, expected=True, rtol=1e-9)
    assert expected.evaluate(SCORES, LABELS, OFFSETS) == pytest.approx(values.mean(), abs=1e-8)
    of_ranking = sum(of_rankings(metric, SCORES, cutoff)) / len(LENGTHS)
    assert RankingMetric(**options).evaluate(SCORES, LABELS, OFFSETS) == pytest.approx(of_ranking, abs=1e-12)
    n_empty = 1 if metric == "dcg" else 2
    for whole, of_policy in ((np.mean(of_ranking), False), (values.mean(), True)):
        with_empty = RankingMetric(**options, empty=7.0, expected=of_policy, rtol=1e-9)
        assert with_empty.evaluate(SCORES, LABELS, OFFSETS) == pytest.approx(whole + 7.0 * n_empty / 6, abs=1e-8)
    assert RankingMetric(metric=metric, cutoff=1, empty=7.0).evaluate([1.0, 0.0], [0, 1]) == 0.0
    weights = np.arange(1.0, 7.0)
    ascent *= np.repeat(weights, LENGTHS)
    objective = BoostingObjective(**options, rtol=1e-9, shrinkage=1.0, method="exact")
    if np.abs(ascent).max() > 1e-12:
        found, _ = objective.derivatives(SCORES, LABELS, OFFSETS, weights=weights)
        np.testing.assert_allclose(found, -ascent / np.abs(ascent).mean(), atol=1e-6)
    else:  # all lists are shorter than K: any ranking has the same precision, and the same success
        with pytest.warns(UserWarning, match="nothing to learn"):
            assert not objective.derivatives(SCORES, LABELS, OFFSETS, weights=weights)[0].any()


@every
@pytest.mark.parametrize("cutoff", [3, None])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_losses(library, metric, cutoff):
    """Value of each query and gradient of their sum. Mutants: the same; DCG over its ideal where it is "dcg"; without a
    cutoff, the precision of as many ranks as the longest query has."""
    options = {"metric": metric, "cutoff": cutoff, "rtol": 1e-9, "reduction": "none", **scale(metric)}
    values, ascent = truth(metric, cutoff=cutoff)
    if library == "torch":
        torch = pytest.importorskip("torch")
        from plrank_fast.torch import ExpectedMetricLoss

        scores = torch.tensor(SCORES, requires_grad=True)
        found = ExpectedMetricLoss(**options)(scores, LABELS, OFFSETS)
        found.sum().backward()
        gradient, found, tolerance = scores.grad.numpy(), found.detach().numpy(), 1e-8
    else:
        jax = pytest.importorskip("jax")
        from plrank_fast.jax import expected_metric_loss

        found, gradient, tolerance = expected_metric_loss(SCORES, LABELS, OFFSETS, **options), None, 1e-6
        gradient = jax.grad(lambda scores: expected_metric_loss(scores, LABELS, OFFSETS, **options).sum())(SCORES)
    np.testing.assert_allclose(found, -values, atol=tolerance)
    np.testing.assert_allclose(gradient, -ascent, atol=10 * tolerance)


@every
def test_ranker(metric):
    """Training ends where the true objective is flat, and the ranking is scored. Mutants: the same."""
    pytest.importorskip("sklearn")
    from plrank_fast.sklearn import PlackettLuceRanker

    X = np.random.default_rng(2).normal(size=(LABELS.size, 2))
    qid = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    ranker = PlackettLuceRanker(3, metric=metric, alpha=0.1, tol=1e-8, **scale(metric)).fit(X, LABELS, qid=qid)
    _, ascent = truth(metric, X @ ranker.coef_)
    np.testing.assert_allclose(X.T @ ascent / 5, 0.1 * ranker.coef_, atol=1e-6)  # queries without documents are unknown
    of_ranking = np.mean(of_rankings(metric, X @ ranker.coef_, 3))
    assert ranker.score(X, LABELS, qid=qid) == pytest.approx(of_ranking, abs=1e-12)


def test_empty_is_the_value_of_a_query_without_relevant_documents():
    """DCG has none: its values are not shares. Mutants: of an empty query alone; of DCG too."""
    for metric in OF_RANKING:
        value = RankingMetric(metric=metric, empty=7.0, expected=True).evaluate([1.0, 2.0], [0, 0], [0, 2])
        assert value == (0.0 if metric == "dcg" else 7.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "map"}, "metric must be one of 'ndcg', 'dcg', .*'success', 'ap', got 'map'"),
        ({"metric": "mrr", "method": "cmc"}, "method must be 'exact' or 'auto' with metric='mrr', got 'cmc'"),
        ({"metric": "mrr", "rank_weights": [1.0]}, "rank_weights only goes with metric='ndcg' or 'dcg'"),
        ({"metric": "ap", "max_label": 4}, "max_label only goes with metric='err', got 4"),
        ({"metric": "err", "max_label": -1}, "max_label must be"),
        ({"metric": "ap", "curvature": "hessian"}, "curvature must be 'gradient' with metric='ap'"),
    ],
    ids=range(6),
)
def test_settings_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        BoostingObjective(**options)
    if "curvature" not in options:
        torch_losses = pytest.importorskip("plrank_fast.torch", reason="PyTorch is not installed", exc_type=ImportError)
        with pytest.raises(ValueError, match=message):
            torch_losses.ExpectedMetricLoss(**options)
    if not {"curvature", "method"} & set(options):
        with pytest.raises(ValueError, match=message):
            RankingMetric(**options)


def test_a_batch_needs_the_scale_of_its_grades():
    """ERR needs it: a batch may lack the highest grade; trees see all labels. Mutant: the highest of the batch."""
    torch_losses = pytest.importorskip("plrank_fast.torch", reason="PyTorch is not installed", exc_type=ImportError)
    with pytest.raises(ValueError, match="max_label must be given with metric='err'"):
        torch_losses.ExpectedMetricLoss(metric="err")
    objective = BoostingObjective(metric="err", rtol=1e-9).derivatives(SCORES, LABELS, OFFSETS)
    given = BoostingObjective(metric="err", rtol=1e-9, max_label=3).derivatives(SCORES, LABELS, OFFSETS)
    np.testing.assert_array_equal(objective, given)
    with pytest.raises(ValueError, match="max_label must be at least 3"):
        BoostingObjective(metric="err", max_label=2).derivatives(SCORES, LABELS, OFFSETS)


def test_second_derivatives_are_those_of_sums_over_ranks():
    torch = pytest.importorskip("torch")
    from plrank_fast.torch import expected_metric_loss

    def product(metric):
        scores = torch.tensor(SCORES, requires_grad=True)
        loss = expected_metric_loss(scores, LABELS, OFFSETS, metric=metric, method="exact", cutoff=3)
        (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
        return torch.autograd.grad(gradient[0], scores)[0]

    assert product("precision").shape == SCORES.shape
    with pytest.raises(RuntimeError, match="second derivatives need a sum over ranks, got metric='mrr'"):
        product("mrr")


@pytest.mark.parametrize("metric", ["ndcg", "dcg", "precision", "recall"])
def test_averaged_ties(metric):
    """The mean over all orders of the rows. Mutants: ties by index; 0 for ``empty``."""
    scores, labels = np.array([1.0, 0.0, 1.0, 0.0, 1.0]), np.array([0, 2, 3, 0, 1])
    options = {"metric": metric, "cutoff": 2, "empty": 0.25}
    orders = [list(order) for order in itertools.permutations(range(5))]
    mean = np.mean([RankingMetric(**options).evaluate(scores[order], labels[order]) for order in orders])
    averaged = RankingMetric(**options, ties="average")
    assert averaged.evaluate(scores, labels) == pytest.approx(mean, abs=1e-12)
    assert averaged.name.endswith("_ties=average_empty=0.25")
    assert averaged.evaluate(scores, 0 * labels) == (0.0 if metric == "dcg" else 0.25)
    with pytest.raises(ValueError, match="ties must be 'index' with metric='mrr', got 'average'"):
        RankingMetric(metric="mrr", ties="average")


def test_queries_whose_rankings_are_all_as_good_have_no_gradient():
    """Success: fewer than K documents are not relevant. Mutants: fewer than K + 1; of precision for success."""
    labels, offsets = [1, 0, 0, 1, 0, 0, 0, 1, 1, 0], [0, 3, 7, 10]
    scores = np.random.default_rng(0).normal(size=10)
    for metric in ("success", "precision", "recall"):
        found, _ = BoostingObjective(metric=metric, cutoff=3, method="exact").derivatives(scores, labels, offsets)
        assert np.flatnonzero(found).tolist() == [3, 4, 5, 6]
    found, _ = BoostingObjective(metric="success", cutoff=2).derivatives(scores, labels, offsets)
    assert found[:7].all()
    assert not found[7:].any()
