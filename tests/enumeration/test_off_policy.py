"""Estimates of a policy's value from another one's log: unbiased where theory says so, and the gradient is theirs."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import off_policy
from plrank_fast._core.ranking.metrics import log_prob_of_checked

N_DOCS, N_RANKS = 4, 3
RNG = np.random.default_rng(5)
NEW, OLD = RNG.normal(size=(2, N_DOCS))
EVERY = np.array(list(itertools.permutations(range(N_DOCS), N_RANKS)), dtype=np.int32)
SHOWN = np.exp(plr.ranking_log_prob(OLD, EVERY))
RELEVANCE, THETA = RNG.normal(size=N_DOCS), RNG.uniform(0.1, 1.0, size=N_RANKS)
AT_RANK = RNG.normal(size=(N_DOCS, N_RANKS))  # worth of an item at a rank
# rewards of one ranking, or of its ranks, by what they depend on
ANY = RNG.normal(size=len(EVERY)) ** 3
CASCADE = np.sin(np.cumsum(EVERY * [7.0, 3.0, 5.0], axis=1))
POSITION = AT_RANK[EVERY, np.arange(N_RANKS)]
OF_SET = RNG.normal(size=N_DOCS)[EVERY.sum(axis=1) - 3]  # by the document left out
LOGGED = {"logging_scores": OLD}


def true_value(scores, rewards):
    return np.exp(plr.ranking_log_prob(scores, EVERY)) @ rewards


def true_gradient(rewards):
    chances = np.exp(plr.ranking_log_prob(NEW, EVERY))
    return plr.ranking_log_prob_vjp(NEW, EVERY, chances * rewards)


def each(estimator, rewards, scores=NEW, **options):
    """Estimates from one session each, one for every ranking that the log may hold."""
    return [
        estimator(scores, ranking[np.newaxis], reward[np.newaxis], **options)
        for ranking, reward in zip(EVERY, rewards, strict=True)
    ]


def doubly_robust(scores, rankings, rewards, **options):
    return off_policy.doubly_robust(scores, rankings, rewards, RELEVANCE, THETA, **options)


def of_sets(scores, rankings, rewards, **options):
    return off_policy.ips(scores, rankings, rewards, ordered=False, **options)


def with_propensities(estimator):
    """The estimator on the propensities of each rank that the logging policy has, in place of its scores."""

    def estimate(scores, rankings, rewards, *, logging_scores, offsets=None, **options):
        batch = {"offsets": offsets}
        ranks = range(rankings.shape[-1])
        if estimator is off_policy.rips:
            parts = [plr.ranking_log_prob(logging_scores, rankings[..., : k + 1], **batch) for k in ranks]
            chances = np.exp(np.stack(parts, axis=-1))
        else:
            of_documents = plr.rank_probabilities(logging_scores, rankings.shape[-1], **batch)
            starts = 0 if offsets is None else np.array(offsets[:-1])[:, np.newaxis, np.newaxis]
            chances = of_documents[np.minimum(rankings + starts, len(scores) - 1), ranks]
        chances[rankings < 0] = 7.0  # past the end
        return estimator(scores, rankings, rewards, propensities=chances, **batch, **options)

    return estimate


UNBIASED = {
    "ips": (off_policy.ips, ANY, 1e-13),
    "ips of sets": (of_sets, OF_SET, 1e-9),
    "doubly_robust": (doubly_robust, ANY, 1e-8),
    "rips": (off_policy.rips, CASCADE, 1e-13),
    "iips": (off_policy.iips, POSITION, 1e-7),
    "rips, propensities": (with_propensities(off_policy.rips), CASCADE, 1e-13),
    "iips, propensities": (with_propensities(off_policy.iips), POSITION, 1e-7),
    "pseudo_inverse": (off_policy.pseudo_inverse, POSITION.sum(axis=1), 1e-7),
}


@pytest.mark.parametrize("name", UNBIASED)
def test_expectation(name):
    """Expectation of value and gradient over all rankings of the log.

    Mutants: 1 / mu in place of w; the prediction not taken off; w_k one rank short; probabilities of the new policy in
    place of the log's; propensities of the last rank at all; G without its pseudo-inverse.
    """
    estimator, rewards, accuracy = UNBIASED[name]
    estimates = each(estimator, rewards, **LOGGED)
    of_ranking = rewards if rewards.ndim == 1 else rewards.sum(axis=1)
    value = SHOWN @ [estimate.value for estimate in estimates]
    assert abs(value - true_value(NEW, of_ranking)) < accuracy
    gradient = SHOWN @ [estimate.gradient for estimate in estimates]
    np.testing.assert_allclose(gradient, true_gradient(of_ranking), rtol=0, atol=10 * accuracy)


@pytest.mark.parametrize("self_normalized", [False, True])
@pytest.mark.parametrize("cutoff", [1, 2, 3, 4])
def test_every_length(cutoff, self_normalized):
    """A log of every ranking in the proportion of its probability, half of which end early: no estimate is off.

    Rank weights of every number. Mutants: the prediction of all rank weights, or of all ranks of the log, whatever was
    shown; normalised by the weights of the sessions that have a rank alone, or with that share in the value alone.
    """
    every = np.array(list(itertools.permutations(range(N_DOCS), cutoff)), dtype=np.int32)
    lengths = np.repeat([cutoff, *range(1, cutoff + 1)], [cutoff, *[1] * cutoff])
    log = np.concatenate([np.where(np.arange(cutoff) < length, every, -1) for length in lengths])
    count = len(lengths) * len(every)
    chances = np.exp(plr.ranking_log_prob(NEW, log)) / np.exp(plr.ranking_log_prob(np.zeros(N_DOCS), log)) / count
    rng, at_rank = np.random.default_rng(0), log >= 0
    prefixes = np.unique(log, axis=0, return_inverse=True)[1].reshape(-1)
    sets = np.unique(np.sort(log, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    of_ranking, of_set = rng.normal(size=count)[prefixes], rng.normal(size=count)[sets]
    positions = np.where(at_rank, rng.normal(size=(N_DOCS, cutoff))[log, np.arange(cutoff)], 0.0)
    cascade = np.where(at_rank, np.sin(np.cumsum(log * [[7.0, 3.0, 5.0, 2.0][:cutoff]], axis=1)), 0.0)
    options = {"logging_scores": np.zeros(N_DOCS), "self_normalized": self_normalized}
    estimates = [
        (off_policy.ips(NEW, log, of_ranking, **options), of_ranking),
        (off_policy.ips(NEW, log, of_set, ordered=False, **options), of_set),
        (off_policy.rips(NEW, log, cascade, **options), cascade.sum(axis=1)),
        (off_policy.iips(NEW, log, positions, **options), positions.sum(axis=1)),
    ]
    for n_weights in range(6):
        theta = rng.uniform(0.1, 1.0, n_weights)
        estimates += [(off_policy.doubly_robust(NEW, log, of_ranking, RELEVANCE, theta, **options), of_ranking)]
    whole = slice(0, len(every))
    alike = off_policy.pseudo_inverse(NEW, every, positions[whole].sum(axis=1), logging_scores=np.zeros(N_DOCS))
    for estimate, rewards in estimates:
        assert abs(estimate.value - chances @ rewards) < 1e-7
        np.testing.assert_allclose(
            estimate.gradient, plr.ranking_log_prob_vjp(NEW, log, chances * rewards), rtol=0, atol=1e-6
        )
    of_whole = np.exp(plr.ranking_log_prob(NEW, every))
    assert abs(alike.value - of_whole @ positions[whole].sum(axis=1)) < 1e-7


@pytest.mark.parametrize("estimator", [off_policy.rips, off_policy.iips])
def test_error_of_normalised_ranks(estimator):
    """A session more in a long log moves the value by its influence. Mutants: the share of sessions that have a rank
    taken for certain; that share without the weights' mean."""
    rankings = np.array([[0, 1, 2], [1, 2, -1], [2, -1, -1], [3, 0, 1], [1, -1, -1]])
    gains = np.where(rankings >= 0, RNG.normal(size=rankings.shape) + 2.0, 0.0)
    long_log, long_gains = np.tile(rankings, (4000, 1)), np.tile(gains, (4000, 1))
    options = {**LOGGED, "self_normalized": True}
    whole = estimator(NEW, long_log, long_gains, **options)
    ratios = whole.numerators.sum(axis=0) / whole.denominators.sum(axis=0)
    influence = (whole.numerators - ratios * whole.denominators) / whole.denominators.mean(axis=0)
    for i in range(len(rankings)):
        more = estimator(NEW, [*long_log, rankings[i]], [*long_gains, gains[i]], **options)
        assert (more.value - whole.value) * len(more.numerators) == pytest.approx(influence[i].sum(), abs=1e-3)


