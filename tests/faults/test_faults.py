"""Bad and odd input: every public function names the argument, writes nothing, and takes what is merely unusual."""

import inspect
import mmap
import re

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast._shared.methods import ESTIMATORS
from plrank_fast.data import generate

GRADIENTS = [plr.pl_rank_1, plr.pl_rank_2, plr.pl_rank_3, plr.pl_rank_cmc]
SCORES = np.array([0.5, -1.0, 2.0, 0.0, 1.0])
RELEVANCE = np.array([1.0, 0.0, 3.0, 0.0, 7.0])
WEIGHTS = np.array([1.0, 0.5, 0.25])

# name of the argument, a call with that argument replaced
CALLS = {
    "sample_rankings": (
        lambda **kw: plr.sample_rankings(kw.pop("scores", SCORES), kw.pop("n_samples", 3), kw.pop("cutoff", 2), **kw),
        {"scores"},
    ),
    "ranking_log_prob": (
        lambda **kw: plr.ranking_log_prob(kw.pop("scores", SCORES), kw.pop("rankings", [[0, 1]]), **kw),
        {"scores"},
    ),
    "dcg": (
        lambda **kw: plr.dcg(
            kw.pop("scores", SCORES), kw.pop("relevance", RELEVANCE), kw.pop("rank_weights", WEIGHTS), **kw
        ),
        {"scores", "relevance"},
    ),
    "ndcg": (
        lambda **kw: plr.ndcg(
            kw.pop("scores", SCORES), kw.pop("relevance", RELEVANCE), kw.pop("rank_weights", WEIGHTS), **kw
        ),
        {"scores", "relevance"},
    ),
    **{
        function.__name__: (
            lambda function=function, **kw: function(
                kw.pop("scores", SCORES), kw.pop("relevance", RELEVANCE), kw.pop("rank_weights", WEIGHTS), **kw
            ),
            {"scores", "relevance"},
        )
        for function in [*GRADIENTS, plr.pl_rank_exact]
    },
    "expected_metric": (
        lambda **kw: plr.expected_metric(
            kw.pop("scores", SCORES),
            kw.pop("relevance", RELEVANCE),
            kw.pop("rank_weights", WEIGHTS),
            **{"method": "sample", **kw},
        ),
        {"scores", "relevance"},
    ),
}
SAMPLED = ["sample_rankings", "pl_rank_1", "pl_rank_2", "pl_rank_3", "pl_rank_cmc", "expected_metric"]
EVERY_ARRAY = [(name, argument) for name, (_, arguments) in CALLS.items() for argument in sorted(arguments)]


class LyingInterface:
    """Claims more memory than it has."""

    def __init__(self):
        self._buffer = b"12345678"

    @property
    def __array_interface__(self):
        return {"shape": (1000,), "typestr": "<f8", "data": self._buffer, "version": 3}


