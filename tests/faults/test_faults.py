"""Bad and odd input: messages that say what to do, and sizes at the limits."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import plrank_fast as plr
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.training.evaluation import evaluate_scores

SCORES = np.array([0.5, -1.0, 2.0, 0.0, 1.0])
RELEVANCE = np.array([1.0, 0.0, 3.0, 0.0, 7.0])
WEIGHTS = np.array([1.0, 0.5, 0.25])


class TestSizes:
    def test_numpy_integers_are_integers(self):
        assert plr.sample_rankings(SCORES, np.int16(4), np.uint8(2)).shape == (4, 2)
        assert plr.dcg_weights(np.int64(3)).shape == (3,)

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


@pytest.mark.parametrize("n_threads", [10**6, 10**30, -1, -2, -(10**6), -(10**30), 1])
def test_any_number_of_threads_is_survived(n_threads):
    """And gives the same bits. Mutant: -10**6 taken for a million less than there are."""
    one, any_number = (
        plr.pl_rank_3(SCORES, RELEVANCE, WEIGHTS, offsets=[0, 1, 3, 5], rng=0, n_threads=n) for n in (1, n_threads)
    )
    np.testing.assert_array_equal(any_number, one)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)), lambda it: it])
@pytest.mark.parametrize(
    ("make", "names", "use"),
    [
        (lambda offsets: plr.PlackettLuce(SCORES, offsets), ["offsets", "scores"], lambda it: it.mode()),
        (lambda offsets: plr.rewards.alpha_ndcg(np.eye(5), offsets=offsets), ["offsets", "subtopics"],
         lambda it: it([[[1, 0]], [[2, 0]]])),
        (lambda offsets: plr.data.RankingData(np.eye(5), SCORES, offsets), ["offsets"], lambda it: it[1:].qid),
    ],
)  # fmt: skip
def test_what_objects_keep_cannot_be_changed(make, names, use, copied):
    """Kernels trust it: other offsets ended the process. Mutants: arrays of a copy, or of an unpickled object, that can
    be written to; a flag that can be set again; another array assigned; the caller's own offsets kept, or locked."""
    offsets = np.array([0, 2, 5])
    kept = make(offsets)
    expected = use(kept)
    offsets[1] = 4
    for it in (copied(kept), copied(copied(kept))):
        for name in names:
            array = getattr(it, name)
            with pytest.raises(ValueError, match="read-only"):
                array[1] = 10**7
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
            with pytest.raises(AttributeError, match=name):
                setattr(it, name, array.copy())
        np.testing.assert_array_equal(use(it), expected)


def test_what_subclasses_add_is_theirs():
    """Mutant: every attribute set once, and every array locked, the caller's own too."""
    policy, mine = type("Policy", (plr.PlackettLuce,), {})(SCORES), np.zeros(2)
    policy.mine = np.ones(2)
    policy.mine = mine
    copy.copy(policy).mine[0] = 1.0
    assert mine[0] == 1.0


