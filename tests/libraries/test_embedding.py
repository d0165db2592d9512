"""The C interface, called by address: frozen signatures, the bits of the Python functions, and what it refuses."""

import ctypes
import json
import mmap
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables
from plrank_fast import cython_plrank, embedding
from plrank_fast.chunks import query_streams

FROZEN = json.loads((Path(__file__).parent / "embedding_signatures.json").read_text())
SIGNATURES = {name: signature for name, (_, signature) in cython_plrank.exported_functions().items()}
C = {name.removeprefix("plrank_"): embedding.ctypes_function(name) for name in SIGNATURES}
CODES = {name.removeprefix("PLRANK_"): value for name, value in embedding.constants().items()}
SAMPLERS = ["auto", "introselect", "network", "slot_table", "threshold"]
GUARD = 256
SEED, FIRST = 20220711, 5  # of streams, and their query


# ------------------------------------------------------------------------------------------------ calls


def address(array):
    """Pointers to nothing are NULL."""
    return None if array is None or array.size == 0 else array.ctypes.data


def guarded(n_bytes, shift=0):
    """Memory with a known pattern on both sides; ``shift`` takes it off its alignment."""
    memory = np.full(n_bytes + 2 * GUARD + shift, 0xA5, dtype=np.uint8)
    return memory, address(memory) + GUARD + shift


def intact(memory, n_bytes, shift=0):
    before, after = memory[: GUARD + shift], memory[GUARD + shift + n_bytes :]
    return (before == 0xA5).all() and (after == 0xA5).all()


LIBC = ctypes.CDLL(None, use_errno=True)


def at_the_end(array):
    """A copy whose last byte is followed by a page that nobody may touch: to read or write behind it is a crash."""
    n_bytes = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, n_bytes + mmap.PAGESIZE)
    page = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + n_bytes
    assert LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, n_bytes - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


def stream_for(query=0, block=0, seed=SEED):
    """A stream at an odd address (and the memory that it is in)."""
    memory, where = guarded(CODES["STREAM_SIZE"], 1)
    key = plr.stream_key(seed)
    assert C["stream_init"](where, CODES["STREAM_SIZE"], int(key[0]), int(key[1]), query) == 0
    assert C["stream_seek"](where, query, block) == 0
    assert intact(memory, CODES["STREAM_SIZE"], 1)
    return memory, where


def call(name, arguments, sizes):
    """Call with exactly the workspace asked for, at an odd address, and check that nothing around it is touched. Arrays
    end where memory does, and what the workspace holds does not matter. Mutants: a kernel that reads a register too
    many of scores; ``check_rankings`` without its memset."""
    n_bytes = C[f"{name}_workspace"](*sizes)
    assert n_bytes >= 0
    memory, where = guarded(n_bytes, 3)
    if word := n_bytes // 64 % 3:  # of 64 bits, or what `guarded` has left there
        memory[GUARD + 3 : GUARD + 3 + n_bytes] = 0
        memory[GUARD + 3 : GUARD + 3 + n_bytes][-where % 8 :: 8] = word
    moved = [at_the_end(a) if isinstance(a, np.ndarray) else a for a in arguments]
    passed = [address(argument) if isinstance(argument, np.ndarray) else argument for argument in moved]
    status = C[name](*passed, where, n_bytes)
    for argument, result in zip(arguments, moved, strict=True):
        if isinstance(argument, np.ndarray):
            argument[...] = result
    assert intact(memory, n_bytes, 3)
    return status


class Query:
    def __init__(self, n_items, cutoff, n_samples, spread=1.0):
        rng = np.random.default_rng([n_items, cutoff, n_samples])
        self.n_items, self.cutoff, self.n_samples = n_items, cutoff, n_samples
        self.scores = rng.normal(size=n_items) * spread
        self.relevance = rng.normal(size=n_items)
        self.theta = rng.normal(size=cutoff)
        self.gradient, self.hessian = np.full(n_items, 7.0), np.full(n_items, 7.0)
        self.value = np.full(1, 7.0)
        self.stop = rng.random(n_items) * (rng.random(n_items) < 0.5)
        self.sizes = n_items, cutoff, n_samples
        self.metric = self.scores, self.relevance, n_items, self.theta, cutoff


