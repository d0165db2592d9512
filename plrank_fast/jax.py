"""Loss for JAX, minus the expected metric, and the Plackett-Luce distribution, both differentiable.

One call of the CPU computes value and gradient in float64. The functions support ``jit``, ``grad``, ``vmap`` and
``jax.export``, and the loss also ``jvp``; the key of sampled methods is an argument that may be traced. Shapes and
types are checked when a call is traced. Where the values of arrays are refused, JAX raises an error that says why.

The call is a target of XLA's interface for foreign functions on the CPU, which takes a fifth of the time of
``pure_callback``. On other devices, and in JAX before 0.5, it is a callback. What a program of JAX does after an
exception in a callback is undefined, so that results are NaN there, and a warning says why.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._adapters import xla_calls
from plrank_fast._adapters.expected_loss import (
    CHECKS,
    check_second_derivatives,
    expected_loss,
    loss_options,
    seed_of,
    warn_if_all_alike,
)
from plrank_fast._adapters.layouts import check_shapes, layout_of, warn_if_one_list
from plrank_fast._adapters.ranking_loss import loss_call
from plrank_fast._adapters.ranking_loss import ranking_loss as ranking_loss_on_host
from plrank_fast._adapters.rows import log_prob_of_rows, sample_rows
from plrank_fast._methods.registry import EXACT
from plrank_fast._shared.extras import import_extra

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax = import_extra("jax", "jax")
    jnp = import_extra("jax.numpy", "jax")

__all__ = ["PlackettLuce", "expected_metric_loss", "ranking_loss"]


def __dir__() -> list[str]:
    return __all__


OPTIONAL = ("offsets", "mask", "weights", "rank_weights")


@validation.hinted
def expected_metric_loss(
    scores: Any,
    labels: Any,
    offsets: Any = None,
    *,
    mask: Any = None,
    weights: Any = None,
    metric: validation.MetricName = "ndcg",
    cutoff: int | None = 10,
    rank_weights: ArrayLike | None = None,
    gain: validation.Gain = "exponential",
    max_label: float | None = None,
    reduction: validation.Reduction = "mean",
    method: validation.Method = "auto",
    n_samples: int | None = None,
    rtol: float = 1e-6,
    key: Any = 0,
    n_threads: int | None = None,
) -> jax.Array:
    """Compute minus the expected metric of rankings drawn from the Plackett-Luce distribution of ``scores``.

    Parameters
    ----------
    scores : array, shape (n_docs,), (n_docs, 1) or (n_queries, length)
        The documents of all queries one after another, or a row for each query; of any floating dtype.
    labels : array, of the shape of scores or (n_docs,)
        Grade of each document, or its gain with ``gain="linear"``.
    offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default. Not for rows.
    mask : array of bool, of the shape of scores, optional
        True for documents, False for padding. With a mask, (length,) is a query, for ``vmap`` over rows.
    weights : array, tensor or array_like, shape (n_queries,), optional
        Weight of each query, at least 0.
    metric : {"ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"}
        Metric whose expectation is maximised, at K ranks: NDCG or DCG of gains, precision, recall, the reciprocal rank
        of the first relevant document (MRR), expected reciprocal rank (ERR), success (whether one of the K is relevant,
        the hit rate), or average precision. Documents with ``labels`` above 0 are relevant. "ndcg" takes no negative
        gains and rank weights, and is 0, with gradient 0, for queries without relevant documents. The last four need
        the exact method and have no second derivatives.
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Other weights of ranks for "ndcg" and "dcg", in place of ``cutoff``.
    gain : {"exponential", "linear"}
        Whether ``labels`` holds grades, whose gains in "ndcg" and "dcg" are 2**grade - 1, or gains.
    max_label : float, optional
        Highest grade of the scale in "err", which needs it, as a batch may lack that grade.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    method : str
        "exact" (``pl_rank_exact``), "cmc" (``pl_rank_cmc``), "pl_rank_3", "pl_rank_2", "pl_rank_1", "stochastic_rank"
        or "policy_gradient". "auto" is "exact", or one sample of "cmc" if the cost model finds that far cheaper.
    n_samples : int, optional
        Rankings per query of sampled methods; by default 1 for "cmc" and 100 for the others.
    rtol : float
        Relative tolerance of the exact method, from 1e-10 to below 1 (see ``pl_rank_exact`` for the bounds).
    key : key of ``jax.random``, int, or array of int
        Source of the random numbers, which may be traced.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    array
        A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``. Only the scores are
        differentiated; the exact method twice, in any modes.

    Notes
    -----
    Shapes, types and options are checked when a call is traced. Values that are refused, such as scores that are not
    finite, are an error when the call is executed, as ``JaxRuntimeError``; on other devices than the CPU loss and
    gradient are NaN, and a warning says why. ``jax.export`` serialises the loss for the CPU with
    ``disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("plrank_fast")]``; a process that calls it imports
    ``plrank_fast.jax`` first.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from plrank_fast.jax import expected_metric_loss
    >>> jax.grad(expected_metric_loss)(jnp.zeros(2), jnp.array([1.0, 0.0]), cutoff=1).round(3)
    Array([-0.25,  0.25], dtype=float32)
    """
    scores = _floating(scores)
    static = loss_options(
        metric, max_label, rank_weights, cutoff=cutoff, gain=gain, reduction=reduction,
        method=method, n_samples=n_samples, rtol=rtol, n_threads=n_threads,
    )  # fmt: skip
    data = {"labels": labels, "offsets": offsets, "mask": mask, "weights": weights, "rank_weights": rank_weights}
    key, first_query = validation.numbered_source(key)
    data |= {"key": _words(key), "first_query": _first_query(first_query)}
    validation.given(labels, "labels", "")
    if method == EXACT:  # an array costs a call as much as the gradient of a short list
        del data["key"], data["first_query"]
    return _loss(scores, _checked_arrays(scores, data), tuple(static.items()))


@validation.hinted
def ranking_loss(
    loss: validation.RankingLossName,
    scores: Any,
    labels: Any,
    offsets: Any = None,
    *,
    mask: Any = None,
    weights: Any = None,
    reduction: validation.Reduction = "mean",
    key: Any = 0,
    n_threads: int | None = None,
    **options: Any,
) -> jax.Array:
    """Compute a loss of ``plrank_fast.losses`` that JAX differentiates, once.

    Parameters
    ----------
    loss : {"pointwise", "softmax_cross_entropy", "list_mle", "plackett_luce", "pairwise_logistic", "lambda_rank", \
            "lambda_loss", "approx_ndcg", "soft_rank"}
        Function of ``plrank_fast.losses``. "plackett_luce" is "list_mle" with ``ties="exact"``: the negative
        log-likelihood of the order of the labels.
    scores : array, shape (n_docs,), (n_docs, 1) or (n_queries, length)
        The documents of all queries one after another, or a row for each query; of any floating dtype.
    labels : array, of the shape of scores or (n_docs,)
        Grade of each document.
    offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default. Not for rows.
    mask : array of bool, of the shape of scores, optional
        True for documents, False for padding. With a mask, (length,) is a query, for ``vmap`` over rows.
    weights : array, tensor or array_like, shape (n_queries,), optional
        Weight of each query, at least 0.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    key : key of ``jax.random``, int, or array of int
        Source of the random numbers, which may be traced.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    **options
        Options of the function of ``plrank_fast.losses``, such as ``cutoff``.

    Returns
    -------
    array
        A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from plrank_fast.jax import ranking_loss
    >>> gradient = jax.grad(lambda scores: ranking_loss("list_mle", scores, jnp.array([2, 1, 0])))(jnp.zeros(3))
    >>> [f"{each:.3f}" for each in gradient]
    ['-0.667', '-0.167', '0.833']
    """
    scores = _floating(scores)
    call, draws = loss_call(loss, options)
    static = {"call": call, "reduction": CHECKS["reduction"](reduction), "n_threads": CHECKS["n_threads"](n_threads)}
    validation.given(labels, "labels", "")
    data = {"labels": labels, "offsets": offsets, "mask": mask, "weights": weights}
    if draws:
        key, first_query = validation.numbered_source(key)
        data |= {"key": _words(key), "first_query": _first_query(first_query)}
    return _loss(scores, _checked_arrays(scores, data), tuple(static.items()))


def _checked_arrays(scores: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Return arrays of the arguments of a loss that are given, after a check of shapes, types and known offsets."""
    arrays = {name: _constant(value, name) for name, value in data.items() if value is not None}
    check_shapes(scores.shape, **arrays)
    offsets = data["offsets"]
    warn_if_one_list(scores.shape, offsets, data["mask"])
    if isinstance(offsets, jax.Array):
        _whole_numbers(offsets, "offsets")
    elif offsets is not None:
        validation.query_offsets(offsets, scores.size)
    return arrays