def test_weight_of_a_set_is_the_mean_weight_of_its_orders():
    """Mutants: the items past the end of a short slate among those shown; the order that was shown."""
    rankings = np.concatenate([EVERY, np.where(np.arange(N_RANKS) < 2, EVERY, -1)])
    weights, of_set = (
        off_policy.ips(NEW, rankings, np.ones(48), ordered=o, **LOGGED).importance_weights for o in (True, False)
    )
    chances = off_policy.ranking_propensities(OLD, rankings)
    of_sets = off_policy.ranking_propensities(OLD, rankings[np.newaxis], ordered=False, offsets=[0, N_DOCS])[0]
    for row in range(48):
        same = (np.sort(rankings) == np.sort(rankings[row])).all(axis=1) & (np.arange(48) // 24 == row // 24)
        distinct = np.unique(rankings[same], axis=0, return_index=True)[1]
        shown, of_orders = chances[same][distinct], weights[same][distinct]
        assert of_sets[row] == pytest.approx(shown.sum(), rel=1e-10)
        assert of_set[row] == pytest.approx(shown @ of_orders / shown.sum(), rel=1e-10)


OPTIONS = [{}, {"clip": 1.3}, {"self_normalized": True}, {"clip": 1.3, "self_normalized": True}]


WITH_OPTIONS = [(name, options) for name in UNBIASED for options in OPTIONS if name != "pseudo_inverse" or not options]


@pytest.mark.parametrize(("name", "options"), WITH_OPTIONS)
def test_gradient_is_that_of_the_estimate(name, options, monkeypatch):
    """Finite differences, on two queries with different numbers of sessions, rankings that end early among them.

    Mutants: a derivative of clipped weights; no derivative of the sum of weights; queries weighted equally; the
    effective sample size of the first rank; sets with the weights of the first query, or with the last part alone.
    """
    monkeypatch.setattr(off_policy.log, "ENTRIES_AT_ONCE", 40)
    estimator, rewards, _ = UNBIASED[name]
    rng = np.random.default_rng(1)
    offsets = [0, 4, 4, 9]
    old, new = rng.normal(size=(2, 9))
    rankings = plr.sample_rankings(old, 30, N_RANKS, offsets=offsets, rng=0)
    rankings[2, 11:] = -1
    if name != "pseudo_inverse":
        rankings[0, 4:8, 2:] = -1
    rewards = rng.normal(size=rankings.shape[: rewards.ndim + 1])
    arguments = {"offsets": offsets, "logging_scores": old, **options}
    if name == "doubly_robust":

        def estimator(scores, rankings, rewards, **options):
            return off_policy.doubly_robust(scores, rankings, rewards, old, THETA, **options)

    estimate = estimator(new, rankings, rewards, **arguments)
    ratios = estimate.numerators.sum(axis=0) / estimate.denominators.sum(axis=0)
    assert abs(estimate.value - ratios.sum()) < 1e-12
    assert len(estimate.numerators) == 41
    if name == "rips":
        sizes = [off_policy.effective_sample_size(weights) for weights in estimate.importance_weights.T]
        assert estimate.effective_sample_size <= min(sizes) < sizes[0]
    for d, step in enumerate(1e-4 * np.eye(9)):
        ahead, behind = (estimator(new + sign * step, rankings, rewards, **arguments).value for sign in (1, -1))
        assert abs((ahead - behind) / 2e-4 - estimate.gradient[d]) < 3e-6


def test_by_hand():
    """Mutants: one of the numbers of sessions or of the relevance from clicks 1 + 1e-10 times as large; sessions that
    end early left out of the mean of later ranks."""
    rankings, rewards = [[0, 1], [1, 0], [1, 0]], [1.0, 2.0, 4.0]
    new = [0.0, np.log(3.0)]  # 1/4 and 3/4; weights 1/2, 3/2, 3/2
    call = {"propensities": [0.5, 0.5, 0.5]}
    assert abs(off_policy.ips(new, rankings, rewards, **call).value - 9.5 / 3) < 1e-14
    assert abs(off_policy.ips(new, rankings, rewards, **call, clip=1.0).value - 6.5 / 3) < 1e-14
    assert abs(off_policy.ips(new, rankings, rewards, **call, self_normalized=True).value - 9.5 / 3.5) < 1e-14
    assert abs(off_policy.ips(new, rankings, rewards, **call).effective_sample_size - 3.5**2 / 4.75) < 1e-14
    shorter = off_policy.rips(new, [[0, 1], [1, -1]], [[1, 2], [4, 0]], propensities=[[0.5, 0.5], [0.5, 0.5]])
    assert abs(shorter.value - (3.25 + 0.5)) < 1e-14  # weights 1/2 and 3/2, and 1/2 at the second rank, of two sessions
    assert off_policy.effective_sample_size([0.0, 0.0]) == 0.0
    assert abs(off_policy.effective_sample_size([1.0, 3.0]) - 1.6) < 1e-14
    clicks = {"examination": [1.0, 0.5], "noise": [0.25, 0.125], "predicted": [0.5, 0.25]}
    found = off_policy.relevance_from_clicks([[0, 1], [1, -1]], [[1, 0], [1, 0]], [0.5, 1.0], **clicks)
    np.testing.assert_array_equal(found, [0.75, 0.375])


@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_ranks_down_to_each(spread):
    """Log-probabilities of every prefix, of rankings that end after every rank, against quadruple range.

    Mutants: factors of a logarithm not cleared after it; the ranks of the first ranking in all; weights of leading
    items among the placed others; a rank's odds over all the weight before it, or added to those of the ranks above;
    the odds of an item whose weight underflows.
    """
    rng = np.random.default_rng(3)
    offsets = np.array([0, 50, 50, 93])
    scores = spread * rng.normal(size=93)
    drawn = plr.sample_rankings(rng.normal(size=93), 45, 41, offsets=offsets, rng=0)
    rankings = np.where(np.arange(41) < np.arange(45)[:, np.newaxis], drawn, -1).astype(np.int32)
    expected = np.zeros(rankings.shape)
    for query, row in itertools.product((0, 2), range(45)):
        f = scores[offsets[query] : offsets[query + 1]].astype(np.longdouble)
        left, total = np.ones(f.size, dtype=bool), np.longdouble(0.0)
        for k, item in enumerate(rankings[query, row, :row]):
            left[item] = False
            total -= np.log1p(np.exp(f[left] - f[item]).sum())
            expected[query, row, k] = total
    found = log_prob_of_checked(scores, offsets, rankings, True, None)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)
    last = plr.ranking_log_prob(scores, rankings, offsets=offsets)
    np.testing.assert_allclose(
        last,
        np.take_along_axis(expected, np.maximum(np.arange(45) - 1, 0).reshape(1, 45, 1).clip(max=40), axis=2)[:, :, 0],
        rtol=1e-13,
        atol=0,
    )