QUERIES = [
    (24, 5, 100), (24, 24, 260), (1, 1, 3), (0, 3, 2), (0, 0, 1), (5, 0, 4), (3, 10, 7), (2, 1, 1), (316, 50, 130),
    (1500, 20, 33), (6000, 40, 20),
]  # fmt: skip
SPREADS = [1.0, 50.0, 1e5]
LONG = (3000, 8, 1500, 1.0)  # which Python works off in rounds of several threads


@pytest.fixture(params=[*((*q, s) for q in QUERIES for s in SPREADS), LONG], ids=str)
def query(request):
    return Query(*request.param)


# ------------------------------------------------------------------------------------------------ equal bits


def drawn_rankings(query, length):
    """Rows of ``length``, -1 where there are no more items."""
    rankings = np.full((query.n_samples, length), -1, dtype=np.int32)
    drawn = plr.sample_rankings(query.scores, query.n_samples, length, rng=SEED)
    rankings[:, : drawn.shape[1]] = drawn
    return rankings


def derivatives(function, query, given, **options):
    """Results of a Python function, with the Hessian diagonal where it is asked for."""
    wanted = given["hessian"] is not None
    result = function(query.scores, query.relevance, query.theta, hessian=wanted, **options)
    return {"gradient": result[0], "hessian": result[1]} if wanted else {"gradient": result}


def of_rankings(function, query, given):
    """Mutant: rankings used although there is a stream."""
    if given["stream"] is None:
        return derivatives(function, query, given, rankings=given["rankings"])
    stream = {"n_samples": query.n_samples, "rng": query_streams(SEED, FIRST)}
    return derivatives(function, query, given, sampler=SAMPLERS[given["sampler"]], **stream)


def of_bucket(query, given):
    """Mutants: the sign of the gradient; buckets in descending order; labels that overlap the kernel's memory."""
    gradient, hessian = plr.bucket_log_prob_vjp(query.scores, given["buckets"], [1.0], hessian=True)
    return {"log_prob": plr.bucket_log_prob(query.scores, given["buckets"]), "gradient": gradient, "hessian": hessian}


def of_exact(query, given):
    """The value alone has the bits of ``expected_metric``; beside derivatives it is as near as both bounds allow."""
    options = {"rtol": given["rtol"], "stop_probability": given.get("stop")}
    value = plr.expected_metric(query.scores, query.relevance, query.theta, **options)
    if given["gradient"] is None:
        return {"value": value}
    if given["value"] is not None:
        scale = np.abs(query.theta).sum() * np.abs(query.relevance).max(initial=0.0)
        assert abs(given["value"] - value) <= 10 * given["rtol"] * scale
    return derivatives(plr.pl_rank_exact, query, given, **options)


def of_stochastic_rank(query, given):
    return {"gradient": plr.stochastic_rank(
        query.scores, query.relevance, query.theta, noise=["gumbel", "normal"][given["noise"]], sigma=given["sigma"],
        n_samples=query.n_samples, rng=query_streams(SEED, FIRST),
    )}  # fmt: skip


