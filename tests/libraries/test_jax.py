"""The loss for JAX: the library's numbers through grad, jit and vmap, with the seed as data."""

import importlib
import itertools
import os
from functools import partial

import numpy as np
import pytest

import plrank_fast as plr

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from plrank_fast import jax as adapter  # noqa: E402
from plrank_fast.jax import PlackettLuce  # noqa: E402

DCG = {"gain": "linear", "normalize": False}  # of labels that are gains, as the library's functions have it
plackett_luce_loss = partial(adapter.plackett_luce_loss, **DCG)

OFFSETS = np.array([0, 4, 4, 9, 10, 16])  # an empty query and one of a single document among them
LENGTHS = np.diff(OFFSETS)
N_QUERIES, N_DOCS = LENGTHS.size, int(OFFSETS[-1])
RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=N_DOCS).astype(np.float32)
LABELS = RNG.integers(0, 4, size=N_DOCS).astype(np.float32)
WEIGHTS = plr.dcg_weights(3)
EXACT = {"cutoff": 3, "method": "exact"}

# JAX runs threads, of which a fork elsewhere in the test session knows nothing
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*")


def padded(values, filling, length=7):
    """Rows of the ragged values and where they stand; every second one at the end of its row."""
    rows, mask = np.full((N_QUERIES, length), filling, dtype=np.float32), np.zeros((N_QUERIES, length), dtype=bool)
    for query, n_docs in enumerate(LENGTHS):
        places = np.arange(length)[length - n_docs :] if query % 2 else np.arange(n_docs)
        mask[query, places] = True
        rows[query, places] = values[OFFSETS[query] : OFFSETS[query + 1]]
    return rows, mask


def test_value_and_gradient_are_minus_those_of_the_library():
    """Mutants: the sign of the value, or of the gradient, turned; the upstream gradient left out."""
    value, gradient = jax.value_and_grad(lambda scores: 3 * plackett_luce_loss(scores, LABELS, OFFSETS, **EXACT))(
        SCORES
    )
    expected = plr.expected_metric(SCORES, LABELS, WEIGHTS, offsets=OFFSETS).mean()
    assert value == pytest.approx(-3 * expected, rel=1e-5)
    exact = plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=OFFSETS)
    np.testing.assert_allclose(gradient, -3 * exact / N_QUERIES, rtol=1e-5, atol=1e-7)


def test_jit_and_the_seed_as_data():
    """One compilation for all seeds; a seed has the random numbers of ``rng=``. Mutants: the seed fixed when traced;
    only its lower word used."""
    traces = []

    def step(scores, seed, first_query):
        traces.append(seed)
        return plackett_luce_loss(
            scores, LABELS, OFFSETS, cutoff=3, method="pl_rank_3", n_samples=5, seed=seed, first_query=first_query,
            reduction="sum",
        )  # fmt: skip

    compiled = jax.jit(jax.grad(step))
    for seed in (0, 7):
        expected = plr.pl_rank_3(SCORES, LABELS, WEIGHTS, offsets=OFFSETS, n_samples=5, rng=seed, first_query=2)
        np.testing.assert_array_equal(compiled(SCORES, seed, 2), -expected.astype(np.float32))
    assert len(traces) == 1
    wide = 2**40 + 7
    expected = plr.pl_rank_3(SCORES, LABELS, WEIGHTS, offsets=OFFSETS, n_samples=5, rng=wide)
    np.testing.assert_array_equal(jax.grad(step)(SCORES, wide, 0), -expected.astype(np.float32))
    keys = jax.random.split(jax.random.key(1), 2)
    of_keys = [np.asarray(compiled(SCORES, key, 0)) for key in keys]
    assert (of_keys[0] != of_keys[1]).any()
    assert (of_keys[0] == compiled(SCORES, jax.random.key_data(keys[0]), 0)).all()


