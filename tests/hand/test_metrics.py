"""DCG and NDCG of the deterministic ranking, rank weights, gains, offsets."""

import decimal
import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast.rank_weights import gains_of_grades, satisfaction

REFERENCES = {
    "precision": reference.precision,
    "recall": reference.recall,
    "ap": reference.average_precision,
    "mrr": reference.reciprocal_rank,
    "success": reference.success,
    "err": lambda scores, labels, cutoff: reference.expected_reciprocal_rank(scores, (2**labels - 1) / 16, cutoff),
    "rbp": lambda scores, relevance, cutoff: reference.rank_biased_precision(scores, relevance, cutoff, 0.8),
    "average_relevance_position": reference.average_relevance_position,
}


class TestRankWeights:
    def test_by_hand(self):
        np.testing.assert_allclose(plr.dcg_weights(3), [1.0, 1 / np.log2(3), 0.5], rtol=1e-15)
        np.testing.assert_array_equal(plr.dcg_weights(5000)[[0, 2, 4094]], [1.0, 0.5, 1 / 12])
        np.testing.assert_array_equal(plr.precision_weights(4), [0.25] * 4)
        np.testing.assert_allclose(plr.rbp_weights(3, 0.5), [0.5, 0.25, 0.125], rtol=1e-15)
        np.testing.assert_array_equal(plr.rbp_weights(2, 0.0), [1.0, 0.0])
        for weights in (plr.dcg_weights, plr.precision_weights, plr.rbp_weights):
            assert weights(0).shape == (0,)
            assert weights(5).dtype == np.float64

    def test_gains(self):
        np.testing.assert_array_equal(plr.gains([0, 1, 2, 3, 4]), [0, 1, 3, 7, 15])
        np.testing.assert_allclose(plr.gains(np.array([[0.5], [1.5]], dtype=np.float32)), [[2**0.5 - 1], [2**1.5 - 1]])
        assert plr.gains([200.0])[0] == 2.0**200
        assert not plr.gains(np.full(9, -0.0)).any()

    @pytest.mark.parametrize("kind", [np.float64, np.float32, np.int32, np.int64])
    def test_gains_of_grades(self, kind, on_team):
        """By teams, and what is no whole grade goes another way. Mutants: only the first labels become gains; what the
        last range has found is lost; 201 is a grade; gains of integers of 32 bits; ERR's highest grade one too high."""
        grades = (np.arange(10_000) % 201).astype(kind)
        gains = gains_of_grades
        for found in (gains(grades, 1), *(on_team(n, lambda n_threads: gains(grades, n_threads)) for n in (2, 3))):
            np.testing.assert_array_equal(found, 2.0 ** grades.astype(float) - 1.0)
        for highest in (5, 52, 53, 60, 200):
            of_scale = 2.0 ** grades[: highest + 1].astype(float) - 1.0
            gain, divisor = satisfaction(grades[: highest + 1], None)
            np.testing.assert_array_equal(gain, of_scale)
            assert divisor == 2.0**highest
        for other in (201, -1, *([0.5, np.nan] if np.dtype(kind).kind == "f" else [])):
            assert gains(np.append(grades, [other]).astype(kind), 2) is None


