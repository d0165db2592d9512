"""StochasticRank: unbiased by quadrature over the noise in every order, equal to the formula in NumPy, at limits."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import _estimates, reference, validation
from plrank_fast._core.gradients.stochastic_rank import STOCHASTIC_RANK
from problems import signed
from streams import stream_words

DENSITIES = {"gumbel": reference.gumbel_density, "normal": reference.normal_density}


def of_given_noise(noise, sigma, scores, relevance, rank_weights, given):
    """The compiled estimator on noise made here: exponential numbers E for Gumbel noise -log E, or normal ones."""
    return _estimates.sampled_after_checks(
        STOCHASTIC_RANK, scores, relevance, rank_weights, None, len(given), None, None, "auto", 1, None,
        noise=noise, sigma=sigma, given_noise=given,
    )  # fmt: skip


def best_of_given_noise(noise, sigma, scores, relevance, rank_weights, given):
    noisy = scores + sigma * (-np.log(given) if noise == "gumbel" else given)
    return reference.stochastic_rank(
        scores, relevance, rank_weights, noisy, lambda x: DENSITIES[noise](x / sigma) / sigma
    )


def quadrature(scores, density, below, above, n_nodes):
    """(weight, noise, ranking) for every order and node: u_1 over a wide range, each next one from below up to the
    last, under this density of the noise, of which next to nothing is beyond the two distances from 0."""
    nodes, node_weights = np.polynomial.legendre.leggauss(n_nodes)
    lowest, highest = scores.min() - below, scores.max() + above
    for ranking in reference.all_rankings(scores.size):
        noisy, mass, top = [], np.ones(1), np.full(1, highest)
        for item in ranking:
            half = (top - lowest) / 2
            u = (lowest + half[:, np.newaxis] * (1 + nodes)).ravel()
            mass = (mass[:, np.newaxis] * half[:, np.newaxis] * node_weights).ravel() * density(u - scores[item])
            noisy = [np.repeat(before, n_nodes) for before in noisy] + [u]
            top = u
        noise = np.empty((mass.size, scores.size))
        noise[:, ranking] = np.stack(noisy, axis=1) - scores[ranking]
        yield mass, noise, ranking


@pytest.mark.parametrize(("n_docs", "n_nodes"), [(2, 48), (3, 32)])
@pytest.mark.parametrize("noise", DENSITIES)
def test_unbiased(noise, n_docs, n_nodes):
    """No randomness: every order of the documents, with quadrature over their noise. The gradient is
    Plackett-Luce's, or the mean of the metric times normal noise, over the same quadrature.

    Mutants: the mask of the placed items reversed; ranks not moved up when an item is left out; only K and not K + 1
    best; the last drop without theta_{K+1} = 0; sigma left out of the density.
    """
    sigma, ends = 0.8, {"gumbel": (2.8, 14.0), "normal": (5.5, 5.5)}[noise]
    for cutoff in range(1, n_docs + 2):
        scores, relevance, rank_weights = signed(n_docs, cutoff, 1)
        expected, got = np.zeros((2, n_docs))
        for mass, z, ranking in quadrature(scores / sigma, DENSITIES[noise], *ends, n_nodes):
            expected += reference.metric(relevance, rank_weights, ranking[np.newaxis]) * (mass @ z) / sigma
            for m, one in zip(mass, np.exp(-z) if noise == "gumbel" else z, strict=True):
                if m > 1e-11:
                    got += m * of_given_noise(noise, sigma, scores, relevance, rank_weights, one[np.newaxis])
        if noise == "gumbel":
            expected = reference.exact_gradient(scores / sigma, relevance, rank_weights) / sigma
        np.testing.assert_allclose(got, expected, rtol=0, atol=3e-5)


@pytest.mark.parametrize("noise", DENSITIES)
class TestAgainstTheReference:
    """Mutants: nodes of one interval used for all; ranks selected by the pivot of the sample before, without a second
    look."""

    @pytest.mark.parametrize(
        ("n_docs", "cutoff"),
        [(2, 1), (2, 2), (3, 5), (17, 4), (20, 20), (40, 39), (120, 10), (120, 119), (120, 120), (700, 20)],
    )
    @pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 4.0, 30.0])
    def test_ordinary(self, n_docs, cutoff, spread, noise):
        """Item by item to rounding, through nodes to 2e-7 of the density."""
        scores, relevance, rank_weights = signed(n_docs, cutoff, 0, spread)
        rng = np.random.default_rng(0)
        for n_samples, sigma in ((1, 1.0), (8, 1.0), (300, 0.7)):
            shape = (n_samples, n_docs)
            given = rng.standard_exponential(shape) if noise == "gumbel" else rng.normal(size=shape)
            got = of_given_noise(noise, sigma, scores, relevance, rank_weights, given)
            best = best_of_given_noise(noise, sigma, scores, relevance, rank_weights, given)
            largest = 0.4 / sigma * np.abs(np.diff(rank_weights, append=0.0)).sum() * np.ptp(relevance)
            np.testing.assert_allclose(got, best, rtol=0, atol=(1e-12 if n_docs <= 16 else 2e-7) * largest)

    def test_many_samples(self, noise):
        """More than sums are handed out for at once. Mutant: sums not cleared when they are."""
        scores, relevance, rank_weights = signed(20, 3)
        rng = np.random.default_rng(0)
        given = rng.standard_exponential((9000, 20)) if noise == "gumbel" else rng.normal(size=(9000, 20))
        whole = of_given_noise(noise, 0.8, scores, relevance, rank_weights, given)
        parts = [of_given_noise(noise, 0.8, scores, relevance, rank_weights, some) for some in np.split(given, 9)]
        np.testing.assert_allclose(whole, np.mean(parts, axis=0), rtol=0, atol=1e-12 * np.abs(rank_weights).sum())

    def test_almost_tied_noise(self, noise):
        """Noisy scores that differ in the last bits only: the exact numbers decide the order."""
        scores, relevance = np.zeros(6), np.arange(6.0)
        given = 1.0 + 2.0**-52 * np.array([[3, 1, 5, 0, 4, 2]])
        got = of_given_noise(noise, 1.0, scores, relevance, np.array([1.0, 0.5, 0.1]), given)
        best = best_of_given_noise(noise, 1.0, scores, relevance, np.array([1.0, 0.5, 0.1]), given)
        np.testing.assert_allclose(got, best, rtol=0, atol=1e-14)

    @pytest.mark.parametrize("gap", [20.0, 36.0, 100.0, 760.0, 1e3, 1e6, 1e308])
    def test_far_apart(self, gap, noise):
        """Documents that never change places give each other exactly nothing; the rest is as without them.

        Mutants: exp(f) without its maximum taken off; gaps not cut, so that noise is rounded away; 0 times
        infinity at a density that underflows.
        """
        with np.errstate(all="raise"):
            far = plr.stochastic_rank([gap / 2, -gap / 2], [1.0, 3.0], [1.0, 0.5], noise=noise, n_samples=200, rng=0)
            close = plr.stochastic_rank(
                [gap / 2, -gap / 2, gap / 2], [1.0, 3.0, 0.0], [1.0, 0.5], noise=noise, n_samples=200, rng=0
            )
        bound = np.exp(-gap / 2) if gap < 700 else 0.0
        assert np.abs(far).max() <= bound
        assert np.isfinite(close).all()
        assert abs(close[1]) <= 1e3 * bound
        assert close[0] > 0.01 > -0.01 > close[2]
        # two of the same score far below another: the gradient of the last two ranks, 2000 draws, 8 % off at the most
        low = plr.stochastic_rank(
            [gap / 2, -gap / 2, -gap / 2], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], noise=noise, n_samples=2000, rng=0
        )
        slope = 0.25 if noise == "gumbel" else 1 / (2 * np.sqrt(np.pi))
        np.testing.assert_allclose(low[1:], [slope, -slope], rtol=0.08)


@pytest.mark.parametrize("noise", DENSITIES)
def test_error_of_a_density(noise):
    """One noisy score contributes to the documents around it, wherever it falls: within 2e-7 of the largest density.

    All documents get the same noise, so that the two best are known. Widths at which the number of nodes changes, and
    beyond the widest interval. Mutants: 24 nodes for Gumbel intervals up to 5.25; a coefficient of the exponential off
    by 1e-4.
    """
    largest = 1 / np.e if noise == "gumbel" else 1 / np.sqrt(2 * np.pi)
    worst = 0.0
    for width in (0.05, 2.2, 2.3, 3.59, 3.7, 4.0, 5.24, 5.5, 6.99, 7.1, 9.99, 12.0):
        scores, relevance = np.linspace(0.0, -width, 120), np.arange(120) % 2.0
        for shift in np.linspace(-width - 4.0, 6.0, 151):
            given = np.full((1, 120), np.exp(-shift) if noise == "gumbel" else shift)
            got = of_given_noise(noise, 1.0, scores, relevance, np.array([1.0]), given)
            best = best_of_given_noise(noise, 1.0, scores, relevance, np.array([1.0]), given)
            worst = max(worst, np.abs(got - best).max() / largest)
    assert worst < 2e-7


BLOCK = 128  # samples of a stream
SOURCE = validation.DrawnKey(0)
SOURCE.key = np.array([3, 5], dtype=np.uint64)


def uniforms(n_samples, steps):
    """Numbers from the streams of noise, (n_samples, steps, 8), of which each block has another one."""
    blocks = ~np.arange(-(-n_samples // BLOCK), dtype=np.uint64)
    words = np.moveaxis(stream_words(SOURCE.key, 0, blocks, BLOCK * steps), 1, 0).reshape(-1, steps, 8)[:n_samples]
    return ((words >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


@pytest.mark.parametrize("n_docs", [2, 8, 9, 24, 60, 700])
def test_normal_noise(n_docs):
    """Drawn noise comes from pairs of words (Box and Muller), of documents eight apart.

    Mutants: the second number of a pair equal to the first; the stream of the first block for all of them.
    """
    pairs = uniforms(300, 2 * -(-n_docs // 16)).reshape(300, -1, 2, 8)
    radius, angle = np.sqrt(-2 * np.log(pairs[:, :, 0])), 2 * np.pi * pairs[:, :, 1]
    made = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).reshape(300, -1)
    made = np.ascontiguousarray(made[:, :n_docs])
    problem = signed(n_docs, min(n_docs, 10))
    drawn = plr.stochastic_rank(*problem, noise="normal", sigma=0.7, n_samples=300, rng=SOURCE)
    given = of_given_noise("normal", 0.7, *problem, made)
    np.testing.assert_allclose(drawn, given, rtol=0, atol=1e-12 * np.abs(problem[2]).sum())


@pytest.mark.parametrize(
    ("n_docs", "cutoff", "spread"),
    [
        *((60, 1, 1.0), (60, 50, 6.0), (60, 50, 60.0), (60, 60, 1.0), (60, 60, 60.0), (120, 10, 6.0), (120, 119, 1.0)),
        *((120, 119, 60.0), (4200, 4150, 1.0)),
    ],
)
def test_gaps_between_arrivals(n_docs, cutoff, spread):
    """Drawn Gumbel noise belongs to the sampler's rankings, with exponential gaps made here from the random stream.

    Mutants: the weight left over taken as the difference where that cancels; the gaps of each rank not added up; gaps
    from the stream of the rankings, or of the first block; weights of the ranking before not restored; groups of more
    than 4096 ranks.
    """
    rng = np.random.default_rng([n_docs, cutoff])
    scores, relevance, rank_weights = spread * rng.normal(size=n_docs), rng.normal(size=n_docs), rng.normal(size=cutoff)
    n_samples, n_ranks = 300 if n_docs < 1000 else BLOCK, min(cutoff + 1, n_docs)
    gaps = -np.log(uniforms(n_samples, (n_ranks + 7) // 8).reshape(n_samples, -1)[:, :n_ranks])
    rankings = plr.sample_rankings(scores, n_samples, n_ranks, rng=SOURCE)
    weights = np.exp(scores - scores.max())
    made = np.empty((n_samples, n_docs))
    for ranking, gap, noise in zip(rankings, gaps, made, strict=True):
        placed = np.isin(np.arange(n_docs), ranking)
        left_over = weights[~placed].sum() + np.cumsum(weights[ranking][::-1])[::-1]
        arrivals = np.cumsum(gap / left_over)
        noise[ranking] = arrivals * weights[ranking]
        noise[~placed] = 2.0 * arrivals[-1] * weights[~placed]
    drawn = plr.stochastic_rank(scores, relevance, rank_weights, n_samples=n_samples, rng=SOURCE)
    given = of_given_noise("gumbel", 1.0, scores, relevance, rank_weights, made)
    np.testing.assert_allclose(drawn, given, rtol=0, atol=1e-12 * np.abs(rank_weights).sum())