@pytest.mark.parametrize("name", UNBIASED)
def test_gradients_are_made_when_they_are_asked_for(name, monkeypatch):
    """And are the same then, in a copy too. Mutants: with the value; a copy without it; arrays that can be changed."""
    estimator, rewards, _ = UNBIASED[name]
    estimate = estimator(NEW, EVERY, rewards, **LOGGED)
    made = []

    def counting(original):
        return lambda *given: made.append(1) or original(*given)

    for function in ("log_prob_gradient", "rank_probabilities_vjp"):
        monkeypatch.setattr(off_policy.log.Log, function, counting(getattr(off_policy.log.Log, function)))
    copied = pickle.loads(pickle.dumps(estimate)) if name == "ips" else copy.deepcopy(estimate)
    assert made
    made.clear()
    assert (copied.gradient == estimate.gradient).all()
    assert copied.effective_sample_size == estimate.effective_sample_size
    again = estimator(NEW, EVERY, rewards, **LOGGED)
    assert again.value == estimate.value
    assert again.standard_error == copied.standard_error
    assert not made
    assert (again.gradient == estimate.gradient).all()
    with pytest.raises(ValueError, match="read-only"):
        estimate.importance_weights[...] = 0.0


def test_long_rankings_do_not_underflow():
    """Propensities of 1e-400 are no doubles; their logarithms are. Mutant: exp before the difference."""
    old, new = np.random.default_rng(0).normal(size=(2, 300))
    rankings = plr.sample_rankings(old, 5, rng=0)
    new = old + 1e-3 * new
    estimate = off_policy.ips(new, rankings, np.ones(5), logging_scores=old)
    assert 0.5 < estimate.value < 2.0
    assert (off_policy.ranking_propensities(old, rankings) == 0.0).all()


