"""The container, normalisation within queries, and generated sets."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import ndcg_score

from plrank_fast.data import PROFILES, RankingData, concatenate, generate, normalization, normalize_queries
from plrank_fast.data.generated import list_lengths


def small(features, offsets, labels=None, name="small"):
    features = np.asarray(features, dtype=float)
    labels = np.zeros(len(features)) if labels is None else np.asarray(labels, dtype=float)
    return RankingData(features, labels, np.asarray(offsets), np.arange(len(offsets) - 1), name)


# --- container


def test_shapes_are_checked():
    """Mutants: each check of `__post_init__` left out."""
    data = small([[1, 2], [3, 4], [5, 6]], [0, 2, 2, 3])
    assert (data.n_docs, data.n_features, data.n_queries) == (3, 2, 3)
    assert data.list_lengths.tolist() == [2, 0, 1]
    for name, wrong in {
        "features": np.zeros(3), "labels": np.zeros(4), "offsets": np.array([0, 2, 2, 2]), "query_ids": np.arange(4),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=f"^{name} must"):
            dataclasses.replace(data, **{name: wrong})
    with pytest.raises(ValueError, match=r"^offsets must not decrease"):
        small(np.zeros((2, 1)), [0, 3, 2])


def test_rows_of_queries():
    """Mutants: offsets of the whole set returned; empty queries dropped; order of the queries sorted."""
    data = small(np.zeros((6, 1)), [0, 2, 2, 5, 6])
    rows, offsets = data.rows_of(np.array([2, 1, 0]))
    assert rows.tolist() == [2, 3, 4, 0, 1]
    assert offsets.tolist() == [0, 3, 3, 5]
    assert data.rows_of(np.array([], dtype=int))[0].tolist() == []


def test_concatenate():
    """Mutants: the same qid in two parts merged; offsets not shifted."""
    first, second = small([[1], [2]], [0, 1, 2], [0, 1], "a"), small([[3], [4]], [0, 2], [2, 3], "b")
    both = concatenate([first, second])
    assert both.features.ravel().tolist() == [1, 2, 3, 4]
    assert both.labels.tolist() == [0, 1, 2, 3]
    assert both.offsets.tolist() == [0, 1, 2, 4]
    assert both.query_ids.tolist() == [0, 1, 0]
    assert both.name == "a, b"
    with pytest.raises(ValueError, match=r"same n_features, got \[1, 2\]"):
        concatenate([first, small([[1, 2]], [0, 1])])
    with pytest.raises(ValueError, match="got none"):
        concatenate([])


def test_fingerprint_sees_every_part():
    """Mutants: an array left out of the hash; the shape left out."""
    data = small([[1, 2], [3, 4]], [0, 1, 2], [0, 1])
    changes = [
        {"features": data.features + np.eye(2)}, {"labels": data.labels * 2},
        {"offsets": np.array([0, 0, 2])}, {"query_ids": data.query_ids + 1},
    ]  # fmt: skip
    prints = {data.fingerprint(), *(dataclasses.replace(data, **change).fingerprint() for change in changes)}
    assert len(prints) == 5
    assert dataclasses.replace(data, name="another name").fingerprint() in prints
    zeros = small(np.zeros((2, 2)), [0, 2])
    wide = dataclasses.replace(zeros, features=np.zeros((2, 4), np.float32))
    assert zeros.fingerprint() != wide.fingerprint()  # the same bytes


# --- normalisation


@pytest.mark.parametrize("chunk_bytes", [1, 100, 2**26])
def test_normalization_equals_a_loop(monkeypatch, chunk_bytes):
    """Mutants: constant features to NaN or 1; an empty query takes its neighbour's minimum; chunks off by one row."""
    monkeypatch.setattr(normalization, "CHUNK_BYTES", chunk_bytes)
    rng = np.random.default_rng(5)
    features = rng.normal(size=(40, 3))
    features[:, 1] = np.repeat(rng.normal(size=8), 5)
    data = small(features, [0, 0, 5, 5, 6, 20, 39, 40, 40])
    before = features.copy()
    normalized = normalize_queries(data)
    for start, stop in pairwise(data.offsets):
        for column in range(3):
            values = features[start:stop, column]
            expected = [
                (v - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 0 for v in values
            ]
            np.testing.assert_allclose(normalized.features[start:stop, column], expected, rtol=1e-14, atol=1e-14)
    assert np.array_equal(features, before)
    assert normalize_queries(small(np.zeros((0, 2)), [0, 0])).n_docs == 0


def test_normalization_of_extremes():
    """Mutant: the plain formula, whose range overflows to infinity."""
    data = small([[-1.7e308], [1.7e308], [0]], [0, 3])
    assert normalize_queries(data).features.ravel().tolist() == [0, 1, 0.5]
    assert normalize_queries(small(np.ones((2, 1), np.float32), [0, 2])).features.dtype == np.float64
    single = RankingData(np.eye(2, dtype=np.float32), np.zeros(2), np.array([0, 2]), np.array([1]), "")
    assert normalize_queries(single).features.dtype == np.float32


# --- generated sets


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_have_their_shapes(profile):
    """Mutants: mean off by the one that every query has; maximum not kept; shares of another profile."""
    shape = PROFILES[profile]
    data = generate(profile, 400, seed=3, n_features=4)
    lengths = data.list_lengths
    assert data.n_queries == 400
    assert 1 <= lengths.min() <= lengths.max() <= shape.max_length
    assert lengths.mean() == pytest.approx(shape.mean_length, abs=5 * lengths.std() / 20)
    shares = np.bincount(data.labels.astype(int), minlength=5) / data.n_docs
    np.testing.assert_allclose(shares, shape.label_shares, atol=0.05)
    assert data.features.min() >= 0
    assert data.features.max() <= 1
    assert data.features.dtype == np.float32


@pytest.mark.parametrize("profile", PROFILES)
def test_longest_lists_are_those_published(profile):
    """In a full set some list has the maximum, but on the shapes with short lists hardly any. Mutants: the lengths as
    they were, whose longest were 500 to 750 for MSLR; no cut; the centre without regard to the cut (the mean)."""
    shape = PROFILES[profile]
    for seed in range(3):
        lengths = list_lengths(np.random.default_rng(seed), shape, shape.n_queries)
        assert lengths.max() == shape.max_length
        assert lengths.min() >= 1
        assert lengths.mean() == pytest.approx(shape.mean_length, rel=0.02)
        assert (lengths == shape.max_length).mean() < (0.15 if profile == "istella" else 0.002)


def test_seeds_and_splits():
    """Mutants: split not in the key (test equals train); seed not in the key; global random state used."""
    keys = [
        ("yahoo", 1, "train"),
        ("yahoo", 2, "train"),
        ("yahoo", 1, "vali"),
        ("yahoo", 1, "test"),
        ("mslr", 1, "train"),
    ]
    first, second = (
        [generate(profile, 300, seed=seed, n_features=5, split=split).fingerprint() for profile, seed, split in keys]
        for _ in range(2)
    )
    assert first == second
    assert len({*first}) == len(keys)


def test_splits_share_the_ground_truth():
    """A linear model fitted on train ranks test well, that of another seed does not. Mutant: truth from the split."""
    train, test = (generate("yahoo", 300, seed=1, n_features=60, split=split) for split in ("train", "test"))
    foreign = generate("yahoo", 300, seed=9, n_features=60)

    def quality(model):
        scores = model.predict(test.features)
        queries = [slice(a, b) for a, b in pairwise(test.offsets) if b - a > 1]
        return np.mean([ndcg_score([2 ** test.labels[q] - 1], [scores[q]], k=10) for q in queries])

    own, other = (quality(LinearRegression().fit(data.features, data.labels)) for data in (train, foreign))
    assert own > other + 0.1