FIVE = np.zeros(5)
BY_QID = "become offsets by offsets_from_qid(qid)"
PART = "a part of a batch is its documents from offsets[0] to offsets[-1], with offsets - offsets[0]"
VALUE_ERRORS = [
    (lambda: plr.pl_rank_3(SCORES, RELEVANCE, WEIGHTS, rankings=[[0, 1]]),
     "rankings must reach rank 3, got rankings of length 2"),
    (lambda: plr.pl_rank_3(SCORES, [0.0, 1.0, np.nan, 0.0, np.nan], WEIGHTS),
     "relevance must be finite, got nan at index 2"),
    *(
        (lambda bad=bad: plr.pl_rank_3(SCORES, RELEVANCE, WEIGHTS, rankings=bad), message)
        for bad, message in [
            ([[0, 1, 2], [0, 5, 1]], "rankings must hold items 0 to 4, got 5 at (sample 1, rank 1)"),
            ([[0, 1, 0]], "rankings must not repeat an item, got 0 at (sample 0, rank 2)"),
            (np.array([[0, 1, 2**32]], dtype=np.uint64),
             "rankings must hold items 0 to 4, got 4294967296 at (sample 0, rank 2)"),
        ]
    ),
    (lambda: plr.ndcg(SCORES, RELEVANCE, 7),
     "rank_weights must be 1-dimensional or 2-dimensional, got shape (): pass an array of weights, such as "
     "dcg_weights(7) for the DCG of the first 7 ranks"),
    (lambda: plr.dcg(SCORES, RELEVANCE, 0.5), "such as dcg_weights(10) for the DCG of the first 10 ranks"),
    *(
        (lambda bad=bad: plr.dcg(FIVE, FIVE, [1.0], offsets=bad), f"number of documents, 5, got {message}")
        for bad, message in [
            ([3, 2], "3 and 2: sizes of queries become offsets by offsets_from_group(sizes)"),
            ([7, 7, 7, 8, 8], "7 and 8: identifiers of queries, one for each document, " + BY_QID),
            ([0, 0, 0, 1, 1], "0 and 1: identifiers of queries, one for each document, " + BY_QID),
            ([3, 5], "3 and 5: ends of queries become offsets by numpy.append(0, ends); " + PART),
            ([30, 33, 35], "30 and 35: " + PART),
            ([1, 2, 4], "1 and 4: " + PART),
            ([0, 2, 6], "0 and 6"),
        ]
    ),
    (lambda: plr.dcg(FIVE, FIVE, [1.0], offsets=[0.0, 5.0]),
     "offsets must hold integers, got dtype float64: cast it, offsets.astype(int)"),
    (lambda: plr.offsets_from_group(None),
     "sizes must be given: set the group or the qid of the data set first, got None"),
    (lambda: plr.dcg(np.zeros((5, 1)), FIVE, [1.0]),
     "scores must be 1-dimensional, got shape (5, 1): pass scores.ravel()"),
    (lambda: plr.dcg(FIVE, np.zeros((2, 4)), [1.0]),
     "relevance must be 1-dimensional, got shape (2, 4): if its rows are queries, pass relevance[mask] with "
     "mask of the same shape, True for documents, and offsets=offsets_from_group(mask.sum(axis=1))"),
    (lambda: plr.losses.pointwise([0.0], [2.0], kind="logistic"),
     "labels must be from 0 to 1, got 2.0 at index 0"),
    *((call, "from 0 to 200, got 1024.0 at index 0: grades have gains of 2**grade - 1; rescale labels of another scale")
      for call in (lambda: plr.err([0.0], [1024.0]), lambda: plr.gains([1024]))),
    *((call, "got 1024.0 at index 0: with gain='exponential' these are grades; pass gain='linear' for gains")
      for call in (
          lambda: plr.losses.approx_ndcg([0.0], [1024.0]), lambda: RankingMetric().evaluate([0.0], [1024.0]),
          lambda: evaluate_scores(np.zeros(1), np.array([1024.0]), np.array([0, 1]), cutoff=1))),
    *((call, "got -1.0 at index 0: set grades below 0 to 0 if they mean not relevant, as trec_eval does")
      for call in (
          lambda: plr.gains([-1]), lambda: plr.err([0.0], [-1.0]), lambda: plr.losses.lambda_rank([0.0], [-1.0]),
          lambda: plr.losses.soft_rank([0.0], [-1.0], gain="linear"), lambda: RankingMetric().evaluate([0.0], [-1.0]),
          lambda: evaluate_scores(np.zeros(1), np.array([-1.0]), np.array([0, 1]), cutoff=1))),
    *((call, "got -1.0 at index 0: NDCG is a share of the ideal DCG, and DCG takes any sign; set grades below "
      "0 to 0 if they mean not relevant, as trec_eval does")
      for call in (
          lambda: plr.ndcg([0.0], [-1.0]), lambda: plr.ideal_dcg([-1.0]),
          lambda: evaluate_scores(np.zeros(1), np.array([-1.0]), np.array([0, 1]), cutoff=1, gain="linear"))),
    (lambda: plr.ndcg([0.0], [1.0], [-1.0]),
     "rank_weights must be at least 0, got -1.0 at index 0: NDCG is a share of the ideal DCG, and DCG takes any sign"),
    (lambda: plr.pl_rank_exact([0.0, -np.inf], [0.0, 1.0], [1.0]),
     "scores must be finite, got -inf at index 1: leave out documents of weight 0, in a loss of PyTorch or JAX by "
     "mask=scores > -inf, as only functions of rankings take them"),
    (lambda: plr.dcg([[1.0, 2.0], [3.0]], FIVE, [1.0]),
     "inhomogeneous part: if its rows are queries, pass numpy.concatenate(scores) and "
     "offsets=offsets_from_group([len(row) for row in scores])"),
    (lambda: plr.off_policy.ips(FIVE, [[0, 1], [1]], [1.0, 0.0], propensities=[0.5, 0.5]),
     "inhomogeneous part: fill its rows with -1 up to the length of the longest"),
    (lambda: plr.off_policy.rips(FIVE, [[0, 1], [1, -1]], [[1.0, 0.0], [0.5]], logging_scores=FIVE),
     "inhomogeneous part: fill its rows with 0 up to the length of the longest"),
    (lambda: plr.pl_rank_exact(SCORES, RELEVANCE, WEIGHTS, sigma=1e-100),
     "sigma must be from 2**-200 to 2**200, about 6e-61 to 2e60, got 1e-100"),
    (lambda: plr.scores_for_exposure([0.5, 1.0, 0.5, 0.5], [1.0, 0.5], offsets=[0, 2, 4]),
     "target must sum to the sum of rank_weights, 1.5, in query 1, got a sum of 1"),
    *(
        (lambda out=out: plr.exposure(np.zeros(2), [1.0], out=out), message)
        for out, message in [
            (as_strided(np.zeros(9), (2,), (0,)), "out must not overlap itself, got strides (0,) for shape (2,)"),
            (as_strided(np.zeros(9)[4:], (2,), (-4,)), "out must not overlap itself, got strides (-4,) for shape (2,)"),
        ]
    ),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: plr.off_policy.doubly_robust(FIVE, [[0]], [1.0], FIVE),
     "doubly_robust() missing 1 required positional argument: 'rank_weights': pass rank_weights=dcg_weights(10)"),
    (lambda: plr.off_policy.doubly_robust(FIVE, [[0]], [1.0], FIVE, [1.0], cutoff=1),
     "doubly_robust() got an unexpected keyword argument 'cutoff': pass rank_weights=dcg_weights(cutoff)"),
    (lambda: plr.off_policy.ips(FIVE, [[0]], [1.0], group=[5]),
     "ips() got an unexpected keyword argument 'group': pass offsets=offsets_from_group(group)"),
    (lambda: BoostingObjective(k=1),
     "__init__() got an unexpected keyword argument 'k': pass cutoff=k"),
    (lambda: BoostingObjective(FIVE, FIVE),
     "takes 1 positional argument but 3 were given: pass these to an instance, not to the class"),
    (lambda: BoostingObjective("mrr"),
     "takes 1 positional argument but 2 were given: pass options by name, such as metric="),
    (lambda: plr.train(FIVE, FIVE, 3),
     "takes from 1 to 2 positional arguments but 3 were given: pass options by name, such as epochs="),
    (lambda: plr.off_policy.ips(FIVE, [[0]], [1.0], colour=1), "ips() got an unexpected keyword argument 'colour'"),
    (lambda: plr.off_policy.ips(FIVE, [[0]], [1.0], offset=[0, 5]),
     "ips() got an unexpected keyword argument 'offset'. Did you mean 'offsets'?"),
    (lambda: plr.pl_rank_3(SCORES, RELEVANCE, WEIGHTS, n_samples=np.ceil(20.0)),
     "n_samples must be an integer, got np.float64(20.0): pass 20"),
    *(
        (lambda wrong=wrong: plr.rewards.expected_reward(FIVE, len, **{wrong: 1}), f"argument {message}")
        for wrong, message in [
            ("seed", "'seed': pass rng=seed"),
            ("random_state", "'random_state': pass rng=random_state"),
            ("n_jobs", "'n_jobs': pass n_threads=n_jobs"),
            ("mask", "'mask': pass offsets=offsets_from_group(mask.sum(axis=1)) and each array[mask]"),
        ]
    ),
    (lambda: plr.load_model(10**6), "path must be the path of a file, got 1000000"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [*((ValueError, *row) for row in VALUE_ERRORS), *((TypeError, *row) for row in TYPE_ERRORS)],
)
def test_messages_say_what_to_do(error, call, message):
    """Mutant of each: the message without its advice."""
    with pytest.raises(error, match=re.escape(message) + "$"):
        call()