def test_normalised_weights_that_underflow():
    """The unit of the weights cancels. Mutants: exp before the largest logarithm is taken off; the largest of all
    ranks; one of no session."""
    log, old = [[1, 0], [1, 2]], {"logging_scores": [1.0, 0, 0, 0], "self_normalized": True}
    prediction = [0.0] * 4, [1.0]
    for shift in (0.0, -650.0, -2000.0, -1e5):
        new = [0.0, shift, 0.0, 0.0]
        found = off_policy.ips(new, log, [1.0, 3.0], **old)
        assert found.value == pytest.approx(1 + 2 * np.e / (np.e + 1), rel=1e-10)  # 2.4621
        assert found.standard_error > 0.5
        assert found.effective_sample_size == pytest.approx((np.e + 1) ** 2 / (np.e**2 + 1), rel=1e-10)
        assert off_policy.doubly_robust(new, log, [1.0, 3.0], *prediction, **old).value == pytest.approx(found.value)
        clipped = off_policy.ips(new, [*log, [0, -1]], [1.0, 3.0, 3.0], clip=0.5, **old)
        assert 1.0 < clipped.value <= 3.0
        by_rank = off_policy.rips(new, [*log, [2, -1]], [[1.0, 1.0], [1.0, 3.0], [1.0, 0.0]], **old)
        assert by_rank.value == pytest.approx(1 + found.value * 2 / 3, rel=1e-10)  # two of three have the second rank
        np.testing.assert_allclose(found.gradient.sum(), 0.0, atol=1e-12)


