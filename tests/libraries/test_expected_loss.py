"""The loss for PyTorch and for JAX: value and derivatives of the library's own functions, in every shape."""

import functools
import itertools
import warnings

import numpy as np
import pytest

import plrank_fast as plr
from frameworks import (
    DCG,
    EXACT,
    IGNORED_WARNINGS,
    LABELS,
    N_DOCS,
    N_QUERIES,
    OFFSETS,
    QUERY,
    RNG,
    SCORES,
    UPSTREAM,
    WEIGHTS,
    Jax,
    Torch,
    padded,
)
from plrank_fast._adapters.expected_loss import expected_loss
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.chunks import query_streams

pytestmark = IGNORED_WARNINGS


@pytest.fixture(params=[Torch, Jax], ids=["PyTorch", "JAX"])
def library(request):
    return request.param()


def evaluate(library, scores=SCORES, labels=LABELS, upstream=1.0, **options):
    """Value and gradient of the loss, in NumPy."""
    scores = np.asarray(scores, dtype=library.dtype)
    results = library.value_and_vjp(
        lambda x: library.adapter.expected_metric_loss(x, labels, **options), scores, upstream
    )
    return [np.asarray(each) for each in results]


def near(library, *pairs):
    for got, expected in pairs:
        np.testing.assert_allclose(got, expected, rtol=max(1e-6, library.near), atol=1e-7)


# --- values and gradients


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weight", [None, np.array([2.0, 1.0, 0.0, 1.0, 4.0]), np.zeros(N_QUERIES)])
def test_reductions_and_weights(library, reduction, weight):
    """Mutants: the sign of the value, or of the gradient, turned; either not divided by the number of queries; the
    weighted mean divided by that; weights squared; the upstream gradient left out, or another query's."""
    of_queries = np.ones(N_QUERIES) if weight is None else weight
    shares = of_queries / (of_queries.sum() or 1.0) if reduction == "mean" else of_queries
    upstream = UPSTREAM if reduction == "none" else np.full(N_QUERIES, 3.0)
    values = -shares * plr.expected_metric(SCORES, LABELS, WEIGHTS, offsets=OFFSETS)
    gradient = -plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=OFFSETS) * (shares * upstream)[QUERY]
    options = {"offsets": OFFSETS, "weights": weight, "reduction": reduction, **EXACT}
    got = evaluate(library, upstream=upstream if reduction == "none" else 3.0, **options)
    near(library, (got[0], values if reduction == "none" else values.sum()), (got[1], gradient))


@pytest.mark.parametrize("method", [name for name in ESTIMATORS if name != "exact"])
@pytest.mark.parametrize("seed", [11, 2**40 + 7])
def test_sampled_methods_have_the_bits_of_their_functions(library, method, seed):
    """Mutants: the seed not handed on, or only its lower word; ``n_samples`` fixed; the function of another name; one
    of the options for random streams dropped."""
    options = dict(offsets=OFFSETS, n_samples=7)
    source = {library.source: query_streams(seed, 2)}
    value, gradient = evaluate(library, cutoff=3, method=method, reduction="sum", **DCG, **options, **source)
    rng = query_streams(np.random.SeedSequence([seed]) if library.source == "generator" else seed, 2)
    expected = ESTIMATORS[method].function(SCORES, LABELS, WEIGHTS, rng=rng, **options)
    np.testing.assert_array_equal(gradient, -expected.astype(library.dtype))
    values = plr.expected_metric(SCORES, LABELS, WEIGHTS, method="sample", rng=rng, **options)
    assert value == pytest.approx(-values.sum(), rel=library.near)


