"""The loss in JAX alone: the seed as data, meshes, compilation once, integers of 32 bits."""

import importlib
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import frameworks
import plrank_fast as plr
from frameworks import DCG, EXACT, IGNORED_WARNINGS, OFFSETS, RNG, WEIGHTS
from plrank_fast.chunks import query_streams

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from plrank_fast import jax as adapter  # noqa: E402
from plrank_fast.jax import PlackettLuce  # noqa: E402

expected_metric_loss = partial(adapter.expected_metric_loss, **DCG)
SCORES, LABELS = (each.astype(np.float32) for each in (frameworks.SCORES, frameworks.LABELS))

pytestmark = IGNORED_WARNINGS


def test_jit_and_the_seed_as_data():
    """One compilation for all seeds. Mutant: the seed fixed when traced."""
    traces = []

    def step(scores, seed, first_query):
        traces.append(seed)
        return expected_metric_loss(
            scores, LABELS, OFFSETS, cutoff=3, method="pl_rank_3", n_samples=5,
            key=query_streams(seed, first_query), reduction="sum",
        )  # fmt: skip

    compiled = jax.jit(jax.grad(step))
    for seed in (0, 7):
        expected = plr.pl_rank_3(SCORES, LABELS, WEIGHTS, offsets=OFFSETS, n_samples=5, rng=query_streams(seed, 2))
        np.testing.assert_array_equal(compiled(SCORES, seed, 2), -expected.astype(np.float32))
    assert len(traces) == 1
    keys = jax.random.split(jax.random.key(1), 2)
    of_keys = [np.asarray(compiled(SCORES, key, 0)) for key in keys]
    assert (of_keys[0] != of_keys[1]).any()


def test_vmap_over_seeds():
    """Under jit too. Mutant: the seed of the first row for all."""

    def loss(seed):
        return expected_metric_loss(SCORES, LABELS, cutoff=3, method="cmc", key=seed)

    together = jax.jit(jax.vmap(loss))(jnp.arange(20))
    assert np.unique(together).size > 5
    np.testing.assert_array_equal(together, [loss(seed) for seed in range(20)])


