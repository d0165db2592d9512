"""Train a JAX model on minus the expected NDCG@10, with padded rows, a jitted step and a new seed for every step.

python examples/adapters/jax_training.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import plrank_fast as plr
from plrank_fast.jax import expected_metric_loss


def queries(n_queries=64, length=20, seed=0):
    """Make features, grades and the mask of documents: a row for each query, with 5 to 20 documents."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_queries, length, 8)).astype(np.float32)
    grades = features @ rng.normal(size=8) / 2 + rng.normal(size=(n_queries, length)) / 2
    mask = np.arange(length) < rng.integers(5, length + 1, size=n_queries)[:, np.newaxis]
    return features, np.clip(np.rint(grades), 0, 4).astype(np.float32), mask


def scores_of(parameters, features):
    """Return the scores of a network with one hidden layer, (n_queries, length)."""
    return jax.nn.sigmoid(features @ parameters["hidden"]) @ parameters["out"]


def loss_of(parameters, features, grades, mask, seed):
    """Return minus the expected NDCG@10."""
    return expected_metric_loss(scores_of(parameters, features), grades, mask=mask, cutoff=10, method="cmc", key=seed)


@jax.jit
def step(parameters, features, grades, mask, seed):
    """Take one step of gradient descent."""
    slope = jax.grad(loss_of)(parameters, features, grades, mask, seed)
    return jax.tree.map(lambda value, by: value - 3.0 * by, parameters, slope)


def main():
    features, grades, mask = queries()
    keys = jax.random.split(jax.random.key(0), 2)
    parameters = {
        "hidden": jax.random.normal(keys[0], (8, 32)) / 3,
        "out": jax.random.normal(keys[1], (32,)) / 6,
    }
    ndcg = []
    for epoch in range(61):
        if epoch % 60 == 0:
            lengths = mask.sum(axis=1)
            values = plr.ndcg(
                np.asarray(scores_of(parameters, features))[mask], plr.gains(grades[mask]), plr.dcg_weights(10),
                offsets=plr.offsets_from_group(lengths),
            )  # fmt: skip
            ndcg.append(float(values.mean()))
        parameters = step(parameters, features, grades, jnp.asarray(mask), epoch)
    return ndcg


if __name__ == "__main__":
    print("NDCG@10 before {:.3f}, after {:.3f}".format(*main()))