class RequiresGradient:
    """As a tensor that takes part in a computation: reading it as an array is refused."""

    requires_grad = True

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize(("name", "argument"), EVERY_ARRAY)
class TestArrays:
    """Mutant of each: the check removed, or made after the kernel has run."""

    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            (np.zeros(5, dtype=complex), TypeError),
            (np.array([object()] * 5), TypeError),
            (["a", "b", "c", "d", "e"], TypeError),
            (np.zeros(5, dtype="M8[s]"), TypeError),
            (None, TypeError),
            (np.ma.masked_array(np.zeros(5), mask=[1, 0, 0, 0, 0]), TypeError),
            (RequiresGradient(), TypeError),
            (1.0, ValueError),
            (np.zeros((5, 1)), ValueError),
            ([[1.0], [1.0, 2.0]], ValueError),
            (LyingInterface(), ValueError),
            ([0.0, 1.0, np.nan, 0.0, np.nan], ValueError),
            ([0.0, 1.0, 2.0, np.inf, 0.0], ValueError),
            ([0.0, 1.0, 2.0, 0.0, -np.inf], ValueError),
            (np.array([0, 0, 0, 0, np.finfo(np.longdouble).max], dtype=np.longdouble), ValueError),
        ],
    )
    def test_rejected(self, name, argument, bad, error):
        if name == "sample_rankings" and isinstance(bad, list) and bad[-1] == -np.inf:
            pytest.skip("takes weights of 0: test_sampling.py")
        with pytest.raises(error, match=argument):
            CALLS[name][0](**{argument: bad})

    def test_first_bad_index_is_named(self, name, argument):
        with pytest.raises(ValueError, match=rf"{argument} must be finite, got nan at index 2"):
            CALLS[name][0](**{argument: [0.0, 1.0, np.nan, 0.0, np.nan]})

    def test_unusual_layouts_give_the_same_bits(self, name, argument):
        call, seeded = CALLS[name][0], {"rng": 0} if name in SAMPLED else {}
        values = np.array([0.5, 1.0 if (name, argument) == ("ndcg", "relevance") else -1.0, 2.0, 0.0, 1.0])
        expected = call(**{argument: values}, **seeded)
        buffer = bytearray(5 * 8 + 1)
        misaligned = np.frombuffer(memoryview(buffer)[1:], dtype=float)
        misaligned[:] = values
        read_only = values.copy()
        read_only.flags.writeable = False
        mapped = mmap.mmap(-1, 40)
        mapped[:] = values.tobytes()
        layouts = [
            values.tolist(),
            values.astype(">f8"),
            np.repeat(values, 3)[::3],
            values[::-1].copy()[::-1],
            np.asfortranarray(np.stack([values, values]))[1],
            misaligned,
            read_only,
            np.frombuffer(mapped, dtype=float),
            values.astype(np.longdouble),
            values.astype(np.float16),
        ]
        for layout in layouts:
            np.testing.assert_array_equal(call(**{argument: layout}, **seeded), expected)
        zero_strides = np.broadcast_to(1.0, 5)
        np.testing.assert_array_equal(
            call(**{argument: zero_strides}, **seeded), call(**{argument: np.ones(5)}, **seeded)
        )
        for dtype in (bool, np.int8, np.uint64):
            whole = np.array([0, 1, 1, 0, 1], dtype=dtype)
            np.testing.assert_array_equal(
                call(**{argument: whole}, **seeded), call(**{argument: whole.astype(float)}, **seeded)
            )

    def test_input_is_left_alone(self, name, argument):
        before = RELEVANCE if argument == "relevance" else SCORES
        values = before.copy()
        CALLS[name][0](**{argument: values})
        np.testing.assert_array_equal(values, before)


class TestValues:
    def test_denormals(self):
        tiny = np.array([5e-324, 1e-310, 0.0, -1e-320, 1e-300])
        rankings = plr.sample_rankings(np.zeros(5), 50, rng=0)
        for gradient in GRADIENTS:
            here = gradient(tiny, RELEVANCE, WEIGHTS, rankings=rankings)
            there = gradient(np.zeros(5), RELEVANCE, WEIGHTS, rankings=rankings)
            np.testing.assert_allclose(here, there, rtol=0, atol=1e-12)

    def test_labels_of_gains(self):
        for bad in ([-1], [200.001], [0, 5000], [np.nan], [np.inf], None, ["a"], [1 + 2j]):
            with pytest.raises((ValueError, TypeError), match="labels"):
                plr.gains(bad)

    @pytest.mark.parametrize("name", ["dcg", "ndcg", "pl_rank_1", "pl_rank_2", "pl_rank_3", "expected_metric"])
    def test_rank_weights(self, name):
        call = CALLS[name][0]
        required = [] if name in ("dcg", "ndcg") else [None]  # these have those of DCG by default
        for bad in ([np.nan], [np.inf, 1.0], *required, "abc", [[1.0, 2.0], [1.0, 2.0]], np.zeros((1, 1, 1)), 1.0):
            with pytest.raises((ValueError, TypeError), match="rank_weights"):
                call(rank_weights=bad)
        for good in ([0.0, -1.0, 2.0, 9.0, 1.0, 3.0], [1], np.float32([0.5]), [[1.0, 2.0]]):
            assert np.isfinite(call(rank_weights=good)).all()

    @pytest.mark.parametrize("function", GRADIENTS)
    def test_negative_and_fractional_relevance(self, function):
        rankings = plr.sample_rankings(SCORES, 20, rng=0)
        plus = function(SCORES, RELEVANCE, WEIGHTS, rankings=rankings)
        minus = function(SCORES, -RELEVANCE, WEIGHTS, rankings=rankings)
        np.testing.assert_allclose(plus, -minus, rtol=0, atol=1e-14)


