"""Arguments that need no conversion are read without ``validation``: the same numbers, bits, errors and warnings.

``unplain`` makes the same argument in a form that ``validation`` has to read.
"""

import contextlib
import inspect
import sys
import threading
import warnings

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import losses, validation
from plrank_fast._core.random import key as keys
from public_calls import values_of


def given_to(function, n_items):
    """The required arguments of a function, and ``n_samples`` and ``rng`` where it has them."""
    rng, parameters = np.random.default_rng(n_items), inspect.signature(function).parameters
    scores, labels = rng.standard_normal(n_items), rng.integers(0, 5, n_items).astype(float)
    values = values_of(scores, plr.gains(labels), plr.dcg_weights(10))
    values |= {"labels": labels, "cutoff": 5, "method": "exact", "n_samples": 3, "rng": np.random.default_rng(7)}
    needed = [name for name, each in parameters.items() if each.default is each.empty]
    if function is plr.policy_gradient:
        needed = ["scores", "relevance", "rank_weights"]
    elif function is plr.value_and_gradient:
        needed.append("method")
    if function not in (plr.value_and_gradient, losses.list_mle):
        needed += [name for name in ("n_samples", "rng") if name in parameters and name not in needed]
    return {name: values[name] for name in needed}


# These take rankings from elsewhere, or are objects.
READ_IN_PYTHON = {
    "ranking_log_prob", "ranking_log_prob_vjp", "bucket_log_prob", "bucket_log_prob_vjp", "PlackettLuce",
    "inclusion_probabilities", "pl_rank_exact_hvp", "losses.exposure_matching",
}  # fmt: skip
PUBLIC = {name: getattr(plr, name) for name in plr.__all__} | {
    f"losses.{name}": getattr(losses, name) for name in losses.__all__
}
FUNCTIONS = {
    name: each
    for name, each in PUBLIC.items()
    if callable(each) and name not in READ_IN_PYTHON and {"scores", "offsets"} <= {*inspect.signature(each).parameters}
}


def arrays_of(result):
    return result if isinstance(result, tuple) else (result,)


def same_bits(result, expected):
    assert len(arrays_of(result)) == len(arrays_of(expected))
    for one, other in zip(arrays_of(result), arrays_of(expected), strict=True):
        assert type(one) is type(other) is np.ndarray
        assert one.dtype == other.dtype
        assert one.size == other.size
        assert one.tobytes() == other.tobytes()


def same_answer(answer, expected):
    """Compare bits, numbers or errors."""
    if isinstance(answer, float) or isinstance(arrays_of(answer)[0], type):
        assert answer == expected
    else:
        same_bits(answer, expected)


OTHER_TYPES = {
    each: type(each.__name__, (each,), {}) for each in (np.ndarray, int, float, str, list)
}  # by name the same


def unplain(value):
    """The value in a type that is not plain, if there is one."""
    if type(value) is np.ndarray:
        return value.view(OTHER_TYPES[np.ndarray])
    return OTHER_TYPES[type(value)](value) if type(value) in OTHER_TYPES else value


def without_plain_ones(given):
    return {name: unplain(value) for name, value in given.items()}