def test_metrics_by_other_names():
    """Each has one name, also in ``metric=``. Mutants: no hint; a hint at what is no metric."""
    with pytest.raises(AttributeError, match=r"no attribute 'reciprocal_rank': the metric is plrank_fast\.mrr$"):
        plr.reciprocal_rank  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'colour'$"):
        plr.colour  # noqa: B018


LARGE = 2**53 + 1


@pytest.mark.parametrize("values", [
    [LARGE, 2**53], np.array([LARGE, 2**53]), np.array([-LARGE, 0]), np.array([LARGE, 2**53], np.uint64),
    [0.5, LARGE], [-1, 2**63 + 1], np.array([0, 2**63 - 1]), np.array([2**64 - 1, 0], np.uint64),
    (np.int64(LARGE), 1.0),
])  # fmt: skip
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("scores", lambda values: plr.ndcg(values, [1.0, 0.0])),
        ("relevance", lambda values: plr.pl_rank_exact([1.0, 0.0], values, [1.0])),
        ("labels", lambda values: plr.losses.list_mle([0.0, 0.0], values)),
        ("buckets", lambda values: plr.bucket_log_prob([1.0, 2.0], values)),
        ("labels", lambda values: plr.interchange.to_qrels(values, [0, 2])),
        ("run", lambda values: plr.interchange.from_run({"0": dict(zip("01", values, strict=True))}, [0, 2])),
    ],
)  # fmt: skip
def test_integers_that_float64_does_not_hold(name, call, values):
    """They would become ties, or another order. Mutants: arrays alone, or signed ones alone, looked at; compared after
    a conversion to float64, or back, which saturates."""
    with pytest.raises(ValueError, match=f"{name} must be numbers that float64 holds, got -?[0-9]+ at index [01]: int"):
        call(values)