class TestOffsets:
    def test_by_hand(self):
        np.testing.assert_array_equal(plr.offsets_from_qid([4, 4, 1, 9, 9, 9]), [0, 2, 3, 6])
        np.testing.assert_array_equal(plr.offsets_from_qid(["b", "b", "a"]), [0, 2, 3])
        np.testing.assert_array_equal(plr.offsets_from_group([2, 0, 1]), [0, 2, 2, 3])
        assert plr.offsets_from_qid([]).tolist() == [0]
        assert plr.offsets_from_group([]).tolist() == [0]

    COLUMNS = {  # noqa: RUF012 - the library, and how it makes a column
        "list of strings": ("numpy", lambda np, ids: list(map(str, ids))),
        "bytes": ("numpy", lambda np, ids: [str(i).encode() for i in ids]),
        "strings": ("numpy", lambda np, ids: np.array(list(map(str, ids)))),
        "variable-width strings": ("numpy", lambda np, ids: np.array(list(map(str, ids)), np.dtypes.StringDType())),
        "object strings": ("numpy", lambda np, ids: np.array(list(map(str, ids)), dtype=object)),
        "object integers": ("numpy", lambda np, ids: np.array(ids, dtype=object)),
        "object floats": ("numpy", lambda np, ids: np.array(list(map(float, ids)), dtype=object)),
        "integers past 64 bits": ("numpy", lambda np, ids: [2**70 + int(i) for i in ids]),
        "whole floats": ("numpy", lambda np, ids: np.array(ids, dtype=np.float16)),
        "unsigned": ("numpy", lambda np, ids: np.array(ids, dtype=np.uint64) + np.uint64(2**63)),
        "str": ("pandas", lambda pd, ids: pd.Series(list(map(str, ids)))),
        "object": ("pandas", lambda pd, ids: pd.Series(list(map(str, ids)), dtype=object)),
        "string": ("pandas", lambda pd, ids: pd.Series(list(map(str, ids)), dtype="string")),
        "category": ("pandas", lambda pd, ids: pd.Series(list(map(str, ids)), dtype="category")),
        "category of integers": ("pandas", lambda pd, ids: pd.Categorical(ids)),
        "Int64": ("pandas", lambda pd, ids: pd.Series(ids, dtype="Int64")),
        "index": ("pandas", lambda pd, ids: pd.Index(list(map(str, ids)))),
        "String": ("polars", lambda pl, ids: pl.Series(list(map(str, ids)))),
        "Categorical": ("polars", lambda pl, ids: pl.Series(list(map(str, ids)), dtype=pl.Categorical)),
        "Enum": ("polars", lambda pl, ids: pl.Series(list(map(str, ids)), dtype=pl.Enum(sorted(set(map(str, ids)))))),
    }

    @pytest.mark.parametrize("column", COLUMNS)
    def test_columns(self, column):
        """Identifiers as the libraries that users keep them in hand them over. Mutants: object arrays refused; floats
        refused; identifiers cut to their first character; the run that ends the column dropped."""
        library, make = self.COLUMNS[column]
        module, ids = pytest.importorskip(library), [7, 7, 12, 1, 1, 1, 10]
        offsets = plr.offsets_from_qid(make(module, ids))
        assert offsets.tolist() == [0, 2, 3, 6, 7]
        assert offsets.dtype == np.int64
        with pytest.raises(
            ValueError, match=r"^qid must keep each query's documents together, got .* again at index 7$"
        ):
            plr.offsets_from_qid(make(module, [*ids, 7]))

    @pytest.mark.parametrize(
        ("qid", "error", "message"),
        [
            ([1.0, 2.0, np.nan], ValueError, "qid must not be missing, got nan at index 2"),
            ([1.0, 1.5], ValueError, r"qid must be whole numbers up to 2\*\*53, got 1.5 at index 1"),
            ([1.0, np.inf], ValueError, "got inf at index 1"),
            ([0.0, 2.0**54], ValueError, "got 1.8.*e[+]16 at index 1"),
            (["a", None], ValueError, "qid must not be missing, got None at index 1"),
            (np.array(["a", np.nan], dtype=object), ValueError, "qid must not be missing, got nan at index 1"),
            ([1, "1"], TypeError, r"of one kind, got '1' at index 1, after 1"),
            (np.array(["a", 2.0], dtype=object), TypeError, "of one kind, got 2.0 at index 1, after 'a'"),
            ([1, True], TypeError, "qid must hold integers or strings, of one kind, got True at index 1"),
            (np.array([True, False]), TypeError, "qid must hold integers or strings, got dtype bool"),
            ([object()], TypeError, "qid must hold integers or strings, of one kind, got <object"),
            (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, "must hold integers or strings, got dtype datetime"),
            (np.zeros((3, 1)), ValueError, r"qid must be 1-dimensional, got shape \(3, 1\): pass qid.ravel()"),
        ],
    )
    def test_identifiers_refused(self, qid, error, message):
        """Mutants: a list left to NumPy, which makes "1" of 1; NaN taken for a query."""
        with pytest.raises(error, match=message):
            plr.offsets_from_qid(qid)

    @pytest.mark.parametrize("stand_in", [np.nan, None, "", "unknown", decimal.Decimal("nan")])
    def test_identifiers_missing_in_string_arrays(self, stand_in):
        """NumPy compares a missing text as neither equal nor unequal. Mutants: compared before the check, which joins
        queries; a query of its own where a text or None stands for missing ones."""
        names = np.array(["a", "a", stand_in, "b", "b"], dtype=np.dtypes.StringDType(na_object=stand_in))
        message = f"must not be missing, got {None if isinstance(stand_in, str) else stand_in} at index 2$"
        with pytest.raises(ValueError, match=f"^qid {message}"):
            plr.offsets_from_qid(names)
        with pytest.raises(ValueError, match=f"^docids {message}"):
            plr.interchange.to_run(np.arange(5.0), [0, 5], docids=names)
        with pytest.raises(ValueError, match=f"^query_ids {message}"):
            plr.data.RankingData(np.ones((5, 1)), np.ones(5), np.arange(6), names)
        assert plr.offsets_from_qid(names[[0, 1, 3, 4]]).tolist() == [0, 2, 4]

    def test_identifiers_that_end_in_nul(self):
        """Mutant: an array of NumPy's own texts, which drops what ends them and joins the queries."""
        assert plr.offsets_from_qid([b"a", b"a\0", b"a\0", b"b"]).tolist() == [0, 1, 3, 4]

    def test_identifiers_missing_in_pandas(self):
        pandas = pytest.importorskip("pandas")
        for dtype in (None, "string", "category"):
            with pytest.raises(ValueError, match=r"qid must not be missing, got .* at index 1$"):
                plr.offsets_from_qid(pandas.Series(["a", None], dtype=dtype))
        for missing in (pandas.NA, pandas.NaT, np.ma.masked, np.float32("nan"), decimal.Decimal("nan")):
            with pytest.raises(ValueError, match=r"qid must not be missing, got .* at index 1$"):
                plr.offsets_from_qid(["a", missing, "b"])
        with pytest.raises(ValueError, match=r"qid must not be missing, got .* at index 1$"):
            plr.offsets_from_qid(pandas.Series([1, None], dtype="Int64"))


