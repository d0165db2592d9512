"""The Plackett-Luce distribution for PyTorch and for JAX: what both have, then what each has alone."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from frameworks import IGNORED_WARNINGS, Jax, Torch

pytestmark = IGNORED_WARNINGS
INF = float("inf")


@pytest.fixture(params=[Torch, Jax], ids=["PyTorch", "JAX"])
def library(request):
    return request.param()


@pytest.fixture
def torch():
    return Torch()


@pytest.fixture
def jax():
    return Jax()


def scores_of(*shape):
    return np.random.default_rng(0).normal(size=shape)


# --- both


@pytest.mark.parametrize(
    ("shape", "sample_shape"), [((5,), ()), ((5,), (4, 2)), ((3, 5), (7,)), ((2, 3, 5), ()), ((2, 3, 5), (4, 2))]
)
def test_shapes_and_draws(library, shape, sample_shape):
    """The draws of the library, by the words of the seed. Mutants: samples and batch exchanged; every row of the batch
    with the draws of the first; the seed left out."""
    policy, n_samples = library.policy(scores_of(*shape), 3), int(np.prod(sample_shape, dtype=int))
    assert (policy.batch_shape, policy.event_shape) == (shape[:-1], (3,))
    rankings = library.sample(policy, sample_shape, seed=7)
    assert rankings.shape == sample_shape + shape[:-1] + (3,)
    assert "int" in str(rankings.dtype)
    rows = np.asarray(policy.scores).reshape(-1, 5)
    seed = np.random.SeedSequence(library.words(7))
    expected = plr.sample_rankings(rows.ravel(), n_samples, 3, offsets=np.arange(0, rows.size + 1, 5), rng=seed)
    np.testing.assert_array_equal(np.moveaxis(expected, 1, 0).reshape(rankings.shape), rankings)
    assert library.policy(np.zeros((2, 4)), 0).log_prob(library.array(np.zeros((3, 2, 0), dtype=int))).shape == (3, 2)


ORDERS = {
    "rankings": [[[0, 2, 1], [3, 1, 0]], [[1, 2, -1], [0, 1, 2]], [[2, -1, -1], [3, 2, 0]]],
    "buckets": [[[0, 0, 1, 1], [2, 1, 2, 2]], [[0, 0, 0, 0], [1, 2, 3, 4]], [[5, 0, 0, 0], [1, 1, 0, 0]]],
}


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("part", [..., np.s_[:, :1], 0, (1, 1)], ids=["all", "of one row", "one of each", "one"])
def test_log_probability_and_gradient(library, kind, part):
    """Orders broadcast with the batch of two rows, and rankings may end early.

    Mutants: the gradient of the row before; the sum over rankings left out; orders of the first row for all; the
    upstream gradient left out; no rule for ``vmap``.
    """
    scores, orders = library.array(scores_of(2, 4)), np.array(ORDERS[kind])[part]
    upstream = np.random.default_rng(1).normal(size=np.broadcast_shapes(orders.shape[:-1], (2,)))

    def log_prob(scores, orders):
        policy = library.policy(scores)
        return policy.log_prob(orders) if kind == "rankings" else policy.log_prob(buckets=orders)

    value, gradient = library.value_and_vjp(lambda scores: log_prob(scores, library.array(orders)), scores, upstream)
    of_rows, every = np.zeros((2, 4)), np.broadcast_to(orders, (*upstream.shape, orders.shape[-1]))
    for index, weight in np.ndenumerate(upstream):
        of_row = plr.PlackettLuce(np.asarray(scores[index[-1]]))
        given = {"rankings": None, kind: every[index][np.newaxis] if kind == "rankings" else every[index]}
        assert float(value[index]) == pytest.approx(of_row.log_prob(**given)[0], rel=library.near)
        of_rows[index[-1]] += of_row.log_prob_vjp(cotangent=[weight], **given)
    np.testing.assert_allclose(gradient, of_rows, rtol=library.near, atol=library.near)
    if part == 0:
        each = library.func.vmap(library.func.grad(log_prob))(scores, library.array(orders))
        _, whole = library.value_and_vjp(lambda scores: log_prob(scores, library.array(orders)), scores, np.ones(2))
        np.testing.assert_allclose(each, whole, rtol=library.near)


@pytest.mark.parametrize("cutoff", [1, 3])
def test_entropy_and_divergence(library, cutoff):
    """Means of 200 estimates, and of their gradients, against sums over all rankings, at five standard errors, with a
    rate of false positives of 1e-5 in a test.

    Mutants: the gradient through the log-probability drawn from left out; its sign; the baseline includes the draw.
    """
    every = np.array(list(itertools.permutations(range(4), cutoff)))
    stack = (library.torch if isinstance(library, Torch) else library.jax.numpy).stack

    def exact(rows, _):
        log_p, log_q = (library.policy(row, cutoff).log_prob(library.array(every)) for row in rows)
        chances = np.e**log_p
        return stack([-(chances * log_p).sum(), (chances * (log_p - log_q)).sum()])

    def estimate(rows, seed):
        p, q = (library.policy(row, cutoff) for row in rows)
        return stack([library.estimate(p, *other, n_samples=3, seed=seed) for other in ((), (q,))])

    rows = library.array(scores_of(2, 4))
    both = library.value_and_jacobian(estimate)
    drawn = [both(rows, seed) for seed in range(200)]
    error = np.abs(np.mean(drawn, axis=0) - library.value_and_jacobian(exact)(rows, 0))
    assert (error <= 5 * np.std(drawn, axis=0) / 200**0.5 + library.near).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(library, dtype):
    scores, ranking = library.array(scores_of(2, 4), dtype), library.array([3, 1, 0, 2])
    value, gradient = library.value_and_vjp(lambda s: library.policy(s).log_prob(ranking), scores, np.ones(2))
    assert value.dtype == gradient.dtype == scores.dtype


def test_mode_and_masked_items(library):
    """Equal scores go by the lower index, and a score of -inf is a weight of 0, as for ``plrank_fast.PlackettLuce``.

    Mutants: ties by descending number; draws cut to the longest row; a mode that holds masked items; NaN where a
    divergence is infinite.
    """
    assert library.mode(library.policy([[0.0, 1.0, 1.0], [5.0, 4.0, 7.0]], 2)).tolist() == [[1, 2], [2, 0]]
    scores = library.array([[0.0, -INF, 1.0, -INF], [-INF, -INF, 0.5, -INF]])
    policy, wider = library.policy(scores, 3), library.policy(np.zeros((2, 4), dtype=np.float32), 3)
    drawn = library.sample(policy, (50,))
    assert drawn.shape == (50, 2, 3)
    assert {tuple(row) for row in drawn[:, 0].tolist()} == {(0, 2, -1), (2, 0, -1)}
    assert {tuple(row) for row in drawn[:, 1].tolist()} == {(2, -1, -1)}
    assert library.mode(policy).tolist() == [[2, 0, -1], [2, -1, -1]]
    likely = np.e / (1.0 + np.e)
    rankings = library.array([[2, 0, -1], [2, 0, 1], [2, -1, -1]])
    value, gradient = library.value_and_vjp(
        lambda scores: library.policy(scores, 3).log_prob(rankings), scores[0], [1.0, 1.0, 0.0]
    )
    np.testing.assert_allclose(value, [np.log(likely), -INF, np.log(likely)], rtol=1e-5)
    np.testing.assert_allclose(gradient, [likely - 1.0, 0.0, 1.0 - likely, 0.0], rtol=1e-5)
    entropy = library.estimate(policy, n_samples=2000)
    assert float(entropy[0]) == pytest.approx(-likely * np.log(likely) - (1 - likely) * np.log(1 - likely), abs=0.05)
    assert float(entropy[1]) == 0.0
    assert library.estimate(wider, policy, n_samples=100).tolist() == [INF, INF]
    assert np.isfinite(np.asarray(library.estimate(policy, wider, n_samples=100))).all()


def test_no_rows_and_no_items(library):
    """Mutants: PyTorch's constraint to vectors, which knows no size without rows; -1 for the size of an axis."""
    policy, none = library.policy(np.zeros((0, 3))), library.array(np.zeros((0, 3), dtype=int))
    assert (library.mode(policy).shape, library.sample(policy, (2,)).shape) == ((0, 3), (2, 0, 3))
    assert library.estimate(policy, n_samples=5).shape == library.estimate(policy, policy, n_samples=5).shape == (0,)
    of_half = library.policy(library.array(np.zeros((0, 3)), "float16")).log_prob(none)
    assert (of_half.shape, "float16" in str(of_half.dtype)) == ((0,), True)
    policy, none = library.policy(np.zeros(0)), library.array(np.zeros((2, 0), dtype=int))
    assert policy.log_prob(none).tolist() == policy.log_prob(buckets=none).tolist() == [0.0, 0.0]
    assert (library.mode(policy).shape, float(library.estimate(policy, n_samples=5))) == ((0,), 0.0)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "scores must be .*floating .*, got .*int", lambda policy: policy([1, 2])),
        (ValueError, "scores must have an axis of items, got a scalar", lambda policy: policy(1.0)),
        (ValueError, "cutoff must be at least 0", lambda policy: policy([1.0], -1)),
        (ValueError, r"must have at most 1 ranks, the cutoff, got shape \(2,\)",
         lambda policy, array: policy([1.0, 0.0], 1).log_prob(array([0, 1]))),
        (ValueError, "rankings must not repeat an item",
         lambda policy, array: policy([1.0, 0.0]).log_prob(array([0, 0]))),
        (ValueError, r"buckets must have one entry per item, 1, got shape \(2,\)",
         lambda policy, array: policy([1.0]).log_prob(buckets=array([0, 1]))),
        (ValueError, "only one of (value|rankings) and buckets may be given",
         lambda policy, array: policy([1.0]).log_prob(array([0]), buckets=array([0]))),
    ],
)  # fmt: skip
def test_errors_name_the_argument(library, error, message, call):
    arguments = [library.policy, library.array][: call.__code__.co_argcount]
    of_values = isinstance(library, Jax) and "repeat" in message  # an error of JAX's own, by the execution
    with pytest.raises(RuntimeError if of_values else error, match=message):
        np.asarray(call(*arguments))


