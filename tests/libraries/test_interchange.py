"""Runs for other people's evaluation, whose numbers are ours; chunks for process pools, whose bits are the whole's."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast.chunks import query_chunks
from plrank_fast.interchange import from_run, to_qrels, to_run

OFFSETS = np.array([0, 4, 4, 9, 10, 16])  # an empty query and one of a single document among them
N_DOCS = int(OFFSETS[-1])
RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=N_DOCS)
LABELS = RNG.integers(0, 4, size=N_DOCS)
QIDS = ["q3", "q1", "q2", "q5", "q4"]
DOCIDS = [f"d{number}" for number in RNG.permutation(N_DOCS)]
KEPT = [0, 2, 3, 4]  # queries with documents


def in_order(by_query):
    """Values of the queries with documents, in their order here."""
    return np.array([by_query[QIDS[query]] for query in KEPT])


def expected_ndcg(cutoff):
    """With labels for gains, as the tools have it."""
    return plr.ndcg(SCORES, LABELS, plr.dcg_weights(cutoff), offsets=OFFSETS)[KEPT]


# --- runs


def test_there_and_back():
    """Mutants: names of another query; documents numbered through the batch by default."""
    run, qrels = to_run(SCORES, OFFSETS, QIDS, DOCIDS), to_qrels(LABELS, OFFSETS, QIDS, DOCIDS)
    assert list(run) == ["q3", "q2", "q5", "q4"]
    assert all(type(score) is float for documents in run.values() for score in documents.values())
    assert all(type(label) is int for documents in qrels.values() for label in documents.values())
    assert (from_run(run, OFFSETS, QIDS, DOCIDS) == SCORES).all()
    assert (from_run(qrels, OFFSETS, QIDS, DOCIDS) == LABELS).all()
    assert to_run(SCORES, OFFSETS)["2"] == {str(i): SCORES[4 + i] for i in range(5)}
    del run["q3"]
    assert (from_run(run, OFFSETS, QIDS, DOCIDS, missing=-1.0)[:4] == -1.0).all()
    with pytest.raises(ValueError, match="run must have a score for each document"):
        from_run(run, OFFSETS, QIDS, DOCIDS)


NAMES = {
    "NumPy": lambda: np.array([7, 3]),
    "whole floats": lambda: np.array([7.0, 3.0]),
    "strings": lambda: np.array(["7", "3"]),
    "bytes": lambda: [b"7", b"3"],
    "NumPy bytes": lambda: np.array([b"7", b"3"]),
    "generator": lambda: (name for name in (7, 3)),
    "torch": lambda: pytest.importorskip("torch").tensor([7, 3]),
    "JAX": lambda: pytest.importorskip("jax").numpy.array([7, 3]),
    "pandas": lambda: pytest.importorskip("pandas").Series([7.0, 3.0]),
    "polars": lambda: pytest.importorskip("polars").Series(["7", "3"]),
    "Arrow": lambda: pytest.importorskip("pyarrow", reason="pyarrow is not installed").array([7, 3]),
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_of_any_array(kind):
    """Names are those of the judgements. Mutant: ``str`` of each element, which is 'tensor(7)', '7.0' or "b'7'"."""
    assert to_run([0.5, 0.1], [0, 1, 2], qids=NAMES[kind]()) == {"7": {"0": 0.5}, "3": {"0": 0.1}}
    assert to_run([0.5, 0.1], [0, 2], docids=NAMES[kind]()) == {"0": {"7": 0.5, "3": 0.1}}


def test_names_that_are_missing():
    with pytest.raises(ValueError, match="qids must not be missing, got nan at index 1"):
        to_run([0.5, 0.1], [0, 1, 2], qids=np.array([7.0, np.nan]))


def test_numbers_of_pytrec_eval():
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    evaluator = pytrec_eval.RelevanceEvaluator(to_qrels(LABELS, OFFSETS, QIDS, DOCIDS), {"ndcg_cut.3", "recip_rank"})
    result = evaluator.evaluate(to_run(SCORES, OFFSETS, QIDS, DOCIDS))
    of_query = {query: values["ndcg_cut_3"] for query, values in result.items()}
    np.testing.assert_allclose(in_order(of_query), expected_ndcg(3), atol=1e-6)
    of_query = {query: values["recip_rank"] for query, values in result.items()}
    np.testing.assert_allclose(
        in_order(of_query), plr.reciprocal_rank(SCORES, LABELS, offsets=OFFSETS)[KEPT], atol=1e-6
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["AP", "AP@3", "RR", "RR@2", "Success@1", "Success@3", "P@3", "R@3", "nDCG", "nDCG@3"])
def test_metrics_of_ir_measures(name):
    """Mutant: average precision over the relevant documents found, which is not what AP@3 is."""
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    ours = {"AP": plr.average_precision, "RR": plr.reciprocal_rank, "Success": plr.success, "P": plr.precision}
    ours |= {"R": plr.recall, "nDCG": lambda *given, offsets: plr.ndcg(*given[:2], cutoff=given[2], offsets=offsets)}
    measure, _, cutoff = name.partition("@")
    run, qrels = to_run(SCORES, OFFSETS, QIDS, DOCIDS), to_qrels(LABELS, OFFSETS, QIDS, DOCIDS)
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)}
    values = ours[measure](SCORES, LABELS, int(cutoff) if cutoff else None, offsets=OFFSETS)
    np.testing.assert_allclose(in_order(theirs), values[KEPT], atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_numbers_of_ranx():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    qrels, run = ranx.Qrels(to_qrels(LABELS, OFFSETS, QIDS, DOCIDS)), ranx.Run(to_run(SCORES, OFFSETS, QIDS, DOCIDS))
    ranx.evaluate(qrels, run, "ndcg@3")
    np.testing.assert_allclose(in_order(dict(run.scores["ndcg@3"])), expected_ndcg(3), atol=1e-6)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, "qids must have 5 names, got 4", lambda: to_run(SCORES, OFFSETS, QIDS[1:])),
        (ValueError, "qids must be distinct, got 'a' again at index 4", lambda: to_run(SCORES, OFFSETS, list("abcda"))),
        (TypeError, "qids must be an iterable of names", lambda: to_run(SCORES, OFFSETS, "abcde")),
        (TypeError, "run must be a mapping from queries to scores, got NoneType", lambda: from_run(None, OFFSETS)),
        (ValueError, "docids must be distinct in a query, got '0' again at index 5",
         lambda: to_run(SCORES, OFFSETS, docids=[*range(4), 0, 0, *range(10)])),
        (ValueError, r"labels must be whole numbers up to 2\*\*53, got 0.5 at index 1",
         lambda: to_qrels([0, 0.5], [0, 2])),
        (ValueError, r"up to 2\*\*53, got 9.223\d*e\+18 at index 0", lambda: to_qrels([2.0**63], [0, 1])),
        (ValueError, "run must be finite, got nan at index 1",
         lambda: from_run({"0": {"0": 1.0, "1": np.nan}}, [0, 2])),
        (ValueError, "missing must be finite, got nan", lambda: from_run({}, [0, 1], missing=np.nan)),
        (ValueError, "offsets must start with 0 and end with", lambda: to_run(SCORES, OFFSETS[:-1])),
        (ValueError, "scores must be finite", lambda: to_run([np.nan], [0, 1])),
    ],
)  # fmt: skip
def test_errors_of_runs(error, message, call):
    with pytest.raises(error, match=message):
        call()


# --- chunks


@pytest.mark.parametrize("lengths", [[4, 0, 5, 1, 6], [0, 0, 0], [1000, 1, 1, 1], [1, 1, 1, 1000], [7], []])
@pytest.mark.parametrize("n_chunks", [1, 2, 3, 100])
def test_chunks_are_the_batch(lengths, n_chunks):
    """All queries, in order, none twice, no chunk without one. Mutants: ``ends`` not held apart; offsets not moved."""
    offsets = plr.offsets_from_group(np.array(lengths, dtype=int))
    chunks = query_chunks(offsets, n_chunks, first_query=10)
    assert len(chunks) == min(n_chunks, len(lengths))
    assert [query for chunk in chunks for query in range(len(lengths))[chunk.queries]] == list(range(len(lengths)))
    assert all(chunk.queries.stop > chunk.queries.start for chunk in chunks)
    for chunk in chunks:
        assert chunk.first_query == 10 + chunk.queries.start
        assert chunk.offsets[0] == 0
        assert (np.diff(chunk.offsets) == lengths[chunk.queries]).all()
        assert chunk.docs == slice(offsets[chunk.queries.start], offsets[chunk.queries.stop])


def test_chunks_take_about_equally_long():
    """None more than a long query over its share. Mutant: equal numbers of queries."""
    lengths = np.sort(np.random.default_rng(0).integers(1, 500, size=300))
    costs = [chunk.offsets[-1] for chunk in query_chunks(plr.offsets_from_group(lengths), 8)]
    assert max(costs) < lengths.sum() / 8 * 1.15 + 500


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_gives_the_bits_of_the_whole(backend):
    """Mutants: ``first_query`` left at 0; documents of the neighbour."""
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    theta, options = plr.dcg_weights(3), {"n_samples": 4, "rng": 9, "n_threads": 1}
    whole = plr.pl_rank_3(SCORES, LABELS, theta, offsets=OFFSETS, **options)
    parts = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(plr.pl_rank_3)(
            SCORES[chunk.docs], LABELS[chunk.docs], theta, offsets=chunk.offsets, first_query=chunk.first_query,
            **options,
        )
        for chunk in query_chunks(OFFSETS, 3)
    )  # fmt: skip
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, "n_chunks must be at least 1", ([0, 2], 0)),
        (TypeError, "n_chunks must be an integer", ([0, 2], 1.5)),
        (ValueError, "offsets must start with 0", ([1, 2], 1)),
        (ValueError, "offsets must not decrease", ([0, 2, 1], 1)),
    ],
)
def test_errors_of_chunks(error, message, arguments):
    with pytest.raises(error, match=message):
        query_chunks(*arguments)