@pytest.mark.parametrize("method", ["exact", "cmc", "pl_rank_3"])
def test_shapes_have_the_bits_of_the_ragged_batch(library, method):
    """Padded rows, whatever stands in the padding; a column; rows without padding; parts of a batch.

    Mutants: the mask inverted; padding counted into the lengths; the upstream gradient of query 0 taken for all; a
    read-only mask not copied, of which PyTorch warns; a column taken for rows of one document each, whose gradients are
    zero, or whose upstream gradients are of queries.
    """
    options = {"reduction": "none", **EXACT, "method": method, library.source: 3}
    value, gradient = evaluate(library, upstream=UPSTREAM, offsets=OFFSETS, **options)
    (rows, mask), (labels, _) = padded(SCORES, np.nan), padded(LABELS, np.inf)
    mask.flags.writeable = False
    of_rows = evaluate(library, rows, labels, UPSTREAM, mask=mask, **options)
    column = evaluate(library, SCORES[:, np.newaxis], LABELS, UPSTREAM, offsets=OFFSETS, **options)
    np.testing.assert_array_equal([of_rows[0], column[0]], [value, value])
    np.testing.assert_array_equal([of_rows[1][mask], column[1][:, 0]], [gradient, gradient])
    assert (of_rows[1][~mask] == 0.0).all()
    plain = evaluate(library, upstream=np.ones(N_QUERIES), offsets=OFFSETS, **options)[1]
    np.testing.assert_allclose(gradient, plain * UPSTREAM[QUERY], rtol=library.near)
    square = evaluate(library, SCORES.reshape(4, 4), LABELS.reshape(4, 4), np.ones(4), **options)
    flat = evaluate(library, upstream=np.ones(4), offsets=np.arange(0, 17, 4), **options)
    np.testing.assert_array_equal(square[0], flat[0])
    np.testing.assert_array_equal(square[1].reshape(-1), flat[1])
    part = slice(4, None)
    options[library.source] = query_streams(options[library.source], 2)
    last = evaluate(library, SCORES[part], LABELS[part], np.ones(3), offsets=[0, 5, 6, 12], **options)
    np.testing.assert_array_equal(last[1], plain[part])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtype_of_scores_is_kept(library, dtype):
    """And computed in float64 from what the dtype holds. Mutant: bfloat16 sent through float16."""
    scores = np.array([60_000.0 if dtype == "float16" else 100_000.0, *SCORES[1:]])
    scores, loss = library.array(scores, dtype), functools.partial(library.adapter.expected_metric_loss, **EXACT)
    value, gradient = library.value_and_vjp(lambda x: loss(x, LABELS, OFFSETS), scores, 1.0)
    assert value.dtype == gradient.dtype == scores.dtype
    held, gradient = (np.asarray(library.array(each, "float32"), dtype=np.float64) for each in (scores, gradient))
    exact = -plr.pl_rank_exact(held, LABELS, WEIGHTS, offsets=OFFSETS) / N_QUERIES
    rtol = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6}[dtype]
    np.testing.assert_allclose(gradient, exact, rtol=rtol, atol=1e-6)


# --- what is optimised


def test_rank_weights_of_each_query(library):
    """They need not descend. Mutants: weights taken to descend; ``cutoff`` cuts the weights given; the first query's
    for all; a weight for each rank of the cutoff, beyond the longest list."""
    gains = plr.gains(LABELS)
    for weights in (WEIGHTS[[1, 2, 0]], RNG.random((N_QUERIES, 4))):
        ideal = plr.ideal_dcg(gains, weights, offsets=OFFSETS)
        metric = plr.expected_metric(SCORES, gains, weights, offsets=OFFSETS)
        share = np.divide(metric, ideal, out=np.zeros(N_QUERIES), where=ideal > 0)
        options = {"offsets": OFFSETS, "rank_weights": weights, "cutoff": 2, "method": "exact", "reduction": "none"}
        near(library, (evaluate(library, upstream=UPSTREAM, **options)[0], -share))
    every = plr.expected_metric(SCORES, LABELS, plr.dcg_weights(6), offsets=OFFSETS).mean()
    for cutoff in (None, 10**15):
        near(library, (evaluate(library, offsets=OFFSETS, **EXACT | {"cutoff": cutoff})[0], -every))


