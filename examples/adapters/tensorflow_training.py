"""Train a Keras model on minus the expected NDCG@10: the recipe for TensorFlow.

    pip install tensorflow
    python examples/adapters/tensorflow_training.py

Copy `expected_metric_loss`, which is the whole recipe. It works eagerly and inside ``tf.function``, but not with
``jit_compile=True``, because XLA cannot call Python.
"""

import numpy as np
import tensorflow as tf

import plrank_fast as plr


def expected_metric_loss(scores, relevance, offsets, rank_weights, method="exact", seed=0):
    """Return minus the mean expected metric of the queries, from scores of shape (n_docs,) or (n_docs, 1).

    relevance (gains of the documents), offsets (starts of the queries), rank_weights (of shape (K,) or (n_queries, K))
    and seed are tensors or arrays that are not differentiated. Sampled methods need a new seed in each step.
    """

    def on_host(scores, relevance, offsets, rank_weights, seed):
        values, gradient = plr.value_and_gradient(
            scores.ravel(), relevance.ravel(), rank_weights, offsets=offsets, method=method, rng=int(seed)
        )
        n_queries = max(len(values), 1)
        return -values.sum() / n_queries, (-gradient / n_queries).reshape(scores.shape)

    @tf.custom_gradient
    def loss(scores):
        exact = tf.cast(tf.stop_gradient(scores), tf.float64)  # NumPy has no bfloat16
        data = [exact, relevance, offsets, rank_weights, seed]
        value, gradient = tf.numpy_function(on_host, data, [tf.float64, tf.float64], stateful=False)
        value, gradient = tf.cast(value, scores.dtype), tf.cast(gradient, scores.dtype)
        value.set_shape([])
        gradient.set_shape(scores.shape)

        @tf.custom_gradient
        def refuse(gradient, _):
            def twice(*_):
                raise NotImplementedError("expected_metric_loss has no second derivative")

            return gradient, twice

        return value, lambda upstream: refuse(upstream * gradient, scores)

    return loss(scores)


def batches(n_queries=64, batch_size=16, seed=0):
    """Make queries of 5 to 20 documents: features, grades and offsets."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=8)
    for _ in range(n_queries // batch_size):
        offsets = plr.offsets_from_group(rng.integers(5, 21, size=batch_size))
        features = rng.normal(size=(offsets[-1], 8)).astype(np.float32)
        grades = np.clip(np.rint(features @ taste / 2 + rng.normal(size=offsets[-1]) / 2), 0, 4)
        yield features, grades, offsets


def ndcg(model, data):
    """Return the mean NDCG@10 of the ranking by score."""
    values = [
        plr.ndcg(model(features).numpy()[:, 0], plr.gains(grades), plr.dcg_weights(10), offsets=offsets)
        for features, grades, offsets in data
    ]
    return float(np.concatenate(values).mean())


def main():
    tf.keras.utils.set_random_seed(0)
    data = list(batches())
    model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="sigmoid"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.01)
    before = ndcg(model, data)
    for epoch in range(30):
        for number, (features, grades, offsets) in enumerate(data):
            worth = plr.gains(grades)
            ideal = plr.ideal_dcg(worth, plr.dcg_weights(10), offsets=offsets)[:, np.newaxis]
            weights = np.divide(plr.dcg_weights(10), ideal, out=np.zeros((len(ideal), 10)), where=ideal > 0)
            with tf.GradientTape() as tape:
                loss = expected_metric_loss(model(features), worth, offsets, weights, "cmc", epoch * len(data) + number)
            optimizer.apply_gradients(
                zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
            )
    return before, ndcg(model, data)


if __name__ == "__main__":
    print("NDCG@10 before {:.3f}, after {:.3f}".format(*main()))
