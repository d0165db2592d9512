"""The Plackett-Luce distribution among PyTorch's: shapes, log-probability and its gradient, expansion, validation."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr

torch = pytest.importorskip("torch", reason="torch is not installed")
PlackettLuce = pytest.importorskip("plrank_fast.torch").PlackettLuce


def scores_of(*shape, dtype=torch.float64, requires_grad=False):
    values = np.random.default_rng(0).normal(size=shape)
    return torch.tensor(values, dtype=dtype, requires_grad=requires_grad)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("sample_shape", [(), (7,), (4, 2)])
def test_shapes_and_values(shape, sample_shape):
    """Mutants: samples and batch exchanged; rankings of one row against the scores of another."""
    scores = scores_of(*shape)
    policy = PlackettLuce(scores, 3, validate_args=True)
    assert (policy.batch_shape, policy.event_shape) == (torch.Size(shape[:-1]), torch.Size([3]))
    torch.manual_seed(0)
    rankings = policy.sample(sample_shape)
    assert rankings.shape == torch.Size(sample_shape + shape[:-1] + (3,))
    assert rankings.dtype == torch.int64
    torch.manual_seed(0)
    assert torch.equal(rankings, policy.sample(sample_shape))
    log_prob = policy.log_prob(rankings)
    assert log_prob.shape == torch.Size(sample_shape + shape[:-1])
    flat = scores.reshape(-1, 5).numpy()
    for index in np.ndindex(*sample_shape, *shape[:-1]):
        row = int(np.ravel_multi_index(index[len(sample_shape) :], shape[:-1])) if shape[:-1] else 0
        expected = plr.ranking_log_prob(flat[row], rankings[index].numpy()[np.newaxis])[0]
        assert abs(log_prob[index].item() - expected) < 1e-13


def test_draws_follow_the_scores():
    """First ranks at five standard errors; other rows of the batch have other draws."""
    scores = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], dtype=torch.float64)
    torch.manual_seed(1)
    first = PlackettLuce(scores, 1).sample((20_000,))[..., 0]
    for row in range(2):
        chances = scores[row].softmax(0)
        observed = torch.bincount(first[:, row], minlength=3) / 20_000
        assert ((observed - chances).abs() < 5 * (chances * (1 - chances) / 20_000).sqrt()).all()


def test_gradient():
    """By torch's own finite differences, with values that broadcast; mutant: the gradient of the row before."""
    scores = scores_of(2, 4, requires_grad=True)
    value = torch.tensor([[[0, 2, 1], [3, 1, 0]], [[1, 2, 3], [0, 1, 2]], [[2, 0, 3], [3, 2, 0]]])
    assert torch.autograd.gradcheck(lambda f: PlackettLuce(f, 3).log_prob(value), (scores,))
    assert torch.autograd.gradcheck(lambda f: PlackettLuce(f, 3).log_prob(value[0, 0]), (scores,))
    gradient = torch.autograd.grad(PlackettLuce(scores, 3).log_prob(value).sum(), scores, create_graph=True)[0]
    with pytest.raises(RuntimeError, match=r"PlackettLuce\.log_prob cannot be differentiated twice"):
        gradient.sum().backward()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_ties():
    """Mutants: the gradient of the row before; the sum over rankings left out; buckets of the first row for all."""
    scores = scores_of(2, 4, requires_grad=True)
    buckets = torch.tensor([[[0, 0, 1, 1], [2, 1, 2, 2]], [[0, 0, 0, 0], [1, 2, 3, 4]], [[5, 0, 0, 0], [1, 1, 0, 0]]])
    log_prob = PlackettLuce(scores).log_prob(buckets=buckets)
    for index in np.ndindex(3, 2):
        expected = plr.bucket_log_prob(scores.detach()[index[1]].numpy(), buckets[index].numpy())
        np.testing.assert_allclose(log_prob.detach()[index], expected[0], rtol=1e-13)
    assert (PlackettLuce(scores[:1]).log_prob(buckets=buckets)[:, 0] == log_prob[:, 0]).all()  # a batch of one
    for values in (buckets, buckets[0, 0]):
        assert torch.autograd.gradcheck(lambda f, values=values: PlackettLuce(f).log_prob(buckets=values), (scores,))
    of_row = torch.func.grad(lambda f, b: PlackettLuce(f, validate_args=False).log_prob(buckets=b))
    expected = torch.autograd.grad(PlackettLuce(scores).log_prob(buckets=buckets[0]).sum(), scores)[0]
    assert (torch.vmap(of_row)(scores.detach(), buckets[0]) == expected).all()
    with pytest.raises(ValueError, match=r"buckets must have one entry per item, 4, got shape \(3,\)"):
        PlackettLuce(scores).log_prob(buckets=torch.tensor([0, 1, 1]))
    with pytest.raises(ValueError, match="only one of value and buckets may be given"):
        PlackettLuce(scores).log_prob(torch.tensor([0, 1, 2, 3]), buckets=buckets[0, 0])