# arrays that a call must fill, by argument, from the query and the arguments
EXPECTED = {
    "top_k": lambda q, given: {"ranking": np.argsort(-given["scores"], kind="stable")[: q.cutoff]},
    "sample_rankings": lambda q, given: {"rankings": plr.sample_rankings(
        q.scores, q.n_samples, q.cutoff, rng=query_streams(SEED, FIRST), sampler=SAMPLERS[given["sampler"]]
    )},
    "ranking_log_prob": lambda q, given: {"log_prob": plr.ranking_log_prob(q.scores, given["rankings"])},
    "pl_rank_3": partial(of_rankings, plr.pl_rank_3),
    "pl_rank_cmc": partial(of_rankings, plr.pl_rank_cmc),
    "pl_rank_exact": of_exact,
    "pl_rank_exact_stop": of_exact,
    "rank_probabilities": lambda q, given: {"probabilities": plr.rank_probabilities(q.scores, q.cutoff)},
    "stochastic_rank": of_stochastic_rank,
    "dcg": lambda q, given: {"value": plr.dcg(q.scores, q.relevance, q.theta)},
    "bucket_log_prob": of_bucket,
}  # fmt: skip
SIZED = list(EXPECTED)
NO_HESSIAN, NO_DERIVATIVES = {"hessian": None}, {"gradient": None, "hessian": None}
OF_SAMPLERS = [{"sampler": number} for number in range(len(SAMPLERS))]
SOURCES = [{**source, **more} for source in (*OF_SAMPLERS, {"stream": None}) for more in ({}, NO_HESSIAN)]
OF_EXACT = [
    {"rtol": rtol, **more} for rtol in (1e-6, 1e-9) for more in ({}, NO_DERIVATIVES, {"value": None, **NO_HESSIAN})
]
# arguments that take other values in turn
VARIANTS = {
    "sample_rankings": OF_SAMPLERS, "pl_rank_3": SOURCES, "pl_rank_cmc": SOURCES,
    "pl_rank_exact": OF_EXACT, "pl_rank_exact_stop": OF_EXACT,
    "stochastic_rank": [{"noise": noise, "sigma": sigma} for noise in (0, 1) for sigma in (1.0, 0.3)],
    "bucket_log_prob": [{}, NO_HESSIAN, NO_DERIVATIVES],
}  # fmt: skip


def sizes_of(name, query):
    """Arguments of a function that tells the size of a workspace."""
    return query.sizes[: SIGNATURES[f"plrank_{name}_workspace"].count(",") + 1]


def check_bits(name):
    def check(query):
        for changes in VARIANTS.get(name, [{}]):
            _, stream = stream_for(query=FIRST)
            given = dict(zip(PARAMETERS[name], arguments_of(name, query, stream), strict=False)) | changes
            assert call(name, given.values(), sizes_of(name, query)) == 0
            for output, expected in EXPECTED[name](query, given).items():
                assert given[output] is None or np.array_equal(given[output], expected), (output, changes)

    return check


def check_size(name):
    """A size of 0 where there is nothing to do, else exactly what the function insists on; bad sizes are a status."""

    def check(query):
        sizes = sizes_of(name, query)
        size = C[f"{name}_workspace"](*sizes)
        assert (size == 0) == (0 in sizes[:2])
        _, stream = stream_for()
        memory, where = guarded(size)
        arguments = arguments_of(name, query, stream)
        outputs = [a.copy() for a in arguments if isinstance(a, np.ndarray)]
        if size > 0:
            passed = [address(a) if isinstance(a, np.ndarray) else a for a in arguments]
            assert C[name](*passed, where, size - 1) == CODES["WORKSPACE_TOO_SMALL"]
            assert C[name](*passed, None, size) == CODES["NULL_POINTER"]
            assert (memory == 0xA5).all()
            for array, before in zip([a for a in arguments if isinstance(a, np.ndarray)], outputs, strict=True):
                assert np.array_equal(array, before)
        assert C[f"{name}_workspace"](-1, *sizes[1:]) == CODES["BAD_N_ITEMS"]
        assert C[f"{name}_workspace"](2**31, *sizes[1:]) == CODES["BAD_N_ITEMS"]
        too_deep = CODES["BAD_RANKINGS" if name == "ranking_log_prob" else "BAD_CUTOFF"]
        if len(sizes) >= 2:
            assert C[f"{name}_workspace"](sizes[0], -1, *sizes[2:]) == too_deep
            assert C[f"{name}_workspace"](sizes[0], 2**62, *sizes[2:]) == too_deep
        if len(sizes) == 3:
            assert C[f"{name}_workspace"](*sizes[:2], 0) == CODES["BAD_N_SAMPLES"]
            assert C[f"{name}_workspace"](*sizes[:2], 2**62) == CODES["BAD_N_SAMPLES"]

    return check


def check_strerror(query):
    messages = [C["strerror"](code).decode() for name, code in STATUSES.items()]
    assert len(set(messages)) == len(messages)
    assert messages[0] == "success"
    unknown = {C["strerror"](code) for code in (1, min(STATUSES.values()) - 1, -(2**31), 2**31 - 1)}
    assert unknown == {b"unknown status"}


def check_stream_size(query):
    assert 0 < C["stream_size"]() <= CODES["STREAM_SIZE"]