class TestTies:
    def test_by_hand(self):
        """Three tied, one of them relevant, around the cutoff."""
        weights = plr.dcg_weights(2)
        assert plr.dcg([1.0, 0.5, 0.5, 0.5], [2, 0, 0, 3], weights, ties="average")[0] == 2 + weights[1]
        assert plr.dcg([1.0, 0.5, 0.5, 0.5], [2, 0, 0, 3], weights)[0] == 2
        assert plr.ndcg([0.5, 0.5], [0, 1], cutoff=1, ties="average")[0] == 0.5
        assert plr.ndcg([0.5, 0.5], [0, 1], cutoff=1, ties="average", normalize="dataset") == 0.5
        assert plr.dcg([0.0, -0.0], [0, 1], [1.0], ties="average")[0] == 0.5  # equal, however they are written
        assert plr.dcg([], [], offsets=[0, 0], ties="average")[0] == 0.0
        assert plr.dcg([3.0], [2.0], ties="average")[0] == 2.0

    def test_against_enumeration(self):
        """Mutants: the tied past the cutoff left out of the mean; their weights divided by all of them; ties looked for
        in all documents in front of the cutoff."""
        rng = np.random.default_rng(0)
        for n_docs in range(1, 7):
            for _ in range(30):
                scores, relevance = rng.integers(0, 3, size=n_docs).astype(float), rng.normal(size=n_docs)
                orders = reference.all_rankings(n_docs)
                orders = orders[(np.diff(scores[orders], axis=1) <= 0).all(axis=1)]
                for cutoff in range(1, n_docs + 2):
                    weights = rng.normal(size=cutoff)
                    got = plr.dcg(scores, relevance, weights, ties="average")[0]
                    assert got == pytest.approx(reference.metric(relevance, weights, orders).mean(), abs=1e-13)
                    assert got == pytest.approx(reference.tie_averaged_dcg(scores, relevance, weights), abs=1e-13)

    def test_against_scikit_learn(self):
        """Mutant: ties broken by index."""
        sklearn_metrics = pytest.importorskip("sklearn.metrics")
        rng = np.random.default_rng(1)
        for n_docs, n_scores in ((2, 1), (5, 2), (40, 6), (40, 1), (300, 20)):
            relevance = rng.integers(0, 4, size=n_docs).astype(float)
            relevance[0] = 1.0
            scores = rng.integers(0, n_scores, size=n_docs) / 7
            for cutoff in (1, 3, 10, 1000, None):
                for function, theirs in (plr.dcg, sklearn_metrics.dcg_score), (plr.ndcg, sklearn_metrics.ndcg_score):
                    got = function(scores, relevance, cutoff=cutoff, ties="average")[0]
                    assert got == pytest.approx(theirs([relevance], [scores], k=cutoff), rel=1e-12)


