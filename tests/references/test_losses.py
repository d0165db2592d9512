"""Losses: equal to their reference implementation, gradients by finite differences, edge cases, batches, threads."""

from functools import partial

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import losses, reference, validation
from plrank_fast.chunks import query_streams
from problems import labelled
from streams import stream_words


def lambda_loss(cutoff, slope=1.0, mu=0.0, truncation="metric"):
    """LambdaRank in natural logarithms, with a weight of distances LambdaLoss in those to base 2, by the reference."""
    unit = np.log(2) if mu else 1.0

    def call(f, y):
        value, gradient = reference.lambda_loss(f, plr.gains(y), cutoff or f.size, slope, mu, truncation)
        return value / unit, gradient / unit

    return call


LOSSES = {  # by its reference
    "pointwise": (losses.pointwise, reference.pointwise_squared),
    "pointwise_logistic": (
        lambda f, y: losses.pointwise(f, np.divide(y, 4), kind="logistic"),
        lambda f, y: reference.pointwise_logistic(f, y / 4),
    ),
    "softmax_cross_entropy": (losses.softmax_cross_entropy, reference.softmax_cross_entropy),
    "list_mle": (losses.list_mle, lambda f, y: reference.list_mle(f, y, f.size)),
    "list_mle@3": (partial(losses.list_mle, cutoff=3), lambda f, y: reference.list_mle(f, y, 3)),
    "pairwise_logistic": (
        partial(losses.pairwise_logistic, slope=0.7), lambda f, y: reference.pairwise_logistic(f, y, 0.7)
    ),
    "lambda_rank": (partial(losses.lambda_rank, cutoff=None), lambda_loss(None)),
    "lambda_rank@3": (partial(losses.lambda_rank, cutoff=3, slope=2.0), lambda_loss(3, 2.0)),
    "lambda_rank@3 pairs": (
        partial(losses.lambda_rank, cutoff=3, slope=0.5, truncation="pairs"), lambda_loss(3, 0.5, truncation="pairs")
    ),
    "lambda_loss": (partial(losses.lambda_loss, cutoff=None), lambda_loss(None, mu=10.0)),
    "lambda_loss@3": (partial(losses.lambda_loss, cutoff=3, slope=0.6, mu=0.25), lambda_loss(3, 0.6, 0.25)),
    "approx_ndcg": (
        partial(losses.approx_ndcg, temperature=0.5), lambda f, y: reference.approx_ndcg(f, plr.gains(y), 0.5)
    ),
    "soft_rank": (
        partial(losses.soft_rank, cutoff=None, sigma=0.8),
        lambda f, y: reference.soft_rank(f, plr.gains(y), f.size, 0.8),
    ),
    "soft_rank@3": (
        partial(losses.soft_rank, cutoff=3), lambda f, y: reference.soft_rank(f, plr.gains(y), 3, 1.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
class TestAgainstTheReference:
    """Mutants: the suffix sum without the document itself; equal labels taken as pairs; discounts not cut; ideal DCG of
    all ranks; a distance off by one; distances weighted from mu = 1 on only; ranks of ApproxNDCG that count the
    document itself; SoftRank's adjoint taken after instead of before a document; lanes past the end not blanked."""

    @pytest.mark.parametrize("n_docs", [1, 2, 3, 8, 9, 17, 33, 100])
    def test_ordinary(self, n_docs, name):
        """With equal labels too: documents that are not to be told apart have a loss of exactly 0.

        Mutants: 0 / 0 with nothing to order; equal labels taken for pairs; queries left out that have no relevant one.
        """
        negative = name.startswith(("pointwise", "list_mle", "pairwise")) and name != "pointwise_logistic"
        for spread in (0.0, 0.3, 3.0, 20.0):
            scores, labels = labelled(n_docs, spread)
            of_many, of_few = [labels, labels - 1.5 * negative], [np.zeros(n_docs), np.full(n_docs, 2.0)]
            for given in of_many + of_few * (n_docs < 10):
                value, gradient = LOSSES[name][0](scores, given)
                best_value, best_gradient = LOSSES[name][1](scores, given)
                assert value.shape == (1,)
                nothing = best_value == 0.0 and (name.startswith(("pairwise", "lambda")) or not given.any())
                scale = 0.0 if nothing else max(1.0, abs(best_value))
                np.testing.assert_allclose(value[0], best_value, rtol=0, atol=1e-12 * scale)
                np.testing.assert_allclose(gradient, best_gradient, rtol=0, atol=1e-12 * scale)

    @pytest.mark.parametrize("size", [1e3, 1e6])
    def test_far_apart(self, size, name):
        """Scores at +-1e3 and +-1e6, and all far below 0: finite, and equal to the reference.

        Mutants: exp(f) without its maximum taken off, or with the larger of 0 and the maximum; log(1 + exp(x)) as it
        stands.
        """
        rng = np.random.default_rng(0)
        scores = rng.choice([-size, 0.0, size], size=12) + rng.normal(size=12)
        labels = rng.choice([0.0, 1.0, 3.0], size=12)
        for given in scores, scores - 3 * size:
            for got, best in zip(LOSSES[name][0](given, labels), LOSSES[name][1](given, labels), strict=True):
                assert np.isfinite(got).all()
                np.testing.assert_allclose(got, best if got.size > 1 else [best], rtol=1e-10, atol=1e-10)


def test_softmax_at_distances_beyond_the_largest_double():
    """They matter where the label is not 0 only. Mutant: 0 times the distance."""
    for part in losses.softmax_cross_entropy([1.7e308, 0.0, -1.7e308], [1.0, 0.0, 0.0]):
        assert (part == 0.0).all()


@pytest.mark.parametrize("name", [name for name in LOSSES if not name.startswith("lambda")])
def test_finite_differences(name):
    """The gradient is the value's, but for losses that hold weights fixed: their definition is the reference."""
    scores, labels = labelled(7)
    step = 1e-5
    gradient = LOSSES[name][0](scores, labels)[1]
    for d in range(7):
        shift = step * np.eye(7)[d]
        difference = LOSSES[name][0](scores + shift, labels)[0][0] - LOSSES[name][0](scores - shift, labels)[0][0]
        assert difference / (2 * step) == pytest.approx(gradient[d], abs=1e-8)


@pytest.mark.parametrize("loss", [losses.list_mle, losses.lambda_rank, losses.lambda_loss, losses.soft_rank])
def test_cutoff(loss):
    """No rank, more than there are documents, and the default: NDCG@10, or all ranks of ListMLE. Mutants: the ranks of
    the longest list; another number of them."""
    scores, labels = labelled(30, 1.0)
    assert all((part == 0.0).all() for part in loss(scores, labels, cutoff=0))
    by_default, whole = loss(scores, labels), loss(scores, labels, cutoff=50)
    for cutoff, of_all in ((None, True), (30, True), (10, False), (11, False)):
        parts = loss(scores, labels, cutoff=cutoff)
        assert all(map(np.array_equal, parts, whole)) == of_all
        assert all(map(np.array_equal, parts, by_default)) == (of_all if loss is losses.list_mle else cutoff == 10)


class TestTiesOfListMLE:
    """Ties of labels in a random order, every order equally likely."""

    @pytest.mark.parametrize("n_docs", [1, 2, 15, 16, 17, 18, 1000, 300_000])
    def test_order_from_the_stream(self, n_docs):
        """Written out in Python from the words of the query's stream; in the longest list some words are refused.

        Mutants: words used twice, or a lane left out; no word refused; the stream of another query; a shuffle that
        never leaves a document in its place, or swaps each with any; labels shuffled and items not.
        """
        key = validation.stream_key(7)
        words = iter(stream_words(key, 5, 0, n_docs // 16 + 4).view(np.uint32).ravel().tolist())
        order, refused = np.zeros(n_docs, dtype=np.int64), 0
        for i in range(n_docs):
            while (product := next(words) * (i + 1)) % 2**32 < 2**32 % (i + 1):
                refused += 1
            order[i] = order[product >> 32]
            order[product >> 32] = i
        assert refused > 0 or n_docs < 10**5
        scores, one = np.random.default_rng(0).normal(size=n_docs), [0, n_docs]
        for labels, cutoff in ((np.zeros(n_docs), None), (np.arange(n_docs) % 3.0, None), (np.arange(n_docs) % 3.0, 4)):
            value, gradient = losses.list_mle(
                scores, labels, offsets=one, cutoff=cutoff, ties="random", rng=query_streams(7, 5)
            )
            same_value, in_order = losses.list_mle(scores[order], labels[order], offsets=one, cutoff=cutoff)
            assert value[0] == same_value[0]
            np.testing.assert_array_equal(gradient[order], in_order)

    def test_faults(self):
        """Mutant: an rng that has no effect taken without an error; the generator advanced by a call that fails."""
        with pytest.raises(ValueError, match="rng only goes with ties='random', got 3"):
            losses.list_mle([0.0], [0.0], rng=3)
        generator, untouched = np.random.default_rng(0), np.random.default_rng(0)
        with pytest.raises(ValueError, match="out"):
            losses.list_mle([0.0], [0.0], ties="random", rng=generator, out=(np.zeros(2), np.zeros(1)))
        assert generator.integers(2**63) == untouched.integers(2**63)


LAMBDAS = {
    "lambda_rank": (losses.lambda_rank, {}),
    "lambda_rank pairs": (partial(losses.lambda_rank, truncation="pairs"), {"truncation": "pairs"}),
    "lambda_loss": (losses.lambda_loss, {"mu": 10.0}),
}


@pytest.mark.parametrize("name", LAMBDAS)
@pytest.mark.parametrize("common", [0.0, 3.0])
@pytest.mark.parametrize("cutoff", [1, 7, 200])
def test_few_documents_of_another_label(cutoff, common, name):
    """Rows of irrelevant documents, if most are such, are held against the relevant ones only. Mutants: the gradient of
    these lost; those counted that rank higher; the distance of places in their list in place of
    ranks; discounts past the cutoff, or the order there, as with the other truncation."""  # fmt: skip
    loss, options = LAMBDAS[name]
    rng = np.random.default_rng(5)
    for n_others in (0, 1, 2, 20, 110, 199):
        scores, labels = rng.normal(size=200), np.full(200, common)
        labels[rng.permutation(200)[:n_others]] = rng.choice([0.0, 2.0, 4.0], size=n_others)
        value, gradient = loss(scores, labels, cutoff=cutoff)
        best_value, best_gradient = lambda_loss(cutoff, **options)(scores, labels)
        assert value[0] == pytest.approx(best_value, rel=1e-12, abs=1e-13)
        np.testing.assert_allclose(gradient, best_gradient, rtol=0, atol=1e-12 * max(1.0, best_value))


@pytest.mark.parametrize("level", [3, 12, 30])
def test_pairs_are_truncated_as_by_lightgbm(level):
    """Against LightGBM itself. A tree with one split has -G / (H + lambda_l2) in a leaf, so that two trees tell G, the
    sum of the gradient over the leaf's documents. Mutant: the truncation of the metric."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    scores, labels, sizes = rng.normal(size=40), rng.integers(0, 5, size=40), [25, 15]

    def leaf(half, l2):
        """Value of the leaf in which one half of the documents is."""
        options = {"min_data_in_leaf": 1, "verbose": -1, "num_threads": 1}
        data = lightgbm.Dataset(half[:, np.newaxis], labels, group=sizes, init_score=scores, params=options)
        options |= {"objective": "lambdarank", "lambdarank_norm": False, "lambdarank_truncation_level": level}
        options |= {"sigmoid": 1.3, "num_leaves": 2, "min_sum_hessian_in_leaf": 0, "lambda_l2": l2, "learning_rate": 1}
        return lightgbm.train(options, data, num_boost_round=1).predict(np.ones((1, 1)), raw_score=True)[0]

    gradient = losses.lambda_rank(scores, labels, offsets=[0, 25, 40], cutoff=level, slope=1.3, truncation="pairs")[1]
    for half in (rng.random((6, 40)) < 0.5).astype(float):
        total = 2.0 / (1.0 / leaf(half, 1.0) - 1.0 / leaf(half, 3.0))
        assert half @ gradient == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("loss", [losses.lambda_rank, losses.lambda_loss, losses.approx_ndcg, losses.soft_rank])
def test_gains(loss):
    """Linear gains, and functions. Mutants: exponential gains of either; a function that may change the labels."""

    def doubled(labels):
        labels *= 2.0
        return labels

    scores, labels = np.random.default_rng(0).normal(size=12), np.arange(12.0) % 4
    batch = {"offsets": [0, 5, 12]}
    expected = loss(scores, labels, **batch)
    for given, gain in ((plr.gains(labels), "linear"), (labels, plr.gains), (plr.gains(labels) / 2, doubled)):
        before = given.copy()
        for found, exact in zip(loss(scores, given, gain=gain, **batch), expected, strict=True):
            np.testing.assert_array_equal(found, exact)
        np.testing.assert_array_equal(given, before)
    huge = loss(scores, 1e9 * plr.gains(labels), gain="linear", **batch)  # NDCG has no unit
    np.testing.assert_allclose(huge[1], expected[1], rtol=1e-12)
    for bad, message in (
        ({"gain": "log"}, "gain must be one of 'exponential', 'linear', got 'log'"),
        ({"gain": np.negative}, "the gain of labels must be at least 0, got -1.0 at index 1"),
        ({"gain": lambda labels: labels[:2]}, r"gain\(labels\) must have one entry per score, got shape \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            loss(scores, labels, **bad, **batch)
    with pytest.raises(ValueError, match=r"got 250.0 at index 0: .* pass gain='linear' for gains"):
        loss(scores, labels + 250, **batch)