class TestSizes:
    @pytest.mark.parametrize("name", SAMPLED)
    @pytest.mark.parametrize(
        ("bad", "error"),
        [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError), ("5", TypeError), (None, TypeError),
         (2**63, ValueError), (np.array([1, 2]), TypeError)],
        ids=str,
    )  # fmt: skip
    def test_n_samples(self, name, bad, error):
        with pytest.raises(error, match="n_samples"):
            CALLS[name][0](n_samples=bad)

    @pytest.mark.parametrize(
        ("bad", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError), ("2", TypeError)], ids=str
    )
    @pytest.mark.parametrize(
        "function",
        [lambda c: plr.sample_rankings(SCORES, 2, c), plr.dcg_weights, plr.precision_weights, plr.rbp_weights],
    )
    def test_cutoff(self, function, bad, error):
        with pytest.raises(error, match="cutoff"):
            function(bad)

    def test_numpy_integers_are_integers(self):
        assert plr.sample_rankings(SCORES, np.int16(4), np.uint8(2)).shape == (4, 2)
        assert plr.dcg_weights(np.int64(3)).shape == (3,)

    @pytest.mark.parametrize("name", list(CALLS))
    @pytest.mark.parametrize(
        "bad",
        [[0, 3, 2, 5], [-1, 5], [1, 5], [0, 4], [0, 6], [0.0, 5.0], [[0, 5]], [], [True, False], 5,
         np.array([0, 2**64 - 1, 5], dtype=np.uint64), ["0", "5"], [0, 2**70, 5]],
        ids=str,
    )  # fmt: skip
    def test_offsets(self, name, bad):
        with pytest.raises(ValueError, match="offsets"):
            CALLS[name][0](offsets=bad)

    def test_more_than_can_be_addressed(self):
        """Mutant: the size computed in 64 bits, where it wraps to something small."""
        with pytest.raises(ValueError, match="n_samples asks for an array of shape"):
            plr.sample_rankings(SCORES, 2**59, 5)

    def test_more_than_there_is(self):
        with pytest.raises(MemoryError):
            plr.sample_rankings(SCORES, 2**55, 2)

    def test_indices_past_2_to_the_31(self):
        """N D and N K beyond 32 bits: 3e9 ranks drawn in all, none of them stored."""
        value = plr.expected_metric(
            np.zeros(2), [1.0, 0.0], [1.0], method="sample", n_samples=2**26, rng=0, n_threads=None
        )
        assert abs(value[0] - 0.5) < 7 * 0.5 / 2**13


class TestGivenRankings:
    @pytest.mark.parametrize("name", ["ranking_log_prob", "pl_rank_1", "pl_rank_2", "pl_rank_3", "expected_metric"])
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ([[0, 1, -3]], r"rankings must hold items 0 to 4, got -3 at \(sample 0, rank 2\)"),
            ([[0, 1, 2], [0, 5, 1]], r"got 5 at \(sample 1, rank 1\)"),
            ([[0, 1, 0]], r"rankings must not repeat an item, got 0 a second time at \(sample 0, rank 2\)"),
            (np.array([[0, 1, 2**64 - 1]], dtype=np.uint64), "rankings"),
            (np.array([[0, 1, 2**32]], dtype=np.uint64), "must hold items 0 to 4, got 4294967296"),
            ([0, 1, 2], "rankings must have shape"),
            (np.zeros((2, 1, 3), dtype=int), "rankings must have shape"),
            (np.zeros((0, 3), dtype=int), "at least one ranking"),
            ([[0.0, 1.0, 2.0]], "rankings must hold integers"),
            ([[True, False, True]], "rankings must hold integers"),
        ],
        ids=str,
    )
    def test_rejected(self, name, bad, message):
        """Mutants: only the last ranking checked; the range checked after narrowing to 32 bits."""
        with pytest.raises(ValueError, match=message):
            CALLS[name][0](rankings=bad)

    def test_minus_two_is_no_end(self):
        """-1 ends a ranking where prefixes are taken. Mutants: items clipped to -1 before the check; no look past."""
        with pytest.raises(ValueError, match=r"rankings must hold items 0 to 4, got -2 at \(sample 0, rank 1\)"):
            plr.ranking_log_prob(SCORES, [[0, -2, -1]])
        with pytest.raises(ValueError, match=r"must not go on after -1, which ends them, got 2 at \(sample 0"):
            plr.ranking_log_prob(SCORES, [[0, -1, 2]])
        assert plr.ranking_log_prob(SCORES, [[-1, -1]]) == 0.0

    @pytest.mark.parametrize("function", GRADIENTS)
    def test_too_short(self, function):
        with pytest.raises(ValueError, match="rankings must reach rank 3, got rankings of length 2"):
            function(SCORES, RELEVANCE, WEIGHTS, rankings=[[0, 1]])
        assert function(SCORES[:2], RELEVANCE[:2], WEIGHTS, rankings=[[0, 1]]).shape == (2,)