def check_stream_init(query):
    """Bytes that are copied are a stream of their own; a query has the stream that the Python functions give it."""
    memory, where = stream_for(query=9)
    copied = memory.copy()
    one, other = (np.empty((3, min(2, query.n_items)), dtype=np.int32) for _ in range(2))
    for stream, rankings in [(where, one), (address(copied) + GUARD + 1, other)]:
        sizes = query.n_items, 2, 3
        assert call("sample_rankings", (stream, query.scores, *sizes, 0, rankings), sizes) == 0
    assert np.array_equal(one, other)
    assert np.array_equal(one, plr.sample_rankings(query.scores, 3, 2, rng=query_streams(SEED, 9)))


def check_samples_per_block(query):
    n = C["samples_per_block"](query.n_items)
    assert n >= 1
    assert n & (n - 1) == 0
    assert C["samples_per_block"](-1) == CODES["BAD_N_ITEMS"]


def check_stream_seek(query):
    """A block has the rankings of one call; the last block may be cut short."""
    block = C["samples_per_block"](query.n_items)
    for number, sampler in enumerate(SAMPLERS):
        if sampler in ("auto", "slot_table"):
            continue  # these look at the number of samples
        whole = plr.sample_rankings(query.scores, 2 * block + 3, 4, rng=query_streams(SEED, 6), sampler=sampler)
        for first, n_samples in ((0, 1), (1, block), (2, 3)):
            _, stream = stream_for(query=6, block=first)
            part, sizes = np.empty((n_samples, min(4, query.n_items)), dtype=np.int32), (query.n_items, 4, n_samples)
            assert call("sample_rankings", (stream, query.scores, *sizes, number, part), sizes) == 0
            assert np.array_equal(part, whole[first * block :][:n_samples]), sampler


TABLE = {
    "strerror": check_strerror,
    "stream_size": check_stream_size,
    "stream_init": check_stream_init,
    "stream_seek": check_stream_seek,
    "samples_per_block": check_samples_per_block,
    **{name: check_bits(name) for name in SIZED},
    **{f"{name}_workspace": check_size(name) for name in SIZED},
}


@pytest.mark.parametrize("name", TABLE)
def test_function(name, query):
    TABLE[name](query)


def test_every_function_is_in_the_table():
    assert {f"plrank_{name}" for name in TABLE} == set(SIGNATURES)


# ------------------------------------------------------------------------------------------------ statuses

STATUSES = {name: value for name, value in CODES.items() if value < 0 or name == "OK"}


def arguments_of(name, query, stream):
    """Everything but the workspace."""
    n_samples, ranks = query.n_samples, min(query.cutoff, query.n_items)
    for output in (query.value, query.gradient, query.hessian):
        output.fill(7.0)
    length = query.cutoff + (0 if name == "ranking_log_prob" else 2)
    rankings = drawn_rankings(query, length) if "rankings" in PARAMETERS[name] and name != "sample_rankings" else None
    derivatives = query.gradient, query.hessian
    buckets = np.random.default_rng(7).integers(-3, 3, query.n_items).astype(np.int32)
    return {
        "top_k": [np.round(query.scores, 1), query.n_items, query.cutoff, np.full(ranks, -7, dtype=np.int32)],
        "sample_rankings": [stream, query.scores, *query.sizes, 0, np.full((n_samples, ranks), -7, dtype=np.int32)],
        "pl_rank_3": [stream, *query.metric, n_samples, 0, rankings, length, *derivatives],
        "pl_rank_cmc": [stream, *query.metric, n_samples, 0, rankings, length, *derivatives],
        "ranking_log_prob": [query.scores, query.n_items, rankings, n_samples, length, np.full(n_samples, 7.0)],
        "pl_rank_exact": [*query.metric, 1e-6, query.value, *derivatives],
        "pl_rank_exact_stop": [*query.metric[:2], query.stop, *query.metric[2:], 1e-6, query.value, *derivatives],
        "rank_probabilities": [
            query.scores, query.n_items, query.cutoff, np.full((query.n_items, query.cutoff), 7.0)
        ],
        "stochastic_rank": [stream, *query.metric, n_samples, 0, 1.0, query.gradient],
        "dcg": [*query.metric, query.value],
        "bucket_log_prob": [query.scores, query.n_items, buckets, query.value, *derivatives],
    }[name]  # fmt: skip


