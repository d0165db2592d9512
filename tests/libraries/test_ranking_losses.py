"""The losses of ``plrank_fast.losses`` in PyTorch and JAX: their numbers, in every shape, and PyTorch's modules."""

import functools
import inspect
import itertools

import numpy as np
import pytest

import plrank_fast as plr
from frameworks import (
    IGNORED_WARNINGS,
    LABELS,
    N_DOCS,
    N_QUERIES,
    OFFSETS,
    QUERY,
    RNG,
    SCORES,
    UPSTREAM,
    Jax,
    Torch,
    padded,
)  # fmt: skip
from plrank_fast import losses, reference, validation
from plrank_fast.chunks import query_streams

pytestmark = IGNORED_WARNINGS

NAMES = validation.RankingLossName.__args__
OPTIONS = {
    "pointwise": {"kind": "squared"},
    "list_mle": {"cutoff": 3},
    "plackett_luce": {"cutoff": 2},
    "pairwise_logistic": {"slope": 2.0},
    "lambda_rank": {"cutoff": 3, "slope": 0.5, "truncation": "pairs", "gain": "linear"},
    "lambda_loss": {"cutoff": 3, "mu": 5.0, "gain": "linear"},
    "approx_ndcg": {"temperature": 0.3, "gain": "linear"},
    "soft_rank": {"cutoff": 2, "sigma": 0.7, "gain": "linear"},
}


def on_host(name, scores=SCORES, labels=LABELS, offsets=OFFSETS, **options):
    function = functools.partial(losses.list_mle, ties="exact") if name == "plackett_luce" else getattr(losses, name)
    return function(scores, labels, offsets=offsets, **OPTIONS.get(name, {}), **options)


@pytest.fixture(params=[Torch, Jax], ids=["PyTorch", "JAX"])
def library(request):
    return request.param()


def evaluate(library, name, scores=SCORES, labels=LABELS, upstream=1.0, **options):
    scores = np.asarray(scores, dtype=library.dtype)
    of_loss = {**OPTIONS.get(name, {}), **options}
    results = library.value_and_vjp(
        lambda x: library.adapter.ranking_loss(name, x, labels, **of_loss), scores, upstream
    )
    return [np.asarray(each) for each in results]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weights", [None, np.array([2.0, 1.0, 0.0, 1.0, 4.0])])
def test_numbers_of_the_functions(library, name, reduction, weights):
    """Mutants: an option dropped; another loss; the mean over documents; weights left out of the gradient; the upstream
    gradient of another query."""
    of_queries = np.ones(N_QUERIES) if weights is None else weights
    shares = of_queries / of_queries.sum() if reduction == "mean" else of_queries
    upstream = UPSTREAM if reduction == "none" else 3.0
    values, slopes = on_host(name)
    got = evaluate(library, name, upstream=upstream, offsets=OFFSETS, weights=weights, reduction=reduction)
    expected = shares * values
    near = {"rtol": max(1e-6, library.near), "atol": 1e-6}
    np.testing.assert_allclose(got[0], expected if reduction == "none" else expected.sum(), **near)
    np.testing.assert_allclose(got[1], slopes * (shares * upstream)[QUERY], **near)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_have_the_bits_of_the_ragged_batch(library, name):
    """Padded rows, whatever stands in the padding, a column, and rows without padding. Mutants: the mask inverted; the
    padding counted; slopes of padding not cleared."""
    value, gradient = evaluate(library, name, upstream=UPSTREAM, offsets=OFFSETS, reduction="none")
    (rows, mask), (labels, _) = padded(SCORES, np.nan), padded(LABELS, np.inf)
    of_rows = evaluate(library, name, rows, labels, UPSTREAM, mask=mask, reduction="none")
    column = evaluate(library, name, SCORES[:, np.newaxis], LABELS, UPSTREAM, offsets=OFFSETS, reduction="none")
    np.testing.assert_array_equal([of_rows[0], column[0]], [value, value])
    np.testing.assert_array_equal([of_rows[1][mask], column[1][:, 0]], [gradient, gradient])
    assert (of_rows[1][~mask] == 0.0).all()
    square = evaluate(library, name, SCORES.reshape(4, 4), LABELS.reshape(4, 4))
    flat = evaluate(library, name, offsets=np.arange(0, 17, 4))
    np.testing.assert_array_equal(square[1].reshape(-1), flat[1])