def test_bootstrap_interval():
    """Near the normal interval of the same log, of ratios too; the same seed gives the same numbers."""
    rankings = plr.sample_rankings(OLD, 2000, N_RANKS, rng=1)
    rewards = (rankings[:, 0] == 1) + 0.5
    for options in ({}, {"self_normalized": True}):
        estimate = off_policy.ips(NEW, rankings, rewards, **LOGGED, **options)
        low, high = estimate.interval(rng=0)
        assert (low, high) == estimate.interval(rng=0)
        assert low < estimate.value < high
        assert abs((high - low) / (2 * 1.96 * estimate.standard_error) - 1.0) < 0.15
    alone = off_policy.ips(NEW, rankings[:1], rewards[:1], **LOGGED)
    assert (alone.standard_error, *alone.interval(rng=0)) == (np.inf, -np.inf, np.inf)


class TestClicks:
    @pytest.mark.parametrize("predicted", [None, "anything"])
    @pytest.mark.parametrize("trust", [False, True])
    def test_relevance_is_unbiased(self, trust, predicted):
        """Expectation over rankings and clicks, a chance of a click being its mean.

        Mutants: noise not taken off; noise of the wrong rank; the prediction over unexamined ranks; N of all queries.
        """
        relevance = np.array([0.1, 0.9, 0.5, 0.0])
        alpha, beta = (
            off_policy.trust_bias(N_RANKS) if trust else (off_policy.position_bias(N_RANKS), np.zeros(N_RANKS))
        )
        options = {"noise": beta} if trust else {}
        if predicted:
            options |= {"predicted": [0.3, 0.2, 0.9, 1.0], "examination": alpha}
        exposures = plr.exposure(OLD, alpha)
        total = np.zeros(N_DOCS)
        for chance, ranking in zip(SHOWN, EVERY, strict=True):
            clicks = alpha * relevance[ranking] + beta
            total += chance * off_policy.relevance_from_clicks([ranking], [clicks], exposures, **options)
        np.testing.assert_allclose(total, relevance, rtol=0, atol=1e-7)

    def test_sessions_of_queries(self):
        offsets, alpha = [0, 4, 4, 7, 9], off_policy.position_bias(2)
        scores = np.random.default_rng(0).normal(size=9)
        rankings = plr.sample_rankings(scores, 6, 2, offsets=offsets, rng=0)
        rankings[2, 3:] = -1
        rankings[3] = -1
        clicks = np.random.default_rng(1).random(rankings.shape) < 0.5
        exposures = plr.exposure(scores, alpha, offsets=offsets)
        whole = off_policy.relevance_from_clicks(rankings, clicks, exposures, offsets=offsets)
        alone = off_policy.relevance_from_clicks(rankings[2, :3], clicks[2, :3], exposures[4:7])
        np.testing.assert_array_equal(whole[4:7], alone)
        assert (whole[7:] == 0.0).all()

    def test_simulated_clicks(self):
        """Frequencies at five standard errors of 2e4 sessions; no click past the end, nor at chance 0."""
        alpha, beta = off_policy.trust_bias(N_RANKS)
        relevance = np.array([0.1, 0.9, 0.5, 0.0])
        rankings = np.tile([[0, 1, -1], [3, 2, 1]], (10_000, 1))
        clicks = off_policy.simulate_clicks(rankings, relevance, alpha, noise=beta, rng=0)
        np.testing.assert_array_equal(clicks, off_policy.simulate_clicks(rankings, relevance, alpha, noise=beta, rng=0))
        for row in (0, 1):
            shown = rankings[row] >= 0
            chances = np.where(shown, alpha * relevance[rankings[row]] + beta, 0.0)
            error = clicks[row::2].mean(axis=0) - chances
            assert (np.abs(error) <= 5 * np.sqrt(chances * (1 - chances) / 10_000)).all()
        assert not off_policy.simulate_clicks(rankings, np.zeros(4), alpha, rng=0).any()

    def test_trust_bias_by_hand(self):
        alpha, beta = off_policy.trust_bias(25, eta=0.0)
        assert abs(beta[0] - 0.65) + abs(beta[24] - 0.065) + abs((alpha + beta)[0] - 0.98) < 1e-12
        assert abs((alpha + beta)[24] - 0.79) < 1e-12