def test_numbers_of_samples(library):
    assert library.policy([1.0], 10**9).event_shape == (1,)
    with pytest.raises(ValueError, match="n_samples must be at least 2"):
        library.estimate(library.policy([1.0]), n_samples=1)


# --- PyTorch


def test_second_derivatives_are_refused(torch):
    scores = torch.array(scores_of(2, 4)).requires_grad_()
    log_prob = torch.policy(scores).log_prob(torch.array([0, 2, 1]))
    (gradient,) = torch.torch.autograd.grad(log_prob.sum(), scores, create_graph=True)
    with pytest.raises(RuntimeError, match=r"PlackettLuce\.log_prob cannot be differentiated twice"):
        gradient.sum().backward()


def test_expand(torch):
    """PyTorch's own functions know the distribution. Mutant: the expanded one does not check what the original does."""
    scores = torch.array([1.0, 3.0, 3.0, 2.0])
    policy = torch.policy(scores, 3)
    larger = policy.expand((2, 5))
    assert (larger.batch_shape, larger.event_shape, larger.cutoff) == ((2, 5), (3,), 3)
    value = larger.sample()
    assert torch.torch.equal(larger.log_prob(value), policy.log_prob(value))
    with pytest.raises(ValueError, match="within the support"):
        torch.adapter.PlackettLuce(scores, 3, validate_args=True).expand((2,)).log_prob(torch.array([0, 1, 1]))
    distributions = torch.torch.distributions
    assert distributions.Independent(larger, 1).log_prob(value).shape == (2,)
    torch.torch.manual_seed(0)
    divergence = distributions.kl_divergence(policy, torch.policy(scores / 2, 3))
    assert divergence == torch.estimate(policy, torch.policy(scores / 2, 3), n_samples=1000)