class TestDcg:
    def test_all_scores_equal_a_million_times(self):
        scores = np.zeros(1_000_000)
        relevance = np.arange(1_000_000.0)
        one = [0, 1_000_000]
        assert plr.dcg(scores, relevance, [0.0, 0.0, 1.0], offsets=one)[0] == 2.0
        assert plr.dcg(scores, relevance, np.ones(1_000_000), offsets=one)[0] == relevance.sum()

    def test_normalisation(self):
        """Mutant: "dataset" as the mean of the queries' NDCG."""
        scores, relevance = [0.1, 0.9, 0.3, 0.2, 0.0], [1.0, 0.0, 7.0, 0.0, 0.0]
        offsets, weights = [0, 2, 4, 5, 5], plr.dcg_weights(2)
        second = 1 / np.log2(3)
        np.testing.assert_allclose(plr.ndcg(scores, relevance, weights, offsets=offsets), [second, 1, 0, 0])
        np.testing.assert_allclose(plr.ndcg(scores, relevance, weights, offsets=offsets, empty=1.0), [second, 1, 1, 1])
        assert np.isnan(plr.ndcg([], [], weights, empty=np.nan)[0])
        dataset = plr.ndcg(scores, relevance, weights, offsets=offsets, normalize="dataset")
        assert dataset == pytest.approx((second + 7) / 8)
        assert plr.ndcg([1.0], [0.0], weights, normalize="dataset", empty=0.25) == 0.25