@contextlib.contextmanager
def without_validation():
    """Within it, an array that is not plain raises AttributeError: nobody is there to read it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("arrays_of_queries", "items_that_can_be_drawn"):
            patch.delattr(f"plrank_fast.validation.queries.{name}")
        yield


def outcome(function, given):
    """Return the result of a call, or the error that it raises."""
    try:
        return function(**given)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_are_let_go(name):
    """Nothing refers to an array after the call that did not before. Mutant: their buffers are not released."""
    function = FUNCTIONS[name]
    given = given_to(function, 8)
    arrays = [value for value in given.values() if isinstance(value, np.ndarray)]
    function(**given)
    before = [sys.getrefcount(array) for array in arrays]
    result = function(**given)
    assert [sys.getrefcount(array) for array in arrays] == before
    arrays = [array for array in arrays_of(result) if isinstance(array, np.ndarray)]
    assert {sys.getrefcount(array) for array in arrays} <= {sys.getrefcount(np.zeros(1)) + 3}


@pytest.mark.parametrize("offsets_in", [None, np.array, list])
@pytest.mark.parametrize("n_items", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_validation_is_not_asked(name, n_items, offsets_in):
    """Nothing else is read from the generator; a batch of one query has the bits of the query.

    Mutants: the second key word drawn first; the result not cleared (a list of one item); 2**label taken for the gain;
    offsets in a list left to ``validation``, or the last of them taken for all.
    """
    function, batch = FUNCTIONS[name], offsets_in is not None
    offsets = {"offsets": offsets_in([0, n_items])} if batch else {}
    given, other = (given_to(function, n_items) | offsets for _ in range(2))
    with without_validation() if name != "value_and_gradient" or not batch else contextlib.nullcontext():
        result = function(**given)
    same_bits(result, function(**without_plain_ones(other)))
    if not batch:
        same_bits(result, function(**given_to(function, n_items) | {"offsets": [0, n_items]}))
    if "rng" in given:
        assert given["rng"].bit_generator.state == other["rng"].bit_generator.state


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"expected_ap", "rank_probabilities"}))
def test_one_query_is_read_without_a_batch_of_validation(name, monkeypatch):
    """Compiled code alone reads plain arguments of one query; a single other one goes to ``validation``.

    Mutants: ``plain_query`` returns None; it takes ``n_threads`` of any type.
    """
    function = FUNCTIONS[name]
    expected = function(**given_to(function, 9))
    monkeypatch.delattr("plrank_fast.validation.batch")
    monkeypatch.delattr("plrank_fast.validation.batch_that_can_be_drawn")
    same_bits(function(**given_to(function, 9)), expected)
    with pytest.raises(AttributeError, match="'batch"):
        function(**given_to(function, 9) | {"n_threads": np.int64(1)})


LAYOUTS = {  # of the same numbers, 0 and 1
    **{f"{dtype}": lambda array, dtype=dtype: array.astype(dtype)
       for dtype in ("bool", "int8", "uint64", "float16", "float32", "longdouble", ">f8", ">i2")},
    "list": lambda array: array.tolist(),
    "strided": lambda array: np.repeat(array, 3)[::3],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "row of a matrix in columns": lambda array: np.asfortranarray([array, array])[1],
    "not aligned": lambda array: np.frombuffer(b"." + array.tobytes(), dtype=np.uint8)[1:].view(np.float64),
    "read-only": lambda array: np.frombuffer(array.tobytes()),
    "subclass": unplain,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_layouts_of_the_same_numbers(name):
    """Mutants: values in memory's order in place of the array's; a type read as another one of the same size."""
    function = FUNCTIONS[name]
    given = given_to(function, 7)
    for argument in [argument for argument, value in given.items() if isinstance(value, np.ndarray)]:

        def answer(numbers, argument=argument):
            return outcome(function, given_to(function, 7) | {argument: numbers})

        numbers = np.resize([0.0, 1.0, 1.0, 0.0, 1.0], given[argument].size)
        expected = answer(numbers)
        assert isinstance(arrays_of(expected)[0], np.ndarray)
        for make in LAYOUTS.values():
            same_answer(answer(make(numbers)), expected)
        same_answer(answer(np.broadcast_to(1.0, numbers.shape)), answer(np.ones_like(numbers)))


ODD_ARRAYS = {
    "integers": lambda array: np.arange(array.size),
    "masked": lambda array: np.ma.masked_array(array, mask=np.arange(array.size) == 0),
    "column": lambda array: array[:, np.newaxis],
    "scalar": lambda array: np.float64(1.5),
    "complex": lambda array: array + 0j,
    "dates": lambda array: np.zeros(array.size, dtype="datetime64[s]"),
    "longer": lambda array: np.append(array, 0.5),
    "empty": lambda array: array[:0],
    "zeros": np.zeros_like,
    "NaN": lambda array: np.append(array[:-1], np.nan),
    "infinite": lambda array: np.append(array[:-1], np.inf),
    "minus infinity": lambda array: np.append(array[:-1], -np.inf),
    "negative": lambda array: np.append(array[:-1], -1.0),
    "huge": lambda array: array / np.abs(array).max(initial=1e-9) * 1.7e308,
    "tiny": lambda array: array * 1e-62,
    "as grades": lambda array: np.arange(array.size) % 4.0,
    "as gains": lambda array: 2.0 ** (np.arange(array.size) % 4) - 1.0,
    "as discounts": lambda array: plr.dcg_weights(array.size),
    "None": lambda array: None,
    "NaN past the end": lambda array: np.append(np.ones(40), np.nan),
}
ODD_NUMBERS = [0, 5, -1, 0.7, 1.0, 2.5, True, "3", None, np.int64(2), np.float64(0.5), 2**70, -(2**70)]
ODD_NUMBERS += [np.nan, np.inf, [1]]
ODD_OFFSETS = [
    *(
        [0, 13],
        [0, 5, 13],
        [0, 0, 5, 13, 13],
        [0],
        [],
        [0, 12],
        [0, 14],
        [1, 13],
        [5, 13, 0],
        [0, 9, 5, 13],
        [0, -1, 13],
    ),
    *([0, 5.0, 13], [False, 13], [0, True, 13], [0, "5", 13], [0, None, 13], [0, [5], 13], [0, 2**30 + 1, 13]),
    *([0, 2**64, 13], [0, -(2**70), 13], [0, np.int64(5), 13], [0, np.array(5), 13], (0, 5, 13), [[0, 5, 13]]),
    *([0, 5, 2**32 + 13], np.array([0, 5, 13]), np.array([0.0, 13.0]), None, "queries", 13, range(14), list(range(14))),
]
ODD_CHOICES = ["", "gumble", None, 3, ["auto"], "introselect", "average", "query", "sample", "normal", "logistic"]
ODD_CHOICES += ["pairs", "slot_table"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_odd_arguments_get_the_same_answer(name):
    """Bits, words of errors and warnings are the same, by turns for every argument, odd or not.

    Mutants: values not looked at for NaN; rank weights past the end of the list not looked at; the warning of exchanged
    arguments left out; n_threads=0 taken; a bool taken for a count; relevance of any magnitude; a negative gain in
    NDCG; a label out of range; relevance of another length; a bool, or an integer beyond 2**62, taken for an offset;
    offsets that decrease; the slope, the scale of the noise or what
    an empty query counts not handed on.
    """
    function = FUNCTIONS[name]
    plain = given_to(function, 13)
    trials = []
    for parameter, each in inspect.signature(function).parameters.items():
        if parameter in ("rankings", "rewards", "reward", "importance_weights"):
            continue
        value = plain.get(parameter, each.default)
        if parameter == "offsets":
            trials += [(parameter, odd) for odd in ODD_OFFSETS]
        elif isinstance(value, np.ndarray):
            trials += [(parameter, odd(value)) for odd in ODD_ARRAYS.values()]
        elif isinstance(value, str):
            trials += [(parameter, odd) for odd in ODD_CHOICES]
        else:
            trials += [(parameter, odd) for odd in ODD_NUMBERS]

    def answers(change):
        for parameter, odd in trials:
            given = change(given_to(function, 13) | {parameter: odd})
            if given.get("rng", 0) is None:  # any entropy will do
                continue
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                answer = outcome(function, given)
            state = getattr(getattr(given.get("rng"), "bit_generator", None), "state", None)
            yield parameter, odd, answer, state, [str(warning.message) for warning in told]

    with np.errstate(all="ignore"):
        mine, expected = list(answers(dict)), list(answers(without_plain_ones))
    assert len(mine) == len(expected) > 30
    for (parameter, odd, answer, state, told), (_, _, other, other_state, other_told) in zip(
        mine, expected, strict=True
    ):
        assert (told, state) == (other_told, other_state), (parameter, odd)
        same_answer(answer, other)


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
@pytest.mark.parametrize("halves", [0, 1, 2])
def test_keys_of_generators(kind, halves):
    """Keys are the words that ``integers`` draws of any bit generator, also after half of a word.

    Mutant: ``random_raw``, which MT19937 makes of 32 bits.
    """
    generators = [np.random.Generator(getattr(np.random, kind)(5)) for _ in range(3)]
    for each in generators:
        each.integers(0, 2**32, size=halves, dtype=np.uint32)
    expected = generators[0].integers(0, 2**64, size=2, dtype=np.uint64)
    for rng in (generators[1], generators[2].bit_generator):
        assert keys.stream_key(rng).tolist() == expected.tolist()
    rest = [each.integers(0, 2**32, size=5, dtype=np.uint32).tolist() for each in generators]
    assert rest[0] == rest[1] == rest[2]


def test_keys_of_seeds():
    """The keys are as from ``SeedSequence``. Mutant: entropy of 96 bits."""
    numbers = np.random.default_rng(0)
    seeds = [0, 1, 2**32 - 1, 2**32, 2**64, 2**96 - 1, 2**96, 2**128 - 1]
    seeds += [int.from_bytes(numbers.bytes(16), "little") >> int(numbers.integers(128)) for _ in range(500)]
    for seed in seeds:
        expected = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        assert keys.stream_key(seed).tolist() == expected.tolist()
    for other in (2**128, -1, True, 1.0, np.int64(3), np.random.SeedSequence(3), np.random.RandomState(3)):
        assert keys.stream_key(other) is None
    big = 2**128 + 3
    assert validation.stream_key(big).tolist() == np.random.SeedSequence(big).generate_state(2, np.uint64).tolist()
    assert len({keys.stream_key(None).tobytes() for _ in range(100)}) == 100


def test_a_generator_is_drawn_from_under_its_lock():
    """Mutant: no lock. The call waits for whoever has it."""
    rng = np.random.default_rng(3)
    drawn = []
    with rng.bit_generator.lock:
        waiting = threading.Thread(target=lambda: drawn.append(keys.stream_key(rng)))
        waiting.start()
        waiting.join(timeout=0.2)
        assert not drawn
    waiting.join()
    assert drawn[0].tolist() == np.random.default_rng(3).integers(0, 2**64, size=2, dtype=np.uint64).tolist()


# ---------------------------------------------------------------------------------------------------------------------
# Batches so large that threads share the pass over their arguments, in ranges of 4096 numbers
# ---------------------------------------------------------------------------------------------------------------------

LARGE = 3 * 4096 + 7
LARGE_OFFSETS = np.append(np.arange(0, LARGE, 2), LARGE)  # the last list has one item
LARGE_SCORES = np.random.default_rng(0).normal(size=LARGE)
LARGE_LABELS = np.arange(LARGE) % 5.0
PLACES = [0, 4095, 4096, 8191, 3 * 4096, LARGE - 1]
OF_LARGE = {
    "dcg": (plr.dcg, {"rank_weights": plr.dcg_weights(2)}),
    "ndcg": (plr.ndcg, {"rank_weights": plr.dcg_weights(2)}),
    "pl_rank_cmc": (plr.pl_rank_cmc, {"rank_weights": plr.dcg_weights(2), "n_samples": 1, "rng": 0}),
    "pl_rank_exact": (plr.pl_rank_exact, {"rank_weights": plr.dcg_weights(2)}),
    "losses.pointwise": (losses.pointwise, {}),
    "losses.softmax_cross_entropy": (losses.softmax_cross_entropy, {}),
    "losses.list_mle": (losses.list_mle, {}),
    "losses.lambda_rank": (losses.lambda_rank, {}),
}


def of_large(name, scores=LARGE_SCORES, labels=LARGE_LABELS, **options):
    function, needed = OF_LARGE[name]
    return function(scores, labels, offsets=LARGE_OFFSETS, **needed, **options)


@pytest.mark.parametrize("name", OF_LARGE)
def test_a_large_batch_is_read_by_a_team(name, on_team):
    """Any number of threads and any type of numbers gives the same bits; nothing else reads the arrays.

    Mutants: the last range left out; floats read as doubles; longs as ints; results copied from the first range only.
    """
    expected = of_large(name, n_threads=1)
    for dtype in (np.float32, np.int32, np.int64):
        with without_validation():
            numbers = (4 * LARGE_SCORES).astype(dtype), LARGE_LABELS.astype(dtype)
        doubles = [each.astype(np.float64) for each in numbers]
        with without_validation():
            same_bits(of_large(name, *numbers, n_threads=1), of_large(name, *doubles, n_threads=1))
    for n_threads in (2, 7):
        with without_validation():
            same_bits(on_team(n_threads, lambda **options: of_large(name, **options)), expected)
        out = tuple(np.full_like(each, np.nan) for each in arrays_of(expected))
        if name not in ("dcg", "ndcg"):
            on_team(n_threads, lambda **options: of_large(name, **options), out=out if len(out) > 1 else out[0])
            same_bits(out if len(out) > 1 else out[0], expected)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", OF_LARGE)
def test_a_large_batch_is_refused_before_anything_is_written(name, place, on_team):
    """Wherever the wrong number is, by its name and its index, as by one thread.

    Mutants: flags of a range replace the others'; the range of the wrong number not looked at; a label below 0 not
    looked for; integers from 2**53 on taken for the doubles beside them; values of a loss or its gradient not looked
    at, or only the first query's."""
    label = "labels" if name.startswith("losses") else "relevance"
    wrong = [("scores", LARGE_SCORES, np.nan), ("scores", LARGE_SCORES, -np.inf), (label, LARGE_LABELS, np.inf)]
    wrong += [("scores", np.zeros(LARGE, dtype=np.int64), 2**53 + 1)] if name != "losses.pointwise" else []
    if name in ("ndcg", "losses.softmax_cross_entropy", "losses.lambda_rank"):
        wrong += [(label, LARGE_LABELS, -1.0)]
    if name in ("pl_rank_cmc", "pl_rank_exact", "losses.softmax_cross_entropy"):
        wrong += [(label, LARGE_LABELS, 2.0**201)]
    if name == "losses.pointwise":  # a result beyond the largest double
        wrong += [("scores", LARGE_SCORES, 1e200), ("scores", LARGE_SCORES, 1e308)]
    for argument, array, value in wrong:
        given = array.copy()
        given[place] = value
        with_it = {"scores" if argument == "scores" else "labels": given}
        if name in ("dcg", "ndcg") and value == -np.inf:
            continue  # an item that was not retrieved
        out = None
        if name not in ("dcg", "ndcg"):
            out = tuple(np.full(n, 7.0) for n in (LARGE_OFFSETS.size - 1, LARGE)[not name.startswith("losses") :])
            with_it["out"] = out if len(out) > 1 else out[0]
        messages = []
        for n_threads in (1, 2, 7):
            with pytest.raises(ValueError, match=argument) as error:
                on_team(n_threads, lambda with_it=with_it, **options: of_large(name, **with_it, **options), team=None)
            messages.append(str(error.value))
        assert len({*messages}) == 1
        assert str(place) in messages[0] or "in query" in messages[0] or f"at index {place // 2}" in messages[0]
        assert out is None or all((each == 7.0).all() for each in out)
