"""The generator of ``tests/streams.py`` against published vectors, and which streams a call draws from."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import validation
from plrank_fast.chunks import query_streams
from streams import splitmix_words, stream_words, xoshiro_words


def test_known_answers():
    """Vectors of the reference implementations: xoshiro256++ from the state (1, 2, 3, 4), SplitMix64 from 1234567.

    Mutants: rotation by 22 instead of 23; shift by 26 instead of 27."""
    of_xoshiro = [
        41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205, 9973669472204895162,
        14011001112246962877, 12406186145184390807, 15849039046786891736, 10450023813501588000,
    ]  # fmt: skip
    of_splitmix = [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
    assert xoshiro_words(np.arange(1, 5, dtype=np.uint64)[:, np.newaxis], 10).ravel().tolist() == of_xoshiro
    assert splitmix_words(1234567, 5).tolist() == of_splitmix


def test_streams_of_queries_and_blocks_differ():
    """Mutant: the block left out of the seed (every block of a query repeats the first)."""
    key = np.array([1, 2], dtype=np.uint64)
    streams = stream_words(key, *np.indices((20, 20)), 4).reshape(4, 400, 8)
    assert len({streams[:, i].tobytes() for i in range(400)}) == 400
    swapped = stream_words(key, 3, 5, 4), stream_words(key, 5, 3, 4)
    assert (swapped[0] != swapped[1]).all()


def test_generator_advances_by_one_key_per_call():
    """Mutant: the key taken from the generator's seed instead of its stream (both calls would agree)."""
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    first = plr.sample_rankings(np.zeros(9), 5, rng=rng)
    second = plr.sample_rankings(np.zeros(9), 5, rng=rng)
    assert (first != second).any()
    validation.stream_key(other), validation.stream_key(other)
    assert rng.integers(2**62) == other.integers(2**62)


def test_generator_not_advanced_by_an_error():
    """Mutant: the key drawn before the arguments are checked."""
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    with pytest.raises(ValueError, match="relevance"):
        plr.pl_rank_3([0.0, 1.0], [1.0], [1.0], rng=rng)
    with pytest.raises(ValueError, match="out"):
        plr.pl_rank_3([0.0, 1.0], [1.0, 0.0], [1.0], rng=rng, out=np.zeros(3))
    with pytest.raises(ValueError, match="sampler"):
        plr.sample_rankings([0.0, 1.0], 3, rng=rng, sampler="no such")
    with pytest.raises(ValueError, match="n_threads"):
        plr.value_and_gradient([0.0, 1.0], [1.0, 0.0], [1.0], rng=rng, method="cmc", n_threads=0)
    assert rng.integers(2**62) == other.integers(2**62)


def test_value_and_gradient_take_one_draw():
    """Mutant: the generator used for both calls, which draws two keys, so that the value is of other rankings."""
    rng, *others = (np.random.default_rng(3) for _ in range(3))
    problem = np.arange(9.0) / 4, np.arange(9.0), [1.0, 0.5]
    value, gradient = plr.value_and_gradient(*problem, method="pl_rank_3", n_samples=5, rng=rng)
    np.testing.assert_array_equal(gradient, plr.pl_rank_3(*problem, n_samples=5, rng=others[0]))
    np.testing.assert_array_equal(value, plr.expected_metric(*problem, method="sample", n_samples=5, rng=others[1]))
    assert rng.integers(2**62) == others[0].integers(2**62)


@pytest.mark.parametrize("round_ns", [1e-3, 1e18], ids=["long", "short"])
def test_number_of_the_query_has_64_bits(round_ns, costs):
    """Query 2^32 + 3 is not query 3, and an estimate belongs to the rankings of the same number, in a long query and in
    one of a batch. Mutants: the number cut to 32 bits in `describe_draw`, of the estimators or of the samplers, or in
    `stochastic_rank`; `estimate_long_query` from the first query on."""
    costs(round_ns=round_ns)
    rng = np.random.default_rng(0)
    scores, relevance, rank_weights = rng.normal(size=60), rng.integers(0, 5, size=60), plr.dcg_weights(5)
    far, near = 2**32 + 3, 3
    calls = [
        lambda query: plr.sample_rankings(scores, 200, 5, rng=query_streams(1, query)),
        lambda query: plr.pl_rank_2(scores, relevance, rank_weights, n_samples=200, rng=query_streams(1, query)),
        lambda query: plr.stochastic_rank(scores, relevance, rank_weights, n_samples=200, rng=query_streams(1, query)),
    ]
    for call in calls:
        assert (call(far) != call(near)).any()
    for query in (near, far):
        given = plr.pl_rank_2(scores, relevance, rank_weights, rankings=calls[0](query))
        np.testing.assert_array_equal(calls[1](query), given)


@pytest.mark.parametrize(
    "words", [np.uint64([1]), np.zeros((2, 2), np.uint64), np.uint64(3), [0.5, 1.5]], ids=["one", "2-d", "0-d", "float"]
)
def test_sources_that_give_other_than_two_words(words):
    """Subclasses may return anything. Mutants: one word read beyond its end; numbers cut off."""

    class Sequence(np.random.SeedSequence):
        def generate_state(self, n_words, dtype=np.uint32):
            return words

    class Generator(np.random.Generator):
        def integers(self, *arguments, **options):
            return words

    for rng in (Sequence(0), Generator(np.random.PCG64(0))):
        with pytest.raises(ValueError, match=r"^rng must give two words of uint64 .*, \w+ gave .* of shape "):
            plr.sample_rankings([0.0, 1.0], 2, rng=rng)