@pytest.mark.parametrize("method", ["exact", "cmc"])
def test_padded_has_the_bits_of_ragged(method):
    """Mutants: the mask inverted; the upstream gradient of another query (by columns; the left neighbour's)."""
    upstream = jnp.arange(1.0, N_QUERIES + 1)
    options = {"cutoff": 3, "method": method, "seed": 3, "reduction": "none"}
    rows, mask = padded(SCORES, np.nan)
    labels, _ = padded(LABELS, np.inf)
    ragged, pull = jax.vjp(lambda scores: plackett_luce_loss(scores, LABELS, OFFSETS, **options), SCORES)
    rectangular, pull_rows = jax.vjp(lambda scores: plackett_luce_loss(scores, labels, mask=mask, **options), rows)
    np.testing.assert_array_equal(ragged, rectangular)
    gradient, of_rows = pull(upstream)[0], np.asarray(pull_rows(upstream)[0])
    np.testing.assert_array_equal(of_rows[mask[:, :]], gradient)
    assert (of_rows[~mask] == 0).all()
    one = pull(jnp.ones(N_QUERIES))[0]
    np.testing.assert_allclose(gradient, one * np.repeat(np.asarray(upstream), LENGTHS), rtol=1e-6)
    pull = jax.vjp(lambda scores: plackett_luce_loss(scores, LABELS, OFFSETS, **options), SCORES[:, np.newaxis])[1]
    np.testing.assert_array_equal(pull(upstream)[0][:, 0], gradient)


def test_vmap_over_rows_and_over_seeds():
    """Results are those of single calls, under jit too. Mutants: every row gets the first one's mask, or seed."""
    rows, mask = padded(SCORES, 0.0)
    labels, _ = padded(LABELS, 0.0)

    def loss(scores, labels, mask, seed):
        return plackett_luce_loss(scores, labels, mask=mask, cutoff=3, method="cmc", seed=seed)

    seeds = jnp.arange(N_QUERIES)
    together = jax.jit(jax.vmap(jax.value_and_grad(loss)))(rows, labels, mask, seeds)
    for query in range(N_QUERIES):
        alone = jax.value_and_grad(loss)(rows[query], labels[query], mask[query], query)
        np.testing.assert_array_equal(together[0][query], alone[0])
        np.testing.assert_array_equal(together[1][query], alone[1])
    fixed = jax.vmap(loss, in_axes=(None, None, None, 0))(rows[0], labels[0], mask[0], jnp.arange(20))
    assert np.unique(fixed).size > 5


