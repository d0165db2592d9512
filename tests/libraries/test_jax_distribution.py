"""The Plackett-Luce distribution for JAX: shapes, log-probability and its gradient, transformations, draws."""

import itertools
import os

import numpy as np
import pytest

import plrank_fast as plr

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

from plrank_fast.jax import PlackettLuce, ranking_log_prob  # noqa: E402

# JAX runs threads, of which a fork elsewhere in the test session knows nothing
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*")


def scores_of(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("sample_shape", [(), (7,), (4, 2)])
def test_shapes_and_values(shape, sample_shape):
    """Mutants: samples and batch exchanged; rankings of one row against the scores of another."""
    scores = scores_of(*shape)
    policy = PlackettLuce(scores, 3)
    assert (policy.batch_shape, policy.event_shape) == (shape[:-1], (3,))
    key = jax.random.key(0)
    rankings = policy.sample(key, sample_shape)
    assert rankings.shape == sample_shape + shape[:-1] + (3,)
    assert rankings.dtype == jnp.int32
    assert (rankings == jax.jit(PlackettLuce.sample, static_argnums=2)(policy, key, sample_shape)).all()
    if rankings.size > 9:
        assert (rankings != policy.sample(jax.random.key(1), sample_shape)).any()
    log_prob = policy.log_prob(rankings)
    assert log_prob.shape == sample_shape + shape[:-1]
    flat = scores.reshape(-1, 5)
    for index in np.ndindex(*sample_shape, *shape[:-1]):
        row = int(np.ravel_multi_index(index[len(sample_shape) :], shape[:-1])) if shape[:-1] else 0
        expected = plr.ranking_log_prob(flat[row], np.asarray(rankings[index])[np.newaxis])[0]
        assert abs(float(log_prob[index]) - expected) < 1e-6


def test_draws_are_those_of_the_library():
    """With the words of the key as seed; and rows of the batch are queries of it."""
    scores = scores_of(2, 6)
    key = jax.random.key(7)
    drawn = PlackettLuce(scores, 4).sample(key, (50,))
    words = np.asarray(jax.random.key_data(key)).tolist()
    expected = plr.sample_rankings(scores.ravel(), 50, 4, offsets=[0, 6, 12], rng=np.random.SeedSequence(words))
    np.testing.assert_array_equal(np.moveaxis(np.asarray(drawn), 1, 0), expected)


def test_transformations():
    """Under ``vmap`` over policies and keys; mutants: the key of the first row for all, upstream left out."""
    scores, keys = scores_of(3, 5), jax.random.split(jax.random.key(0), 3)
    rankings = jax.vmap(lambda row, key: PlackettLuce(row, 2).sample(key, (20,)))(scores, keys)
    for row in range(3):
        np.testing.assert_array_equal(rankings[row], PlackettLuce(scores[row], 2).sample(keys[row], (20,)))
    same = jnp.broadcast_to(scores[0], (3, 5))
    drawn = jax.vmap(lambda row, key: PlackettLuce(row, 2).sample(key, (20,)))(same, keys)
    assert (drawn[0] != drawn[1]).any()

    upstream = np.linspace(-1.0, 2.0, 60, dtype=np.float32).reshape(3, 20)

    def loss(policy):
        return (upstream * policy.log_prob(jnp.moveaxis(rankings, 0, 1)).T).sum()

    gradient = jax.jit(jax.grad(loss))(PlackettLuce(scores, 2)).scores  # of the pytree, as its one leaf
    for row in range(3):
        expected = plr.ranking_log_prob_vjp(scores[row], rankings[row], upstream[row])
        np.testing.assert_allclose(gradient[row], expected, rtol=0, atol=1e-5)
    per_row = jax.vmap(lambda policy, rows: policy.log_prob(rows))(PlackettLuce(scores, 2), rankings)
    np.testing.assert_allclose(per_row, PlackettLuce(scores, 2).log_prob(jnp.moveaxis(rankings, 0, 1)).T, rtol=1e-6)


def test_ties():
    """Mutants: the gradient of the row before; the sum over rankings left out; buckets of the first row for all."""
    scores, buckets = scores_of(2, 4), np.array([[[0, 0, 1, 1], [2, 1, 2, 2]], [[5, 0, 0, 0], [1, 1, 0, 0]]])

    def log_prob(scores, buckets):
        return PlackettLuce(scores).log_prob(buckets=buckets)

    value, pull = jax.vjp(lambda scores: log_prob(scores, buckets), scores)
    gradient = pull(np.array([[1.0, 2.0], [3.0, -1.0]], dtype=np.float32))[0]
    for row, weights in enumerate(([1.0, 3.0], [2.0, -1.0])):
        expected = [plr.bucket_log_prob(scores[row], one)[0] for one in buckets[:, row]]
        np.testing.assert_allclose(value[:, row], expected, rtol=1e-6)
        of_row = sum(plr.bucket_log_prob_vjp(scores[row], buckets[i, row], [w]) for i, w in enumerate(weights))
        np.testing.assert_allclose(gradient[row], of_row, rtol=1e-5, atol=1e-6)
    each = jax.jit(jax.vmap(jax.value_and_grad(log_prob)))(scores, buckets[0])
    np.testing.assert_allclose(each[0], value[0], rtol=1e-6)


def test_entropy_and_divergence():
    """Means of 500 estimates, and of their gradients, against sums over all rankings, at five standard errors.

    Mutants: the gradient through the log-probability drawn from left out; its sign; the baseline includes the draw.
    """
    every, cutoff = np.array(list(itertools.permutations(range(4), 3))), 3

    def exact(rows):
        log_p, log_q = (PlackettLuce(row, cutoff).log_prob(every) for row in rows)
        return jnp.array([-(jnp.exp(log_p) * log_p).sum(), (jnp.exp(log_p) * (log_p - log_q)).sum()])

    def estimate(rows, key):
        p, q = (PlackettLuce(row, cutoff) for row in rows)
        return jnp.array([p.entropy(key, 3), p.kl(q, key, 3)])

    rows, keys = jnp.asarray(scores_of(2, 4)), jax.random.split(jax.random.key(0), 500)
    both = jax.jit(lambda rows, key: jnp.append(estimate(rows, key), jax.jacrev(estimate)(rows, key)))
    drawn = [both(rows, key) for key in keys]
    error = np.abs(np.mean(drawn, axis=0) - np.append(exact(rows), jax.jacrev(exact)(rows)))
    assert (error <= 5 * np.std(drawn, axis=0) / 500**0.5 + 1e-5).all()


def test_draws_have_no_gradient():
    def mean(scores):
        return PlackettLuce(scores, 1).sample(0, (9,)).astype(jnp.float32).mean() * scores.sum()

    scores = jnp.asarray(scores_of(3))
    np.testing.assert_allclose(jax.grad(mean)(scores), mean(scores) / scores.sum(), rtol=1e-6)


def test_log_prob_broadcasts_and_takes_short_rankings():
    scores = scores_of(2, 4)
    values = PlackettLuce(scores).log_prob([[1, 3, -1], [2, -1, -1]])
    for row, ranking in enumerate(([1, 3], [2])):
        assert abs(float(values[row]) - plr.ranking_log_prob(scores[row], [ranking])[0]) < 1e-6
    many = PlackettLuce(scores[0]).log_prob(np.array([[[1, 0]], [[2, 3]]]))
    assert many.shape == (2, 1)
    both = PlackettLuce(scores).log_prob([1, 0])
    assert both.shape == (2,)
    empty = PlackettLuce(scores[:0].astype(np.float16)).log_prob(np.zeros((5, 0, 2), dtype=int))
    assert (empty.shape, empty.dtype) == ((5, 0), jnp.float16)
    assert PlackettLuce(scores, 0).sample(0, (3,)).shape == (3, 2, 0)


def test_no_items():
    """Mutant: -1 for the size of an axis that may be empty."""
    policy, none = PlackettLuce(jnp.zeros(0)), jnp.zeros((2, 0), dtype=int)
    assert policy.log_prob(none).tolist() == policy.log_prob(buckets=none).tolist() == [0.0, 0.0]
    assert (policy.mode().shape, float(policy.entropy(0))) == ((0,), 0.0)
    assert ranking_log_prob(jnp.zeros(0), none).tolist() == [0.0, 0.0]
    gradient = jax.grad(lambda scores: ranking_log_prob(scores, jnp.zeros((0, 3), dtype=int)).sum())(jnp.zeros(3))
    assert gradient.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(Exception, match="key must not be negative, got -1 at index 0"):
        PlackettLuce(jnp.zeros(3)).sample(jnp.array([-1, 2])).block_until_ready()


def test_mode():
    """Mutant: ties by descending number."""
    policy = PlackettLuce(jnp.array([[0.0, 1.0, 1.0], [5.0, 4.0, 7.0]]), 2)
    np.testing.assert_array_equal(policy.mode(), [[1, 2], [2, 0]])
    assert policy.mode().dtype == jnp.int32


def test_masked_items():
    """A score of -inf is a weight of 0, as for ``plrank_fast.PlackettLuce``.

    Mutants: draws cut to the longest row; a mode that holds masked items; NaN where a divergence is infinite.
    """
    scores = jnp.array([[0.0, -jnp.inf, 1.0, -jnp.inf], [-jnp.inf, -jnp.inf, 0.5, -jnp.inf]])
    policy = PlackettLuce(scores, 3)
    drawn = np.asarray(jax.jit(PlackettLuce.sample, static_argnums=2)(policy, jax.random.key(0), (50,)))
    assert {tuple(row) for row in drawn[:, 0].tolist()} == {(0, 2, -1), (2, 0, -1)}
    assert (drawn[:, 1] == [2, -1, -1]).all()
    assert policy.mode().tolist() == [[2, 0, -1], [2, -1, -1]]
    likely = float(jax.nn.softmax(jnp.array([1.0, 0.0]))[0])

    def log_prob(scores, rankings):
        return PlackettLuce(scores, 3).log_prob(rankings)

    rankings = jnp.array([[2, 0, -1], [2, 0, 1], [2, -1, -1]])
    np.testing.assert_allclose(log_prob(scores[0], rankings), [np.log(likely), -np.inf, np.log(likely)], rtol=1e-6)
    gradient = jax.grad(lambda scores: log_prob(scores, rankings[:2]).sum())(scores[0])
    np.testing.assert_allclose(gradient, [likely - 1.0, 0.0, 1.0 - likely, 0.0], rtol=1e-6)
    assert float(policy.entropy(0)[1]) == 0.0
    assert PlackettLuce(jnp.zeros((2, 4)), 3).kl(policy, 0).tolist() == [np.inf, np.inf]
    assert np.isfinite(policy.kl(PlackettLuce(jnp.zeros((2, 4)), 3), 0)).all()


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "scores must be of a floating dtype, got int32", lambda: PlackettLuce([1, 2])),
        (ValueError, "scores must have an axis of items, got a scalar", lambda: PlackettLuce(1.0)),
        (TypeError, "cutoff must be an integer", lambda: PlackettLuce([1.0], 0.5)),
        (TypeError, "rankings must be of integers", lambda: PlackettLuce([1.0]).log_prob([[0.5]])),
        (ValueError, "rankings must have an axis of items", lambda: PlackettLuce([1.0]).log_prob(0)),
        (ValueError, "rankings must have at most 1 ranks", lambda: PlackettLuce([1.0, 0.0], 1).log_prob([0, 1])),
        (ValueError, "buckets must have one entry per item", lambda: PlackettLuce([1.0]).log_prob(buckets=[0, 1])),
        (ValueError, "n_samples must be at least 2", lambda: PlackettLuce([1.0]).entropy(0, 1)),
        (ValueError, "sample_shape must be at least 0, got -1", lambda: PlackettLuce([1.0]).sample(0, (-1,))),
        (TypeError, "sample_shape must be a tuple of integers, got int", lambda: PlackettLuce([1.0]).sample(0, 5)),
        (
            ValueError,
            r"rankings must broadcast with the batch, of shape \(2,\), got \(3,\)",
            lambda: PlackettLuce(scores_of(2, 4)).log_prob([[0], [1], [2]]),
        ),
        (TypeError, "key must be an int, an array of integers or a key", lambda: PlackettLuce([1.0]).sample(0.5)),
    ],
)
def test_errors_name_the_argument(error, message, call):
    with pytest.raises(error, match=message):
        call()
