"""Runs for other people's evaluation, whose numbers are ours; chunks for process pools, whose bits are the whole's."""

import collections

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast.chunks import query_chunks
from plrank_fast.interchange import align_run, from_run, to_qrels, to_run

OFFSETS = np.array([0, 4, 4, 9, 10, 16])  # an empty query and one of a single document among them
N_DOCS = int(OFFSETS[-1])
RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=N_DOCS)
LABELS = RNG.integers(0, 4, size=N_DOCS)
QIDS = ["q3", "q1", "q2", "q5", "q4"]
DOCIDS = [f"d{number}" for number in RNG.permutation(N_DOCS)]


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
    "floats of a list": lambda: [7.0, 3.0],
    "NumPy's in a list": lambda: [np.int64(7), np.int64(3)],
    "bytes": lambda: [b"7", b"3"],
    "NumPy bytes": lambda: np.array([b"7", b"3"]),
    "generator": lambda: (name for name in (7, 3)),
    "torch": lambda: pytest.importorskip("torch").tensor([7, 3]),
    "pandas": lambda: pytest.importorskip("pandas").Series([7.0, 3.0]),
    "Arrow": lambda: pytest.importorskip("pyarrow", reason="`make test-all` installs pyarrow").array([7, 3]),
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_of_any_array(kind):
    """Names are the judgements'. Mutant: ``str`` of each element, which is 'tensor(7)', '7.0' or "b'7'"."""
    assert to_run([0.5, 0.1], [0, 1, 2], query_ids=NAMES[kind]()) == {"7": {"0": 0.5}, "3": {"0": 0.1}}
    assert to_run([0.5, 0.1], [0, 2], docids=NAMES[kind]()) == {"0": {"7": 0.5, "3": 0.1}}


def test_names_of_a_run_of_any_type():
    """Mutants of each: looked up as they are, so that all documents are missing."""
    assert from_run({7: {3: 1.0}}, [0, 1], [7], [3], missing=0) == 1.0
    assert from_run({"7": {"3": 1.0}}, [0, 1], [7], [3.0], missing=0) == 1.0
    assert from_run({b"7": {np.int64(3): 1.0}}, [0, 1], ["7"], [3]) == 1.0
    assert align_run({7: {3: 1.0}}, {"7": {"3": 2}})[:2] == (1.0, 2.0)


@pytest.mark.parametrize("last", [np.nan, None])
def test_names_that_are_missing(last):
    """Mutant: "nan" or "None" for a name, in a list alone."""
    for first in 7.0, "7":
        with pytest.raises(ValueError, match=f"query_ids must not be missing, got {last} at index 1"):
            to_run([0.5, 0.1], [0, 1, 2], query_ids=[first, last])
    for query_ids in [last, 7.0], np.array([np.nan, 7.0]):
        with pytest.raises(ValueError, match=r"query_ids must not be missing, got (nan|None) at index 0"):
            to_run([0.5, 0.1], [0, 1, 2], query_ids=query_ids)


def test_documents_that_were_not_retrieved():
    """There and back: -inf. Mutants: -inf in a run; a query of which nothing was retrieved in it."""
    scores = np.where(np.arange(N_DOCS) % 3 > 0, SCORES, -np.inf)
    scores[9] = -np.inf
    run = to_run(scores, OFFSETS, QIDS, DOCIDS)
    assert list(run) == ["q3", "q2", "q4"]
    assert sum(map(len, run.values())) == np.isfinite(scores).sum()
    assert (from_run(run, OFFSETS, QIDS, DOCIDS, missing=-np.inf) == scores).all()


def incomplete(seed):
    """A run and judgements, each without documents and a query of the other; equal scores, and grades below 0."""
    rng = np.random.default_rng(seed)
    documents = [f"d{number}" for number in rng.permutation(60)]
    queries = [f"q{number}" for number in range(8)]
    run = {query: {doc: float(rng.integers(0, 9)) / 8 for doc in documents if rng.random() < 0.5} for query in queries}
    qrels = {query: {doc: int(rng.integers(-1, 4)) for doc in documents if rng.random() < 0.3} for query in queries}
    qrels["q1"] = dict.fromkeys(qrels["q1"], 0)
    del run["q5"], qrels["q6"]
    return run, qrels


OF_TREC_EVAL = {
    "ndcg_cut": plr.ndcg, "map": plr.ap, "recip_rank": plr.mrr, "P": plr.precision,
    "set_P": plr.precision, "recall": plr.recall, "success": plr.success,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TREC_EVAL)