class TestIdeal:
    """The ideal ranking has the highest gain at the rank of the highest weight, wherever that is."""

    def test_against_enumeration(self):
        """No ranking exceeds 1, and one reaches it. Mutants: gains against weights as they stand; weights past the end
        of a query sorted to its front; those past the cutoff too, or a
        cutoff not heeded beside them; the weights of the first query for all."""
        rng = np.random.default_rng(3)
        for n_docs, n_ranks in itertools.product(range(1, 6), range(1, 8)):
            relevance, weights = rng.integers(0, 4, size=n_docs).astype(float), rng.integers(0, 5, size=(2, n_ranks))
            rankings, offsets = reference.all_rankings(n_docs), [0, n_docs, 2 * n_docs]
            for cutoff in {n_ranks, max(1, n_ranks - 2), n_ranks + 2}:
                best = [reference.metric(relevance, row[:cutoff].astype(float), rankings).max() for row in weights]
                got = plr.ideal_dcg(np.tile(relevance, 2), weights, cutoff=cutoff, offsets=offsets)
                np.testing.assert_allclose(got, best, rtol=1e-14)
                assert got[1] == pytest.approx(reference.ideal_dcg(relevance, weights[1, :cutoff].astype(float)))
                scores = rng.normal(size=2 * n_docs)
                actual = plr.dcg(scores, np.tile(relevance, 2), weights, cutoff=cutoff, offsets=offsets)
                shares = np.divide(actual, best, out=np.zeros(2), where=got > 0)
                got = plr.ndcg(scores, np.tile(relevance, 2), weights, cutoff=cutoff, offsets=offsets)
                np.testing.assert_allclose(got, shares, rtol=1e-14)

    @pytest.mark.parametrize("function", [plr.ideal_dcg, lambda *given: plr.ndcg([1.0, 0.0, 0.0], *given)])
    def test_no_share_of_what_is_negative(self, function):
        """Mutants: an ideal that gains of either sign bring near 0; weights past the cutoff or the query refused."""
        with pytest.raises(ValueError, match=r"^relevance must be at least 0, got -2.0 at index 1: NDCG is a share"):
            function([1.0, -2.0, 0.0], [1.0])
        with pytest.raises(ValueError, match=r"^rank_weights must be at least 0, got -0.5 at index 1: NDCG is a share"):
            function([1.0, 2.0, 0.0], [1.0, -0.5])
        with pytest.raises(ValueError, match=r"^rank_weights must be at least 0, got -0.5 at index \(1, 0\): NDCG is"):
            plr.ideal_dcg([1.0, 2.0, 0.0], [[1.0, 0.5], [-0.5, 0.0]], offsets=[0, 2, 3])
        assert function([1.0, 0.0, 0.0], [1.0, 0.0, 0.0, -1.0])[0] == 1.0

    @pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
    def test_relevance_alone(self, kind):
        """Arrays that need no conversion and others. Mutants: what is found among the scores, of which there are none,
        stands for what was found in the relevance; no limit of its magnitude."""
        relevance, offsets = np.array([3, 0, 1, 0, 2], dtype=kind), np.array([0, 2, 5])
        expected = [3.0, 2.0 + 1.0 / np.log2(3.0)]
        for given in (relevance, relevance.tolist(), np.repeat(relevance, 2)[::2]):
            np.testing.assert_array_equal(plr.ideal_dcg(given, cutoff=2, offsets=offsets), expected)
        of_floats = {np.nan: "be finite", **({1e300: "be 0 or have"} if kind == np.float64 else {})}
        for bad, message in {-1: "be at least 0", **(of_floats if kind != np.int64 else {})}.items():
            with pytest.raises(ValueError, match=f"relevance must {message}"):
                plr.ideal_dcg(np.array([bad, 1, 1], dtype=kind), offsets=np.array([0, 2, 3]))


