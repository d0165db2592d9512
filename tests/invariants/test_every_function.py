"""Changes that must not matter: the order of documents, a constant in all scores, ranks beyond the list, and
where results are written; and what each of them gives where there is nothing to rank."""

import numpy as np
import pytest

from public_calls import BATCHES, arrays, values_of

N_DOCS = 30
RNG = np.random.default_rng(0)
SCORES = np.round(RNG.normal(size=N_DOCS) * 2.0**20) / 2.0**20  # so that 64 is added without rounding
RELEVANCE = 2.0 * RNG.normal(size=N_DOCS)
WEIGHTS = RNG.normal(size=7)
LABELS = RNG.permutation(N_DOCS) / (N_DOCS - 1.0)  # no ties, which are broken by position
GRADIENTS = [name for name in BATCHES if name.startswith(("pl_rank", "policy", "stochastic"))]
GRADIENTS = [name for name in GRADIENTS if "reward" not in name]  # those are given
OUT = [name for name, call in BATCHES.items() if "out" in call.parameters]


def in_order(name, order):
    """Results for documents in this order, over the same rankings where these are given."""
    call, more = BATCHES[name], {"labels": LABELS[order]}
    if "rankings" in call.options:
        more["rankings"] = np.argsort(order)[call.options["rankings"](values_of(SCORES, RELEVANCE, WEIGHTS))]
    return arrays(call(SCORES[order], RELEVANCE[order], WEIGHTS, **more))


@pytest.mark.parametrize("name", [name for name, call in BATCHES.items() if "rng" not in call.options])
def test_order_of_documents(name):
    """To the tolerance of ``test_levels_agree``. Mutants: a neighbour; the heaviest taken for the first one."""
    order = np.random.default_rng(1).permutation(N_DOCS)
    for got, expected in zip(in_order(name, order), in_order(name, np.arange(N_DOCS)), strict=True):
        expected = expected[order] if expected.shape[:1] == (N_DOCS,) else expected
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", [name for name in BATCHES if not name.startswith("pointwise")])
def test_constant_in_all_scores(name):
    """It changes no bit, but for SoftRank's, which divides scores first. Mutant: the maximum not taken off."""
    for got, expected in zip(
        *(arrays(BATCHES[name](SCORES + shift, RELEVANCE, WEIGHTS)) for shift in (64.0, 0.0)), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-15 if name.startswith("soft_rank") else 0.0)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in GRADIENTS
        if name.startswith(("pl_rank_exact", "pl_rank_cmc", "sto"))
        and not {"sigma", "stop_probability"} & {*name.split()}
    ],
)
def test_constant_in_all_relevance(name):
    """Metrics of rankings all change alike. Mutant: the mean of relevance not taken off what a document gains."""
    relevance = np.round(RELEVANCE * 2.0**20) / 2.0**20
    results = (arrays(BATCHES[name](SCORES, part, WEIGHTS)) for part in (relevance + 4.0, relevance))
    for got, expected in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-7 if "hvp" in name else 1e-9)
    for result in arrays(BATCHES[name](SCORES, np.full(N_DOCS, 0.7), WEIGHTS)):
        np.testing.assert_allclose(result, 0.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", GRADIENTS)
def test_nothing_to_rank(name):
    """No documents, one document, no ranks, nothing relevant: exactly 0. Mutant: 0 / 0 where every item is placed."""
    call = BATCHES[name]
    for scores, relevance, weights in [
        ([], [], WEIGHTS), ([3.0], [2.0], WEIGHTS), (SCORES[:2], [2.0, 1.0], []), (SCORES[:3], np.zeros(3), WEIGHTS),
        (SCORES[:3], RELEVANCE[:3], np.zeros(2)),
    ]:  # fmt: skip
        for result in arrays(call(np.array(scores), np.array(relevance), np.array(weights))):
            assert result.shape == (len(scores),)
            assert (result == 0.0).all()


@pytest.mark.parametrize("name", GRADIENTS)
def test_ranks_beyond_the_list(name):
    """Mutant: rank weights past the number of documents used."""
    more = np.append(np.ones(4), [9.0, 9.0])
    results = (arrays(BATCHES[name](SCORES[:4], RELEVANCE[:4], weights)) for weights in (more, more[:4]))
    for got, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("offsets", [None, [0, 0, 1, 4, N_DOCS]])
@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS[:0]], ids=["ranks", "no rank"])
@pytest.mark.parametrize("name", OUT)
def test_out(name, weights, offsets):
    """Results go where they are told to, also into strided arrays and over scores; nothing that was there is left.
    Mutants: a read-only ``out`` written to; the input read after the output has been written; results added to it; the
    gradient of a list of one item not set, nor anything where no rank counts."""
    call = BATCHES[name]
    expected = call(SCORES, RELEVANCE, weights, offsets=offsets)
    over, wide = SCORES.copy(), [np.full((*array.shape, 2), np.nan) for array in arrays(expected)]
    plain, strided = [np.full_like(array, np.nan) for array in arrays(expected)], [array[..., 0] for array in wide]
    overlapping = [np.full_like(array, np.nan) for array in arrays(expected)]
    overlapping[-1] = over if over.shape == overlapping[-1].shape else overlapping[-1]
    for scores, outs in ((SCORES, plain), (SCORES, strided), (over, overlapping)):
        out = tuple(outs) if isinstance(expected, tuple) else outs[0]
        given = arrays(call(scores, RELEVANCE, weights, offsets=offsets, out=out))
        for got, mine, best in zip(given, outs, arrays(expected), strict=True):
            assert got is mine
            np.testing.assert_array_equal(got, best)
    assert all(np.isnan(array[..., 1]).all() for array in wide)


@pytest.mark.parametrize("offsets", [None, [0, 3, N_DOCS]])
@pytest.mark.parametrize("name", OUT)
def test_out_that_is_refused(name, offsets):
    call = BATCHES[name]
    fits = arrays(call(SCORES, RELEVANCE, WEIGHTS, offsets=offsets))
    last = fits[-1]
    fixed = last.copy()
    fixed.flags.writeable = False
    wrong = [fixed, np.zeros(np.add(last.shape, 1)), last[..., np.newaxis], last.astype(np.float32), last.tolist(), 3]
    if len(fits) > 1:
        wrong = [*((*fits[:-1], each) for each in wrong), last, (last,), (*fits, last), (last, last), 3]
    for out in wrong:
        with pytest.raises((TypeError, ValueError), match="out"):
            call(SCORES, RELEVANCE, WEIGHTS, offsets=offsets, out=out)