@pytest.mark.parametrize("cutoff", [1, 3, 5])
def test_entropy_and_divergence(cutoff):
    """Means of 500 estimates, and of their gradients, against sums over all rankings, at five standard errors.

    Mutants: the gradient through the log-probability drawn from left out; its sign; the baseline includes the draw.
    """
    every = torch.tensor(list(itertools.permutations(range(5), cutoff)))
    leaves = [row.clone().requires_grad_() for row in scores_of(2, 5)]

    def exact(p, q):
        log_p = p.log_prob(every)
        return -(log_p.exp() * log_p).sum(), (log_p.exp() * (log_p - q.log_prob(every))).sum()

    def estimate(p, q):
        return p.entropy(3), p.kl(q, 3)

    def flat(values):
        gradients = [
            torch.autograd.grad(value, leaves, retain_graph=True, materialize_grads=True, allow_unused=True)
            for value in values
        ]
        return torch.cat([torch.stack(values).detach(), *(part for pair in gradients for part in pair)])

    policies = [PlackettLuce(leaf, cutoff) for leaf in leaves]
    torch.manual_seed(0)
    estimates = torch.stack([flat(estimate(*policies)) for _ in range(500)])
    error = (estimates.mean(0) - flat(exact(*policies))).abs()
    assert (error <= 5 * estimates.std(0) / 500**0.5 + 1e-12).all()
    torch.manual_seed(0)
    assert torch.distributions.kl_divergence(*policies).item() == pytest.approx(exact(*policies)[1].item(), rel=0.3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    scores = scores_of(2, 4, dtype=dtype, requires_grad=True)
    log_prob = PlackettLuce(scores).log_prob(torch.tensor([3, 1, 0, 2]))
    assert log_prob.dtype == dtype
    log_prob.sum().backward()
    assert scores.grad.dtype == dtype


def test_expand_and_mode():
    scores = torch.tensor([1.0, 3.0, 3.0, 2.0], dtype=torch.float64)
    policy = PlackettLuce(scores, 3)
    assert policy.mode.tolist() == [1, 2, 3]
    larger = policy.expand((2, 5))
    assert (larger.batch_shape, larger.event_shape, larger.cutoff) == (torch.Size([2, 5]), torch.Size([3]), 3)
    assert larger.sample((4,)).shape == torch.Size([4, 2, 5, 3])
    value = larger.sample()
    assert torch.equal(larger.log_prob(value), policy.log_prob(value))
    with pytest.raises(ValueError, match="within the support"):  # the expanded checks what the original does
        PlackettLuce(scores, 3, validate_args=True).expand((2,)).log_prob(torch.tensor([0, 1, 1]))
    independent = torch.distributions.Independent(larger, 1)
    assert independent.log_prob(value).shape == torch.Size([2])


def test_masked_items():
    """A score of -inf is a weight of 0, as for ``plrank_fast.PlackettLuce``.

    Mutants: draws cut to the longest row; -1 in the support before the items end, or none after them; a mode that
    holds masked items; NaN where a divergence is infinite.
    """
    inf = float("inf")
    scores = torch.tensor([[0.0, -inf, 1.0, -inf], [-inf, -inf, 0.5, -inf]], requires_grad=True)
    policy = PlackettLuce(scores, 3, validate_args=True)
    drawn = policy.sample((50,))
    assert drawn.shape == (50, 2, 3)
    assert {tuple(row) for row in drawn[:, 0].tolist()} == {(0, 2, -1), (2, 0, -1)}
    assert (drawn[:, 1] == torch.tensor([2, -1, -1])).all()
    assert policy.mode.tolist() == [[2, 0, -1], [2, -1, -1]]
    assert policy.support.check(drawn).all()
    expected = torch.tensor([[1.0, 0.0]]).log_softmax(-1)[0]
    values = policy.log_prob(torch.tensor([[2, 0, -1], [2, -1, -1]]))
    torch.testing.assert_close(values, torch.stack([expected[0], torch.zeros(())]), rtol=1e-6, atol=0)
    values.sum().backward()
    rest = 1.0 - expected[0].exp().item()
    torch.testing.assert_close(scores.grad, torch.tensor([[-rest, 0.0, rest, 0.0], [0.0] * 4]), rtol=1e-5, atol=0)
    of_one = PlackettLuce(scores[0], 3)
    for outside in ([2, 0, 1], [2, -1, -1], [2, -1, 0], [2, 2, -1], [-1, 2, 0], [2, 0, 0], [2, 0, -2], [1, 0, -1]):
        assert not of_one.support.check(torch.tensor(outside)), outside
    unchecked = PlackettLuce(scores[0], 3, validate_args=False)
    values = unchecked.log_prob(torch.tensor([[2, 0, 1], [2, -1, -1]]))
    torch.testing.assert_close(values, torch.stack([torch.tensor(-inf), expected[0]]), rtol=1e-6, atol=0)
    with pytest.raises(ValueError, match=r"value must have at most 3 ranks, the cutoff, got shape \(4,\)"):
        unchecked.log_prob(torch.tensor([0, 1, 2, 3]))
    torch.manual_seed(0)
    assert policy.entropy(2000)[0].item() == pytest.approx(-(expected.exp() * expected).sum().item(), abs=0.05)
    assert policy.entropy()[1].item() == 0.0
    wider = PlackettLuce(torch.zeros(2, 4), 3)
    assert wider.kl(policy).tolist() == [inf, inf]
    assert policy.kl(wider, 100).isfinite().all()
    torch.autograd.grad(wider.kl(policy).sum(), scores)[0].isfinite().all()
    empty = PlackettLuce(scores, 3).log_prob(torch.zeros(0, 2, 3, dtype=torch.int64)).sum()
    assert empty.item() == 0.0


def test_no_rows():
    """Mutants: PyTorch's constraint to vectors, which knows no size without rows; -1 for the size of an axis."""
    policy = PlackettLuce(torch.zeros(0, 3), validate_args=True)
    none, rows = torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, 3)
    assert (policy.mode.shape, policy.sample((2,)).shape) == (torch.Size([0, 3]), torch.Size([2, 0, 3]))
    assert policy.entropy().shape == policy.kl(policy).shape == policy.log_prob(none).shape == torch.Size([0])

    def log_prob(scores, value):
        return PlackettLuce(scores, validate_args=False).log_prob(value)

    assert torch.vmap(log_prob)(rows, none).shape == torch.Size([0])
    assert torch.vmap(torch.func.grad(log_prob))(rows, none).shape == torch.Size([0, 3])
    with pytest.raises(ValueError, match="scores"):
        PlackettLuce(torch.tensor([0.0, float("inf")]), validate_args=True)
    with pytest.raises(TypeError, match=r"value must be a dense tensor, .*: pass value\.to_dense"):
        PlackettLuce(torch.zeros(3)).log_prob(none.to_sparse())


