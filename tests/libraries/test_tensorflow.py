"""The recipe for TensorFlow, and the published losses of TensorFlow tensors; ``make test-all`` installs it."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-all installs it")

RECIPE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "adapters" / "tensorflow_training.py"))
OFFSETS = np.array([0, 4, 4, 9])
SCORES = np.random.default_rng(0).normal(size=9)
LABELS = np.array([0, 1, 3, 0, 7, 0, 1, 1, 0.0])
WEIGHTS = plr.dcg_weights(3)


def loss_and_gradient(scores, *options):
    scores = tf.constant(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        loss = 3 * RECIPE["expected_metric_loss"](scores, LABELS, OFFSETS, WEIGHTS, *options)
    return loss.numpy(), tape.gradient(loss, scores).numpy()


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [(np.float32, 1e-5), (np.float64, 1e-5), (np.float16, 3e-3), (tf.bfloat16.as_numpy_dtype, 2e-2)],
)
def test_value_and_gradient_are_minus_those_of_the_library(dtype, rtol):
    """Columns too. Mutants: the upstream gradient left out; the gradient's sign turned; bfloat16 sent to NumPy."""
    loss, gradient = loss_and_gradient(SCORES.astype(dtype))
    assert gradient.dtype == dtype
    held = SCORES.astype(dtype).astype(np.float64)
    expected = plr.expected_metric(held, LABELS, WEIGHTS, offsets=OFFSETS).mean()
    assert float(loss) == pytest.approx(-3 * expected, rel=rtol)
    exact = plr.pl_rank_exact(held, LABELS, WEIGHTS, offsets=OFFSETS)
    np.testing.assert_allclose(gradient.astype(np.float64), -exact, rtol=rtol, atol=1e-6)
    assert (loss_and_gradient(SCORES.astype(dtype)[:, np.newaxis])[1][:, 0] == gradient).all()


def test_inside_a_function_with_the_seed_as_data():
    """One graph for all seeds. Mutant: the seed fixed when traced."""
    compiled = tf.function(lambda scores, seed: loss_and_gradient_of(scores, seed))

    def loss_and_gradient_of(scores, seed):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = RECIPE["expected_metric_loss"](scores, LABELS, OFFSETS, WEIGHTS, "cmc", seed)
        return tape.gradient(loss, scores)

    for seed in (1, 2):
        gradient = compiled(tf.constant(SCORES), tf.constant(seed)).numpy()
        assert (gradient == -plr.pl_rank_cmc(SCORES, LABELS, WEIGHTS, offsets=OFFSETS, rng=seed) / 3).all()
    assert compiled.experimental_get_tracing_count() == 1


def test_second_derivatives_are_refused():
    """Rather than taken for zero. Mutant: a plain product in the inner gradient."""
    scores = tf.constant(SCORES)
    with tf.GradientTape() as outer:
        outer.watch(scores)
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = RECIPE["expected_metric_loss"](scores, LABELS, OFFSETS, WEIGHTS)
        gradient = tape.gradient(loss, scores)
    with pytest.raises(NotImplementedError, match="no second derivative"):
        outer.gradient(gradient, scores)


def test_the_recipe_trains():
    before, after = RECIPE["main"]()
    assert before < 0.75
    assert after > 0.85