def with_value(array, where, value):
    changed = array.copy()
    changed[where] = value
    return changed


def not_finite(array):
    """Copies with a value that is not finite: the first one, one in the middle, the last one."""
    return [with_value(array, 0, np.nan), with_value(array, 2, np.inf), with_value(array, -1, -np.inf)]


def beyond(array):
    """Return `not_finite` copies, and some that are too large in one place, or too small in all."""
    return [*not_finite(array), with_value(array, -1, -1e61), array / np.abs(array).max() * 6e-61]


def faults(name):
    """(argument number, bad value, status) of each argument that can be wrong."""
    query = Query(24, 5, 10)
    position = {argument: i for i, argument in enumerate(PARAMETERS[name])}
    no_stream = np.zeros(CODES["STREAM_SIZE"], dtype=np.uint8)
    bad = {
        "stream": [(no_stream, "BAD_STREAM"), *([] if "length" in position else [(None, "NULL_POINTER")])],
        "scores": [(None, "NULL_POINTER"), *((a, "SCORES_NOT_FINITE") for a in not_finite(query.scores))],
        "relevance": [(None, "NULL_POINTER"), *((a, "BAD_RELEVANCE") for a in beyond(query.relevance))],
        "rank_weights": [(None, "NULL_POINTER"), *((a, "BAD_RANK_WEIGHTS") for a in beyond(query.theta))],
        "n_items": [(-1, "BAD_N_ITEMS"), (2**31, "BAD_N_ITEMS"), (-(2**63), "BAD_N_ITEMS")],
        "cutoff": [(-1, "BAD_CUTOFF"), (2**62, "BAD_CUTOFF")],
        "length": [(-1, "BAD_RANKINGS"), (2**62, "BAD_N_SAMPLES" if "stream" in position else "BAD_RANKINGS")],
        **{sizes: [(n, "BAD_N_SAMPLES") for n in (0, -5, 2**63 - 1)] for sizes in ("n_samples", "n_rankings")},
        "sampler": [(-1, "BAD_SAMPLER"), (5, "BAD_SAMPLER")],
        "noise": [(-1, "BAD_NOISE"), (2, "BAD_NOISE")],
        "stop": [(None, "NULL_POINTER"), *((with_value(query.stop, 9, x), "BAD_STOP") for x in (-1e-9, 1.1, np.nan))],
        "rtol": [(x, "BAD_RTOL") for x in (0.0, -1.0, 9e-11, 1.0, np.nan, np.inf)],
        "sigma": [(x, "BAD_SIGMA") for x in (0.0, -1.0, 6e-61, 2e60, np.nan, np.inf)],
    }
    for argument in ("log_prob", "gradient", "ranking", "buckets", "rankings", "probabilities"):
        bad[argument] = [(None, "NULL_POINTER")]
    if "cutoff" in position and "length" in position:
        bad["length"].append((query.cutoff - 1, "BAD_RANKINGS"))
    if "length" in position:
        good = arguments_of(name, query, None)[position["rankings"]]
        for row, rank, item in [(0, 0, -1), (9, 4, 24), (3, 2, -(2**31)), (5, 4, good[5, 0]), (9, 1, good[9, 0])]:
            bad["rankings"].append((with_value(good, (row, rank), item), "BAD_RANKINGS"))
    if name == "dcg":
        bad["value"] = [(None, "NULL_POINTER")]
    for argument, number in position.items():
        for i, (value, status) in enumerate(bad.get(argument, [])):
            yield pytest.param(name, number, value, status, id=f"{name}-{argument}-{i}")


def header_members():
    """Names of the members of the C header's table, each with its result and its parameters."""
    table = re.sub(r"/\*.*?\*/", "", embedding.declarations(), flags=re.DOTALL)
    members = re.findall(r"([\w ]+\*?) ?\(\*(\w+)\)\(([^)]*)\);", table)
    return {
        name: (result.strip(), [" ".join(p.split()) for p in parameters.split(",")])
        for result, name, parameters in members
    }