def test_validation(torch):
    """Mutants: -1 in the support before the items end, or none after them."""
    PlackettLuce, array = torch.adapter.PlackettLuce, torch.array
    policy = PlackettLuce(array(scores_of(4)), validate_args=True)
    for wrong in ([0, 1, 2, 2], [0, 1, 2, 4], [0, 1, 2, -1], [0.0, 1.0, 2.0, 2.5]):
        with pytest.raises(ValueError, match="within the support"):
            policy.log_prob(array(wrong))
    with pytest.raises(ValueError, match="event_shape"):
        policy.log_prob(array([0, 1]))
    for wrong in ([0.0, float("nan")], [0.0, INF]):
        with pytest.raises(ValueError, match="scores"):
            PlackettLuce(array(wrong), validate_args=True)
    masked = PlackettLuce(array([[0.0, -INF, 1.0, -INF], [-INF, -INF, 0.5, -INF]]), 3)
    assert masked.support.check(masked.sample((50,))).all()
    of_one = PlackettLuce(masked.scores[0], 3)
    for outside in ([2, 0, 1], [2, -1, -1], [2, -1, 0], [2, 2, -1], [-1, 2, 0], [2, 0, 0], [2, 0, -2], [1, 0, -1]):
        assert not of_one.support.check(array(outside)), outside
    assert PlackettLuce(array(np.zeros((0, 3))), validate_args=True).sample().shape == (0, 3)
    with pytest.raises(TypeError, match=r"value must be a dense tensor, .*: pass value\.to_dense"):
        policy.log_prob(array([[0, 1, 2, 3]]).to_sparse())


