"""The container, normalisation within queries, and generated sets."""

import dataclasses
from datetime import date
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import ndcg_score

from plrank_fast.data import (
    PROFILES,
    RankingData,
    concatenate,
    generate,
    normalize_queries,
    ranking_data,
)
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
    """Mutants: offsets of the whole set returned; empty queries dropped; order of the queries sorted; positions from
    the end, or a mask, taken for places among the offsets."""
    data = small(np.zeros((6, 1)), [0, 2, 2, 5, 6])
    rows, offsets = data.rows_of(np.array([2, 1, 0]))
    assert rows.tolist() == [2, 3, 4, 0, 1]
    assert offsets.tolist() == [0, 3, 3, 5]
    assert data.rows_of(np.array([], dtype=int))[0].tolist() == []
    rows, offsets = data.rows_of([-2, -4])
    assert (rows.tolist(), offsets.tolist()) == ([2, 3, 4, 0, 1], [0, 3, 5])
    assert data.rows_of([False, True, True, False])[0].tolist() == [2, 3, 4]
    assert data[[]].n_queries == 0
    for wrong, error, message in [
        ([[0, 1]], ValueError, "queries must be 1-dimensional"),
        (np.ma.array([0, 1], mask=[False, True]), TypeError, "queries must not be a masked array"),
        ([4], IndexError, "4 is out of bounds"),
    ]:
        with pytest.raises(error, match=message):
            data[wrong]


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


COLUMNS = {"qid": ["a", "b", "b"], "label": [0, 2, 1], "long": [0.1, 0.2, 0.3], "old": [1, 2, 3]}
FRAME = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def test_frames_are_frames():
    """A structured array is one. Mutant: a dictionary taken for a frame without columns."""
    records = np.rec.fromarrays([[1, 1, 2], [0, 1, 2.0], [0.5, 0.2, 0.3]], names="qid,label,x")
    assert RankingData.from_frame(records).feature_names == ("x",)
    with pytest.raises(TypeError, match=r"^frame must be a data frame, got dict$"):
        RankingData.from_frame(COLUMNS)


@pytest.mark.parametrize("library", FRAME)
def test_frames(library):
    """Mutants: names dropped by ``from_frame`` or ``__getitem__``; features that are text read as numbers."""
    frame = getattr(pytest.importorskip(library), FRAME[library])
    data = RankingData.from_frame(frame(COLUMNS))
    assert data[1:].feature_names == ("long", "old")
    assert data.features.tolist() == [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]]
    assert data.query_ids.tolist() == ["a", "b"]
    for wrong in ["1", "2", "red"], [date(2020, 1, 1)] * 3:
        with pytest.raises(TypeError, match=r"column 'new' of frame must hold numbers, got .*: .*, or leave it out"):
            RankingData.from_frame(frame({**COLUMNS, "new": wrong}))
        assert RankingData.from_frame(frame({**COLUMNS, "new": wrong}), features=["old"]).n_features == 1


def test_frames_that_are_refused():
    """Mutants: columns of one name taken twice each; a plan of a frame without a word of how to compute it."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    twice = pandas.DataFrame([[1, 0, 5, 6]], columns=["qid", "label", "x", "x"])
    with pytest.raises(ValueError, match=r"^frame must not have two columns of one name, got 'x' again at index 3$"):
        RankingData.from_frame(twice)
    with pytest.raises(TypeError, match=r"^frame must be a data frame that holds its rows, .*pass frame\.collect\(\)$"):
        RankingData.from_frame(polars.DataFrame(COLUMNS).lazy())
    with pytest.raises(ValueError, match="frame must have columns of features beside 'label' and 'qid', got none"):
        RankingData.from_frame(twice[["qid", "label"]])


def test_columns_in_another_order():
    """They are found by name. Mutants: by position in ``concatenate``; features of other names taken."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS)
    data, turned = RankingData.from_frame(frame), RankingData.from_frame(frame[["old", "long", "label", "qid"]])
    assert np.array_equal(concatenate([data, turned]).features, np.vstack([data.features, data.features]))
    assert turned.fingerprint() != data.fingerprint() != dataclasses.replace(data, feature_names=None).fingerprint()
    with pytest.raises(ValueError, match=r"^parts\[1\] must have the features \['old'\], and not \['new'\]$"):
        concatenate([data, RankingData.from_frame(frame.rename(columns={"old": "new"}))])
    for names, message in ((["a", "a"], "be distinct, got 'a' again at index 1"), (["a"], "have 2 names, got 1")):
        with pytest.raises(ValueError, match=f"^feature_names must {message}"):
            dataclasses.replace(data, feature_names=names)


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