def test_metrics_of_trec_eval_on_incomplete_runs(name):
    """Mutants: judged documents left out that were not retrieved, or unjudged ones; of equal scores the first name;
    grades below 0 kept."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    cutoffs = (1, 5, 10, 100) if name.endswith("_cut") or name in ("P", "recall", "success") else (None,)
    asked = {f"{name}.{cutoff}" if cutoff else name for cutoff in cutoffs}
    for seed in range(5):
        run, qrels = incomplete(seed)
        judged, theirs = align_run(run, qrels), pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
        for cutoff in cutoffs:
            key = f"{name}_{cutoff}" if cutoff else name
            expected = [theirs.get(query, {key: 0.0})[key] for query in judged.query_ids]
            got = OF_TREC_EVAL[name](judged.scores, judged.labels, cutoff=cutoff, offsets=judged.offsets)
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_alignment():
    """Rows of three are taken like mappings. Mutants: the queries of the run; the order of the names."""
    run, qrels = incomplete(0)
    judged = align_run(run, qrels)
    assert any(grade < 0 for documents in qrels.values() for grade in documents.values())
    assert judged.labels.min() == 0.0
    assert judged.query_ids == list(qrels)
    assert judged.offsets.dtype == np.int64
    assert not np.isfinite(judged.scores[slice(*judged.offsets[5:7])]).any()
    rows = [[(q, d, value) for q, docs in given.items() for d, value in docs.items()] for given in (run, qrels)]
    for one, other in zip(judged, align_run(*map(iter, rows)), strict=True):
        np.testing.assert_array_equal(one, other)
    names, _ = judged.docids, judged.scores
    for start, stop in zip(judged.offsets, judged.offsets[1:], strict=False):
        pairs = list(zip(judged.scores[start:stop], names[start:stop], strict=True))
        retrieved = [pair for pair in pairs if pair[0] > -np.inf]
        assert retrieved == sorted(retrieved, reverse=True)
    nothing = align_run({}, {})
    assert (nothing.scores.size, nothing.offsets.tolist(), nothing.query_ids) == (0, [0], [])


def columns(*names):
    """Four rows of a run beside its judgements, a column for each name; ranks that ascend where scores descend."""
    values = {
        "qid": [7, 7, 7, 9], "docno": [71, 72, 73, 71], "rank": [0, 1, 2, 0], "score": [9.0, 8.5, 8.0, 7.0],
        "iteration": [0, 0, 0, 0], "label": [0, 1, 2, 1],
    }  # fmt: skip
    aliases = {"query_id": "qid", "q_id": "qid", "doc_id": "docno", "relevance": "label", "rel": "label"}
    return {name: values[aliases.get(name, name)] for name in names}


class OfRanx:
    """The interface of ranx.Run and ranx.Qrels 0.3.21, neither of which is a mapping nor can be iterated over."""

    def __init__(self, nested):
        self.nested = nested

    def __len__(self):
        return len(self.nested)

    def __getitem__(self, query):
        return self.nested[query]

    def to_dict(self):
        return collections.defaultdict(dict, self.nested)


TABLES = {
    "itertuples": lambda table: pytest.importorskip("pandas").DataFrame(table).itertuples(index=False),
    "itertuples with an index": lambda table: pytest.importorskip("pandas").DataFrame(table).itertuples(),
    "pandas": lambda table: pytest.importorskip("pandas").DataFrame(table),
    "polars": lambda table: pytest.importorskip("polars").DataFrame(table),
    "polars rows": lambda table: pytest.importorskip("polars").DataFrame(table).iter_rows(named=True),
    "records": lambda table: pytest.importorskip("pandas").DataFrame(table).to_records(index=False),
    "pyarrow": lambda table: pytest.importorskip("pyarrow", reason="`make test-all` installs pyarrow").table(table),
}


@pytest.mark.parametrize("kind", TABLES)
def test_named_rows_and_frames(kind):
    """Fields are found by their names, in any order. Mutants: by position, which takes ranks for scores and documents
    for grades of 71; the fourth field dropped; ``docid``, PyTerrier's own number, before ``docno``."""
    make = TABLES[kind]
    expected = [[9.0, 8.5, 8.0, 7.0], [0, 1, 2, 1], [0, 3, 4], ["7", "9"], ["71", "72", "73", "71"]]
    for run, qrels in [
        (("qid", "docno", "rank", "score"), ("qid", "iteration", "docno", "label")),
        (("rank", "score", "doc_id", "query_id"), ("q_id", "doc_id", "rel")),
        (("score", "docno", "q_id"), ("relevance", "docno", "qid", "score")),
    ]:
        judged = align_run(make(columns(*run)), make(columns(*qrels)))
        assert [np.asarray(each).tolist() for each in judged] == expected
    run = {"docid": [0, 1], **columns("qid", "docno", "score")}
    run = {name: values[:2] for name, values in run.items()}
    assert from_run(make(run), [0, 2], [7], [71, 72]).tolist() == [9.0, 8.5]
    with pytest.raises(ValueError, match=r"^run must have a field score, got .*'qid', 'docno', 'rank'"):
        align_run(make(columns("qid", "docno", "rank")), {"7": {"71": 1}})
    with pytest.raises(ValueError, match=r"^qrels must have one field of relevance, label, rel, got relevance and l"):
        align_run({"7": {"71": 1.0}}, make(columns("qid", "docno", "label", "relevance")))
    with pytest.raises(ValueError, match=r"^documents of run must not be missing, got .* at index 1"):
        align_run(make({"qid": [7, 7], "docno": ["71", None], "score": [1.0, 2.0]}), {"7": {"71": 1}})