def test_validation():
    policy = PlackettLuce(scores_of(4), validate_args=True)
    for wrong in ([0, 1, 2, 2], [0, 1, 2, 4], [0, 1, 2, -1], [0.0, 1.0, 2.0, 2.5]):
        with pytest.raises(ValueError, match="within the support"):
            policy.log_prob(torch.tensor(wrong))
    with pytest.raises(ValueError, match="event_shape"):
        policy.log_prob(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="scores"):
        PlackettLuce(torch.tensor([0.0, float("nan")]), validate_args=True)
    with pytest.raises(TypeError, match=r"floating point tensor, got torch\.int64"):
        PlackettLuce(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="scores must have an axis of items, got a scalar"):
        PlackettLuce(torch.tensor(0.0))
    assert PlackettLuce(torch.zeros(3), 10**9).event_shape == torch.Size([3])
    with pytest.raises(ValueError, match="cutoff must be at least 0"):
        PlackettLuce(scores_of(4), -1)
    unchecked = PlackettLuce(scores_of(4), validate_args=False)
    with pytest.raises(ValueError, match="rankings must not repeat an item"):
        unchecked.log_prob(torch.tensor([0, 1, 2, 2]))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_compiled_transformed_and_without_values():
    """Mutants: no autograd formula of the operator's own, or of the function around it; no rule for ``vmap``."""
    scores, rankings = scores_of(2, 4), torch.tensor([[0, 2, 1], [3, 1, 0]])

    def log_prob(scores, rankings):
        return PlackettLuce(scores, 3, validate_args=False).log_prob(rankings)

    plain, compiled = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    log_prob(plain, rankings).sum().backward()
    torch.compile(log_prob, backend="aot_eager", fullgraph=True)(compiled, rankings).sum().backward()
    assert (compiled.grad == plain.grad).all()
    assert (torch.vmap(torch.func.grad(log_prob))(scores, rankings) == plain.grad).all()
    meta = PlackettLuce(scores.to("meta").requires_grad_(), 3, validate_args=False)
    assert meta.sample((5,)).shape == (5, 2, 3)
    meta.log_prob(rankings.to("meta")).sum().backward()
    assert meta.scores.grad.shape == (2, 4)
    empty = PlackettLuce(torch.zeros(0, 4, requires_grad=True), 3)
    empty.log_prob(empty.sample((2,))).sum().backward()
    assert empty.scores.grad.shape == (0, 4)