def test_default_is_ndcg_at_10_of_grades(library):
    """Mutants: linear gains, DCG, or all ranks by default."""
    labels, scores, offsets = np.tile(LABELS, 2), np.tile(SCORES, 2), [0, 2 * N_DOCS - 2, 2 * N_DOCS]
    labels[-2:] = 1.0, 2.0
    gains, weights = plr.gains(labels), plr.dcg_weights(10)
    share = plr.expected_metric(scores, gains, weights, offsets=offsets) / plr.dcg(
        gains, gains, weights, offsets=offsets
    )
    near(library, (evaluate(library, scores, labels, offsets=offsets)[0], -share.mean()))


@pytest.mark.parametrize("method", ["exact", "cmc", "pl_rank_3", "policy_gradient"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lengths", [(5, 0, 1, 30, 7), (3, 40_000)], ids=["short", "a long one"])
def test_queries_have_the_bits_of_the_parts(dtype, lengths, method, on_team, costs):
    """Expectations, ideal DCG, weights and sign, which the loop over queries multiplies.

    Mutants: the workspace of the ideal too small, or over the gradient; another query's factor; 1 over an ideal of 0;
    gradients of float32 rounded before the product; a query of its own loop not multiplied; the value of a single
    document left at 0; the lanes of a group taken for its ranks.
    """
    rng, offsets = np.random.default_rng(1), np.append(0, np.cumsum(lengths))
    scores, grades = rng.normal(size=offsets[-1]).astype(dtype), rng.integers(0, 5, offsets[-1]).astype(dtype)
    grades[:3] = 0.0
    weight = np.arange(1.0, offsets.size)
    weights, gains = plr.dcg_weights(max(lengths))[:10], plr.gains(grades)
    sampling = {} if method == "exact" else {"n_samples": 3, "rng": 6}
    problem = scores, gains, weights
    values, gradient = plr.value_and_gradient(*problem, offsets=offsets, method=method, **sampling)
    if sampling:
        drawn = plr.expected_metric(*problem, offsets=offsets, method="sample", **sampling)
        np.testing.assert_allclose(values, drawn, rtol=1e-14)
        function = getattr(plr, method, None) or getattr(plr, f"pl_rank_{method}")
        np.testing.assert_array_equal(gradient, function(*problem, offsets=offsets, **sampling))
    ideal = plr.ideal_dcg(gains, weights, offsets=offsets)
    shares = np.divide(-weight / weight.sum(), ideal, out=np.zeros(ideal.size), where=ideal > 0.0)
    out = np.full(offsets[-1], np.nan, dtype)
    if lengths[-1] == 40_000:
        costs(round_ns=1e3)
    for n in (1, 2, 3):
        got = on_team(n, lambda n_threads: expected_loss(
            scores, grades, offsets, None, weight, None, metric="ndcg", cutoff=10, gain="exponential", max_label=None,
            reduction="mean", method=method, n_samples=3, seed=lambda: 6, rtol=1e-6, n_threads=n_threads,
            first_query=0, gradient=out,
        )[0])  # fmt: skip
        np.testing.assert_array_equal(got, shares * values)
        np.testing.assert_array_equal(out, (np.repeat(shares, lengths) * gradient).astype(dtype))
        out[:] = np.nan


# --- derivatives of higher order and in other modes


@pytest.mark.parametrize(("layout", "reduction"), [("a query", "mean"), ("offsets", "none"), ("rows", "mean")])
def test_forward_mode_and_second_derivatives(library, layout, reduction):
    """Slopes of the losses, and products with the Hessian by all orders of modes.

    Mutants: places of documents searched from the left; slopes of queries added up; a constant gradient in ``jvp``; the
    direction in place of the product, or the product not transposed; weights of queries left out of it; tangents of
    padding, which may be NaN, counted.
    """
    func, change = library.func, RNG.normal(size=N_DOCS)
    offsets = np.array([0, N_DOCS]) if layout == "a query" else OFFSETS
    n_queries, query = offsets.size - 1, np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    weight, mask = np.arange(1.0, n_queries + 1), padded(SCORES, 0.0)[1]
    inputs = [SCORES, LABELS, change] if layout != "rows" else [padded(x, np.nan)[0] for x in (SCORES, LABELS, change)]
    scores, labels, tangent = (library.array(np.asarray(each, dtype=library.dtype)) for each in inputs)
    batch = {"offsets": {"offsets": library.array(offsets)}, "rows": {"mask": library.array(mask)}}.get(layout, {})
    factors = np.arange(1.0, n_queries + 1) if reduction == "none" else np.ones(1)
    shares = weight if reduction == "none" else weight / weight.sum()

    def losses(x):
        options = {"reduction": reduction, "weights": weight, **batch, **EXACT}
        return library.adapter.expected_metric_loss(x, labels, **options)

    def loss(x):
        return (losses(x) * library.array(factors)).sum()

    gradient = -shares[query] * plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=offsets)
    slopes = np.bincount(query, gradient * change, n_queries)
    _, got = func.jvp(losses, (scores,), (tangent,))
    np.testing.assert_allclose(got, slopes if reduction == "none" else slopes.sum(), rtol=1e-4, atol=1e-5)
    product = -(factors * shares)[query] * plr.pl_rank_exact_hvp(SCORES, LABELS, WEIGHTS, change, offsets=offsets)
    places = mask.reshape(-1) if layout == "rows" else slice(None)
    for outer, inner in itertools.product((func.jacrev, func.jacfwd), repeat=2):
        if isinstance(library, Torch) and outer is inner is func.jacfwd:
            with pytest.raises(RuntimeError, match="cannot be differentiated twice in forward mode"):
                outer(inner(loss))(scores)
            continue
        hessian = np.asarray(outer(inner(loss))(scores)).reshape(2 * [int(np.prod(scores.shape))])
        np.testing.assert_allclose(hessian[places][:, places] @ change, product, rtol=1e-4, atol=1e-5)
    with pytest.raises((RuntimeError, TypeError), match="cannot be differentiated"):
        func.jacrev(func.hessian(loss))(scores)


def test_second_derivatives_that_are_refused(library):
    """Second derivatives of sampled methods are not taken for zero. Mutant: no check of what is perturbed."""
    with pytest.raises(Exception, match=r"second derivatives need method='exact', got '(pl_rank_)?cmc'"):
        library.func.hessian(
            lambda x: library.adapter.expected_metric_loss(x, LABELS, OFFSETS, method="cmc", **DCG)
        )(library.array(SCORES))  # fmt: skip


def test_rows_by_vmap(library):
    """Results equal single calls. Mutants: every row gets the first one's mask, labels or key."""
    rows, labels, mask = (library.array(each) for each in (padded(SCORES, 0.0)[0], *padded(LABELS, 0.0)))
    rows, labels = (library.array(each, np.dtype(library.dtype).name) for each in (rows, labels))

    def loss(scores, labels, mask):
        return library.adapter.expected_metric_loss(scores, labels, mask=mask, **EXACT)

    func = library.func
    of_each = func.vmap(func.grad(loss))(rows, labels, mask)
    of_sum = func.grad(lambda rows: func.vmap(loss)(rows, labels, mask).sum())(rows)
    for query in range(N_QUERIES):
        alone = func.grad(loss)(rows[query], labels[query], mask[query])
        np.testing.assert_array_equal(of_each[query], alone)
        np.testing.assert_array_equal(of_sum[query], alone)


# --- errors


@pytest.mark.parametrize(
    ("error", "message", "scores", "labels", "options"),
    [
        (TypeError, "scores must be .*floating", np.arange(3), LABELS[:3], {}),
        (ValueError, "scores must have shape", SCORES.reshape(2, 2, 4), LABELS, {}),
        (ValueError, "scores must have shape .* with offsets", SCORES.reshape(4, 4), LABELS, {"offsets": OFFSETS}),
        (ValueError, "labels must have the shape of scores", SCORES, LABELS[1:], {}),
        (TypeError, "labels must not be a masked array", SCORES, np.ma.array(LABELS, mask=LABELS > 2), {}),
        (TypeError, "mask must be of booleans", SCORES, LABELS, {"mask": np.ones(N_DOCS)}),
        (ValueError, "mask must have the shape", SCORES, LABELS, {"mask": np.ones(3, dtype=bool)}),
        (ValueError, "offsets only goes with mask=None", SCORES, LABELS, {"offsets": OFFSETS, "mask": LABELS > 0}),
        (ValueError, "weights must have one entry", SCORES, LABELS, {"offsets": OFFSETS, "weights": [1.0]}),
        (TypeError, r"argument 'qid': pass offsets=offsets_from_qid\(qid\)", SCORES, LABELS, {"qid": OFFSETS}),
    ],
)  # fmt: skip
def test_errors_name_the_argument(library, error, message, scores, labels, options):
    """In JAX when a call is traced. Mutant: a shape left to the host, where JAX allows no exception."""
    with pytest.raises(error, match=message):
        np.asarray(library.adapter.expected_metric_loss(library.array(scores), labels, **options))


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("labels must be from 0 to 200, got -1.0 at index 1.*: set grades below 0 to 0", {"labels": -LABELS}),
        ("labels must be at least 0, .*: NDCG is a share", {"labels": LABELS - 1e-3, "gain": "linear"}),
        ("rank_weights must be at least 0, .*: NDCG is a share", {"rank_weights": [1.0, -1.0]}),
        ("weights must be at least 0", {"weights": [-1.0]}),
        ("key must not be negative, got -1 at index 1", {"method": "cmc", "key": np.array([3, -1])}),
        (r"scores must be finite, got nan at index 1( \(query 0\))?", {"scores": np.append([0.0, np.nan], SCORES[2:])}),
        ("scores must be finite, got -inf at .* by mask=scores > -inf", {"scores": np.append(SCORES[1:], -np.inf)}),
    ],
)
def test_values_that_are_refused(library, message, options):
    """In JAX when the call is executed, jitted or not. Without a target of XLA they become NaN, in loss and gradient,
    with a warning; other rows of ``vmap`` keep theirs.

    Mutants: an exception in the callback; NaN without a word; a NaN for the other rows too; NaN from XLA.
    """
    options = {"scores": SCORES, "labels": LABELS} | options
    options = {name: each if isinstance(each, str) else library.array(each) for name, each in options.items()}
    if isinstance(library, Torch):
        if "key" not in options:
            with pytest.raises(ValueError, match=message):
                library.adapter.expected_metric_loss(**options)
        return
    scores = library.array(options.pop("scores"), "float32")

    def both(scores):
        return library.jax.value_and_grad(lambda x: library.adapter.expected_metric_loss(x, **options))(scores)

    for call in (both, library.jax.jit(both)):
        with pytest.raises(RuntimeError, match=f"INVALID_ARGUMENT: {message}"):
            library.jax.block_until_ready(call(scores))
    with library.by_callback():
        for call in (both, library.jax.jit(both)):
            with pytest.warns(UserWarning, match=f"{message}.*: the results in JAX are nan"):
                assert all(np.isnan(each).all() for each in library.jax.block_until_ready(call(scores)))
        if "finite, got nan" in message:
            rows = library.jax.numpy.stack([scores, library.array(SCORES, "float32")])
            assert np.isnan(library.jax.vmap(both)(rows)[1]).any(axis=1).tolist() == [True, False]


