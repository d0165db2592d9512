"""Introselect and the sort of the K best, on keys of every shape."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast._core.random import selection as _selection
from plrank_fast._core.ranking import metrics as _metrics


def median_of_three_killer(n):
    """Musser's sequence: quadratic for quickselect with the median of first, middle and last."""
    half = n // 2
    keys = np.zeros(n)
    for i in range(1, half + 1):
        if i % 2 == 1:
            keys[i - 1] = i
            keys[min(i, n - 1)] = half + i
        keys[half + i - 1] = 2 * i
    return keys


SHAPES = {
    "random": lambda n: np.random.default_rng(n).permutation(n).astype(float),
    "sorted": lambda n: np.arange(n, dtype=float),
    "reversed": lambda n: np.arange(n, dtype=float)[::-1].copy(),
    "organ pipe": lambda n: np.minimum(np.arange(n), n - np.arange(n)).astype(float),
    "all equal": lambda n: np.zeros(n),
    "two values": lambda n: (np.arange(n) % 2).astype(float),
    "median-of-three killer": median_of_three_killer,
    "infinite": lambda n: np.where(np.arange(n) % 3 == 0, np.inf, -np.arange(n, dtype=float)),
}


@pytest.mark.parametrize("only_guaranteed", [False, True], ids=["introselect", "median of medians"])
@pytest.mark.parametrize("shape", SHAPES)
def test_k_smallest_in_order(shape, only_guaranteed):
    """Mutants: `<=` for `<` in partition_below (never ends on equal keys), k instead of k - 1, no swap of items."""
    for n in (1, 2, 3, 19, 20, 21, 22, 50, 127, 128, 129, 1000, 4321):
        keys = SHAPES[shape](n)
        for k in sorted({1, 2, n // 3, n // 2, n - 1, n} - {0}):
            if k > n:
                continue
            shuffled, items = keys.copy(), np.arange(n, dtype=np.int32)
            _selection.smallest(shuffled, items, k, only_guaranteed)
            np.testing.assert_array_equal(shuffled[:k], np.sort(keys)[:k])
            np.testing.assert_array_equal(keys[items], shuffled)
            assert sorted(items) == list(range(n))


def highest_where_sampled(n):
    """The sample from which a pivot is guessed has nothing but the highest values."""
    values = np.zeros(n)
    values[np.arange(32) * n // 32] = np.arange(1.0, 33.0)
    return values


@pytest.mark.parametrize("shape", [*SHAPES, "highest where sampled"])
def test_first_ranks(shape):
    """The ranking up to a cutoff, and the gains of the best one, by a stable sort.

    Mutants: a pivot above the last rank taken as it is; items that equal it left out by one loop of two; of items tied
    with the last those that were selected; ties in the order of the selection.
    """
    for n in (1, 2, 31, 64, 65, 128, 129, 200, 1000, 4321):
        values = {**SHAPES, "highest where sampled": highest_where_sampled}[shape](n)
        order, offsets = np.argsort(-values, kind="stable"), np.array([0, n])
        for k in {0, 1, min(n, 40), n // 2, n - 1, n}:
            np.testing.assert_array_equal(_metrics.modes(values, offsets, k, 1)[0], order[:k])
        gains = np.where(np.isinf(values), 5000.0, np.abs(values))
        for k in (1, 40, n):
            best = np.sort(gains)[::-1][:k] @ plr.dcg_weights(k)[:n]
            assert plr.ideal_dcg(gains, cutoff=k)[0] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("n", [1, 7, 8, 17, 40, 4096, 4097, 5000])
def test_ideal_of_few_gains(n):
    """The sum over a sorted list, bit for bit, at every number of different gains and cutoffs around it.

    Mutants: a gain counted once; one found again and again; the last lanes of a list left out; a list of too many
    different gains taken as ranked.
    """
    rng = np.random.default_rng(n)
    for n_different in {1, min(n, 2), min(n, 3), min(n, 7), min(n, 8), min(n, 9), min(n, 10), n}:
        gains = np.append(np.arange(n_different), rng.integers(0, n_different, n - n_different)).astype(float)
        if n_different % 2:
            gains[gains == gains.max()] += np.arange(np.count_nonzero(gains == gains.max()))  # the highest one once
        rng.shuffle(gains)
        best = np.sort(gains)[::-1]
        for k in {0, 1, 2, n_different - 1, n_different, n // 2, n - 1, n}:
            expected = sum((best * plr.dcg_weights(n))[:k].tolist(), 0.0)
            assert plr.ideal_dcg(gains, plr.dcg_weights(n), cutoff=k)[0] == expected, (n_different, k)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_million_keys(shape):
    """Quadratic behaviour would take hours here; the timed comparison of the shapes is a benchmark."""
    keys = SHAPES[shape](1_000_000)
    shuffled, items = keys.copy(), np.arange(keys.size, dtype=np.int32)
    _selection.smallest(shuffled, items, keys.size // 2)
    np.testing.assert_array_equal(shuffled[: keys.size // 2], np.sort(keys)[: keys.size // 2])
    np.testing.assert_array_equal(keys[items], shuffled)