def test_large_integers_that_float64_holds():
    """Mutant: all integers beyond 2**53 refused."""
    for values in [2**60, 2**53], np.array([2**62, -(2**63)]), np.array([2**63, 0], np.uint64), [10**18, 0.5]:
        assert plr.dcg([1.0, 0.0], values, [1.0])[0] == float(values[0])


def test_advice_is_only_for_the_call_itself():
    """Mutant: every TypeError gets it, also one that a function of the caller raises."""

    def reward(rankings):
        raise TypeError("'cutoff'")

    with pytest.raises(TypeError, match=r"^'cutoff'$"):
        plr.policy_gradient(FIVE, reward=reward)


HINTED = [
    function
    for module in (plr.interchange, plr.off_policy, plr.rewards)
    for function in vars(module).values()
    if hasattr(function, "__wrapped__") and "offsets" in inspect.signature(function).parameters
]


@pytest.mark.parametrize("function", HINTED, ids=lambda function: function.__name__)
def test_queries_by_the_arguments_of_other_libraries(function):
    """Mutant of each: the argument has no effect."""
    required = [FIVE for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    for argument, offsets in (("qid", "offsets_from_qid(qid)"), ("group", "offsets_from_group(group)")):
        with pytest.raises(TypeError, match=re.escape(f"argument {argument!r}: pass offsets={offsets}") + "$"):
            function(*required, **{argument: [5]})


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