def test_ties_at_random(library):
    """By the generator or key. Mutants: the seed not handed on; the number of the first query dropped."""
    options = {"ties": "random", library.source: query_streams(5, 2), "reduction": "none"}
    labels = np.zeros(N_DOCS)
    got = evaluate(library, "list_mle", labels=labels, upstream=np.ones(N_QUERIES), offsets=OFFSETS, **options)
    values, slopes = on_host("list_mle", labels=labels, ties="random", rng=query_streams(5, 2))
    np.testing.assert_allclose(got[0], values, rtol=1e-5)
    np.testing.assert_allclose(got[1], slopes, rtol=1e-4, atol=1e-6)
    assert (
        len({str(evaluate(library, "list_mle", labels=labels, ties="random", **{library.source: i})) for i in range(5)})
        > 1
    )


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_forward_mode(library, reduction):
    """Mutants: the slope of another query; the padding's tangent counted."""
    change, offsets = RNG.normal(size=N_DOCS), library.array(OFFSETS)
    _, slopes = on_host("list_mle")
    expected = np.bincount(QUERY, slopes * change, N_QUERIES)
    scores, tangent, labels = (library.array(np.asarray(x, dtype=library.dtype)) for x in (SCORES, change, LABELS))

    def loss(x):
        return library.adapter.ranking_loss("list_mle", x, labels, offsets, reduction=reduction, cutoff=3)

    _, got = library.func.jvp(loss, (scores,), (tangent,))
    np.testing.assert_allclose(got, expected if reduction == "none" else expected.mean(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives_are_refused_by_name(library, name):
    """In both orders of modes. Mutant: a gradient that is a constant."""
    scores, labels = (library.array(np.asarray(x, dtype=library.dtype)) for x in (SCORES, LABELS))

    def loss(x):
        return library.adapter.ranking_loss(name, x, labels)

    for outer, inner in itertools.product((library.func.jacrev, library.func.jacfwd), repeat=2):
        if isinstance(library, Torch) and outer is library.func.jacfwd:
            continue  # forward mode over a function of autograd sees its ``jvp`` alone
        with pytest.raises((RuntimeError, TypeError), match=f"the loss '{name}' cannot be differentiated twice"):
            outer(inner(loss))(scores)


def test_rows_by_vmap(library):
    """Results equal single calls. Mutant: every row gets the labels of the first."""
    rows, labels, mask = (library.array(each) for each in (padded(SCORES, 0.0)[0], *padded(LABELS, 0.0)))
    rows, labels = (library.array(each, np.dtype(library.dtype).name) for each in (rows, labels))

    def loss(scores, labels, mask):
        return library.adapter.ranking_loss("lambda_rank", scores, labels, mask=mask)

    of_each = library.func.vmap(library.func.grad(loss))(rows, labels, mask)
    for query in range(N_QUERIES):
        alone = library.func.grad(loss)(rows[query], labels[query], mask[query])
        np.testing.assert_array_equal(of_each[query], alone)


@pytest.mark.parametrize(
    ("error", "message", "name", "options"),
    [
        (ValueError, "loss must be one of 'pointwise', .*got 'mse'", "mse", {}),
        (ValueError, "cutoff must be at least 0", "list_mle", {"cutoff": -1}),
        (ValueError, "ties must be one of", "list_mle", {"ties": "all"}),
        (TypeError, "unexpected keyword argument 'sigma'", "list_mle", {"sigma": 1.0}),
        (TypeError, "list_mle takes no option rng", "list_mle", {"rng": 1}),
        (ValueError, "slope must be positive", "lambda_rank", {"slope": 0.0}),
        (TypeError, "gain must be one of 'exponential', 'linear', got", "lambda_rank", {"gain": np.exp2}),
        (ValueError, "reduction must be one of", "lambda_rank", {"reduction": "max"}),
        (ValueError, "n_threads must be None", "lambda_rank", {"n_threads": 0}),
    ],
)
def test_options_are_refused_by_name(library, error, message, name, options):
    """Before the data are looked at. Mutant: options first seen by the host."""
    with pytest.raises(error, match=message):
        library.adapter.ranking_loss(name, library.array(SCORES.astype(library.dtype)), LABELS, **options)


def test_nothing_to_learn(library):
    """Mutants: no warning; one where labels differ."""
    with pytest.warns(UserWarning, match="no query has documents of different labels"):
        evaluate(library, "pairwise_logistic", labels=np.ones(N_DOCS), offsets=OFFSETS)


# --- modules of PyTorch

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
adapter = pytest.importorskip("plrank_fast.torch")
MODULES = {
    "pointwise": "PointwiseLoss",
    "softmax_cross_entropy": "SoftmaxCrossEntropyLoss",
    "list_mle": "ListMLELoss",
    "plackett_luce": "PlackettLuceLoss",
    "pairwise_logistic": "PairwiseLogisticLoss",
    "lambda_rank": "LambdaRankLoss",
    "lambda_loss": "LambdaLoss",
    "approx_ndcg": "ApproxNDCGLoss",
    "soft_rank": "SoftRankLoss",
}


def leaf(values=SCORES, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("name", NAMES)
def test_modules(name):
    """They have the defaults of the functions, and hand on options. Mutants: an option dropped; another default."""
    module = getattr(adapter, MODULES[name])
    given = inspect.signature(module).parameters
    function = inspect.signature(losses.list_mle if name == "plackett_luce" else getattr(losses, name)).parameters
    assert {*given} - {"reduction", "n_threads"} == {*function} & {*OPTIONS.get(name, {}), "ties", "slope"} - (
        {"ties"} if name == "plackett_luce" else set()
    )
    for option in {*given} - {"reduction", "n_threads"}:
        assert given[option].default == function[option].default
    loss = module(**OPTIONS.get(name, {}), reduction="none")
    np.testing.assert_array_equal(loss(leaf(), LABELS, OFFSETS).detach(), on_host(name)[0])
    assert all(f"{option}={value!r}" in repr(loss) for option, value in OPTIONS.get(name, {}).items())
    with pytest.raises((TypeError, ValueError), match="reduction"):
        module(reduction="max")


def test_jagged_tensors():
    filled = OFFSETS[[0, 1, 3, 4, 5]]
    values = leaf()
    scores = torch.nested.nested_tensor_from_jagged(values, torch.tensor(filled))
    adapter.SoftmaxCrossEntropyLoss(reduction="sum")(scores, LABELS).backward()
    np.testing.assert_array_equal(values.grad, on_host("softmax_cross_entropy", offsets=filled)[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes(dtype):
    """Mutant: a gradient of float32 for halves."""
    scores = torch.tensor(SCORES, dtype=dtype, requires_grad=True)
    loss = adapter.ListMLELoss()(scores, LABELS, OFFSETS)
    loss.backward()
    assert loss.dtype == scores.grad.dtype == dtype
    exact = on_host("plackett_luce", scores.detach().double().numpy())
    assert exact[0].size == N_QUERIES
    expected = losses.list_mle(scores.detach().double().numpy(), LABELS, offsets=OFFSETS)[1] / N_QUERIES
    np.testing.assert_allclose(scores.grad.double(), expected, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("name", ["soft_rank", "list_mle"])
def test_operator_compiled_and_exported(name):
    """By PyTorch's own check, in one graph, and as a program. Mutants: the shape of rows for offsets; a break."""
    call = adapter.loss_call(name, OPTIONS[name])[0]
    rows, mask = padded(SCORES, 0.0)
    offsets, labels = torch.tensor(OFFSETS), torch.tensor(LABELS)
    for inputs in (
        (leaf(), labels, offsets, None, None, None, call, "none", None, 0),
        (leaf(rows, torch.float32), torch.tensor(padded(LABELS, 0.0)[0]), None, torch.tensor(mask), None, None, call,
         "mean", None, 0),
    ):  # fmt: skip
        torch.library.opcheck(torch.ops.plrank_fast.ranking_loss.default, inputs)
    loss = getattr(adapter, MODULES[name])(**OPTIONS[name])
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    exported = torch.export.export(loss, (leaf(), labels, offsets)).module()
    for function in (compiled, exported):
        scores = leaf()
        function(scores, labels, offsets).backward()
        np.testing.assert_array_equal(scores.grad, on_host(name)[1] * (1.0 / N_QUERIES))


@pytest.mark.parametrize("cutoff", [None, 0, 1, 2, 5])
def test_plackett_luce_loss_of_rankings(cutoff):
    """Sums over all orders that agree, for whole rankings and for those that end early, and labels in their place.

    Mutants: ranks counted from the worst; a ranking of another query; documents that are not ranked before the others.
    """
    loss = adapter.PlackettLuceLoss(cutoff, reduction="none")
    rows = RNG.normal(size=(3, 4))
    rankings = np.array([[2, 0, 3, 1], [1, 3, -1, -1], [0, -1, -1, -1]])
    every = reference.all_rankings(4)
    expected = []
    for scores, ranking in zip(rows, rankings, strict=True):
        known = ranking[ranking >= 0][:cutoff]
        agree = [order for order in every if (order[: known.size] == known).all()]
        expected.append(-np.log(np.exp(plr.ranking_log_prob(scores, agree)).sum()))
    got = loss(leaf(rows), rankings=rankings)
    np.testing.assert_allclose(got.detach(), expected, rtol=1e-9, atol=1e-10)
    labels = np.zeros((3, 4))
    for row, ranking in zip(labels, rankings, strict=True):
        for rank, item in enumerate(ranking[ranking >= 0]):
            row[item] = 4 - rank
    assert torch.equal(loss(leaf(rows), labels), got)
    flat = loss(leaf(rows.reshape(-1)), offsets=[0, 4, 8, 12], rankings=torch.tensor(rankings))
    assert torch.equal(flat, got)


def test_two_answers_are_dpo():
    """Mutant: a mean over answers."""
    scores = leaf([[0.3, 1.1], [2.0, -1.0]])
    loss = adapter.PlackettLuceLoss()(scores, rankings=[[1, 0], [1, 0]])
    expected = -torch.nn.functional.logsigmoid(scores[:, 1] - scores[:, 0]).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)


def test_rankings_of_padded_rows():
    """They number the columns. Mutants: the places among documents; padding that is ranked taken."""
    rows, mask = np.array([[9.0, 0.3, 1.1, 0.2]]), np.array([[False, True, True, True]])
    loss = adapter.PlackettLuceLoss()(leaf(rows), rankings=[[3, 1, 2]], mask=mask)
    assert loss.item() == pytest.approx(-plr.ranking_log_prob(rows[0, 1:], [[2, 0, 1]])[0])
    for wrong, message in (
        ([[0, 1]], "rankings must hold documents, where mask is True"),
        ([[1, 1]], "rankings must not repeat an item, got 1 at"),
        ([[4]], "rankings must hold items 0 to 3"),
        ([1, 2], r"rankings must have shape \(1, length\)"),
    ):
        with pytest.raises(ValueError, match=message):
            adapter.PlackettLuceLoss()(leaf(rows), rankings=wrong, mask=mask)
    with pytest.raises(ValueError, match="only one of labels and rankings"):
        adapter.PlackettLuceLoss()(leaf(rows), rows, rankings=[[1]])