@partial(jax.jit, static_argnums=2)  # its results can be used on a mesh; an eager call's cannot
def _loss(scores: Any, arrays: dict[str, Any], static: tuple[tuple[str, Any], ...]) -> Any:
    whole, arrays = _whole((scores, arrays))
    differentiable = _once_differentiable if "call" in dict(static) else _differentiable
    values = differentiable(static)(_for_host(whole, arrays), arrays)
    return (values if dict(static)["reduction"] == "none" else values.sum()).astype(scores.dtype)


def _words(key: Any) -> Any:
    """Return an array of a key's 32-bit words; of an int, those into which ``SeedSequence`` splits an int."""
    if isinstance(key, (int, np.integer)):
        number = validation.count(key, "key", 0)
        return np.frombuffer(number.to_bytes(4 * max(1, -(-number.bit_length() // 32)), "little"), dtype="<u4")
    array = _numbers(key, "key")
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        validation.require(array.ndim == 0, f"key must be a single one, got keys of shape {array.shape}")
        return jax.random.bits(array, (4,), jnp.uint32)  # a use of the key, of which ``jax.debug_key_reuse`` knows
    whole = jnp.issubdtype(array.dtype, jnp.integer)
    validation.of_type(whole, "key", "a key, an int or an array of integers", f"dtype {array.dtype}")
    if not isinstance(key, jax.Array):
        _checked_words(np.asarray(key).reshape(-1))
    return array.reshape(-1)


def _first_query(number: Any) -> Any:
    """Return the number of the first query, which may be traced."""
    if not isinstance(number, jax.Array):
        return validation.count(number, "first_query", 0)
    array = _whole_numbers(number, "first_query")
    validation.require(array.ndim == 0, "first_query must be an integer, got an array")
    return array


def _checked_words(words: NDArray[Any]) -> list[int]:
    """Return the words of a key once their values are known."""
    return validation.each(words >= 0, words, "key", "not be negative").tolist()


def _seed_of(words: NDArray[Any]) -> Any:
    return seed_of(_checked_words(words), 32)


def _constant(values: Any, name: str) -> Any:
    """Return an array of the values that refuses differentiation by it, of a dtype that NumPy has."""
    refusal = f"{name} must not be differentiated: pass jax.lax.stop_gradient({name})"
    array = _numbers(values, name)
    if jnp.issubdtype(array.dtype, jnp.floating) and array.dtype != jnp.float64:
        array = array.astype(jnp.float32)
    validation.of_type(array.dtype.kind in "biuf", name, "of real numbers", array.dtype)
    return _undifferentiated(array, refusal)


def _undifferentiated(array: Any, refusal: str) -> Any:
    """Return the array; whoever differentiates by it is refused."""

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def identity(array: Any) -> Any:
        return array

    @identity.defjvp  # type: ignore[untyped-decorator]
    def refuse(primals: Any, tangents: Any) -> Any:
        validation.require(False, refusal, TypeError)

    return identity(array)


def _numbers(values: Any, name: str) -> Any:
    """Return a JAX array from anything that holds real numbers."""
    if isinstance(values, jax.Array):
        return values
    array = validation.numbers(values, name)
    if array.dtype.kind in "iu":  # of 64 bits in 32, they would wrap around
        limits = np.iinfo(jax.dtypes.canonicalize_dtype(array.dtype))
        validation.each((array >= limits.min) & (array <= limits.max), array, name, f"fit {limits.dtype}")
    return jnp.asarray(array)


def _whole(arrays: Any) -> Any:
    """Return the arrays replicated where their types say how they are cut, as on a mesh with Explicit axes."""

    def whole(array: Any) -> Any:
        sharding = jax.typeof(array).sharding
        if not any(sharding.spec):
            return array
        return jax.sharding.reshard(array, jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec()))

    return jax.tree.map(whole, arrays) if hasattr(jax.sharding, "reshard") else arrays


def _zero(*trees: Any) -> Any:
    """Return a zero that varies along those axes of a mesh along which any of the arrays does, for ``shard_map``.

    It is a sum over no entries, whatever the arrays hold.
    """
    arrays = jax.lax.stop_gradient(jax.tree.leaves(trees))
    return sum(jnp.sum(array, dtype=jnp.float32, where=False) for array in arrays)


def _for_host(scores: Any, others: Any) -> Any:
    """Return scores in the dtype of the host's results, which vary along a mesh as they and the others do."""
    wide = scores.astype(jnp.float64 if scores.dtype == jnp.float64 else jnp.float32)
    return wide + _zero(wide, others).astype(wide.dtype)


@lru_cache(maxsize=256)  # a single object for each, as JAX compiles the call of another one anew
def _callback(name: str, *static: Any) -> Any:
    return partial(HOST[name], False, *static)


def _call_of(text: str) -> Any:
    """Return the function of a call of XLA, which is known by name and by options that JSON can hold."""
    name, static = json.loads(text)
    function = partial(HOST[name], True, *(tuple(each) if isinstance(each, list) else each for each in static))
    return function if name == "losses" else lambda *arguments: (function(*arguments),)


def _register() -> bool:
    """Register the target of calls with XLA; return whether JAX knows of such targets."""
    try:
        importlib.import_module("jax.ffi").register_ffi_target(TARGET, xla_calls.calls_by(_call_of), platform="cpu")
    except (ImportError, RuntimeError):  # an older JAX, or one of another version of the interface
        return False
    return True


def _call_host(name: str, static: tuple[Any, ...], results: Any, *arguments: Any) -> Any:
    """Call ``HOST[name](raises, *static, *arguments)`` on the host; results vary along a mesh as the arguments do."""

    def by_xla(*arguments: Any) -> Any:
        call = jax.ffi.ffi_call(TARGET, results, vmap_method="broadcast_all")
        return call(*arguments, call=json.dumps([name, static]))

    def by_callback(*arguments: Any) -> Any:
        return jax.pure_callback(_callback(name, *static), results, *arguments, vmap_method="broadcast_all")

    if KNOWN_TO_XLA:
        answer = jax.lax.platform_dependent(*arguments, cpu=by_xla, default=by_callback)
    else:
        answer = by_callback(*arguments)
    zero = _zero(*arguments)
    return jax.tree.map(lambda array: array + zero.astype(array.dtype), answer)


def _differentiable(static: tuple[tuple[str, Any], ...]) -> Any:
    """Return the loss of each query as a function of scores and arrays that JAX can differentiate by the scores."""

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def evaluate(scores: Any, arrays: dict[str, Any]) -> Any:
        return _evaluate(scores, arrays, static)

    def product(scores: Any, arrays: dict[str, Any], direction: Any) -> Any:
        """Multiply by the Hessian: JAX transposes a symmetric solver, which it takes for linear, and nothing else."""
        options = dict(static)
        check_second_derivatives(options["method"], options["metric"])
        fixed = _undifferentiated(scores, "second derivatives cannot be differentiated: there are no third ones")

        def multiply(_: Any, vector: Any) -> Any:
            return _evaluate(fixed, arrays | {"direction": vector}, static)[1]

        return jax.lax.custom_linear_solve(lambda x: x, direction, multiply, symmetric=True)

    @evaluate.defjvp  # type: ignore[untyped-decorator]
    def change(primals: Any, tangents: Any) -> Any:
        losses, gradient = evaluate(*primals)
        changes = _slopes(losses, gradient, primals[1], tangents[0]), product(primals[0], primals[1], tangents[0])
        return (losses, gradient), changes

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def loss(scores: Any, arrays: dict[str, Any]) -> Any:
        return evaluate(scores, arrays)[0]

    @loss.defjvp  # type: ignore[untyped-decorator]
    def slope(primals: Any, tangents: Any) -> Any:
        losses, gradient = evaluate(*primals)
        return losses, _slopes(losses, gradient, primals[1], tangents[0])

    return loss


def _once_differentiable(static: tuple[tuple[str, Any], ...]) -> Any:
    """Return a loss of ``plrank_fast.losses`` as a function that JAX can differentiate by the scores once."""
    name = json.loads(dict(static)["call"])[0]
    refusal = f"the loss {name!r} cannot be differentiated twice: it has no second derivative"

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def loss(scores: Any, arrays: dict[str, Any]) -> Any:
        return _evaluate(scores, arrays, static)[0]

    @loss.defjvp  # type: ignore[untyped-decorator]
    def slope(primals: Any, tangents: Any) -> Any:
        losses, gradient = _evaluate(_undifferentiated(primals[0], refusal), primals[1], static)
        return losses, _slopes(losses, gradient, primals[1], tangents[0])

    return loss


def _slopes(losses: Any, gradient: Any, arrays: dict[str, Any], direction: Any) -> Any:
    """Return the slope of each query's loss along a direction of the scores."""
    offsets, mask = (arrays.get(name) for name in ("offsets", "mask"))
    products = gradient * (direction if mask is None else jnp.where(mask, direction, 0.0))
    if losses.size == 1:
        return products.sum().reshape(1)
    if offsets is None:
        return products.sum(axis=1)
    query = jnp.searchsorted(offsets, jnp.arange(products.size), side="right") - 1
    return jnp.zeros_like(losses).at[query].add(products.reshape(-1))


def _evaluate(scores: Any, arrays: dict[str, Any], static: tuple[tuple[str, Any], ...]) -> Any:
    """Compute the loss of each query and the gradient of their sum, by a call of the host."""
    n_queries = check_shapes(scores.shape, **arrays)
    results = jax.ShapeDtypeStruct((n_queries,), scores.dtype), jax.ShapeDtypeStruct(scores.shape, scores.dtype)
    return _call_host("losses", (static, n_queries, scores.ndim, tuple(arrays)), results, scores, *arrays.values())


@contextlib.contextmanager
def _nan_where_refused(raises: bool, *results: NDArray[Any]) -> Iterator[None]:
    """Let the host raise errors about the values of arrays; or fill results with NaN, or with -1 for integers."""
    try:
        yield
    except Exception as error:
        if raises:
            raise
        for result in results:
            result.fill(-1 if result.dtype.kind == "i" else np.nan)
        with contextlib.suppress(Warning):  # where warnings are errors
            validation.warn(f"{error}: the results in JAX are {results[0].flat[0]}")


@contextlib.contextmanager
def _query_named(scores: NDArray[Any], arrays: dict[str, Any]) -> Iterator[None]:
    """Add the query to an error about a document, whose index is its place among the documents of all."""
    offsets, mask = arrays["offsets"], arrays["mask"]
    try:
        yield
    except ValueError as error:
        if told := re.match(r"(?:scores|labels) must .* at index (\d+)", str(error)):
            query = layout_of(scores.shape, offsets, mask).offsets.searchsorted(int(told[1]), side="right") - 1
            error.args = (f"{told[0]} (query {query}){str(error)[told.end() :]}",)
        raise


def _losses_on_host(
    raises: bool, static: tuple[tuple[str, Any], ...], n_queries: int, n_axes: int, names: tuple[str, ...], scores: Any,
    *others: Any,
) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
    """Compute the loss of one batch, or of each that ``vmap`` has stacked."""
    scores, arrays = np.asarray(scores), dict(zip(names, map(np.asarray, others), strict=True))
    options = dict(static)
    evaluate: Any = ranking_loss_on_host if "call" in options else expected_loss
    stacked = scores.shape[: scores.ndim - n_axes]
    dtype = np.float32 if scores.dtype == np.float32 else np.float64  # NumPy has no bfloat16
    values, gradient = np.empty((*stacked, n_queries)), np.empty(scores.shape, dtype)
    all_alike = True
    for index in np.ndindex(stacked):
        batch: dict[str, Any] = {name: array[index] for name, array in arrays.items()}
        words, first_query = batch.pop("key", np.empty(0)), int(batch.pop("first_query", 0))
        batch = {**dict.fromkeys(OPTIONAL), **batch}
        with _nan_where_refused(raises, values[index], gradient[index]), _query_named(scores[index], batch):
            values[index], alike = evaluate(
                scores[index], batch.pop("labels").astype(np.float64), seed=partial(_seed_of, words),
                first_query=first_query, gradient=gradient[index], **batch, **options,
            )  # fmt: skip
            all_alike &= alike
    with contextlib.suppress(Warning):  # where warnings are errors
        warn_if_all_alike(all_alike, values.size, arrays.get("mask"))
    return values.astype(scores.dtype), gradient.astype(scores.dtype, copy=False)


class PlackettLuce:
    """The Plackett-Luce distribution over rankings, or over their first ranks, for JAX.

    It is a pytree whose only leaf is the array of scores, and may be passed through ``jit``, ``grad`` and ``vmap``.

    Parameters
    ----------
    scores : array, shape (..., n_items)
        Log-weights, of any floating dtype; the axes before the last are the batch. An item with the score -inf has
        weight 0, as an action that is masked: no ranking holds it.
    cutoff : int, optional
        Ranks of a ranking, K; all items by default.

    Attributes
    ----------
    scores : array
    cutoff : int
    batch_shape, event_shape : tuple of int
        Shape of the axes before the last, and (K,).

    Notes
    -----
    Computations are on the CPU in float64. Rankings drawn end, with -1, after the items of positive weight where these
    are fewer than ``cutoff``. Values of scores or rankings that are refused are errors, as those of the loss; on other
    devices than the CPU draws are -1 and log-probabilities NaN, and a warning says why. ``plrank_fast.PlackettLuce``
    takes queries of different lengths, and has marginals, and standard errors of entropy and divergence.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from plrank_fast.jax import PlackettLuce
    >>> policy = PlackettLuce(jnp.log(jnp.array([1.0, 2.0, 1.0])), cutoff=2)
    >>> policy.mode(), policy.sample(jax.random.key(0), (5,)).shape
    (Array([1, 0], dtype=int32), (5, 2))
    >>> (12 * jnp.exp(policy.log_prob(jnp.array([[1, 0], [0, 1]])))).round(4)
    Array([3., 2.], dtype=float32)
    """

    def __init__(self, scores: Any, cutoff: int | None = None) -> None:
        self.scores: jax.Array = _floating(scores)
        validation.require(self.scores.ndim > 0, "scores must have an axis of items, got a scalar")
        self.cutoff: int = validation.ranks_that_count(cutoff, self.scores.shape[-1])

    def __repr__(self) -> str:
        """Return a text with the shapes."""
        return f"PlackettLuce(batch_shape={self.batch_shape}, event_shape={self.event_shape})"

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Axes of the scores before the last."""
        return tuple(self.scores.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of a ranking: (cutoff,)."""
        return (self.cutoff,)

    @validation.hinted
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw rankings, without a gradient.

        Parameters
        ----------
        key : key of ``jax.random``, int, or array of int
            Source of the random numbers, which may be traced.
        sample_shape : tuple of int
            Shape of the rankings to draw from each distribution of the batch.

        Returns
        -------
        array of int32, shape sample_shape + batch_shape + (cutoff,)
        """
        is_shape, kind = isinstance(sample_shape, (tuple, list)), type(sample_shape).__name__
        validation.of_type(is_shape, "sample_shape", "a tuple of integers", kind)
        shape = tuple(validation.count(size, "sample_shape", 0) for size in sample_shape)
        result = jax.ShapeDtypeStruct((*shape, *self.batch_shape, self.cutoff), jnp.int32)
        if 0 in result.shape:
            return jnp.zeros(result.shape, jnp.int32)
        return _draw(jax.lax.stop_gradient(self.scores), jnp.asarray(_words(key)), result)

    def log_prob(self, rankings: Any = None, *, buckets: Any = None) -> jax.Array:
        """Compute the log-probability of rankings, or of rankings with ties, differentiable once by the scores.

        Parameters
        ----------
        rankings : array of int, shape (..., length)
            Rankings of at most ``cutoff`` ranks; the axes before the last broadcast against the batch. A ranking may
            end early, with -1 after its last item, and one that holds an item of weight 0 has -inf and no gradient.
        buckets : array of int, shape (..., n_items)
            In place of rankings: items of a smaller number come first, items of the same number in any order. A set
            that comes first has 0 for its members and 1 for the rest.

        Returns
        -------
        array
            Log-probabilities in the dtype of the scores, without the last axis.
        """
        name, given = validation.only_one({"rankings": rankings, "buckets": buckets})
        rankings = _whole_numbers(given, name)
        validation.require(rankings.ndim > 0, f"{name} must have an axis of items, got a scalar")
        tied = name == "buckets"
        if tied:
            same, n_items = rankings.shape[-1:] == self.scores.shape[-1:], self.scores.shape[-1]
            validation.require(same, f"buckets must have one entry per item, {n_items}, got shape {rankings.shape}")
        else:
            validation.no_longer_than(rankings.shape, self.cutoff, "rankings")
        shape = validation.broadcast_with_batch(rankings.shape[:-1], self.batch_shape, name)
        return jnp.zeros(shape, self.scores.dtype) if 0 in shape else _log_prob_of(self.scores, rankings, shape, tied)

    @validation.hinted
    def entropy(self, key: Any, n_samples: int = 1000) -> jax.Array:
        """Estimate the entropy in nats, differentiable by the scores; value and gradient are unbiased.

        Parameters
        ----------
        key : key of ``jax.random``, int, or array of int
            Source of the random numbers, which may be traced.
        n_samples : int
            Rankings to draw from each distribution of the batch, at least 2.

        Returns
        -------
        array, shape batch_shape
        """
        return -self._mean_log_ratio(None, key, n_samples)

    @validation.hinted
    def kl(self, other: PlackettLuce, key: Any, n_samples: int = 1000) -> jax.Array:
        """Estimate the Kullback-Leibler divergence from ``other`` in nats; value and gradient are unbiased.

        Parameters
        ----------
        other : PlackettLuce
            Distribution over the same items; its scores are differentiated too.
        key : key of ``jax.random``, int, or array of int
            Source of the random numbers, which may be traced.
        n_samples : int
            Rankings to draw from each distribution of the batch, at least 2.

        Returns
        -------
        array, shape batch_shape
        """
        return self._mean_log_ratio(other, key, n_samples)

    def _mean_log_ratio(self, other: PlackettLuce | None, key: Any, n_samples: int) -> Any:
        """Estimate E[log p - log other] and its score-function gradient, with the mean of other draws as baseline."""
        rankings = self.sample(key, (validation.count(n_samples, "n_samples", 2),))
        log_prob = self.log_prob(rankings)
        constant = jax.lax.stop_gradient(log_prob)
        ratio = constant - (0.0 if other is None else other.log_prob(rankings))
        centred = jnp.nan_to_num(jax.lax.stop_gradient(ratio - ratio.mean(0)), posinf=0.0, neginf=0.0)
        centred = centred * (n_samples / (n_samples - 1))
        return (ratio + centred * (log_prob - constant)).mean(0)

    def mode(self) -> jax.Array:
        """Return the most probable ranking, by descending score; of equal scores the lower index comes first.

        Returns
        -------
        array of int32, shape batch_shape + (cutoff,)
        """
        order = jnp.argsort(self.scores, axis=-1, descending=True, stable=True)[..., : self.cutoff]
        possible = jnp.take_along_axis(self.scores, order, axis=-1) > -jnp.inf
        return jnp.where(possible, order, -1).astype(jnp.int32)


def _unflatten(cutoff: int, leaves: tuple[Any]) -> PlackettLuce:
    """Rebuild a policy without checks, as JAX also fills pytrees with other objects than arrays."""
    policy = object.__new__(PlackettLuce)
    policy.scores, policy.cutoff = leaves[0], cutoff
    return policy


jax.tree_util.register_pytree_node(PlackettLuce, lambda policy: ((policy.scores,), policy.cutoff), _unflatten)


@partial(jax.jit, static_argnums=2)
def _draw(scores: Any, words: Any, result: Any) -> Any:
    return _call_host("draw", (result.shape, scores.ndim), result, *_whole((scores, words)))


def _draw_on_host(raises: bool, shape: tuple[int, ...], n_axes: int, scores: Any, words: Any) -> NDArray[np.int32]:
    """Draw rankings of this shape from one batch, or from each that ``vmap`` has stacked."""
    scores, words = np.asarray(scores), np.asarray(words)
    stacked = scores.shape[: scores.ndim - n_axes]
    rankings = np.empty(stacked + shape, dtype=np.int32)
    for index in np.ndindex(stacked):
        rows = scores[index].reshape(-1, scores.shape[-1]).astype(np.float64)
        with _nan_where_refused(raises, rankings[index]):
            rng = np.random.SeedSequence(_checked_words(words[index]))
            drawn = sample_rows(rows, math.prod(shape[:-1]) // len(rows), shape[-1], rng)
            rankings[index] = np.moveaxis(drawn, 1, 0).reshape(shape)
    return rankings


def _floating(scores: Any) -> Any:
    scores = _numbers(scores, "scores")
    validation.of_type(jnp.issubdtype(scores.dtype, jnp.floating), "scores", "of a floating dtype", scores.dtype)
    return scores


def _whole_numbers(array: Any, name: str) -> Any:
    array = _numbers(array, name)
    validation.of_type(jnp.issubdtype(array.dtype, jnp.integer), name, "of integers", array.dtype)
    return array


def _rows_on_host(raises: bool, tied: bool, scores: Any, rankings: Any, *upstream: Any) -> NDArray[Any]:
    """Compute log-probabilities, or with ``upstream`` their gradient; all axes before a query's own are queries."""
    scores, rankings, *cotangent = map(np.asarray, (scores, rankings, *upstream))
    n_queries = math.prod(scores.shape[:-1])
    rows, of_rows = scores.reshape(n_queries, scores.shape[-1]), rankings.reshape(n_queries, *rankings.shape[-2:])
    values = np.empty(rows.shape if upstream else of_rows.shape[:-1])
    with _nan_where_refused(raises, values):
        values[:] = log_prob_of_rows(rows, of_rows, tied, *(each.reshape(of_rows.shape[:-1]) for each in cotangent))
    return values.reshape(scores.shape if upstream else rankings.shape[:-1]).astype(scores.dtype)


@partial(jax.jit, static_argnums=(2, 3))
def _log_prob_of(scores: Any, rankings: Any, shape: tuple[int, ...], tied: bool) -> Any:
    """Compute log-probabilities of this shape: each entry of the batch is a row of scores, with all of its rankings."""
    whole, rankings = _whole((scores, rankings))
    (*batch, n_items), length = scores.shape, rankings.shape[-1]
    batch = shape[len(shape) - len(batch) :]
    n_queries = math.prod(batch)
    rows = jnp.broadcast_to(whole, (*batch, n_items)).reshape(n_queries, n_items)
    of_rows = jnp.broadcast_to(rankings, (*shape, length)).reshape(math.prod(shape) // n_queries, n_queries, length)
    log_prob = _log_prob(_for_host(rows, of_rows), of_rows.swapaxes(0, 1).astype(jnp.int32), tied)
    return log_prob.swapaxes(0, 1).reshape(shape).astype(scores.dtype)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _log_prob(scores: Any, rankings: Any, tied: bool) -> Any:
    result = jax.ShapeDtypeStruct(rankings.shape[:-1], scores.dtype)
    return _call_host("rows", (tied,), result, scores, rankings)


def _log_prob_backward(tied: bool, saved: Any, upstream: Any) -> Any:
    scores, rankings = saved
    result = jax.ShapeDtypeStruct(scores.shape, scores.dtype)
    return _call_host("rows", (tied,), result, scores, rankings, upstream), None


_log_prob.defvjp(lambda *inputs: (_log_prob(*inputs), inputs[:2]), _log_prob_backward)


TARGET = "plrank_fast"  # of calls from XLA
HOST: dict[str, Callable[..., Any]] = {"losses": _losses_on_host, "draw": _draw_on_host, "rows": _rows_on_host}
KNOWN_TO_XLA = _register()