def warnings_of(library, scores, labels, **options):
    """The texts of the warnings of a loss, whose gradient is then 0."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, gradient = evaluate(library, scores, labels, **options)
    assert not caught or abs(gradient).max(initial=0.0) < 1e-9
    return [str(warning.message) for warning in caught if warning.category is UserWarning]


def test_a_batch_in_which_nothing_can_be_learned(library):
    """Mutants: no warning; one for a single query, or where the last one tells; labels in place of what they are worth
    to the metric; padding counted; each query of ``vmap`` judged alone."""
    (rows, mask), (of_rows, _) = padded(SCORES, 0.0), padded(LABELS, 0.0)
    nothing = "no query has documents of different labels, so there is nothing to learn: "
    of_mask, of_labels = "mask must be True for documents and False for padding", "check labels and where queries st"
    for method in ("exact", "pl_rank_3"):
        for wrong in (~mask, np.zeros_like(mask), np.zeros_like(mask)[:1]):
            told = warnings_of(library, rows[: len(wrong)], of_rows[: len(wrong)], mask=wrong, method=method)
            assert [text.startswith(nothing + of_mask) for text in told] == [True]
        told = warnings_of(library, SCORES, LABELS, offsets=np.arange(N_DOCS + 1), method=method)
        assert [text.startswith(nothing + of_labels) for text in told] == [True]
    assert warnings_of(library, SCORES, LABELS + 1, offsets=OFFSETS, metric="mrr")
    last = np.append(np.zeros(N_DOCS - 1), 1.0)
    for labels, options in (
        (last, {"offsets": OFFSETS}), (np.zeros(N_DOCS), {}), (of_rows, {"mask": mask}),
        (LABELS[:0], {"offsets": [0, 0, 0]}),
    ):  # fmt: skip
        scores = rows if "mask" in options else SCORES[: labels.size]
        assert warnings_of(library, scores, labels, **options) == []
    if isinstance(library, Jax):
        loss, arrays = (
            library.adapter.expected_metric_loss,
            [library.array(each) for each in (rows, of_rows, mask, ~mask)],
        )
        of_each = library.jax.vmap(lambda scores, labels, mask: loss(scores, labels, mask=mask))
        with pytest.warns(UserWarning, match=nothing + of_mask):
            library.jax.block_until_ready(of_each(*arrays[:2], arrays[3]))
        library.jax.block_until_ready(of_each(*arrays[:3]))


def test_a_batch_without_offsets(library):
    """More documents than a list of any public data set has. Mutants: no warning; one for a list, beside offsets, or
    for long rows; one from the host, too."""
    loss, many = (
        functools.partial(library.adapter.expected_metric_loss, method="cmc"),
        library.array(SCORES.repeat(126)),
    )
    labels = np.tile([0.0, 1.0], 1008)
    for shape in ((2016,), (2016, 1)):
        with pytest.warns(UserWarning, match=r"all 2016 documents count as one .* offsets=\[0, 2016\]") as caught:
            np.asarray(loss(many.reshape(shape), labels))
        assert len(caught) == 1
    for scores, options in ((many, {"offsets": [0, 2016]}), (many[:2000], {}), (many.reshape(1, 2016), {})):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.asarray(loss(scores, np.resize(labels, scores.shape), **options))


HOSTILE = (-(10**400), np.complex128(1), np.array([1.0, 2.0]), float("nan"), "0.5", object())


@pytest.mark.parametrize(
    "name",
    ["cutoff", "gain", "reduction", "method", "n_samples", "rtol", "n_threads", "source"],
)
def test_options_are_refused_by_name_and_not_by_the_host(library, name):
    """Mutants: an option left to the host, of which JAX makes an error of its own; one of the checks dropped."""
    for value in HOSTILE:
        if (name, type(value)) != ("n_threads", int):
            option = {library.source if name == "source" else name: value}
            with pytest.raises((TypeError, ValueError), match=next(iter(option))):
                library.adapter.expected_metric_loss(library.array(SCORES), LABELS, **{"method": "cmc"} | option)