class TestDocumentsNotRetrieved:
    """Documents with the score -inf are judged and have no rank: they count wherever there is a share of all."""

    @pytest.mark.parametrize("share", [0.0, 0.4])
    @pytest.mark.parametrize("name", ["dcg", "ndcg", *REFERENCES])
    def test_against_the_reference_without_them(self, name, share):
        """Ragged, with ties and long queries. Mutants: ranks for documents that were not retrieved; an ideal, or a
        number of relevant documents, of those retrieved; precision over all documents, or over the documents there are;
        ties to the higher index; those at the boundary of a selection not put in order; the cutoff of the longest query
        for all; recall over those found; a product one factor short; positions from 0; success of the last rank."""
        rng = np.random.default_rng(4)
        sizes = [1, 2, 5, 30, 200, 3, 0, 700]
        offsets = plr.offsets_from_group(sizes)
        scores = np.where(rng.random(offsets[-1]) < share, -np.inf, rng.integers(0, 12, size=offsets[-1]) / 4)
        labels = rng.choice([0, 0, 0, 1, 2, 4], size=offsets[-1]).astype(float)
        labels[-1] = 4.0
        scores[:3] = -np.inf if share else 1.0
        for cutoff, ties in itertools.product((1, 2, 5, 30, 10**12, None), ("index", "average")):
            options = {"ties": ties} if name in ("dcg", "ndcg") else {}
            got = getattr(plr, name)(scores, labels, cutoff=cutoff, offsets=offsets, **options)
            for q, (start, stop) in enumerate(itertools.pairwise(offsets)):
                of_query, found = labels[start:stop], scores[start:stop] > -np.inf
                first, ranks = (scores[start:stop][found], of_query[found]), cutoff or max(1, found.sum())
                if name in ("dcg", "ndcg"):
                    weights = plr.dcg_weights(min(cutoff or 700, 700))
                    by_rank = reference.tie_averaged_dcg if ties == "average" else reference.dcg
                    expected = by_rank(*first, weights[: max(1, found.sum())]) if found.any() else 0.0
                    expected /= (reference.ideal_dcg(of_query, weights) if name == "ndcg" else 0.0) or 1.0
                else:
                    expected = REFERENCES[name](*first, ranks) if found.any() else 0.0
                    if name in ("recall", "ap"):
                        expected *= (of_query[found] > 0).sum() / max(1, (of_query > 0).sum())
                assert got[q] == pytest.approx(expected, abs=1e-12), (cutoff, ties, q)

    def test_nothing_retrieved(self):
        nothing = [-np.inf, -np.inf]
        for function in plr.ndcg, plr.recall, plr.ap:
            assert function(nothing, [1, 0], empty=0.5)[0] == 0.0
            assert function(nothing, [0, 0], empty=0.5)[0] == 0.5
        assert plr.average_relevance_position(nothing, [1, 0], empty=0.5)[0] == 0.5
        assert plr.precision(nothing, [1, 0])[0] == plr.precision(nothing, [1, 0], 2)[0] == 0.0
        assert plr.ndcg([1.0, -np.inf], [1, 1], normalize="dataset") == pytest.approx(1 / (1 + 1 / np.log2(3)))
        for function in plr.dcg, plr.recall:
            with pytest.raises(ValueError, match=r"^scores must be finite, got inf at index 1"):
                function([-np.inf, np.inf], [1.0, 0.0])
        with pytest.raises(ValueError, match=r"^relevance must be finite, got -inf at index 0"):
            plr.recall([1.0, 0.0], [-np.inf, 0.0])


@pytest.mark.parametrize("n_before", [0, 8])
def test_first_relevant_document_of_every_list_of_four(n_before):
    """Scores below 0 and ties, in one register and the next: documents that were not retrieved come first.

    Mutants: lanes past the end that have a score of 0, or are relevant; equal scores before the document not counted,
    or those after it; a document that was not retrieved taken for the first.
    """
    one = list(itertools.product((-np.inf, -2.0, -1.0), (0.0, 1.0)))
    lists = [
        [(-np.inf, 0.0)] * n_before + list(of_list) for n in range(1, 5) for of_list in itertools.product(one, repeat=n)
    ]
    scores, labels = np.concatenate(lists).T
    offsets = plr.offsets_from_group([len(of_list) for of_list in lists])
    expected = []
    for of_list in lists:
        retrieved = [label for score, label in sorted(of_list, key=lambda pair: -pair[0]) if score > -np.inf]
        expected.append(1 / (1 + retrieved.index(1.0)) if 1.0 in retrieved else 0.0)
    np.testing.assert_array_equal(plr.mrr(scores, labels, offsets=offsets), expected)
    np.testing.assert_array_equal(plr.success(scores, labels, 2, offsets=offsets), np.array(expected) >= 0.5)


