"""The plain sampler against the order of arrival times made in NumPy from the words of the random stream."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast._core.random.key import stream_key
from plrank_fast.chunks import query_streams
from streams import stream_words


@pytest.mark.parametrize("order", ["as drawn", "ascending", "descending", "every 32nd last"])
@pytest.mark.parametrize(
    ("n_items", "cutoff"), [(8, 8), (40, 3), (65, 1), (65, 30), (120, 10), (120, 120), (1000, 1), (1000, 200)]
)
def test_rankings_are_the_order_of_arrival(n_items, cutoff, order):
    """The first pivot is a guess from 32 keys; later ones follow the last of the early arrivals.

    Mutants: no second look where too few items are below the pivot; one item too few selected before the sort. Of the
    streams: one lane too many, which shifts what the others get; query and block exchanged in one chain; the sum of the
    outputs not mixed; rotation by 22 instead of 23.
    """
    n_samples, query, steps = 300, 2**40 + 3, (n_items + 7) // 8
    scores = 2.0 * np.random.default_rng(n_items).normal(size=n_items)
    if order in ("ascending", "descending"):
        scores = np.sort(scores)[:: 1 if order == "ascending" else -1].copy()
    if order == "every 32nd last":  # the 32 keys belong to items that come last
        scores[[(i * n_items) >> 5 for i in range(32)]] = scores.min() - 5.0
    words = np.moveaxis(stream_words(stream_key(7), query, range(3), 128 * steps), 1, 0)
    words = words.reshape(384, 8 * steps)[:n_samples, :n_items]
    arrivals = -np.log(((words >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52) * np.exp(scores.max() - scores)
    rankings = plr.sample_rankings(scores, n_samples, cutoff, rng=query_streams(7, query), sampler="introselect")
    np.testing.assert_array_equal(rankings, np.argsort(arrivals, axis=1)[:, :cutoff])