def test_float64():
    """Mutant: the callback's results in float32."""
    # what JAX has by that name is a flag that refuses to be asked whether it is true
    enable_x64 = (jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")).enable_x64
    with enable_x64(True):
        gradient = jax.grad(expected_metric_loss)(jnp.asarray(SCORES, dtype=jnp.float64), LABELS, OFFSETS, **EXACT)
    expected = -plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=OFFSETS) / 5
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_derivatives_by_data_are_refused():
    """Rather than taken for zero. Mutant: no check of what is perturbed."""
    with pytest.raises(TypeError, match=r"labels must not be differentiated: pass jax.lax.stop_gradient\(labels"):
        jax.grad(expected_metric_loss, argnums=1)(SCORES, LABELS, OFFSETS)

    gradient = jax.grad(lambda scores: expected_metric_loss(scores, jax.lax.stop_gradient(scores > 0) * 1.0, OFFSETS))
    np.testing.assert_array_equal(
        jax.jit(gradient)(SCORES), jax.grad(expected_metric_loss)(SCORES, SCORES > 0, OFFSETS)
    )


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="shard_map keeps account of what varies since JAX 0.6")
def test_inside_shard_map():
    """Scores are cut, or whole beside labels that are cut. Mutants: results that do not vary (`_call_host` without
    `_zero`); the labels left out of what varies; ``symbolic_zeros``, which shard_map does not know."""
    mesh, cut, whole = jax.sharding.Mesh(np.array(jax.devices()[:2]), "queries"), P("queries"), P()
    losses = {
        lambda scores, labels: expected_metric_loss(scores, labels, reduction="sum", **EXACT): LABELS.reshape(4, 4),
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


@pytest.mark.skipif(not hasattr(jax.sharding, "reshard"), reason="older JAX has no types that say how arrays are cut")
def test_on_an_explicit_mesh():
    """`jax.make_mesh` makes such meshes. The numbers equal those without a cut. Mutants: arrays left cut for
    the host; results of an eager callback, which nothing can read."""
    mesh = jax.make_mesh((2,), ("queries",), axis_types=(jax.sharding.AxisType.Explicit,))
    cut = jax.sharding.NamedSharding(mesh, P("queries"))
    rankings = RNG.permuted(np.tile(np.arange(4), (4, 2, 1)), axis=2)
    rows, flat = (LABELS.reshape(4, 4),), (LABELS,)
    loss = partial(expected_metric_loss, **EXACT)
    calls = [
        (jax.grad(loss), rows), (jax.grad(lambda *of: loss(*of, offsets=[0, 5, 16])), flat), (jax.hessian(loss), rows),
        (jax.vmap(jax.grad(loss)), rows),
        (lambda scores, order: jax.grad(lambda x: PlackettLuce(x).log_prob(order.swapaxes(0, 1)).sum())(scores),
         (rankings,)),
        (lambda scores: PlackettLuce(scores).sample(jax.random.key(0), (3,)), ()),
    ]  # fmt: skip
    with jax.set_mesh(mesh):  # of which JAX's own ``grad`` has need where there is no ``jit``
        for call, data in calls:
            scores = SCORES.reshape(-1, *(4,) * (data is not flat))
            arguments = [jax.device_put(each, cut) for each in (scores, *data)]
            for function in (call, jax.jit(call)):
                np.testing.assert_allclose(function(*arguments) + 0, call(scores, *data), rtol=1e-6, atol=1e-7)


def test_compiled_once(caplog):
    """Without ``jit`` too. Mutants: a function of its own for the callback of each call; seed 0 without a word."""
    log_prob = lambda scores: PlackettLuce(scores).log_prob(np.array([2, 0, 1]))  # noqa: E731
    for call in (
        lambda scores, _: jax.grad(expected_metric_loss)(scores, LABELS, OFFSETS, **EXACT),
        lambda scores, seed: jax.grad(expected_metric_loss)(scores, LABELS, OFFSETS, method="cmc", key=seed),
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
        with pytest.raises(ValueError, match=f"labels must fit int32, got {number} at index 0"):
            expected_metric_loss(SCORES[:1], np.array([number]))


def test_values_that_are_here_are_refused_at_once():
    """Values of NumPy and of Python. Mutant: offsets or a seed left to the host, which may not raise."""
    with pytest.raises(ValueError, match="key must not be negative, got -1 at index 1"):
        expected_metric_loss(np.zeros(3), np.arange(3.0), method="cmc", key=np.array([3, -1]))
    with pytest.raises(ValueError, match=r"offsets must .*: sizes of queries become offsets by offsets_from_group"):
        jax.jit(lambda scores: expected_metric_loss(scores, LABELS, offsets=[4, 12]))(SCORES)


def calls():
    rows, rankings = SCORES.reshape(4, 4), np.tile(np.arange(4), (4, 1))
    loss = partial(expected_metric_loss, cutoff=3, reduction="sum")
    yield jax.value_and_grad(lambda x: loss(x, LABELS, OFFSETS, method="exact"))(SCORES)
    yield jax.value_and_grad(lambda x: loss(x, LABELS, OFFSETS, method="cmc", key=3))(SCORES)
    yield jax.hessian(lambda x: loss(x, LABELS[:4], method="exact"))(SCORES[:4])
    yield jax.jit(jax.vmap(jax.grad(lambda x, key: loss(x, LABELS[:4], method="cmc", key=key))))(rows, np.arange(4))
    yield jax.value_and_grad(lambda x: PlackettLuce(x).log_prob(rankings).sum())(rows)
    yield PlackettLuce(rows).sample(jax.random.key(0), (3,))
    yield jax.value_and_grad(lambda x: loss(x, LABELS[:0], np.array([0, 0, 0])))(SCORES[:0])


def test_calls_of_xla_have_the_bits_of_callbacks():
    """Every function on the host is called. Mutants: a result copied to another's place; operands in another order; a
    shape taken for the number of bytes; the options of the call before."""
    of_xla = list(calls())
    with frameworks.Jax().by_callback():
        for first, second in zip(of_xla, calls(), strict=True):
            jax.tree.map(np.testing.assert_array_equal, first, second)


def test_errors_name_the_query():
    """Mutants: the number of a document for that of its query; an empty query not counted; the mask
    left out."""
    scores = jnp.asarray(SCORES).at[4].set(jnp.nan)
    with pytest.raises(RuntimeError, match=r"INVALID_ARGUMENT: scores must be finite, got nan at index 4 \(query 2\)"):
        jax.block_until_ready(jax.jit(jax.grad(expected_metric_loss))(scores, LABELS, jnp.asarray(OFFSETS)))
    rows, mask = frameworks.padded(scores, 0.0)
    with pytest.raises(RuntimeError, match=r"scores must be finite, got nan at index 4 \(query 2\)"):
        jax.block_until_ready(expected_metric_loss(jnp.asarray(rows), jnp.ones(rows.shape), mask=mask))


@pytest.mark.skipif(not adapter.KNOWN_TO_XLA, reason="JAX before 0.5")
def test_exported(tmp_path):
    """Another process runs what has been exported. Mutant: calls that only the process that traced them knows."""
    step = jax.jit(jax.grad(lambda scores: expected_metric_loss(scores, LABELS, OFFSETS, **EXACT)))
    allowed = [jax.export.DisabledSafetyCheck.custom_call(adapter.TARGET)]
    exported = jax.export.export(step, disabled_checks=allowed)(SCORES)
    (tmp_path / "step").write_bytes(exported.serialize())
    np.save(tmp_path / "scores.npy", SCORES)
    code = "\n".join([
        "import sys, pathlib, numpy as np, jax, plrank_fast.jax",
        "folder = pathlib.Path(sys.argv[1])",
        "step = jax.export.deserialize(bytearray((folder / 'step').read_bytes()))",
        "np.save(folder / 'gradient.npy', step.call(np.load(folder / 'scores.npy')))",
    ])  # fmt: skip
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "gradient.npy"), step(SCORES))


def test_the_distribution_has_no_exceptions_in_callbacks():
    """Draws that cannot be made are -1, log-probabilities NaN. Mutant: an exception in the callback."""
    policy = PlackettLuce(jnp.array([0.0, jnp.nan, 1.0]))
    told = "scores must be finite, got nan at index 1: the results in JAX are"
    with frameworks.Jax().by_callback():
        with pytest.warns(UserWarning, match=f"{told} -1"):
            assert (policy.sample(0) == -1).all()
        with pytest.warns(UserWarning, match=f"{told} nan"):
            assert jnp.isnan(jax.grad(lambda scores: PlackettLuce(scores).log_prob(np.arange(3)))(policy.scores)).all()


def test_uses_of_a_key_are_seen():
    """By JAX's own check. Mutant: ``key_data``, which is no use."""
    key, loss = jax.random.key(0), partial(expected_metric_loss, SCORES, LABELS, method="cmc")
    for use in (lambda: loss(key=key), lambda: PlackettLuce(SCORES).sample(key)):
        with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
            use(), jax.random.normal(key)
    with pytest.raises(ValueError, match=r"key must be a single one, got keys of shape \(2,\)"):
        loss(key=jax.random.split(key))
