"""Ranking problems for the tests: equal arguments, equal numbers.

Each maker draws from a generator of its own, seeded by its arguments: tests may be run in any order and alone.
"""

import itertools

import numpy as np

import plrank_fast as plr


def signed(n_docs, cutoff, seed=0, spread=1.0):
    """Scores with a tie, relevance with a zero and negative values, rank weights that are not monotone."""
    rng = np.random.default_rng([n_docs, cutoff, seed])
    scores = spread * rng.normal(size=n_docs)
    relevance = rng.normal(size=n_docs)
    if n_docs > 2:
        scores[1] = scores[2]
        relevance[0] = 0.0
    return scores, relevance, rng.normal(size=cutoff)


def labelled(n_docs, spread=1.0, seed=0):
    """Scores with a tie, and labels with ties, fractions among them."""
    rng = np.random.default_rng([n_docs, seed])
    scores = spread * rng.normal(size=n_docs)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, 2.5, 4.0], size=n_docs)
    if n_docs > 2:
        scores[1] = scores[2]
    return scores, labels


def graded(n_docs, cutoff, seed=0):
    """Scores, gains of grades from 0 to 3, and the weights of DCG."""
    rng = np.random.default_rng([n_docs, cutoff, seed])
    relevance = plr.gains(rng.integers(0, 4, size=n_docs))
    return rng.normal(size=n_docs), relevance, plr.dcg_weights(cutoff)


def ragged(lengths):
    """Scores and grades of queries of these lengths, empty ones among them, weights of 4 ranks for each, offsets."""
    rng = np.random.default_rng(7)
    n_docs = sum(lengths)
    scores, relevance = rng.normal(size=n_docs), rng.integers(0, 4, size=n_docs).astype(float)
    rank_weights = -np.sort(-rng.uniform(size=(len(lengths), 4)))
    return scores, relevance, rank_weights, plr.offsets_from_group(lengths)


def features(n_queries=30, seed=0, noise=0.5):
    """Features of which two count, grades, and the query of each document: 1 to 15 documents each."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 16, size=n_queries)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.rint(X[:, 0] - X[:, 1] + noise * rng.normal(size=sizes.sum())), 0, 3).astype(int)
    return X, y, np.repeat(rng.permutation(n_queries), sizes)


def every_prefix(n_docs, cutoff):
    """All rankings of so many ranks."""
    return np.array(list(itertools.permutations(range(n_docs), cutoff)), dtype=np.int32).reshape(-1, cutoff)


STOPS = ("none", "all", "relevant", "grades", "any", "one", "nearly")


def stop_of_a_kind(kind, rng, n_docs):
    """Chances to stop at each document."""
    return {
        "none": np.zeros(n_docs),
        "all": np.ones(n_docs),
        "relevant": rng.integers(0, 2, size=n_docs).astype(float),
        "grades": (2.0 ** rng.integers(0, 5, size=n_docs) - 1) / 16,
        "any": rng.random(n_docs),
        "one": (np.arange(n_docs) == rng.integers(n_docs)) * 1.0,
        "nearly": 1 - 10.0 ** -rng.uniform(1, 15, size=n_docs),
    }[kind]


def with_stop(kind, n_docs, cutoff, spread=1.0):
    """Scores, relevance with zeros, rank weights, both signed, and chances to stop."""
    rng = np.random.default_rng([STOPS.index(kind), n_docs, cutoff, int(10 * spread)])
    relevance = rng.normal(size=n_docs) * (rng.random(n_docs) < 0.7)
    return spread * rng.normal(size=n_docs), relevance, rng.normal(size=cutoff), stop_of_a_kind(kind, rng, n_docs)