class TestOutputAndSeeds:
    @pytest.mark.parametrize("function", GRADIENTS)
    def test_out_untouched_by_an_error(self, function):
        out = np.full(5, 7.0)
        read_only = out.view()
        read_only.flags.writeable = False
        with pytest.raises(ValueError, match="out must be writeable"):
            function(SCORES, RELEVANCE, WEIGHTS, out=read_only)
        for bad in ({"relevance": [np.nan] * 5}, {"rank_weights": [np.inf]}):
            with pytest.raises(ValueError):
                function(**{"scores": SCORES, "relevance": RELEVANCE, "rank_weights": WEIGHTS, **bad}, out=out)
        for bad in ({"rankings": [[0, 0, 1]]}, {"n_samples": 0}, {"n_threads": 0}, {"rng": -1}):
            with pytest.raises(ValueError):
                function(SCORES, RELEVANCE, WEIGHTS, out=out, **bad)
        assert (out == 7.0).all()

    @pytest.mark.parametrize("name", SAMPLED)
    @pytest.mark.parametrize(
        ("bad", "error"),
        [(-1, ValueError), (1.0, TypeError), ("seed", TypeError), (True, TypeError), (np.random, TypeError),
         (np.random.RandomState(0), TypeError)],
        ids=str,
    )  # fmt: skip
    def test_rng(self, name, bad, error):
        with pytest.raises(error, match="rng"):
            CALLS[name][0](rng=bad)

    @pytest.mark.parametrize("name", list(CALLS))
    @pytest.mark.parametrize(
        ("bad", "error"), [(0, ValueError), (1.0, TypeError), (True, TypeError), ("2", TypeError)], ids=str
    )
    def test_n_threads(self, name, bad, error):
        with pytest.raises(error, match="n_threads"):
            CALLS[name][0](n_threads=bad)

    @pytest.mark.parametrize("n_threads", [10**6, 10**30, -1, -2, -(10**6), -(10**30), 1])
    def test_any_number_of_threads_is_survived(self, n_threads):
        """And gives the same bits. Mutant: -10**6 taken for a million less than there are."""
        one, any_number = (
            plr.pl_rank_3(SCORES, RELEVANCE, WEIGHTS, offsets=[0, 1, 3, 5], rng=0, n_threads=n) for n in (1, n_threads)
        )
        np.testing.assert_array_equal(any_number, one)

    @pytest.mark.parametrize(
        ("name", "option"),
        [
            ("ndcg", "normalize"),
            ("expected_metric", "method"),
            ("pl_rank_3", "sampler"),
            ("sample_rankings", "sampler"),
        ],
    )
    def test_choices(self, name, option):
        with pytest.raises(ValueError, match=f"{option} must be one of .*, got 'nonsense'"):
            CALLS[name][0](**{option: "nonsense"})
        with pytest.raises(TypeError, match=option):
            CALLS[name][0](**{option: None})


class Bfloat16Tensor:
    """As PyTorch's: NumPy has no such type."""

    dtype = "torch.bfloat16"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")