def test_options():
    """Weights of queries, normalisation and gains are those of the loss for PyTorch, which shares their code. Mutants:
    an option dropped on the way to the callback; rank weights taken to descend."""
    weight = np.array([2.0, 1.0, 0.0, 1.0, 4.0], dtype=np.float32)
    theta = np.array([0.2, 0.35, 0.3, 0.05], dtype=np.float32)
    worth = plr.gains(LABELS)
    ideal = plr.ideal_dcg(worth, theta, offsets=OFFSETS)
    values = plr.expected_metric(SCORES, worth, theta, offsets=OFFSETS)
    share = np.divide(values, ideal, out=np.zeros(N_QUERIES), where=ideal > 0)
    loss = plackett_luce_loss(
        SCORES, LABELS, jnp.array(OFFSETS), weight=weight, rank_weights=theta, gain="exponential", normalize=True
    )
    assert loss == pytest.approx(-(share * weight).sum() / weight.sum(), rel=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_dtype_of_scores_is_kept(dtype):
    scores = jnp.asarray(SCORES, dtype=dtype)
    value, gradient = jax.value_and_grad(lambda scores: plackett_luce_loss(scores, LABELS, OFFSETS, **EXACT))(scores)
    assert value.dtype == gradient.dtype == dtype
    held = np.asarray(scores, dtype=np.float64)
    exact = -plr.pl_rank_exact(held, LABELS, WEIGHTS, offsets=OFFSETS) / N_QUERIES
    np.testing.assert_allclose(np.asarray(gradient, dtype=np.float64), exact, rtol=2 * jnp.finfo(dtype).eps, atol=1e-6)


def test_gradient_by_finite_differences_in_float64():
    """Mutant: the callback's results in float32."""
    # what JAX has by that name is a flag that refuses to be asked whether it is true
    enable_x64 = (jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")).enable_x64
    with enable_x64(True):
        from jax.test_util import check_grads

        check_grads(
            lambda scores: plackett_luce_loss(scores, LABELS, OFFSETS, rtol=1e-10, **EXACT),
            (jnp.asarray(SCORES, dtype=jnp.float64),), order=1, modes=["rev"], eps=1e-5, rtol=1e-7, atol=1e-9,
        )  # fmt: skip


@pytest.mark.parametrize("layout", ["offsets", "rows", "a query"])
def test_forward_mode(layout):
    """Mutants: places of documents searched from the left; rows summed over the queries; only a document counts."""
    direction = RNG.normal(size=N_DOCS).astype(np.float32)
    offsets = [0, N_DOCS] if layout == "a query" else OFFSETS
    gradient = plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=offsets)
    expected = [-(gradient * direction)[first:end].sum() for first, end in itertools.pairwise(offsets)]
    arrays, batch = (SCORES, LABELS, direction), {"offsets": OFFSETS} if layout == "offsets" else {}
    if layout == "rows":
        arrays, batch = [padded(array, 0.0)[0] for array in arrays], {"mask": padded(SCORES, 0.0)[1]}
    scores, worth, change = arrays
    _, slopes = jax.jvp(
        lambda x: plackett_luce_loss(x, worth, **batch, **EXACT, reduction="none"), (scores,), (change,)
    )
    np.testing.assert_allclose(slopes, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives(reduction):
    """The Hessian by forward over reverse mode, and tangents of values and gradients.

    Mutants: the gradient changes by nothing; the slope of the values left out; weights of queries left out of it.
    """
    weight = np.arange(1.0, N_QUERIES + 1).astype(np.float32)

    def loss(scores):
        losses = plackett_luce_loss(scores, LABELS, OFFSETS, reduction=reduction, weight=weight, **EXACT)
        return (losses * jnp.arange(losses.size)).sum() if reduction == "none" else losses

    hessian = jax.hessian(loss)(SCORES)
    factors = np.arange(N_QUERIES) if reduction == "none" else np.full(N_QUERIES, 1 / weight.sum())
    one = RNG.normal(size=N_DOCS).astype(np.float32)
    product = plr.pl_rank_exact_hvp(SCORES, LABELS, WEIGHTS, one, offsets=OFFSETS)
    expected = -np.repeat(factors * weight, LENGTHS) * product
    np.testing.assert_allclose(hessian @ one, expected, rtol=1e-4, atol=1e-5)
    (_, gradient), tangents = jax.jvp(jax.value_and_grad(loss), (SCORES,), (one,))
    np.testing.assert_allclose(tangents[1], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tangents[0], gradient @ one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("batch", [{}, {"offsets": OFFSETS}])
def test_second_derivatives_in_any_order_of_modes(batch):
    """Mutants: the product not transposed; the slope of values left out of reverse over forward mode."""

    def loss(scores):
        return plackett_luce_loss(scores, LABELS, **batch, **EXACT)

    best = jax.hessian(loss)(SCORES)
    assert np.abs(best).max() > 0.001
    for outer, inner in itertools.product((jax.jacrev, jax.jacfwd), repeat=2):
        np.testing.assert_allclose(jax.jit(outer(inner(loss)))(SCORES), best, rtol=0, atol=1e-6)
    with pytest.raises(TypeError, match="second derivatives cannot be differentiated"):
        jax.jacrev(jax.hessian(loss))(SCORES)


def test_sampled_second_derivatives_and_those_by_data_are_refused():
    """Rather than taken for zero. Mutant: no check of what is perturbed."""
    with pytest.raises(Exception, match="second derivatives need method='exact', got 'pl_rank_cmc'"):
        jax.hessian(plackett_luce_loss)(SCORES, LABELS, OFFSETS, method="cmc")
    with pytest.raises(TypeError, match=r"relevance must not be differentiated: pass jax.lax.stop_gradient\(relevance"):
        jax.grad(plackett_luce_loss, argnums=1)(SCORES, LABELS, OFFSETS)

    gradient = jax.grad(lambda scores: plackett_luce_loss(scores, jax.lax.stop_gradient(scores > 0) * 1.0, OFFSETS))
    np.testing.assert_array_equal(jax.jit(gradient)(SCORES), jax.grad(plackett_luce_loss)(SCORES, SCORES > 0, OFFSETS))


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="shard_map keeps account of what varies since JAX 0.6")
def test_inside_shard_map():
    """Scores are cut, or whole beside labels that are cut. Mutants: results that do not vary (`_call_host` without
    `_zero`); the labels left out of what varies; ``symbolic_zeros``, which shard_map does not know."""
    from plrank_fast.jax import ranking_log_prob

    mesh, cut, whole = jax.sharding.Mesh(np.array(jax.devices()[:2]), "queries"), P("queries"), P()
    losses = {
        lambda scores, labels: plackett_luce_loss(scores, labels, reduction="sum", **EXACT): LABELS.reshape(4, 4),
        lambda scores, rankings: jax.vmap(ranking_log_prob)(scores, rankings).sum(): RNG.permuted(
            np.tile(np.arange(4), (4, 2, 1)), axis=2
        ),
    }
    for loss, data in losses.items():
        of_parts = lambda scores, data, loss=loss: loss(scores, data[:2]) + loss(scores, data[2:])  # noqa: E731
        for scores, spec, together in ((SCORES.reshape(4, 4), cut, loss), (SCORES.reshape(4, 4)[:2], whole, of_parts)):
            expected = jax.grad(together)(scores, data)
            inside = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=(spec, cut), out_specs=spec)
            np.testing.assert_allclose(inside(scores, data), expected, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(jax.jit(inside)(scores, data), expected, rtol=1e-6, atol=1e-7)


def test_compiled_once(caplog):
    """Without ``jit`` too. Mutants: a function of its own for the callback of each call; seed 0 without a word."""
    log_prob = lambda scores: PlackettLuce(scores).log_prob(np.array([2, 0, 1]))  # noqa: E731
    for call in (
        lambda scores, _: jax.grad(plackett_luce_loss)(scores, LABELS, OFFSETS, **EXACT),
        lambda scores, seed: jax.grad(plackett_luce_loss)(scores, LABELS, OFFSETS, method="cmc", seed=seed),
        lambda scores, _: jax.grad(log_prob)(scores),
        lambda scores, seed: PlackettLuce(scores).sample(seed, (2,)),
    ):
        call(SCORES, 0)
        with jax.log_compiles():
            call(SCORES + 1, 1)
    assert "Compiling" not in caplog.text


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (TypeError, "scores must be of a floating dtype", (np.arange(3), np.ones(3)), {}),
        (ValueError, "method must be one of", (SCORES, LABELS), {"method": "best"}),
        (ValueError, "reduction must be one of", (SCORES, LABELS), {"reduction": "all"}),
        (ValueError, "gain must be one of", (SCORES, LABELS), {"gain": "log"}),
        (ValueError, "seed must be at least 0", (SCORES, LABELS), {"seed": -1}),
        (TypeError, "seed must be an int", (SCORES, LABELS), {"seed": jnp.ones(2)}),
        (TypeError, "argument 'qid': pass offsets=offsets_from_qid", (SCORES, LABELS), {"qid": LABELS}),
        (Exception, "scores must be finite, got nan at index 0", (SCORES * np.nan, LABELS), {}),
        (TypeError, "relevance must not be a masked array", (SCORES, np.ma.array(LABELS, mask=LABELS > 2)), {}),
        (Exception, "relevance must have the shape of scores", (SCORES, LABELS[1:]), {}),
        (Exception, "offsets only goes with mask=None", (SCORES, LABELS, OFFSETS), {"mask": SCORES > 0}),
        (ValueError, "scores must have shape", (np.zeros((2, 2, 2), dtype=np.float32), LABELS), {}),
    ],
)
def test_errors_name_the_argument(error, message, arguments, options):
    with pytest.raises(error, match=message):
        plackett_luce_loss(*arguments, **options)