@pytest.mark.parametrize("kind", [list, np.float32, np.float64, "torch"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_must_be_finite(monkeypatch, kind, value):
    """One that is not took that feature from its whole query. Mutants: no check; one of NaN alone; an index within the
    rows that are checked at once; features that were changed afterwards normalised."""
    monkeypatch.setattr(ranking_data, "ROWS_PER_CHECK", 1)
    rows = [[1.0, 10.0], [2.0, value], [3.0, 30.0]]
    tensor = pytest.importorskip("torch").tensor if kind == "torch" else None
    features = rows if kind is list else tensor(rows) if tensor else np.array(rows, kind)
    got = rf"must be finite, got {value} at index \(1, 1\)"
    with pytest.raises(ValueError, match=f"^features {got}"):
        RankingData(features, [0, 1, 2], [0, 3])
    with pytest.raises(ValueError, match=f"^labels must be finite, got {value} at index 1"):
        RankingData(np.zeros((3, 1)), np.array(rows)[:, 1], [0, 3])
    data = RankingData(np.array(rows)[:, :1], [0, 1, 2], [0, 3])
    data.features[2] = value
    with pytest.raises(ValueError, match=rf"^features must be finite, got {value} at index \(2, 0\)"):
        normalize_queries(data)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_features_of_frames(missing):
    """They are refused by row and column; they became 0. Mutant: columns of nullable integers as they are."""
    pandas = pytest.importorskip("pandas")
    kind = "Int64" if missing is None else "float64"
    frame = pandas.DataFrame(COLUMNS).assign(old=pandas.array([1, missing, 3], dtype=kind))
    with pytest.raises(ValueError, match=r"^features must be finite, got nan at index \(1, 1\) of column 'old': fill"):
        RankingData.from_frame(frame)


# --- normalisation


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f4", np.float64, np.longdouble])
@pytest.mark.parametrize("order", ["C", "F"])
def test_normalization_equals_a_loop(dtype, order):
    """Mutants: constant features to NaN or 1; an empty query takes its neighbour's minimum; the first row of a query,
    or the last, left out of its range; the second column's range for all; the data themselves changed."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(40, 19))  # more than a register, and a rest
    features[:, 1] = np.repeat(rng.normal(size=8), 5)
    features = np.array(features, dtype, order=order)
    data = RankingData(features, np.zeros(40), [0, 0, 5, 5, 6, 20, 39, 40, 40])
    before, accuracy = features.copy(), 4 * max(np.finfo(dtype).eps, np.finfo(float).eps)
    normalized = normalize_queries(data)
    for start, stop in pairwise(data.offsets):
        for column in range(19):
            values = features[start:stop, column]
            expected = [
                (v - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 0 for v in values
            ]
            np.testing.assert_allclose(normalized.features[start:stop, column], expected, rtol=0, atol=accuracy)
    assert normalized.features.dtype == dtype
    assert np.array_equal(data.features, before)
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
    """A linear model fitted on train ranks test well, one of another seed does not. Mutant: truth from the split."""
    train, test = (generate("yahoo", 300, seed=1, n_features=60, split=split) for split in ("train", "test"))
    foreign = generate("yahoo", 300, seed=9, n_features=60)

    def quality(model):
        scores = model.predict(test.features)
        queries = [slice(a, b) for a, b in pairwise(test.offsets) if b - a > 1]
        return np.mean([ndcg_score([2 ** test.labels[q] - 1], [scores[q]], k=10) for q in queries])

    own, other = (quality(LinearRegression().fit(data.features, data.labels)) for data in (train, foreign))
    assert own > other + 0.1