FIVE = np.zeros(5)
METRICS = ("dcg", "ndcg", "precision", "recall", "average_precision", "mrr", "success", "err", "rbp")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: plr.ndcg(SCORES, RELEVANCE, 7),
            ValueError,
            "rank_weights must be 1-dimensional or 2-dimensional, got shape (): pass an array of weights, such as "
            "dcg_weights(7) for the DCG of the first 7 ranks",
        ),
        (
            lambda: plr.dcg(SCORES, RELEVANCE, 0.5),
            ValueError,
            "such as dcg_weights(10) for the DCG of the first 10 ranks",
        ),
        (
            lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[3, 2]),
            ValueError,
            "offsets must start with 0, got 3: sizes of queries become offsets by offsets_from_group(sizes)",
        ),
        (
            lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[7, 7, 7, 8, 8]),
            ValueError,
            "offsets must start with 0, got 7: identifiers of queries, one for each document, become offsets by "
            "offsets_from_qid(qid)",
        ),
        (
            lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[0, 0, 0, 1, 1]),
            ValueError,
            "offsets must end with the number of documents, 5, got 1: identifiers of queries, one for each document, "
            "become offsets by offsets_from_qid(qid)",
        ),
        (
            lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[3, 5]),
            ValueError,
            "offsets must start with 0, got 3: ends of queries become offsets by numpy.append(0, ends)",
        ),
        (
            lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[30, 33, 35]),
            ValueError,
            "offsets must start with 0, got 30: for a part of a batch pass offsets - offsets[0]",
        ),
        (
            lambda: plr.pl_rank_exact(FIVE, FIVE, [1.0], cutoff=1),
            TypeError,
            "pl_rank_exact() got an unexpected keyword argument 'cutoff': pass rank_weights=dcg_weights(cutoff)",
        ),
        (
            lambda: plr.ndcg(FIVE, FIVE, k=1),
            TypeError,
            "ndcg() got an unexpected keyword argument 'k': pass cutoff=k",
        ),
        (
            lambda: plr.ndcg(FIVE, FIVE, colour=1),
            TypeError,
            "ndcg() got an unexpected keyword argument 'colour'",
        ),
        (
            lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[0.0, 5.0]),
            ValueError,
            "offsets must hold integers, got dtype float64: cast it, offsets.astype(int)",
        ),
        (
            lambda: plr.offsets_from_group(None),
            TypeError,
            "sizes must be an array, got None: the data set has no groups, set them (its group or qid) first",
        ),
        (
            lambda: plr.dcg(np.zeros((5, 1)), FIVE, [1.0]),
            ValueError,
            "scores must be 1-dimensional, got shape (5, 1): pass scores.ravel()",
        ),
        (
            lambda: plr.dcg(FIVE, np.zeros((2, 4)), [1.0]),
            ValueError,
            "relevance must be 1-dimensional, got shape (2, 4): if its rows are queries, pass relevance[mask] with "
            "mask of the same shape, True for documents, and offsets=offsets_from_group(mask.sum(axis=1))",
        ),
        (
            lambda: plr.dcg(Bfloat16Tensor(), FIVE, [1.0]),
            TypeError,
            "scores cannot be read as an array: Got unsupported ScalarType BFloat16: cast it, scores.float()",
        ),
        (
            lambda: plr.pl_rank_3(SCORES, RELEVANCE, WEIGHTS, n_samples=np.ceil(20.0)),
            TypeError,
            "n_samples must be an integer, got np.float64(20.0): pass 20",
        ),
        (lambda: plr.dcg_weights(2.5), TypeError, "cutoff must be an integer, got 2.5"),
        (lambda: generate("mslr", 3.0), TypeError, "n_queries must be an integer, got 3.0: pass 3"),
        (lambda: generate("mslr", n_features=3.5), TypeError, "n_features must be an integer, got 3.5"),
        (lambda: generate("mslr", seed=-1), ValueError, "seed must be at least 0, got -1"),
    ],
)
def test_messages_say_what_to_do(call, error, message):
    """Mutant of each: the message without its advice."""
    with pytest.raises(error, match=re.escape(message) + "$"):
        call()


@pytest.mark.parametrize(
    "name", [*METRICS, "average_relevance_position", "expected_metric", "value_and_gradient", *ESTIMATORS]
)
def test_queries_by_the_arguments_of_other_libraries(name):
    """Mutant of each: the argument has no effect. Mutant of all: ``help`` shows that a function takes any."""
    function = getattr(plr, name)
    required = [FIVE for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    for argument, offsets in (("qid", "offsets_from_qid(qid)"), ("group", "offsets_from_group(group)")):
        with pytest.raises(TypeError, match=re.escape(f"argument {argument!r}: pass offsets={offsets}") + "$"):
            function(*required, **{argument: [5]})
    assert "unknown" not in inspect.signature(function).parameters


@pytest.mark.parametrize("library", ["torch", "ml_dtypes"])
def test_bfloat16(library):
    """The advice works."""
    module = pytest.importorskip(library)
    if library == "torch":
        scores = module.zeros(5, dtype=module.bfloat16)
        cast, advice = scores.float(), r"cast it, scores\.float\(\)$"
    else:
        scores = np.zeros(5, dtype=module.bfloat16)
        cast, advice = scores.astype("float32"), r"got dtype bfloat16: cast it, scores\.astype\('float32'\)$"
    with pytest.raises(TypeError, match=advice):
        plr.dcg(scores, RELEVANCE, WEIGHTS)
    assert plr.dcg(cast, RELEVANCE, WEIGHTS)[0] == plr.dcg(FIVE, RELEVANCE, WEIGHTS)[0]


def test_padded_batch_as_advised():
    """A padded batch, flattened as the message says, is the batch of its queries."""
    mask = np.array([[True, True, False, False], [True, True, True, True], [True, False, False, False]])
    padded, offsets = np.random.default_rng(0).normal(size=mask.shape), plr.offsets_from_group(mask.sum(axis=1))
    got = plr.dcg(padded[mask], padded[mask], [1.0], offsets=offsets)
    np.testing.assert_array_equal(got, np.where(mask, padded, -np.inf).max(axis=1))