@pytest.mark.parametrize(
    "name",
    ["cutoff", "gain", "normalize", "reduction", "method", "n_samples", "rtol", "n_threads", "first_query", "seed"],
)
def test_options_are_refused_by_name_and_not_by_the_host(name):
    """Mutants: `_check` that leaves one of them to the host, of which JAX makes an error of its own."""
    for value in (-(10**400), np.complex128(1), np.array([1.0, 2.0]), float("nan"), "0.5", object()):
        if (name, type(value)) != ("n_threads", int):
            with pytest.raises((TypeError, ValueError), match=name):
                plackett_luce_loss(SCORES, LABELS, **{name: value})


def test_integers_that_jax_would_wrap_around_are_refused():
    """Mutant: one of the limits left out; 2**32 is then 0."""
    for number in (2**32, -(2**32)):
        with pytest.raises(ValueError, match=f"relevance must fit int32, got {number} at index 0"):
            plackett_luce_loss(SCORES[:1], np.array([number]))


def test_log_probability():
    """Values and gradient of the NumPy functions, through ``jit`` and ``vmap``. Mutant: upstream left out."""
    from plrank_fast.jax import ranking_log_prob

    scores = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    rankings = jax.numpy.array([[[0, 3, 1], [4, 2, -1]], [[1, 2, 3], [3, -1, -1]]])
    upstream = np.array([[1.0, -2.0], [0.5, 3.0]], dtype=np.float32)
    values = jax.jit(jax.vmap(ranking_log_prob))(scores, rankings)

    def loss(scores):
        return (upstream * jax.vmap(ranking_log_prob)(scores, rankings)).sum()

    gradient = jax.jit(jax.grad(loss))(scores)
    for row in range(2):
        np.testing.assert_allclose(values[row], plr.ranking_log_prob(scores[row], rankings[row]), rtol=1e-6)
        expected = plr.ranking_log_prob_vjp(scores[row], rankings[row], upstream[row])
        np.testing.assert_allclose(gradient[row], expected, rtol=0, atol=1e-5)
    with pytest.raises(TypeError, match="rankings must be of integers"):
        ranking_log_prob(scores[0], [[0.5]])
    for wrong, message in (
        ((scores, rankings[0]), "scores must have 1 axis"),
        ((scores[0], rankings), "rankings must h"),
    ):
        with pytest.raises(ValueError, match=message):
            ranking_log_prob(*wrong)