def test_runs_of_ranx():
    """Mutant: iterated over, which asks ranx for the query 0."""
    run, qrels = incomplete(0)
    for one, other in zip(align_run(OfRanx(run), OfRanx(qrels)), align_run(run, qrels), strict=True):
        np.testing.assert_array_equal(one, other)


def test_exchanged_run_and_judgements():
    """ir_measures has the judgements first. Mutants: no warning; one for whole scores, or for fractional grades."""
    run, qrels = {"q": {"a": 1.5, "b": 1.0}}, {"q": {"a": 2, "c": 0}}
    with pytest.warns(UserWarning, match=r"the order here is \(run, qrels\), unlike in ir_measures$"):
        align_run(qrels, run)
    align_run(run, run)
    align_run(qrels, qrels)
    assert repr(align_run(run, qrels)) == "JudgedRun(n_queries=1, n_docs=3, n_retrieved=2)"


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, "query_ids must have 5 names, got 4", lambda: to_run(SCORES, OFFSETS, QIDS[1:])),
        (ValueError, "query_ids must be distinct, got 'a' again at", lambda: to_run(SCORES, OFFSETS, [*"abcda"])),
        (TypeError, "query_ids must be an iterable of names", lambda: to_run(SCORES, OFFSETS, "abcde")),
        (TypeError, r"run must be a mapping .*, a data frame, or rows \(query, document, score\), got NoneType",
         lambda: from_run(None, OFFSETS)),
        (TypeError, r"run\['q'\] must be a mapping from documents to scores, got list",
         lambda: from_run({"q": ["a"]}, [0, 1])),
        (TypeError, r"qrels must be rows \(query, document, score\), if not a mapping, got 'query_id' at index 0",
         lambda: align_run({}, ["query_id", "doc_id"])),
        (ValueError, r"run must have rows \(query, document, score\) or rows with names of fields, got \('q', 'Q0', "
         r"'d', 1, 0.5\) at index 1: pass a data frame with columns such as qid, docno and score$",
         lambda: align_run([("q", "c", 1.5), ("q", "Q0", "d", 1, 0.5)], {"q": {"d": 1}})),
        (TypeError, r"got str: read the file with ir_measures.read_trec_run or read_trec_qrels$",
         lambda: align_run("run.txt", {})),
        (TypeError, r"^run must be .*, got LazyFrame: pass run.collect\(\)$",
         lambda: align_run(pytest.importorskip("polars").LazyFrame({"q": ["a"]}), {})),
        (ValueError, r"^qrels must have a field qid, or query_id, .*, got \['q'\]",
         lambda: align_run({}, pytest.importorskip("pandas").DataFrame({"q": ["a"]}))),
        (ValueError, "^run must have rows, got an iterator without any: once read, it has none left$",
         lambda: align_run(iter(()), {})),
        (ValueError, "run must have at least one of the queries of qrels, such as 'q1', got none, but '1'$",
         lambda: align_run({"1": {"a": 1.0}}, {"q1": {"a": 1}})),
        (ValueError, "run must have each document of a query once, got 'a' of 'q' again at index 1$",
         lambda: align_run([("q", "a", 1.0), ("q", "a", 2.0)], {})),
        (TypeError, "queries of run must hold integers or strings, of one kind, got 'b' at index 1, after 7",
         lambda: from_run({7: {}, "b": {}}, [0])),
        (ValueError, "^run must have a score for at least one of the documents, such as '0' of '0', got none, but one "
         "for 'x' of 'a'$", lambda: from_run({"a": {"x": 1.0}}, [0, 2], missing=0)),
        (ValueError, "none for '0' of '0': pass missing=-numpy.inf if it was not retrieved, missing=0 if it was not j",
         lambda: from_run({"0": {"x": 1.0}}, [0, 2])),
        (ValueError, "docids must be distinct in a query, got '0' again at index 5",
         lambda: to_run(SCORES, OFFSETS, docids=[*range(4), 0, 0, *range(10)])),
        (ValueError, r"labels must be whole numbers up to 2\*\*53, got 0.5 at index 1",
         lambda: to_qrels([0, 0.5], [0, 2])),
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