def test_compiled_and_without_values(torch):
    """Mutants: no autograd formula of the operator's own, or of the function around it."""
    scores, rankings = torch.array(scores_of(2, 4)), torch.array([[0, 2, 1], [3, 1, 0]])

    def log_prob(scores, rankings=rankings):
        return torch.policy(scores, 3).log_prob(rankings)

    compiled = torch.torch.compile(log_prob, backend="aot_eager", fullgraph=True)
    (_, plain), (_, of_graph) = (torch.value_and_vjp(each, scores, np.ones(2)) for each in (log_prob, compiled))
    assert (of_graph == plain).all()
    meta = torch.policy(scores.to("meta").requires_grad_(), 3)
    assert meta.sample((5,)).shape == (5, 2, 3)
    meta.log_prob(rankings.to("meta")).sum().backward()
    assert meta.scores.grad.shape == (2, 4)
    assert torch.func.vmap(torch.func.grad(log_prob))(scores[:0], rankings[:0]).shape == (0, 4)


# --- JAX


def test_transformations(jax):
    """Under ``vmap`` over policies, which are pytrees, and keys. Mutant: the key of the first row for all."""
    keys, vmap = jax.jax.random.split(jax.jax.random.key(0), 3), jax.jax.vmap
    policies = jax.policy(scores_of(3, 5), 2)
    drawn = vmap(lambda policy, key: policy.sample(key, (20,)))(policies, keys)
    for row in range(3):
        np.testing.assert_array_equal(drawn[row], jax.policy(policies.scores[row], 2).sample(keys[row], (20,)))
    rankings = jax.jax.numpy.moveaxis(drawn, 0, 1)
    per_row = vmap(lambda policy, rows: policy.log_prob(rows))(policies, drawn)
    np.testing.assert_allclose(per_row, policies.log_prob(rankings).T, rtol=1e-6)
    gradient = jax.jax.jit(jax.jax.grad(lambda policy: policy.log_prob(rankings).sum()))(policies)
    assert gradient.scores.shape == (3, 5)
    one_draw = jax.jax.grad(lambda scores: jax.policy(scores).sample(0).sum() * scores.sum())(policies.scores[0])
    np.testing.assert_array_equal(one_draw, 10.0)  # of 0 + 1 + 2 + 3 + 4, which has no gradient


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "rankings must be of integers", lambda policy: policy([1.0]).log_prob([[0.5]])),
        (ValueError, "rankings must have an axis of items", lambda policy: policy([1.0]).log_prob(0)),
        (ValueError, r"rankings must broadcast with the batch, of shape \(2,\), got \(3,\)",
         lambda policy: policy(scores_of(2, 4)).log_prob([[0], [1], [2]])),
        (ValueError, "sample_shape must be at least 0, got -1", lambda policy: policy([1.0]).sample(0, (-1,))),
        (TypeError, "sample_shape must be a tuple of integers, got int", lambda policy: policy([1.0]).sample(0, 5)),
        (TypeError, "key must be a key, an int or an array of integers", lambda policy: policy([1.0]).sample(0.5)),
        (Exception, "key must not be negative, got -1 at index 0",
         lambda policy: policy([1.0]).sample(np.array([-1, 2])).block_until_ready()),
    ],
)  # fmt: skip
def test_errors_of_jax(jax, error, message, call):
    with pytest.raises(error, match=message):
        call(jax.policy)