def test_tangents_of_padding():
    """They do not count, whatever they are. Mutant: 0 times NaN."""
    mask = np.array([[True, True, False], [True, True, True]])
    scores, relevance = np.array([[0.0, 1.0, np.nan], [1.0, 2.0, 3.0]], np.float32), np.array([[0, 1, 0], [1, 0, 0]])
    tangent = np.array([[0.5, 1.0, np.nan], [1.0, -2.0, 3.0]], np.float32)
    loss = partial(plackett_luce_loss, relevance=relevance, mask=mask)
    _, slope = jax.jvp(loss, (scores,), (tangent,))
    np.testing.assert_allclose(slope, (jax.grad(loss)(scores) * np.nan_to_num(tangent)).sum(), rtol=1e-6)


def test_negative_seeds_are_named():
    with pytest.raises(Exception, match="seed must not be negative, got -1 at index 1"):
        plackett_luce_loss(np.zeros(3), np.arange(3.0), method="cmc", seed=np.array([3, -1])).block_until_ready()


def test_default_is_ndcg_at_10_of_grades():
    """Mutants: linear gains, DCG, or all ranks by default."""
    labels, scores, offsets = np.tile(LABELS, 2), np.tile(SCORES, 2).astype(np.float32), [0, 2 * N_DOCS - 2, 2 * N_DOCS]
    labels[-2:] = 1.0, 2.0
    relevance, weights = plr.gains(labels), plr.dcg_weights(10)
    ideal = plr.dcg(relevance, relevance, weights, offsets=offsets)
    expected = plr.expected_metric(scores, relevance, weights, offsets=offsets) / ideal
    value = adapter.plackett_luce_loss(scores, labels, offsets)
    assert float(value) == pytest.approx(-expected.mean(), rel=1e-5)
    with pytest.raises(Exception, match=r"relevance must be from 0 to 200, .*pass gain='linear' for gains"):
        adapter.plackett_luce_loss(SCORES.astype(np.float32), -LABELS - 1.0)