PARAMETERS = {name: [re.findall(r"\w+", p)[-1] for p in header_members()[name][1]] for name in SIZED}


@pytest.mark.parametrize(("name", "number", "value", "status"), [f for name in SIZED for f in faults(name)])
def test_refused(name, number, value, status):
    """A status, and nothing is written: neither outputs nor the stream."""
    query = Query(24, 5, 10)
    memory, stream = stream_for()
    before = memory.copy()
    arguments = arguments_of(name, query, stream)
    arrays = [(a, a.copy()) for a in arguments if isinstance(a, np.ndarray)]
    arguments[number] = value
    if PARAMETERS[name][number] in ("rankings", "length") and PARAMETERS[name][0] == "stream":
        arguments[0] = None  # or the stream would draw others
    workspace = np.full(1 << 20, 0xA5, dtype=np.uint8)
    passed = [address(a) if isinstance(a, np.ndarray) else a for a in arguments]
    assert C[name](*passed, address(workspace), workspace.size) == CODES[status]
    assert np.array_equal(memory, before)
    for array, copy in arrays:
        assert np.array_equal(array, copy)


def test_refused_combinations():
    for query in (Query(1, 5, 10), Query(24, 5, 10)):
        for derivatives in [(query.value, None, query.hessian), (None, None, None)]:
            assert call("pl_rank_exact", (*query.metric, 1e-6, *derivatives), query.sizes[:2]) == CODES["NULL_POINTER"]
    assert C["rank_probabilities_workspace"](2**31 - 1, 2**40) == CODES["BAD_CUTOFF"]
    assert C["sample_rankings_workspace"](2**31 - 1, 2**31 - 1, 2**40) == CODES["BAD_N_SAMPLES"]


def test_refused_streams():
    memory = np.zeros(64, dtype=np.uint8)
    size = C["stream_size"]()
    assert C["stream_init"](None, 64, 0, 0, 0) == CODES["NULL_POINTER"]
    assert C["stream_init"](address(memory), size - 1, 0, 0, 0) == CODES["WORKSPACE_TOO_SMALL"]
    assert C["stream_init"](address(memory), 64, 0, 0, -1) == CODES["BAD_QUERY"]
    assert C["stream_seek"](address(memory), 0, 0) == CODES["BAD_STREAM"]
    assert not memory.any()
    assert C["stream_init"](address(memory), size, 0, 0, 0) == 0
    assert not memory[size:].any()
    before = memory.copy()
    assert C["stream_seek"](None, 0, 0) == CODES["NULL_POINTER"]
    for query, block in [(-1, 0), (0, -1), (2**59 + 1, 0), (0, 2**59 + 1)]:
        assert C["stream_seek"](address(memory), query, block) == CODES["BAD_QUERY"]
    assert np.array_equal(memory, before)
    assert C["stream_seek"](address(memory), 2**59, 2**59) == 0


def test_a_call_draws_from_where_the_last_one_stopped():
    """Every method that draws leaves the stream behind its last block; mutant: ``advance`` removed."""
    query = Query(24, 5, 200)  # two blocks
    for name in ("sample_rankings", "pl_rank_3", "pl_rank_cmc", "stochastic_rank"):
        results = []
        for block in (0, 2):
            _, stream = stream_for(block=block)
            calls = 2 if block == 0 else 1
            for _ in range(calls):
                arguments = arguments_of(name, query, stream)
                sizes = query.sizes[:2] if name == "stochastic_rank" else query.sizes
                assert call(name, arguments, sizes) == 0
                output = arguments[-1] if arguments[-1] is not None else arguments[-2]
                results.append(output.copy())
        assert np.array_equal(results[1], results[2]), name
        assert not np.array_equal(results[0], results[1]), name


def test_workspace_of_the_longest_query_serves_all():
    rng = np.random.default_rng(4)
    for name in SIZED:
        size, n_arguments = C[f"{name}_workspace"], SIGNATURES[f"plrank_{name}_workspace"].count(",") + 1
        for _ in range(2000):
            small = 2.0 ** rng.uniform(0, (20, 14, 20)[:n_arguments])
            large = small + rng.integers(0, 2, n_arguments) * 2.0 ** rng.uniform(0, 10)
            assert size(*map(int, small)) <= size(*map(int, large)), name


