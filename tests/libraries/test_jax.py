"""The loss in JAX alone: the seed as data, meshes, compilation once, integers of 32 bits."""

import importlib
from functools import partial

import numpy as np
import pytest

import frameworks
import plrank_fast as plr
from frameworks import DCG, EXACT, IGNORED_WARNINGS, OFFSETS, RNG, WEIGHTS

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from plrank_fast import jax as adapter  # noqa: E402
from plrank_fast.jax import PlackettLuce  # noqa: E402

plackett_luce_loss = partial(adapter.plackett_luce_loss, **DCG)
SCORES, LABELS = (each.astype(np.float32) for each in (frameworks.SCORES, frameworks.LABELS))

pytestmark = IGNORED_WARNINGS


def test_jit_and_the_seed_as_data():
    """One compilation for all seeds. Mutant: the seed fixed when traced."""
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
    keys = jax.random.split(jax.random.key(1), 2)
    of_keys = [np.asarray(compiled(SCORES, key, 0)) for key in keys]
    assert (of_keys[0] != of_keys[1]).any()
    assert (of_keys[0] == compiled(SCORES, jax.random.key_data(keys[0]), 0)).all()


def test_vmap_over_seeds():
    """Under jit too. Mutant: the seed of the first row for all."""

    def loss(seed):
        return plackett_luce_loss(SCORES, LABELS, cutoff=3, method="cmc", seed=seed)

    together = jax.jit(jax.vmap(loss))(jnp.arange(20))
    assert np.unique(together).size > 5
    np.testing.assert_array_equal(together, [loss(seed) for seed in range(20)])


def test_float64():
    """Mutant: the callback's results in float32."""
    # what JAX has by that name is a flag that refuses to be asked whether it is true
    enable_x64 = (jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")).enable_x64
    with enable_x64(True):
        gradient = jax.grad(plackett_luce_loss)(jnp.asarray(SCORES, dtype=jnp.float64), LABELS, OFFSETS, **EXACT)
    expected = -plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=OFFSETS) / 5
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_derivatives_by_data_are_refused():
    """Rather than taken for zero. Mutant: no check of what is perturbed."""
    with pytest.raises(TypeError, match=r"relevance must not be differentiated: pass jax.lax.stop_gradient\(relevance"):
        jax.grad(plackett_luce_loss, argnums=1)(SCORES, LABELS, OFFSETS)

    gradient = jax.grad(lambda scores: plackett_luce_loss(scores, jax.lax.stop_gradient(scores > 0) * 1.0, OFFSETS))
    np.testing.assert_array_equal(jax.jit(gradient)(SCORES), jax.grad(plackett_luce_loss)(SCORES, SCORES > 0, OFFSETS))


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="shard_map keeps account of what varies since JAX 0.6")
def test_inside_shard_map():
    """Scores are cut, or whole beside labels that are cut. Mutants: results that do not vary (`_call_host` without
    `_zero`); the labels left out of what varies; ``symbolic_zeros``, which shard_map does not know."""
    mesh, cut, whole = jax.sharding.Mesh(np.array(jax.devices()[:2]), "queries"), P("queries"), P()
    losses = {
        lambda scores, labels: plackett_luce_loss(scores, labels, reduction="sum", **EXACT): LABELS.reshape(4, 4),
        lambda scores, rankings: PlackettLuce(scores).log_prob(rankings.swapaxes(0, 1)).sum(): RNG.permuted(
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


def test_integers_that_jax_would_wrap_around_are_refused():
    """Mutant: one of the limits left out; 2**32 is then 0."""
    for number in (2**32, -(2**32)):
        with pytest.raises(ValueError, match=f"relevance must fit int32, got {number} at index 0"):
            plackett_luce_loss(SCORES[:1], np.array([number]))


def test_negative_seeds_are_named():
    with pytest.raises(Exception, match="seed must not be negative, got -1 at index 1"):
        plackett_luce_loss(np.zeros(3), np.arange(3.0), method="cmc", seed=np.array([3, -1])).block_until_ready()
