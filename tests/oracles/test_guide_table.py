"""The guide table: what a word draws, against intervals of the cumulative weight in double precision."""

import numpy as np
import pytest
from scipy import stats

import plrank_fast as plr
from plrank_fast._core.ranking import weights as _weights
from plrank_fast._core.sampling import samplers

CHILDREN, TREE = 16, 256
ALPHA = 1e-6


def scores_of(kind, n_items):
    rng = np.random.default_rng(n_items)
    if kind == "one heavy child":  # what its siblings have together is a fraction of a unit, at both levels
        return np.where(np.arange(n_items) % 37 == 5, 0.0, -17.0 * np.log(2.0))
    if kind == "one heavy tree":
        return np.where(np.arange(n_items) // TREE == 3, 0.0, -26.0 * np.log(2.0))
    return rng.normal(size=n_items) * kind


def lines(scores):
    """Where trees, nodes and items end, each in units of its parent's line; (trees, 16 nodes, 16 items)."""
    relative = _weights.relative_weights(scores, scores.max())
    n_trees = -(-scores.size // TREE)
    # item 16 k + j of a tree is child k of node j
    items = np.append(relative, np.zeros(n_trees * TREE - scores.size)).reshape(n_trees, CHILDREN, CHILDREN)
    ends = np.cumsum(items.transpose(0, 2, 1), axis=2)
    nodes = np.cumsum(ends[:, :, -1], axis=1)
    trees = np.cumsum(nodes[:, -1])
    with np.errstate(invalid="ignore"):
        return trees / trees[-1] * 2**32, nodes / nodes[:, -1:] * 2**16, ends / ends[:, :, -1:] * 2**16


def meets(point, ends, place):
    """Whether the unit at a point and the interval of a place on the line have anything in common."""
    begin = np.where(place > 0, np.take_along_axis(ends, np.maximum(place - 1, 0)[:, np.newaxis], 1)[:, 0], 0.0)
    end = np.take_along_axis(ends, place[:, np.newaxis], 1)[:, 0]
    return (begin < point + 1 + 1e-6) & (end > point - 1e-6) & (begin < end)


def points_of(words):
    upper = (words >> np.uint64(32)).astype(float)
    middle, lower = ((words >> np.uint64(shift)).astype(np.uint16).astype(np.int16) + 32768.0 for shift in (16, 0))
    return upper, middle, lower


@pytest.mark.parametrize("kind", [0.0, 1.0, 3.0, 20.0, 70.0, "one heavy child", "one heavy tree"])
@pytest.mark.parametrize("n_items", [1, 15, 16, 17, 255, 256, 257, 4097, 5000, 40_000])
def test_words_draw_what_lies_at_their_points(n_items, kind):
    """Random words, and words in whose units something ends, at each level and at all of them.

    Mutants: a ninth end not looked at; the last tree's weights read past their end; half of the guide.
    """
    scores = scores_of(kind, n_items)
    trees, nodes, ends = lines(scores)
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 50_000, dtype=np.uint64)
    upper = np.minimum(rng.choice(trees, words.size), 2.0**32 - 1).astype(np.uint64)
    at_end = upper << np.uint64(32) | words & np.uint64(2**32 - 1)
    tree = np.searchsorted(trees, rng.random(words.size) * trees[-1], side="right").clip(0, trees.size - 1)
    within = np.where(tree > 0, trees[tree - 1], 0.0) * 0.5 + trees[tree] * 0.5
    inner = np.nan_to_num(nodes[tree, rng.integers(0, CHILDREN, words.size)]).clip(0, 65535).astype(np.int64)
    inner_ends = np.nan_to_num(ends[tree, rng.integers(0, 16, words.size), rng.integers(0, 16, words.size)])
    inner_ends = inner_ends.clip(0, 65535).astype(np.int64)
    halves = ((inner - 32768) % 65536).astype(np.uint64), ((inner_ends - 32768) % 65536).astype(np.uint64)
    inside = within.astype(np.uint64) << np.uint64(32) | halves[0] << np.uint64(16) | halves[1]
    corners = np.array([0, 2**64 - 1, 2**63, 2**63 - 1, 0x7FFF7FFF, 0xFFFFFFFF7FFF7FFF, 0x80008000], dtype=np.uint64)
    words = np.concatenate([words, at_end, inside, corners])
    items = samplers.items_of_words(scores, words, 7)
    assert items.min() >= 0
    assert items.max() < n_items
    upper, middle, lower = points_of(words)
    tree, child, node = items // TREE, items % TREE // CHILDREN, items % CHILDREN
    assert meets(upper, np.broadcast_to(trees, (words.size, trees.size)), tree).all()
    assert meets(middle, nodes[tree], node).all()
    assert meets(lower, ends[tree, node], child).all()


@pytest.mark.parametrize("level", ["tree", "node", "item"])
def test_what_ends_within_a_unit_has_its_share_of_it(level):
    """Nine places or more in one unit, of unequal weight. Mutants: the first of them taken, at each level; no further
    bits of the point."""
    n_items, n = 20 * TREE, 200_000
    place = np.arange(n_items)
    part = {"tree": place // TREE, "node": place % CHILDREN, "item": place % TREE // CHILDREN}[level]
    smallest = -38.0 if level == "tree" else -24.0
    scores = np.where(part == 0, 0.0, (smallest + part % 3) * np.log(2.0))
    line = dict(zip(("tree", "node", "item"), lines(scores), strict=True))[level]
    rng = np.random.default_rng(2)
    words = rng.integers(0, 2**64, n, dtype=np.uint64)
    if level == "tree":
        words |= np.uint64((2**32 - 1) << 32)
        ends = line
        got = samplers.items_of_words(scores, words, 3) // TREE
    else:
        shift = np.uint64(16 if level == "node" else 0)
        words = words & ~(np.uint64(65535) << shift) | np.uint64(32767) << shift
        items = samplers.items_of_words(scores, words, 3)
        ends = line[0] if level == "node" else line[0, 0]
        got = items % CHILDREN if level == "node" else items % TREE // CHILDREN
    shares = np.diff(np.clip(ends, ends[-1] - 1.0, None), prepend=ends[-1] - 1.0)
    counts = np.bincount(got, minlength=shares.size)
    assert counts[shares == 0].sum() == 0
    assert stats.chisquare(counts[shares > 0], n * shares[shares > 0]).pvalue > ALPHA


def test_draws_beyond_the_first():
    """Nine draws in ten repeat the first rank: some rankings need more than all have. Mutants: what has been
    placed forgotten; words of another ranking."""
    n_docs = 5000
    scores = np.where(np.arange(n_docs) % 2 == 0, 0.0, 1.0)
    weights = np.exp(scores)
    weights[77] = 9.0 * (weights.sum() - weights[77])
    rankings = plr.sample_rankings(np.log(weights), 200_000, 2, rng=11, sampler="alias")
    assert (rankings[:, 0] != rankings[:, 1]).all()
    second = rankings[rankings[:, 0] == 77, 1]
    weights[77] = 0.0
    heavy = int((second % 2 == 1).sum())
    assert stats.binomtest(heavy, second.size, weights[1::2].sum() / weights.sum()).pvalue > ALPHA
    quarters = np.bincount(second // 1250, minlength=4)
    assert stats.chisquare(quarters, second.size * weights.reshape(4, -1).sum(axis=1) / weights.sum()).pvalue > ALPHA


@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_rankings_do_not_depend_on_those_after_them(spread):
    """Nor do they on how many there are. Mutant: further draws from the stream of all."""
    scores = np.random.default_rng(3).normal(size=5000) * spread
    all_of_them = plr.sample_rankings(scores, 300, 20, rng=5, sampler="alias")
    for n in (1, 7, 16, 17, 130):
        np.testing.assert_array_equal(plr.sample_rankings(scores, n, 20, rng=5, sampler="alias"), all_of_them[:n])