class TestOtherMetrics:
    def test_by_hand(self):
        scores, labels = [0.3, 0.2, 0.1, 0.0], [0, 2, 0, 1]
        assert plr.precision(scores, labels)[0] == 0.5
        assert plr.precision(scores, labels, 3)[0] == pytest.approx(1 / 3)
        assert plr.precision(scores, labels, 8)[0] == 0.25
        assert plr.recall(scores, labels, 3)[0] == 0.5
        assert plr.mrr(scores, labels)[0] == 0.5
        assert plr.mrr(scores, labels, 1)[0] == 0.0
        assert plr.ap(scores, labels)[0] == (1 / 2 + 2 / 4) / 2
        assert plr.ap(scores, labels, 3)[0] == (1 / 2) / 2
        assert plr.success(scores, labels)[0] == 1.0
        assert plr.success(scores, labels, 1)[0] == 0.0
        assert plr.success(scores, labels, 2)[0] == 1.0
        # chances to be satisfied 0, 3/4, 0, 1/4
        assert plr.err(scores, labels)[0] == pytest.approx(0.75 / 2 + 0.25 * 0.25 / 4)
        assert plr.err(scores, labels, max_label=3)[0] == pytest.approx(0.375 / 2 + 0.625 * 0.125 / 4)
        assert plr.rbp(scores, labels, persistence=0.5)[0] == pytest.approx(0.5 * (0.5 * 2 + 0.125))
        assert plr.average_relevance_position(scores, labels)[0] == pytest.approx((2 * 2 + 4) / 3)
        assert plr.average_relevance_position(scores, labels, 2)[0] == 2.0

    def test_nothing_relevant(self):
        for function in (plr.recall, plr.ap, plr.average_relevance_position):
            assert function([1.0, 2.0], [0, 0])[0] == 0.0
            assert function([1.0, 2.0], [0, 0], empty=0.5)[0] == 0.5
            assert function([], [], offsets=[0, 0], empty=0.5)[0] == 0.5
        for function in (plr.precision, plr.mrr, plr.success, plr.err, plr.rbp):
            assert function([1.0, 2.0], [0, 0])[0] == 0.0
            assert function([], [])[0] == 0.0
        for name in ("dcg", "ndcg", *REFERENCES):
            assert getattr(plr, name)([1.0, 2.0], [1, 2], cutoff=0)[0] == 0.0

    def test_rank_weights_for_a_cutoff(self):
        with pytest.raises(
            TypeError, match=r"cutoff must be None or an integer, got an array of shape \(9,\): rank weights"
        ):
            plr.recall([1.0], [1.0], plr.dcg_weights(9))
        with pytest.raises(TypeError, match=r"cutoff must be an integer, got '9'$"):
            plr.recall([1.0], [1.0], "9")
        assert plr.recall([1.0], [1.0], np.array(9))[0] == 1.0

    def test_negative_relevance(self):
        """Not relevant to those that count, an error where it would be a weight or a grade. Mutant: NDCG of -1."""
        assert plr.precision([1.0, 2.0], [-1.0, 1.0])[0] == 0.5
        assert plr.recall([1.0, 2.0], [-1.0, 1.0])[0] == 1.0
        assert plr.mrr([2.0, 1.0], [-1.0, 1.0])[0] == 0.5
        assert plr.rbp([2.0, 1.0], [-1.0, 1.0], persistence=0.5)[0] == -0.25
        assert plr.dcg([2.0, 1.0], [-1.0, 1.0], [1.0])[0] == -1.0
        with pytest.raises(ValueError, match="labels"):
            plr.err([2.0, 1.0], [-1.0, 1.0])
        with pytest.raises(ValueError, match="relevance must be at least 0"):
            plr.average_relevance_position([2.0, 1.0], [-1.0, 1.0])
        with pytest.raises(ValueError, match="max_label must be at least 2"):
            plr.err([1.0], [2.0], max_label=1)