class TestPositionBias:
    LOG = np.array([[0, 1, 2, 3], [3, 1, 0, -1], [2, 0, 3, 1], [1, 3, 2, 0], [-1, -1, -1, -1]])
    RELEVANCE = np.array([0.9, 0.2, 0.5, 0.0, 0.7, 0.4])

    def test_exact_where_clicks_are_their_means(self):
        """Whatever was shown how often. Mutants: documents of another query; ranks refused that others link to the
        first."""
        looks = np.array([1.0, 0.7, 0.8, 0.1])
        other = np.array([[0, 1, -1, -1], [1, 0, -1, -1], *[[-1] * 4] * 3])
        for rankings, options in ((self.LOG, {}), (np.stack([self.LOG, other]), {"offsets": [0, 4, 6]})):
            documents = rankings + 4 * np.arange(rankings.shape[0])[:, None, None] if options else rankings
            means = np.where(rankings >= 0, looks * self.RELEVANCE[documents], 0.0)
            found, errors = off_policy.position_bias_from_clicks(rankings, means, **options)
            np.testing.assert_allclose(found, looks, rtol=1e-9)
            assert errors[0] == 0.0 < errors[1:].min()
        chain = [[0, 1, 2, 3], [4, 0, 1, 2]]  # neighbours alone have items in common
        found, _ = off_policy.position_bias_from_clicks(chain, np.tile(looks / 2, (2, 1)))
        np.testing.assert_allclose(found, looks, rtol=1e-9)

    def test_two_sessions_an_item_are_enough(self):
        """A log of each outcome as often as it is probable, of users who click on half of what they look at: a maximum
        over the attractiveness of items, too, is off by a fifth. Mutant: EM's probabilities of a look."""
        outcomes = np.array([(0, 0)] * 3 + [(0, 1)] + [(1, 0)] * 3 + [(1, 1)])
        rankings, clicks = np.tile([[0, 1], [1, 0]], (8, 1, 1)), np.zeros((8, 2, 2))
        clicks[:, 0, 0], clicks[:, 1, 1] = outcomes.T  # item 0 at both ranks
        clicks[:, 1, 0], clicks[:, 0, 1] = outcomes.T
        found, _ = off_policy.position_bias_from_clicks(rankings, clicks, offsets=np.arange(9) * 2)
        np.testing.assert_allclose(found, [1.0, 0.5], rtol=1e-12)

    def test_maximum_and_errors_to_first_order(self):
        """The maximum solves the equations of its iteration; a cell of s sessions of which c were clicked moves it by
        its derivative, here by differences, and varies by c (s - c) / (s - 1).

        Mutants: steps that end early; c (1 - c / s); errors of logarithms; the spread without one of its four parts.
        """
        looks, rng = np.array([1.0, 0.9, 0.6, 0.5]), np.random.default_rng(0)
        rankings = plr.sample_rankings(np.zeros(4), 200, 4, rng=0)
        clicks = rng.random(rankings.shape) < looks * np.array([0.9, 0.6, 0.5, 0.3])[rankings]
        found, errors = off_policy.position_bias_from_clicks(rankings, clicks)
        cells = [[(rankings[:, k] == d) for k in range(4)] for d in range(4)]
        shown = np.sum(cells, axis=2)
        counts = np.array([[clicks[rows, k].sum() for k, rows in enumerate(of)] for of in cells])
        again = counts.sum(axis=0) / ((counts.sum(axis=1) / (shown @ found))[:, np.newaxis] * shown).sum(axis=0)
        np.testing.assert_allclose(again, found, rtol=1e-11)
        variance = np.zeros(4)
        for d, k in np.ndindex(4, 4):
            row, moved = np.flatnonzero(cells[d][k])[0], []
            for share in (0.25, 0.75):
                other = clicks.astype(float)
                other[row, k] = share
                moved.append(off_policy.position_bias_from_clicks(rankings, other)[0])
            clicked, times = counts[d, k], shown[d, k]
            variance += ((moved[1] - moved[0]) / 0.5) ** 2 * clicked * (times - clicked) / (times - 1)
        np.testing.assert_allclose(errors, np.sqrt(variance), rtol=0.02)  # differences of a click of some 100

    def test_rank_without_clicks(self):
        """One click at the last rank gives what the error says. Mutant: an error of 0."""
        rankings, clicks = np.tile([[0, 1], [1, 0]], (50, 1)), np.tile([1.0, 0.0], (100, 1))
        found, errors = off_policy.position_bias_from_clicks(rankings, clicks)
        assert found.tolist() == [1.0, 0.0]
        clicks[0, 1] = 1.0
        np.testing.assert_allclose(off_policy.position_bias_from_clicks(rankings, clicks)[0][1], errors[1], rtol=0.02)