def test_a_table_used_for_thousands_of_rankings():
    """Each block by a table of its own, and all of them by one: its notes of what is placed carry the number of a group
    in a byte, which comes round every 4096 rankings. Mutant: the notes not cleared then."""
    n_items, cutoff, n_samples = 600, 90, 100 * 4096
    scores = np.where(np.arange(n_items) % 5 == 0, 0.0, -5.8)  # most are drawn once in some hundred groups
    block = C["samples_per_block"](n_items)
    sizes = n_items, cutoff, block
    before = runtime_variables.set_costs(round_ns=1e18)
    try:
        whole = plr.sample_rankings(scores, n_samples, cutoff, rng=query_streams(SEED, 5), sampler="slot_table")
    finally:
        runtime_variables.set_costs(**before)
    part = np.empty((block, cutoff), dtype=np.int32)
    for number in range(n_samples // block):
        _, stream = stream_for(query=5, block=number)
        assert call("sample_rankings", (stream, scores, *sizes, SAMPLERS.index("slot_table"), part), sizes) == 0
        np.testing.assert_array_equal(part, whole[number * block : (number + 1) * block])


# ------------------------------------------------------------------------------------------------ frozen


def test_signatures_are_frozen():
    """Additions pass, changes and removals fail: they need a new ABI version, and this file made anew.

    Additions are frozen with the release that brings them, of which the skip reminds.
    """
    constants, functions = embedding.constants(), FROZEN["functions"]
    assert CODES["ABI_VERSION"] == FROZEN["abi_version"]
    assert {name: SIGNATURES.get(name) for name in functions} == functions
    assert {name: constants.get(name) for name in FROZEN["constants"]} == FROZEN["constants"]
    # the order of the table is part of what compiled code relies on
    assert [f"plrank_{name}" for name in header_members()][: len(functions)] == list(functions)
    added = {*SIGNATURES, *constants} - {*functions, *FROZEN["constants"]}
    if added:
        pytest.skip(f"not in embedding_signatures.json yet: {', '.join(sorted(added))}")


def test_header_and_cython_declarations_agree():
    """(For the table itself the compiler compares them.)"""

    def cython_type(declaration):
        """``const double *scores`` is ``double const *``."""
        constant, kind, star = re.match(r"(const )?(\w+) ?(\*?)", declaration).groups()
        return kind + (" const" if constant else "") + (" *" if star else "")

    for name, (result, parameters) in header_members().items():
        space = "" if "*" in result else " "
        kinds = ", ".join(map(cython_type, parameters))
        assert f"{cython_type(result)}{space}({kinds})" == SIGNATURES[f"plrank_{name}"], name
    pxd = (Path(embedding.__file__).parent / "cython_plrank.pxd").read_text()
    declared = {name: int(value) for name, value in re.findall(r"^    (PLRANK_\w+) = (-?\d+)$", pxd, re.MULTILINE)}
    assert declared == embedding.constants()


def test_table_by_address():
    """The table that C imports holds the functions that Python finds by name, and its version and size."""
    n_functions = len(header_members())
    pointers = (ctypes.c_void_p * n_functions).from_address(embedding.table_address() + 8)
    version, size = (ctypes.c_int32 * 2).from_address(embedding.table_address())
    assert version == CODES["ABI_VERSION"]
    assert size == 8 + 8 * n_functions
    assert list(pointers) == [embedding.function_address(f"plrank_{name}") for name in header_members()]
    assert "plrank_fast.cython_plrank._C_API" in repr(cython_plrank._C_API)


# ------------------------------------------------------------------------------------------------ Python side


def test_stream_key():
    """It draws from a generator what a call draws."""
    generator, same = np.random.default_rng(1), np.random.default_rng(1)
    assert plr.stream_key(generator).dtype == np.uint64
    plr.sample_rankings([0.0, 1.0], 1, rng=same)
    assert generator.bit_generator.state == same.bit_generator.state


def test_unknown_function():
    with pytest.raises(ValueError, match="plrank_top_k"):
        embedding.function_address("top_k")
    with pytest.raises(TypeError, match="name"):
        embedding.ctypes_function(3)