ONE_WAY = [[0, 1], [1, 0], [0, 2]]  # what was clicked at the second rank was not shown at the first
ONE = {"propensities": [0.5]}
APART = [[0, 1, 2], [1, 0, 2]]  # the third rank shows an item of its own


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: off_policy.ips(NEW, [[0, 1]], [1.0]), "propensities must be given, or logging_scores"),
        (lambda: off_policy.ips(NEW, [[0, 1]], [1.0], **ONE, **LOGGED), "only one of propensities and"),
        (lambda: off_policy.rips(NEW, [[0, 1]], [[1, 1]], propensities=[[0.2, 0.3]]), r"must not rise .*got 0.3"),
        (lambda: off_policy.rips(NEW, [[0, 1]], [[1, 1]], propensities=[0.2]), "one entry per rank"),
        (lambda: off_policy.iips(NEW, [[0]], [[1]], propensities=[[1e-70]]), "propensities must be above"),
        (lambda: off_policy.iips(NEW, [[0]], [[1]], propensities=[[1]], **LOGGED), "only one of propens"),
        (lambda: off_policy.ips(NEW, [[-1]], [1.0], **ONE), "number of rankings that are not empty"),
        (lambda: off_policy.pseudo_inverse(NEW, [[0, -1]], [1.0], **LOGGED), "must not end early here"),
        (lambda: off_policy.simulate_clicks([[0]], [1.0], [0.9], noise=[0.2]), "of clicks must be from 0"),
        (lambda: off_policy.simulate_clicks([[0]], [0.1], [2.0]), "examination must be from 0 to 1, got 2"),
        (lambda: off_policy.relevance_from_clicks([[0]], [[1]], [2.0]), "propensities must be from 0 to 1"),
        (lambda: off_policy.simulate_clicks([[0]], [1.0], []), "examination must have one entry per rank"),
        (lambda: off_policy.relevance_from_clicks([[0]], [[1]], [1.0], predicted=[0.0]), "examination"),
        (lambda: off_policy.position_bias_from_clicks([[0, 1]], [[0, 2]]), "clicks must be from 0 to 1, got 2"),
        (lambda: off_policy.position_bias_from_clicks([[0, 1]], [[0, 1]]), "clicks must have some at the first rank"),
        (
            lambda: off_policy.position_bias_from_clicks(APART, np.ones((2, 3))),
            r"^clicks must compare all ranks .* not compare rank 3: keep .*rankings\[\.\.\., :2\]",
        ),
        (lambda: off_policy.position_bias_from_clicks(APART, [[1, 0, 0], [1, 0, 0]]), "do not compare rank 3"),
        (lambda: off_policy.position_bias_from_clicks(ONE_WAY, [[1, 0], [0, 0], [0, 1]]), "not compare rank 2"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
