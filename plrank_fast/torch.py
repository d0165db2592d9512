"""PyTorch loss, minus the expected metric, and the Plackett-Luce distribution as a PyTorch distribution.

The forward pass computes value and gradient of the loss on the CPU in float64; ``backward`` multiplies the gradient by
the incoming one. Tensors of a CUDA device are copied through pinned host memory.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._adapters import device_copies
from plrank_fast._adapters.device_copies import on_host, reading, results
from plrank_fast._adapters.expected_loss import CHECKS, expected_loss, loss_options, seed_of, warn_if_all_alike
from plrank_fast._adapters.layouts import count_queries, warn_if_one_list
from plrank_fast._adapters.ranking_loss import loss_call
from plrank_fast._adapters.ranking_loss import ranking_loss as ranking_loss_on_host
from plrank_fast._adapters.rows import log_prob_of_rows, sample_rows
from plrank_fast._methods.registry import EXACT
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.openmp import threads_of

if TYPE_CHECKING:
    import torch
    from torch.distributions import constraints
else:
    torch = import_extra("torch", "torch")
    constraints = import_extra("torch.distributions.constraints", "torch")

__all__ = [
    "ApproxNDCGLoss", "ExpectedMetricLoss", "LambdaLoss", "LambdaRankLoss", "ListMLELoss", "PairwiseLogisticLoss",
    "PlackettLuce", "PlackettLuceLoss", "PointwiseLoss", "QueryBatchSampler", "SoftRankLoss", "SoftmaxCrossEntropyLoss",
    "WeightedSampler", "expected_metric_loss", "ranking_loss", "sample_without_replacement",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_transformed = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
PLAIN = torch.Tensor, torch.nn.Parameter  # not the types that replace tensors in tracing


class _OnceDifferentiable(torch.autograd.Function):  # type: ignore[misc]
    """A gradient by ``scores`` and ``upstream`` that refuses to be differentiated.

    PyTorch's ``once_differentiable`` only refuses if ``upstream`` is differentiated too, and that which starts
    ``backward`` is not.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Any, name: str, scores: Any, upstream: Any) -> Any:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.name = inputs[1]

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        raise RuntimeError(f"{ctx.name} cannot be differentiated twice: it has no second derivative (double backward)")


def _one_by_one(function: Any, shapes: Any) -> Any:
    """Return the rule by which ``torch.vmap`` calls a function once for each entry of the mapped axis.

    Without an entry, ``shapes`` makes the results of one from inputs whose values do not count.
    """

    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        n_calls = info.batch_size
        evaluate = function if n_calls else shapes
        calls = [
            [value if axis is None else _entry(value, axis, i) for value, axis in zip(inputs, in_dims, strict=True)]
            for i in range(n_calls or 1)
        ]
        results = [evaluate(*call) for call in calls]
        if isinstance(results[0], tuple):
            return tuple(torch.stack(each)[:n_calls] for each in zip(*results, strict=True)), (0,) * len(results[0])
        return torch.stack(results)[:n_calls], 0

    return vmap


def _entry(value: Any, axis: int, i: int) -> Any:
    """Return an entry along an axis; where there is none, memory of its shape."""
    return value.select(axis, i) if value.shape[axis] else value.new_empty(value.movedim(axis, 0).shape[1:])


def _operator(name: str, schema: str, function: Any, shapes: Any) -> Any:
    """Make an operator that compiles and exports as one node; ``shapes`` makes its results without values."""
    operator = torch.library.custom_op(f"plrank_fast::{name}", function, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    operator.register_vmap(_one_by_one(operator, shapes))
    return operator


def _is_plain(tensor: Any) -> bool:
    """Return whether a tensor's values can be read: it is not traced, nor on a device without memory."""
    return not torch.compiler.is_compiling() and type(tensor) in PLAIN and not tensor.is_meta


# --- the loss

OPTIONS = (
    "metric", "cutoff", "gain", "max_label", "reduction", "method", "n_samples", "rtol", "n_threads",
    "first_query",
)  # fmt: skip


def _options(values: tuple[Any, ...], rank_weights: Any) -> dict[str, Any]:
    """Return options by their names, checked; most steps of training have those of the step before."""
    if rank_weights is None:
        try:
            return _known_options(*values)
        except TypeError:  # one cannot be hashed, or is refused
            pass
    return loss_options(rank_weights=rank_weights, **dict(zip(OPTIONS, values, strict=True)))


@functools.lru_cache(maxsize=64, typed=True)
def _known_options(*values: Any) -> dict[str, Any]:
    validation.require(not any(isinstance(value, torch.Tensor) for value in values), "tensors may change", TypeError)
    return loss_options(**dict(zip(OPTIONS, values, strict=True)))


def _evaluate(*inputs: Any, direction: Any = None) -> tuple[Any, Any]:
    """Compute the loss, of each query or reduced, and the gradient of its sum by the scores.

    It has the inputs of the operator ``expected_metric_loss``. With a direction, the exact method computes the
    derivative of the gradient along it in place of the gradient.
    """
    scores, _, offsets, mask, _, rank_weights, seed = inputs[:7]
    # A GPU may still compute the scores: what needs no values is done before they are awaited.
    (direction, *arrays), wait = reading(direction, *inputs[:6])
    options, shape = _options(inputs[7:], rank_weights), tuple(scores.shape)
    of_queries = options["reduction"] == "none"
    warn_if_one_list(shape, offsets, mask)
    of_loss = (count_queries(shape, offsets, mask),) if of_queries else ()
    (gradient, loss), send = results(scores, (shape, of_loss), (_dtype_of_gradient(scores), scores.dtype))
    with contextlib.nullcontext() if device_copies.is_cuda(scores) else threads_of("torch"):
        values, all_alike = expected_loss(
            *arrays, seed=lambda: seed_of(_seed(seed).tolist(), 64), direction=direction, gradient=gradient, wait=wait,
            labels_are_here=not device_copies.is_cuda(inputs[1]), **options,
        )  # fmt: skip
    warn_if_all_alike(all_alike, values.size, arrays[3])
    with np.errstate(over="ignore"):  # as PyTorch's conversions
        loss[...] = values if of_queries else np.add.reduce(values)
    gradient, loss = send()
    return loss, gradient


def _separately(evaluate: Any) -> Any:
    """Let a function compute loss and gradient in memory of their own, as an operator must."""

    def loss_and_gradient(*inputs: Any) -> tuple[Any, Any]:
        loss, gradient = evaluate(*inputs)
        return loss.clone() if device_copies.is_cuda(inputs[0]) else loss, gradient

    return loss_and_gradient


def _dtype_of_gradient(scores: Any) -> Any:
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


def _shapes_of_loss(scores: Any, labels: Any, offsets: Any, mask: Any, *options: Any) -> tuple[Any, Any]:
    n_queries = count_queries(tuple(scores.shape), offsets, mask)
    loss = scores.new_empty((n_queries,) if "none" in options else ())
    return loss, scores.new_empty(scores.shape, dtype=_dtype_of_gradient(scores))


def _save(ctx: Any, *tensors: Any) -> None:
    """Keep tensors for derivatives in both modes."""
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


class _Gradient(torch.autograd.Function):  # type: ignore[misc]
    """The gradient of a loss, which may be differentiated by the scores once more."""

    @staticmethod
    def forward(gradient: Any, *inputs: Any) -> Any:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _save(ctx, *inputs[1:7])
        ctx.options, ctx.dtype = inputs[7:], output.dtype

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        change = _Gradient.change(ctx, upstream).to(ctx.saved_tensors[0].dtype)
        return None, change, *(None,) * (len(ctx.needs_input_grad) - 2)

    @staticmethod
    def jvp(ctx: Any, _: Any, tangent: Any, *others: Any) -> Any:
        return _Gradient.change(ctx, tangent.to(ctx.dtype))

    @staticmethod
    def change(ctx: Any, direction: Any) -> Any:
        """Multiply a direction by the Hessian, which is symmetric."""
        inputs = ctx.saved_tensors
        with torch.no_grad():
            change = _hessian_product(direction, *inputs, *ctx.options)
        return _OnceDifferentiable.apply(change, "the gradient of expected_metric_loss", inputs[0], direction)

    vmap = staticmethod(_one_by_one(lambda *inputs: _Gradient.apply(*inputs), lambda gradient, *_: gradient))


def _of_documents(upstream: Any, gradient: Any, offsets: Any) -> Any:
    """Return the upstream gradient of each query's loss, or that of all, for the documents."""
    if upstream.numel() == 1:
        return upstream
    if offsets is None:
        return upstream.unsqueeze(-1)
    sizes = offsets.diff().to(upstream.device)
    return upstream.repeat_interleave(sizes, output_size=gradient.numel()).reshape(gradient.shape)


def _product(gradient: Any, of_docs: Any, dtype: Any) -> Any:
    """Multiply by a single kernel, whatever the dtype."""
    product = None if gradient.dtype == dtype else torch.empty_like(gradient, dtype=dtype)
    return torch.mul(gradient, of_docs, out=product)


def _slope(gradient: Any, tangent: Any, offsets: Any, mask: Any, shape: Any) -> Any:
    """Return the slope of each query's loss, or of their sum, along a tangent of the scores."""
    slopes = gradient * (tangent if mask is None else torch.where(mask, tangent, 0.0))
    if shape.numel() == 1:
        slope = slopes.sum().reshape(shape)
    elif offsets is None:
        slope = slopes.sum(-1)
    else:
        sizes = offsets.diff().to(slopes.device)
        query = torch.arange(sizes.numel(), device=slopes.device).repeat_interleave(sizes)
        slope = slopes.new_zeros(shape).index_add(0, query, slopes.reshape(-1))
    return slope.to(tangent.dtype)


class _Loss(torch.autograd.Function):  # type: ignore[misc]
    """Loss of the arguments of `_evaluate`; its gradient is a second output for ``backward`` alone."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return _evaluate(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        _save(ctx, output[1], *inputs[:6])
        ctx.options = None, *inputs[7:]  # second derivatives need no seed
        ctx.shape = output[0].shape

    @staticmethod
    def backward(ctx: Any, upstream: Any, _: Any) -> Any:
        others = (None,) * (len(ctx.needs_input_grad) - 1)
        if upstream is None:
            return None, *others
        gradient, *inputs = ctx.saved_tensors
        scores, of_docs = inputs[0], _of_documents(upstream, gradient, inputs[2])
        if not torch.is_grad_enabled():
            return _product(gradient, of_docs, scores.dtype), *others
        # A constant gradient would be wrong with create_graph=True, without an error.
        gradient = _Gradient.apply(gradient, *inputs, *ctx.options) * of_docs
        return gradient.to(scores.dtype), *others

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *others: Any) -> Any:
        gradient, *inputs = ctx.saved_tensors
        gradient = _Gradient.apply(gradient, *inputs, *ctx.options)
        return _slope(gradient, tangent, inputs[2], inputs[3], ctx.shape), None

    vmap = staticmethod(_one_by_one(lambda *inputs: _Loss.apply(*inputs), _shapes_of_loss))


INPUTS = (
    "Tensor scores, Tensor labels, Tensor? offsets, Tensor? mask, Tensor? weights, Tensor? rank_weights, "
    "Tensor? seed, str metric, int? cutoff, str gain, float? max_label, str reduction, str method, "
    "int? n_samples, float rtol, int? n_threads, int first_query"
)
_loss = _operator("expected_metric_loss", f"({INPUTS}) -> (Tensor, Tensor)", _separately(_evaluate), _shapes_of_loss)
_hessian_product = _operator(
    "expected_metric_hessian_product",
    f"(Tensor direction, {INPUTS}) -> Tensor",
    lambda direction, *inputs: _evaluate(*inputs, direction=direction)[1],
    lambda direction, *inputs: torch.empty_like(direction),
)
_loss.register_autograd(_Loss.backward, setup_context=_Loss.setup_context)


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
    generator: Any = None,
    n_threads: int | None = None,
) -> torch.Tensor:
    """Compute minus the expected metric of rankings drawn from the Plackett-Luce distribution of ``scores``.

    This is the functional form of `ExpectedMetricLoss`.

    Parameters
    ----------
    scores : Tensor, shape (n_docs,), (n_docs, 1) or (n_queries, length)
        The documents of all queries one after another, or a row for each query; or a jagged nested tensor, which has
        offsets of its own. float16, bfloat16, float32 or float64, on any device.
    labels : Tensor or array_like, of the shape of scores or (n_docs,)
        Grade of each document, or its gain with ``gain="linear"``.
    offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default. Not for rows.
    mask : Tensor or array_like of bool, of the shape of scores, optional
        True for documents, False for padding, whose values are ignored and whose gradient is 0. Without a mask, rows
        have no padding. Results are bit-identical to the ragged batch's.
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
    generator : torch.Generator or int, optional
        Source of the random numbers of sampled methods; by default PyTorch's default generator, which
        ``torch.manual_seed`` sets.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    Tensor
        A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import expected_metric_loss
    >>> scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    >>> loss = expected_metric_loss(scores, torch.tensor([1.0, 0.0]), cutoff=1)
    >>> loss.backward()
    >>> round(loss.item(), 6), scores.grad
    (-0.5, tensor([-0.2500,  0.2500], dtype=torch.float64))
    """
    options = metric, cutoff, gain, max_label, reduction, method, n_samples, rtol, n_threads
    return _loss_of(scores, labels, offsets, mask, weights, rank_weights, generator, options)


def _loss_of(
    scores: Any, labels: Any, offsets: Any, mask: Any, weights: Any, rank_weights: Any, generator: Any,
    options: tuple[Any, ...],
) -> Any:  # fmt: skip
    """Compute the loss with all ``OPTIONS`` but the last, by the operator where the call is traced."""
    generator, first_query = validation.numbered_source(generator)
    options = *options, first_query
    _floating(scores, nested=True)
    if scores.is_nested:
        scores, labels, offsets = _flattened(scores, labels, offsets, mask)
        mask = None
    data = {"labels": labels, "offsets": offsets, "mask": mask, "weights": weights, "rank_weights": rank_weights}
    tensors = [None if value is None else _constant(value, name) for name, value in data.items()]
    if _is_plain(scores):
        if _transformed():
            _refuse_forward_mode_twice()
        # Preparing transformations, which most calls do not need, takes a quarter of the time for a short list.
        apply = _Loss.apply if _transformed() else super(torch.autograd.Function, _Loss).apply
        return apply(scores, *tensors, generator, *options)[0]
    seed = None if options[OPTIONS.index("method")] == EXACT else _seed(generator)
    return _loss(scores, *tensors, seed, *options)[0]


def _refuse_forward_mode_twice() -> None:
    """Refuse ``jvp`` within ``jvp``, for which PyTorch would take the tangent of a function of ours for a constant."""
    functorch: Any = getattr(torch._C, "_functorch", None)
    stack = functorch.get_interpreter_stack() or [] if hasattr(functorch, "get_interpreter_stack") else []
    twice = sum(level.key() == functorch.TransformType.Jvp for level in stack) > 1
    remedy = "take torch.func.hessian, or jacrev in place of one jacfwd"
    validation.require(not twice, f"the loss cannot be differentiated twice in forward mode: {remedy}", RuntimeError)


def _constant(value: Any, name: str) -> Any:
    """Return a tensor of an argument that is not differentiated."""
    if isinstance(value, torch.Tensor):
        validation.require(
            not value.requires_grad, f"{name} must not require a gradient: pass {name}.detach()", TypeError
        )
        return _dense(value, name)
    if torch.compiler.is_compiling():
        return torch.as_tensor(value)
    array = validation.numbers(value, name)
    return torch.from_numpy(np.require(array, np.float64 if array.dtype.kind == "f" else None, "W"))


def _floating(scores: Any, nested: bool = False) -> Any:
    is_tensor = isinstance(scores, torch.Tensor)
    if not (is_tensor and scores.is_floating_point()):
        got = scores.dtype if is_tensor else type(scores).__name__
        validation.of_type(False, "scores", "a floating point tensor", got)
    return _dense(scores, "scores", nested)


def _dense(tensor: Any, name: str, nested: bool = False) -> Any:
    """Return a tensor that has a value for each entry, of a dtype that has arithmetic."""
    if tensor.is_nested and not nested:
        validation.of_type(False, name, "a dense tensor", f"a nested one{validation.flattening(tensor, name)}")
    if tensor.layout is not torch.strided and not tensor.is_nested:
        validation.of_type(False, name, "a dense tensor", f"{tensor.layout}: pass {name}.to_dense()")
    if tensor.is_floating_point() and tensor.dtype.itemsize == 1:
        validation.of_type(False, name, "of a dtype with arithmetic", f"{tensor.dtype}: pass {name}.float()")
    return tensor


def _flattened(scores: Any, labels: Any, offsets: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Return the documents of a jagged nested tensor, their labels and the offsets."""
    jagged = scores.layout == torch.jagged and scores.lengths() is None
    if not jagged:
        got = f"one of {scores.layout}{validation.flattening(scores, 'scores')}"
        validation.of_type(False, "scores", "a jagged tensor without holes, if nested", got)
    for name, value in (("offsets", offsets), ("mask", mask)):
        validation.goes_with(value, name, False, "scores that are not nested")
    if isinstance(labels, torch.Tensor) and labels.is_nested:
        if not torch.compiler.is_compiling():
            own, expected = on_host(labels.offsets(), scores.offsets())
            validation.same_offsets(own, "labels", expected)
        labels = labels.values()
    return scores.values(), labels, scores.offsets()


def _seed(generator: Any) -> Any:
    """Return a tensor of the words of a seed, drawn from ``generator`` unless it is a seed or such a tensor."""
    if isinstance(generator, torch.Tensor):
        return generator
    if generator is None or isinstance(generator, torch.Generator):
        device = "cpu" if generator is None else generator.device
        return torch.randint(2**63 - 1, (2,), generator=generator, device=device)
    return torch.tensor([validation.count(generator, "generator", 0)])


class ExpectedMetricLoss(torch.nn.Module):  # type: ignore[misc]
    """Loss module: minus the expected metric of rankings drawn from the Plackett-Luce distribution of scores.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    metric : {"ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"}
        Metric whose expectation is maximised, at K ranks: NDCG or DCG of gains, precision, recall, the reciprocal rank
        of the first relevant document (MRR), expected reciprocal rank (ERR), success (whether one of the K is relevant,
        the hit rate), or average precision. Documents with ``labels`` above 0 are relevant. "ndcg" takes no negative
        gains and rank weights, and is 0, with gradient 0, for queries without relevant documents. The last four need
        the exact method and have no second derivatives.
    method : str
        "exact" (``pl_rank_exact``), "cmc" (``pl_rank_cmc``), "pl_rank_3", "pl_rank_2", "pl_rank_1", "stochastic_rank"
        or "policy_gradient". "auto" is "exact", or one sample of "cmc" if the cost model finds that far cheaper.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Other weights of ranks for "ndcg" and "dcg", in place of ``cutoff``.
    gain : {"exponential", "linear"}
        Whether ``labels`` holds grades, whose gains in "ndcg" and "dcg" are 2**grade - 1, or gains.
    max_label : float, optional
        Highest grade of the scale in "err", which needs it, as a batch may lack that grade.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_samples : int, optional
        Rankings per query of sampled methods; by default 1 for "cmc" and 100 for the others.
    rtol : float
        Relative tolerance of the exact method, from 1e-10 to below 1 (see ``pl_rank_exact`` for the bounds).
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    The forward pass computes value and gradient on the CPU in float64; they are returned in the dtype of the scores.
    With ``method="exact"`` the gradient may be differentiated once more in either mode, as by ``torch.func.hessian``
    (see ``pl_rank_exact_hvp``), but not twice in forward mode, nor inside of ``torch.compile``; other methods raise
    RuntimeError. The loss has no state: sampled methods draw a seed in each pass, as dropout does. ``torch.compile``
    and ``torch.export`` see one operator, without a break in the graph; ``torch.vmap`` calls it once for each row.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import ExpectedMetricLoss
    >>> model = torch.nn.Linear(3, 1)
    >>> loss = ExpectedMetricLoss(cutoff=10)
    >>> features, labels = torch.rand(5, 3), torch.tensor([0.0, 1.0, 3.0, 0.0, 1.0])
    >>> loss(model(features), labels, offsets=[0, 3, 5]).backward()  # queries of three and two documents
    >>> model.weight.grad.shape
    torch.Size([1, 3])
    """

    @validation.hinted
    def __init__(
        self,
        cutoff: int | None = 10,
        *,
        metric: validation.MetricName = "ndcg",
        method: validation.Method = "auto",
        rank_weights: ArrayLike | None = None,
        gain: validation.Gain = "exponential",
        max_label: float | None = None,
        reduction: validation.Reduction = "mean",
        n_samples: int | None = None,
        rtol: float = 1e-6,
        n_threads: int | None = None,
    ) -> None:
        super().__init__()
        self.rank_weights = rank_weights
        self.__dict__.update(loss_options(
            metric, max_label, rank_weights, cutoff=cutoff, gain=gain, reduction=reduction,
            method=method, n_samples=n_samples, rtol=rtol, n_threads=n_threads,
        ))  # fmt: skip

    @validation.hinted
    def forward(
        self,
        scores: Any,
        labels: Any,
        offsets: Any = None,
        *,
        mask: Any = None,
        weights: Any = None,
        generator: Any = None,
    ) -> torch.Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        scores : Tensor, shape (n_docs,), (n_docs, 1) or (n_queries, length)
            The documents of all queries one after another, or a row for each query; or a jagged nested tensor, which
            has offsets of its own. float16, bfloat16, float32 or float64, on any device.
        labels : Tensor or array_like, of the shape of scores or (n_docs,)
            Grade of each document, or its gain with ``gain="linear"``.
        offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
            Where each query's documents start; a single query by default. Not for rows.
        mask : Tensor or array_like of bool, of the shape of scores, optional
            True for documents, False for padding, whose values are ignored and whose gradient is 0. Without a mask,
            rows have no padding. Results are bit-identical to the ragged batch's.
        weights : array, tensor or array_like, shape (n_queries,), optional
            Weight of each query, at least 0.
        generator : torch.Generator or int, optional
            Source of the random numbers of sampled methods; by default PyTorch's default generator, which
            ``torch.manual_seed`` sets.

        Returns
        -------
        Tensor
            A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.
        """
        own = self.__dict__
        options = tuple(own[name] for name in OPTIONS[:-1])
        return _loss_of(scores, labels, offsets, mask, weights, own["rank_weights"], generator, options)

    if TYPE_CHECKING:

        def __call__(  # noqa: D102 - torch.nn.Module types its call as Any
            self, scores: Any, labels: Any, offsets: Any = None, *, mask: Any = None, weights: Any = None,
            generator: Any = None,
        ) -> torch.Tensor: ...  # fmt: skip

    def extra_repr(self) -> str:
        """Return the options of the loss, for ``print(model)``."""
        metric = "rank_weights given" if self.rank_weights is not None else f"cutoff={self.cutoff}"
        if self.metric != "ndcg":
            metric = f"metric={self.metric!r}, {metric}"
        options = f"method={self.method!r}, gain={self.gain!r}"
        return f"{metric}, {options}, reduction={self.reduction!r}"


# --- the losses of ``plrank_fast.losses``


def _evaluate_ranking(*inputs: Any) -> tuple[Any, Any]:
    """Compute the loss, of each query or reduced, and the gradient of its sum by the scores."""
    scores, _, offsets, mask, _, seed, call, reduction, n_threads, first_query = inputs
    arrays, wait = reading(*inputs[:5])
    shape = tuple(scores.shape)
    warn_if_one_list(shape, offsets, mask)
    of_loss = (count_queries(shape, offsets, mask),) if reduction == "none" else ()
    (gradient, loss), send = results(scores, (shape, of_loss), (_dtype_of_gradient(scores), scores.dtype))
    wait()
    with contextlib.nullcontext() if device_copies.is_cuda(scores) else threads_of("torch"):
        values, all_alike = ranking_loss_on_host(
            *arrays, call=call, reduction=reduction, n_threads=n_threads, first_query=first_query,
            seed=lambda: seed_of(_seed(seed).tolist(), 64), gradient=gradient,
        )  # fmt: skip
    warn_if_all_alike(all_alike, values.size, arrays[3])
    with np.errstate(over="ignore"):  # as PyTorch's conversions
        loss[...] = values if reduction == "none" else np.add.reduce(values)
    gradient, loss = send()
    return loss, gradient


def _name_of(call: str) -> str:
    return f"the loss {json.loads(call)[0]!r}"


class _RankingLoss(torch.autograd.Function):  # type: ignore[misc]
    """Loss of the arguments of `_evaluate_ranking`; its gradient is a second output for ``backward`` alone."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return _evaluate_ranking(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        _save(ctx, output[1], inputs[0], *inputs[2:4])
        ctx.call = inputs[6]
        ctx.shape = output[0].shape

    @staticmethod
    def backward(ctx: Any, upstream: Any, _: Any) -> Any:
        others = (None,) * (len(ctx.needs_input_grad) - 1)
        if upstream is None:
            return None, *others
        gradient, scores, offsets, _ = ctx.saved_tensors
        of_docs = _of_documents(upstream, gradient, offsets)
        if not torch.is_grad_enabled():
            return _product(gradient, of_docs, scores.dtype), *others
        gradient = _OnceDifferentiable.apply(gradient, _name_of(ctx.call), scores, upstream) * of_docs
        return gradient.to(scores.dtype), *others

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *others: Any) -> Any:
        gradient, scores, offsets, mask = ctx.saved_tensors
        gradient = _OnceDifferentiable.apply(gradient, _name_of(ctx.call), scores, tangent)
        return _slope(gradient, tangent, offsets, mask, ctx.shape), None

    vmap = staticmethod(_one_by_one(lambda *inputs: _RankingLoss.apply(*inputs), _shapes_of_loss))


_ranking_loss = _operator(
    "ranking_loss",
    "(Tensor scores, Tensor labels, Tensor? offsets, Tensor? mask, Tensor? weights, Tensor? seed, str call, "
    "str reduction, int? n_threads, int first_query) -> (Tensor, Tensor)",
    _separately(_evaluate_ranking),
    _shapes_of_loss,
)
_ranking_loss.register_autograd(_RankingLoss.backward, setup_context=_RankingLoss.setup_context)


def ranking_loss(
    loss: validation.RankingLossName,
    scores: Any,
    labels: Any,
    offsets: Any = None,
    *,
    mask: Any = None,
    weights: Any = None,
    reduction: validation.Reduction = "mean",
    generator: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> torch.Tensor:
    """Compute a loss of ``plrank_fast.losses`` that autograd differentiates, once.

    This is the functional form of `ListMLELoss` and the other modules.

    Parameters
    ----------
    loss : {"pointwise", "softmax_cross_entropy", "list_mle", "plackett_luce", "pairwise_logistic", "lambda_rank", \
            "lambda_loss", "approx_ndcg", "soft_rank"}
        Function of ``plrank_fast.losses``. "plackett_luce" is "list_mle" with ``ties="exact"``.
    scores : Tensor, shape (n_docs,), (n_docs, 1) or (n_queries, length)
        The documents of all queries one after another, or a row for each query; or a jagged nested tensor, which has
        offsets of its own. float16, bfloat16, float32 or float64, on any device.
    labels : Tensor or array_like, shape (n_docs,) or of scores
        Grade of each document.
    offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default. Not for rows.
    mask : Tensor or array_like of bool, of the shape of scores, optional
        True for documents, False for padding, whose values are ignored and whose gradient is 0. Without a mask, rows
        have no padding. Results are bit-identical to the ragged batch's.
    weights : array, tensor or array_like, shape (n_queries,), optional
        Weight of each query, at least 0.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    generator : torch.Generator or int, optional
        Source of the random numbers of sampled methods; by default PyTorch's default generator, which
        ``torch.manual_seed`` sets.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    **options
        Options of the function of ``plrank_fast.losses``, such as ``cutoff``.

    Returns
    -------
    Tensor
        A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import ranking_loss
    >>> scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    >>> loss = ranking_loss("list_mle", scores, torch.tensor([2, 1, 0]))
    >>> loss.backward()
    >>> round(loss.item(), 6), scores.grad
    (1.791759, tensor([-0.6667, -0.1667,  0.8333], dtype=torch.float64))
    """
    return _ranking_loss_of(
        scores, labels, offsets, mask, weights, generator, loss_call(loss, options),
        CHECKS["reduction"](reduction), CHECKS["n_threads"](n_threads),
    )  # fmt: skip


def _ranking_loss_of(
    scores: Any, labels: Any, offsets: Any, mask: Any, weights: Any, generator: Any, call: tuple[str, bool],
    reduction: str, n_threads: int | None,
) -> Any:  # fmt: skip
    _floating(scores, nested=True)
    if scores.is_nested:
        scores, labels, offsets = _flattened(scores, labels, offsets, mask)
        mask = None
    data = {"labels": labels, "offsets": offsets, "mask": mask, "weights": weights}
    tensors = [None if value is None else _constant(value, name) for name, value in data.items()]
    generator, first_query = validation.numbered_source(generator)
    options = call[0], reduction, n_threads, first_query
    if _is_plain(scores):
        apply = _RankingLoss.apply if _transformed() else super(torch.autograd.Function, _RankingLoss).apply
        return apply(scores, *tensors, generator, *options)[0]
    return _ranking_loss(scores, *tensors, _seed(generator) if call[1] else None, *options)[0]


class _RankingLossModule(torch.nn.Module):  # type: ignore[misc]
    """A loss of ``plrank_fast.losses`` as a module, whose options are fixed."""

    loss: ClassVar[validation.RankingLossName]

    def __init__(self, reduction: validation.Reduction, n_threads: int | None, **options: Any) -> None:
        super().__init__()
        self.reduction: validation.Reduction = CHECKS["reduction"](reduction)
        self.n_threads: int | None = CHECKS["n_threads"](n_threads)
        self.options: dict[str, Any] = options
        self._call = loss_call(self.loss, options)

    @validation.hinted
    def forward(
        self,
        scores: Any,
        labels: Any,
        offsets: Any = None,
        *,
        mask: Any = None,
        weights: Any = None,
        generator: Any = None,
    ) -> torch.Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        scores : Tensor, shape (n_docs,), (n_docs, 1) or (n_queries, length)
            The documents of all queries one after another, or a row for each query; or a jagged nested tensor, which
            has offsets of its own. float16, bfloat16, float32 or float64, on any device.
        labels : Tensor or array_like, shape (n_docs,) or of scores
            Grade of each document.
        offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
            Where each query's documents start; a single query by default. Not for rows.
        mask : Tensor or array_like of bool, of the shape of scores, optional
            True for documents, False for padding, whose values are ignored and whose gradient is 0. Without a mask,
            rows have no padding. Results are bit-identical to the ragged batch's.
        weights : array, tensor or array_like, shape (n_queries,), optional
            Weight of each query, at least 0.
        generator : torch.Generator or int, optional
            Source of the random numbers of sampled methods; by default PyTorch's default generator, which
            ``torch.manual_seed`` sets.

        Returns
        -------
        Tensor
            A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.
        """
        return _ranking_loss_of(
            scores, labels, offsets, mask, weights, generator, self._call, self.reduction, self.n_threads
        )

    def extra_repr(self) -> str:
        """Return the options of the loss, for ``print(model)``."""
        options = {**self.options, "reduction": self.reduction}
        return ", ".join(f"{name}={value!r}" for name, value in options.items())


class PointwiseLoss(_RankingLossModule):
    """Loss module: each score compared with its own label, by regression or as a probability.

    Parameters
    ----------
    kind : {"squared", "logistic"}
        Regression on the labels, or cross-entropy of a click or relevance probability.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.pointwise`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "pointwise"

    def __init__(
        self,
        kind: validation.Pointwise = "squared",
        *,
        reduction: validation.Reduction = "mean",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(reduction, n_threads, kind=kind)


class SoftmaxCrossEntropyLoss(_RankingLossModule):
    """Loss module: softmax cross-entropy, with the labels as a distribution over the document that comes first.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.softmax_cross_entropy`` has the formula, the cost and the source. The loss is differentiable
    once.
    """

    loss: ClassVar[validation.RankingLossName] = "softmax_cross_entropy"

    def __init__(self, *, reduction: validation.Reduction = "mean", n_threads: int | None = None) -> None:
        super().__init__(reduction, n_threads)


class ListMLELoss(_RankingLossModule):
    """Loss module: minus the log-probability of the ranking by label.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    ties : {"index", "random", "exact"}
        The order that counts among equal labels: by index, one drawn in each pass, or any.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.list_mle`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "list_mle"

    def __init__(
        self,
        cutoff: int | None = None,
        *,
        ties: validation.LabelTies = "index",
        reduction: validation.Reduction = "mean",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(reduction, n_threads, cutoff=cutoff, ties=ties)


class PairwiseLogisticLoss(_RankingLossModule):
    """Loss module: pairwise logistic loss (RankNet).

    Parameters
    ----------
    slope : float
        Steepness of the logistic function, positive.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.pairwise_logistic`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "pairwise_logistic"

    def __init__(
        self, slope: float = 1.0, *, reduction: validation.Reduction = "mean", n_threads: int | None = None
    ) -> None:
        super().__init__(reduction, n_threads, slope=slope)


class LambdaRankLoss(_RankingLossModule):
    """Loss module: LambdaRank, pairs weighted by the change in NDCG@K when they are swapped.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    slope : float
        Steepness of the logistic function, positive.
    truncation : {"metric", "pairs"}
        The discount of a rank past the cutoff, for a pair whose other document is among the first K: 0, or its own.
    gain : str
        Gain of a label: "exponential", 2^label - 1, or "linear", the label itself.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.lambda_rank`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "lambda_rank"

    def __init__(
        self,
        cutoff: int | None = 10,
        *,
        slope: float = 1.0,
        truncation: validation.Truncation = "metric",
        gain: validation.Gain = "exponential",
        reduction: validation.Reduction = "mean",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(reduction, n_threads, cutoff=cutoff, slope=slope, truncation=truncation, gain=gain)


class LambdaLoss(_RankingLossModule):
    """Loss module: LambdaLoss with the weights NDCG-Loss2++.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    slope : float
        Steepness of the logistic function, positive.
    mu : float
        Weight of the second term, positive; 10 in the paper.
    gain : str
        Gain of a label: "exponential", 2^label - 1, or "linear", the label itself.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.lambda_loss`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "lambda_loss"

    def __init__(
        self,
        cutoff: int | None = 10,
        *,
        slope: float = 1.0,
        mu: float = 10.0,
        gain: validation.Gain = "exponential",
        reduction: validation.Reduction = "mean",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(reduction, n_threads, cutoff=cutoff, slope=slope, mu=mu, gain=gain)


class ApproxNDCGLoss(_RankingLossModule):
    """Loss module: one minus NDCG at smooth ranks.

    Parameters
    ----------
    temperature : float
        Positive. As it approaches 0, the smooth ranks approach the true ranks and the gradient vanishes.
    gain : str
        Gain of a label: "exponential", 2^label - 1, or "linear", the label itself.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.approx_ndcg`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "approx_ndcg"

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        gain: validation.Gain = "exponential",
        reduction: validation.Reduction = "mean",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(reduction, n_threads, temperature=temperature, gain=gain)


class SoftRankLoss(_RankingLossModule):
    """Loss module: one minus the NDCG@K expected under normal noise, ranks as if independent.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    sigma : float
        Scale of the noise, positive.
    gain : str
        Gain of a label: "exponential", 2^label - 1, or "linear", the label itself.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.soft_rank`` has the formula, the cost and the source. The loss is differentiable once.
    """

    loss: ClassVar[validation.RankingLossName] = "soft_rank"

    def __init__(
        self,
        cutoff: int | None = 10,
        *,
        sigma: float = 1.0,
        gain: validation.Gain = "exponential",
        reduction: validation.Reduction = "mean",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(reduction, n_threads, cutoff=cutoff, sigma=sigma, gain=gain)


class PlackettLuceLoss(_RankingLossModule):
    """Loss module: the negative log-likelihood of a given order under Plackett-Luce, with exact ties and a cutoff.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K. None: all ranks of the longest query.
    reduction : {"mean", "sum", "none"}
        The mean over the queries, weighted if there are weights; their sum; or one value for each query.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Notes
    -----
    ``plrank_fast.losses.list_mle`` has the formula, the cost and the source. The loss is differentiable once.
    Documents of equal labels may come in any order; with a cutoff also all after rank K and those tied with it, which
    count whole. With two answers it is the loss of DPO.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import PlackettLuceLoss
    >>> scores = torch.tensor([[0.0, 2.0, 1.0]], requires_grad=True)
    >>> loss = PlackettLuceLoss(cutoff=1)
    >>> round(loss(scores, rankings=[[1, 2, 0]]).item(), 4)  # minus the log-probability that item 1 comes first
    0.4076
    >>> same = loss(scores, torch.tensor([[0, 2, 1]]))  # labels of a higher grade come first
    """

    loss: ClassVar[validation.RankingLossName] = "plackett_luce"

    def __init__(
        self, cutoff: int | None = None, *, reduction: validation.Reduction = "mean", n_threads: int | None = None
    ) -> None:
        super().__init__(reduction, n_threads, cutoff=cutoff)
        self._of_rankings = loss_call(self.loss, {"cutoff": cutoff, "of_rankings": True})

    @validation.hinted
    def forward(  # type: ignore[override]
        self,
        scores: Any,
        labels: Any = None,
        offsets: Any = None,
        *,
        rankings: Any = None,
        mask: Any = None,
        weights: Any = None,
    ) -> torch.Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        scores : Tensor, shape (n_docs,), (n_docs, 1) or (n_queries, length)
            The documents of all queries one after another, or a row for each query; or a jagged nested tensor, which
            has offsets of its own. float16, bfloat16, float32 or float64, on any device.
        labels : Tensor or array_like, shape (n_docs,) or of scores, optional
            Grade of each document.
        offsets : array, tensor or array_like of int, shape (n_queries + 1,), optional
            Where each query's documents start; a single query by default. Not for rows.
        rankings : Tensor or array_like of int, shape (n_queries, length), optional
            In place of labels: the documents of each query from the best on, by their numbers in it. A ranking may end
            early, with -1; the other documents come after it in any order.
        mask : Tensor or array_like of bool, of the shape of scores, optional
            True for documents, False for padding, whose values are ignored and whose gradient is 0. Without a mask,
            rows have no padding. Results are bit-identical to the ragged batch's.
        weights : array, tensor or array_like, shape (n_queries,), optional
            Weight of each query, at least 0.

        Returns
        -------
        Tensor
            A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.
        """
        name, order = validation.only_one({"labels": labels, "rankings": rankings})
        call = self._call if name == "labels" else self._of_rankings
        return _ranking_loss_of(scores, order, offsets, mask, weights, None, call, self.reduction, self.n_threads)


DRAWS_OF_LENGTH = 4  # orders of which the most batches, and 1 % more, decide how many each pass has
SEED_OF_PROCESSES = 0  # that of torch's DistributedSampler


class QueryBatchSampler(torch.utils.data.Sampler[list[int]]):  # type: ignore[misc]
    """Sampler of batches of whole queries for ``torch.utils.data.DataLoader``, limited by the number of documents.

    It yields the indices of the queries of a batch, for a data set whose items are queries: pass it as
    ``batch_sampler``, with a ``collate_fn`` that concatenates the documents of the queries.

    Parameters
    ----------
    lengths : array_like of int, shape (n_queries,)
        Documents of each query.
    max_docs : int
        Largest number of documents of a batch; a longer query is a batch of its own.
    shuffle : bool
        Whether each pass draws a new order.
    generator : torch.Generator, optional
        Source of the order. By default PyTorch's default generator, or for several processes one with the seed 0; they
        need generators of the same seed.
    num_replicas : int
        Processes that share the batches.
    rank : int
        Number of this process, from 0.

    Notes
    -----
    Each pass has the same number of batches, the length of the sampler, in each process: some batches are cut in two.
    No query is left out, and none occurs twice in a pass unless there are fewer queries than processes to share them
    evenly.

    Examples
    --------
    >>> from plrank_fast.torch import QueryBatchSampler
    >>> list(QueryBatchSampler([3, 2, 9, 1, 1], max_docs=5, shuffle=False))
    [[0, 1], [2], [3, 4]]
    >>> list(QueryBatchSampler([3, 2, 9, 1, 1], max_docs=5, shuffle=False, num_replicas=2, rank=1))
    [[1], [3, 4]]
    """

    def __init__(
        self, lengths: ArrayLike, max_docs: int, *, shuffle: bool = True, generator: Any = None, num_replicas: int = 1,
        rank: int = 0,
    ) -> None:  # fmt: skip
        lengths = _dense(lengths, "lengths") if isinstance(lengths, torch.Tensor) else lengths
        self.lengths: validation.IntArray = validation.list_lengths(on_host(lengths)[0], "lengths")
        self.max_docs: int = validation.count(max_docs, "max_docs", 1)
        self.shuffle: bool = validation.flag(shuffle, "shuffle")
        self.num_replicas: int = validation.count(num_replicas, "num_replicas", 1)
        self.rank: int = validation.count(rank, "rank", 0, self.num_replicas - 1)
        if generator is None and self.num_replicas > 1:
            generator = torch.Generator().manual_seed(SEED_OF_PROCESSES)
        self.generator: torch.Generator | None = generator
        self._seed: int = torch.initial_seed() if generator is None else generator.initial_seed()
        self._n_batches = len(self._ends(np.arange(self.lengths.size)))
        if self.shuffle:
            drawn = torch.Generator().manual_seed(0)  # in each process the same
            n_batches = max(len(self._ends(self._order(drawn))) for _ in range(DRAWS_OF_LENGTH))
            self._n_batches = min(int(1.01 * n_batches), self.lengths.size)
        self._n_batches = -(-self._n_batches // self.num_replicas) * self.num_replicas

    def __repr__(self) -> str:
        """Return a text with the numbers of queries and documents, and the options."""
        numbers = f"n_queries={self.lengths.size}, n_docs={self.lengths.sum()}"
        processes = f", num_replicas={self.num_replicas}, rank={self.rank}" if self.num_replicas > 1 else ""
        return f"QueryBatchSampler({numbers}, max_docs={self.max_docs}, shuffle={self.shuffle}{processes})"

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be that of an epoch, whatever passes came before, as after a restart.

        Parameters
        ----------
        epoch : int
            Number of the epoch, which is added to the seed of the generator.
        """
        self.generator = self.generator or torch.Generator()
        self.generator.manual_seed(self._seed + validation.count(epoch, "epoch", 0))

    def __len__(self) -> int:
        """Return the number of batches of each pass."""
        return self._n_batches // self.num_replicas

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the queries of each batch."""
        order = self._order(self.generator) if self.shuffle else np.arange(self.lengths.size)
        while len(ends := self._ends(order)) > self._n_batches:  # seldom, for a drawn one
            order = self._order(self.generator)
        batches = [batch.tolist() for batch in np.split(order, ends[:-1])] if ends else []
        yield from self._cut(batches)[self.rank :: self.num_replicas]

    def _order(self, generator: Any) -> validation.IntArray:
        order: validation.IntArray = torch.randperm(self.lengths.size, generator=generator).numpy()
        return order

    def _ends(self, order: validation.IntArray) -> list[int]:
        """Return where each batch of the queries in this order ends; each holds as many as may be."""
        n_docs = np.append(0, self.lengths[order].cumsum())
        ends = [0]
        while ends[-1] < order.size:
            last = int(n_docs.searchsorted(n_docs[ends[-1]] + self.max_docs, side="right")) - 1
            ends.append(max(last, ends[-1] + 1))
        return ends[1:]

    def _cut(self, batches: list[list[int]]) -> list[list[int]]:
        """Cut the batches of most queries in two until there are enough; of single queries, repeat some."""
        while batches and (missing := self._n_batches - len(batches)) > 0:
            by_size = sorted(range(len(batches)), key=lambda place: -len(batches[place]))
            to_cut = {place for place in by_size[:missing] if len(batches[place]) > 1}
            if not to_cut:
                return list(itertools.islice(itertools.cycle(batches), self._n_batches))
            halves = ((len(batch) + 1) // 2 if i in to_cut else len(batch) for i, batch in enumerate(batches))
            parts = [(batch[:half], batch[half:]) for batch, half in zip(batches, halves, strict=True)]
            batches = [part for pair in parts for part in pair if part]
        return batches


# --- draws without replacement


@validation.hinted
def sample_without_replacement(
    weights: Any = None, n: int | None = None, *, logits: Any = None, generator: Any = None
) -> torch.Tensor:
    """Draw distinct items, each next one in proportion to its weight among those that are left.

    Parameters
    ----------
    weights : Tensor or array_like, shape (n_items,) or (n_rows, n_items)
        Not negative; they need not add up to 1. Each row has at least n positive ones. Up to 2**31 - 1 items, where
        ``torch.multinomial`` takes 2**24.
    n : int
        Number of items to draw from each row.
    logits : Tensor or array_like, shape (n_items,) or (n_rows, n_items), optional
        In place of weights, their logarithms; -inf for a weight of 0.
    generator : torch.Generator or int, optional
        Source of the random numbers of sampled methods; by default PyTorch's default generator, which
        ``torch.manual_seed`` sets.

    Returns
    -------
    Tensor of int64, shape (n,) or (n_rows, n)
        Items in the order in which they were drawn.

    Notes
    -----
    The distribution is that of ``torch.multinomial`` without replacement, the Plackett-Luce distribution over the first
    n ranks. Draws from one row take O(n_items).

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import sample_without_replacement
    >>> sample_without_replacement(torch.tensor([0.0, 3.0, 0.0, 1.0]), 2, generator=1).sort().values
    tensor([1, 3])
    """
    name, given = validation.only_one({"weights": weights, "logits": logits})
    items = _items_of(given, name)
    scores = _log_weights(items, name, n)
    return _draw_items(scores, n, generator).to(items.device).reshape(*items.shape[:-1], n)


def _items_of(given: Any, name: str) -> Any:
    return _dense(given, name).detach() if isinstance(given, torch.Tensor) else _constant(given, name)


def _log_weights(items: Any, name: str, n: Any) -> Any:
    """Return the rows of log-weights in NumPy, of which each has n or more above -inf."""
    expected = f"{name} must have shape (n_items,) or (n_rows, n_items), got {tuple(items.shape)}"
    validation.require(items.ndim in (1, 2), expected)
    array = on_host(items)[0]
    lowest, highest = (array.min(), array.max()) if array.size else (1.0, 1.0)
    of_weights = name == "weights"
    if not (highest < np.inf and (lowest >= 0.0 or not of_weights)):
        flat = validation.real_array(array.reshape(-1), name, minus_infinity=not of_weights)
        validation.within(flat, name, 0.0 if of_weights else -np.inf, np.inf)
    rows = array.reshape(-1, array.shape[-1])
    number, fewest = validation.count(n, "n", 0), array.shape[-1]
    if lowest == (0.0 if of_weights else -np.inf):
        fewest = int(np.count_nonzero(rows > lowest, axis=1).min(initial=fewest))
    validation.require(
        number <= fewest, f"n must be at most the number of positive weights of each row, {fewest}, got {number}"
    )
    with np.errstate(divide="ignore"):
        return np.log(rows, dtype=np.float64) if of_weights else rows


def _draw_items(rows: Any, n: Any, generator: Any) -> Any:
    """Return (n_rows, n) items drawn by log-weights that have been checked."""
    if len(rows) * n == 0:
        return torch.zeros((len(rows), n), dtype=torch.int64)
    source, first_row = validation.numbered_source(generator)
    rng = validation.DrawnKey(seed_of(_seed(source).tolist(), 64), first_row)
    return torch.from_numpy(sample_rows(rows, 1, n, rng)[:, 0]).long()


class WeightedSampler(torch.utils.data.Sampler[int]):  # type: ignore[misc]
    """Sampler of distinct items for ``torch.utils.data.DataLoader``, in proportion to weights, without replacement.

    Parameters
    ----------
    weights : Tensor or array_like, shape (n_items,)
        Not negative; at least ``num_samples`` are positive.
    num_samples : int
        Items of each pass.
    generator : torch.Generator, optional
        Source of the random numbers; by default PyTorch's default generator. Each pass draws anew.

    Notes
    -----
    See `sample_without_replacement`. ``torch.utils.data.WeightedRandomSampler`` takes up to 2**24 items.

    Examples
    --------
    >>> from plrank_fast.torch import WeightedSampler
    >>> sorted(WeightedSampler([0.5, 0.0, 2.0, 1.0], 3))
    [0, 2, 3]
    """

    def __init__(self, weights: Any, num_samples: int, *, generator: Any = None) -> None:
        items = _items_of(weights, "weights")
        validation.require(items.ndim == 1, f"weights must have shape (n_items,), got {tuple(items.shape)}")
        self.num_samples: int = validation.count(num_samples, "num_samples", 0)
        self.generator: torch.Generator | None = generator
        self._log_weights = _log_weights(items, "weights", self.num_samples)

    def __len__(self) -> int:
        """Return the number of items of each pass."""
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        """Yield the items of a pass, in the order in which they are drawn."""
        yield from _draw_items(self._log_weights, self.num_samples, self.generator)[0].tolist()


# --- the distribution


def _log_prob_of_rows(scores: Any, rankings: Any, tied: bool, *upstream: Any) -> Any:
    """Compute log-probabilities, or with ``upstream`` their gradient."""
    rows, values, *of_rankings = on_host(scores, rankings, *upstream)
    return torch.from_numpy(log_prob_of_rows(rows, values, tied, *of_rankings)).to(scores.device, scores.dtype)


_log_prob = _operator(
    "ranking_log_prob",
    "(Tensor scores, Tensor rankings, bool tied) -> Tensor",
    _log_prob_of_rows,
    lambda scores, rankings, tied: scores.new_empty(rankings.shape[:2]),
)
_log_prob_vjp = _operator(
    "ranking_log_prob_vjp",
    "(Tensor scores, Tensor rankings, bool tied, Tensor upstream) -> Tensor",
    _log_prob_of_rows,
    lambda scores, rankings, tied, upstream: scores.new_empty(scores.shape),
)


class _LogProb(torch.autograd.Function):  # type: ignore[misc]
    """Log-probabilities of rankings, with or without ties, that autograd differentiates."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return _log_prob(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.tied = inputs[2]

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        scores, rankings = ctx.saved_tensors
        with torch.no_grad():
            gradient = _log_prob_vjp(scores, rankings, ctx.tied, upstream)
        if torch.is_grad_enabled():
            gradient = _OnceDifferentiable.apply(gradient, "PlackettLuce.log_prob", scores, upstream)
        return gradient, None, None


_log_prob.register_autograd(_LogProb.backward, setup_context=_LogProb.setup_context)


class _Scores(constraints.Constraint):  # type: ignore[misc]
    """Constraint to vectors of finite numbers or -inf."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value < math.inf).all(dim=-1)  # NaN is not below


class _Rankings(constraints.Constraint):  # type: ignore[misc]
    """Constraint to rankings of distinct items of positive weight, with -1 in the ranks that are left over."""

    is_discrete = True
    event_dim = 1

    def __init__(self, possible: Any) -> None:
        self.possible = possible
        super().__init__()

    def check(self, value: Any) -> Any:
        whole = (value == value.floor()) & (value < self.possible.shape[-1])
        item = torch.where(whole & (value >= 0), value, 0).long()
        batch = torch.broadcast_shapes(value.shape[:-1], self.possible.shape[:-1])
        possible, item = self.possible.expand(*batch, -1), item.expand(*batch, -1)
        here = torch.arange(value.shape[-1], device=value.device) < self.possible.sum(-1, keepdim=True)
        fits = torch.where(here, whole & (value >= 0) & possible.gather(-1, item), value == -1)
        ordered = torch.where(here, value, -1 - torch.arange(value.shape[-1], device=value.device)).sort(dim=-1).values
        return fits.all(dim=-1) & (ordered[..., 1:] != ordered[..., :-1]).all(dim=-1)


class PlackettLuce(torch.distributions.Distribution):  # type: ignore[misc]
    """The Plackett-Luce distribution over rankings, or over their first ranks, as a PyTorch distribution.

    Parameters
    ----------
    scores : Tensor, shape (..., n_items)
        Log-weights; the axes before the last are the batch. ``log_prob`` is differentiable by them, once. An item with
        the score -inf has weight 0, as an action that is masked: no ranking holds it.
    cutoff : int, optional
        Ranks of a ranking, K; all items by default.
    validate_args : bool, optional
        Whether to check scores and rankings; by default PyTorch's global setting.

    Notes
    -----
    Draws are of int64 and use PyTorch's default generator, which ``torch.manual_seed`` sets. They end, with -1, after
    the items of positive weight where these are fewer than ``cutoff``. Computations are on the CPU in float64, and
    results have the dtype of the scores. ``plrank_fast.PlackettLuce`` takes queries of different
    lengths, and its entropy and divergence have standard errors. ``torch.distributions.kl_divergence`` is `kl`.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import PlackettLuce
    >>> scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    >>> policy = PlackettLuce(scores, cutoff=2)
    >>> policy.sample((5,)).shape
    torch.Size([5, 2])
    >>> policy.log_prob(torch.tensor([2, 0])).backward()
    >>> scores.grad
    tensor([ 0.1667, -0.8333,  0.6667], dtype=torch.float64)
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {"scores": _Scores()}

    def __init__(self, scores: Any, cutoff: int | None = None, validate_args: bool | None = None) -> None:
        _floating(scores)
        validation.require(scores.ndim > 0, "scores must have an axis of items, got a scalar")
        self.scores = scores
        self.cutoff: int = validation.ranks_that_count(cutoff, scores.shape[-1])
        super().__init__(scores.shape[:-1], torch.Size([self.cutoff]), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)  # type: ignore[untyped-decorator]
    def support(self) -> Any:
        """Rankings of ``cutoff`` distinct items, or of all of positive weight if these are fewer."""
        return _Rankings(self.scores.detach() > -math.inf)

    @property
    def mode(self) -> torch.Tensor:
        """The most probable ranking, by descending score; of equal scores the lower index comes first."""
        ordered, items = (each[..., : self.cutoff] for each in self.scores.detach().sort(descending=True, stable=True))
        return torch.where(ordered > -math.inf, items, -1)

    def expand(self, batch_shape: Any, _instance: Any = None) -> PlackettLuce:
        """Return this distribution over a larger batch, without a copy of the scores.

        Parameters
        ----------
        batch_shape : torch.Size
            Shape to which the present one broadcasts.

        Returns
        -------
        PlackettLuce
        """
        new = self._get_checked_instance(PlackettLuce, _instance)
        batch_shape = torch.Size(batch_shape)
        new.scores, new.cutoff = self.scores.expand(batch_shape + self.scores.shape[-1:]), self.cutoff
        super(PlackettLuce, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Any = ()) -> torch.Tensor:
        """Draw rankings, without a gradient.

        Parameters
        ----------
        sample_shape : torch.Size
            Shape of the rankings to draw from each distribution of the batch.

        Returns
        -------
        Tensor of int64, shape sample_shape + batch_shape + (cutoff,)
        """
        shape = self._extended_shape(torch.Size(sample_shape))
        n_samples = int(np.prod(tuple(sample_shape), dtype=np.int64))
        rows = self.scores.detach().reshape(self._batch_shape.numel(), self.scores.shape[-1])
        if shape.numel() == 0 or self.scores.is_meta:
            return torch.zeros(shape, dtype=torch.int64, device=self.scores.device)
        rng = np.random.SeedSequence(_seed(None).tolist())
        rankings = sample_rows(on_host(rows)[0], n_samples, self.cutoff, rng)
        return torch.from_numpy(rankings).to(self.scores.device, torch.int64).movedim(0, 1).reshape(shape)

    def log_prob(self, value: Any = None, *, buckets: Any = None) -> torch.Tensor:
        """Compute the log-probability of rankings, or of rankings with ties, differentiable by the scores.

        Parameters
        ----------
        value : Tensor of integers, shape (..., cutoff)
            Rankings; the axes before the last broadcast against the batch. Without ``validate_args`` they may be
            shorter, and one that holds an item of weight 0 has -inf and no gradient.
        buckets : Tensor of integers, shape (..., n_items)
            In place of rankings: items of a smaller number come first, items of the same number in any order. A set
            that comes first has 0 for its members and 1 for the rest.

        Returns
        -------
        Tensor
            Log-probabilities in the dtype of the scores, without the last axis.
        """
        name, value = validation.only_one({"value": value, "buckets": buckets})
        value, tied, n_items = _dense(value, name), name == "buckets", self.scores.shape[-1]
        if tied:
            must = f"buckets must have one entry per item, {n_items}"
            validation.require(value.shape[-1:] == (n_items,), f"{must}, got shape {tuple(value.shape)}")
        elif self._validate_args:
            self._validate_sample(value)
        else:
            validation.no_longer_than(value.shape, self.cutoff, "value")
        return self._log_prob_of(value, tied)

    def _log_prob_of(self, value: Any, tied: bool) -> Any:
        """Compute log-probabilities of rankings that have been checked, or are to be found impossible."""
        n_queries, n_items = self._batch_shape.numel(), self.scores.shape[-1]
        shape = torch.broadcast_shapes(value.shape[:-1], self._batch_shape)
        # Each entry of the batch is a row of scores, with all of its rankings.
        n_more = len(shape) - len(self._batch_shape)
        if shape[n_more:] != self._batch_shape:
            return self.expand(shape[n_more:])._log_prob_of(value, tied)
        if value.numel() * shape.numel() == 0:
            return self.scores[..., :0].sum() + self.scores.new_zeros(shape)
        rows_of_values = math.prod(shape[:n_more]), n_queries, value.shape[-1]
        rankings = value.expand(shape + value.shape[-1:]).reshape(rows_of_values).movedim(0, 1)
        rows = self.scores.reshape(n_queries, n_items)
        log_prob = (_LogProb.apply if _is_plain(rows) else _log_prob)(rows, rankings.contiguous(), tied)
        return log_prob.movedim(0, 1).reshape(shape)

    @validation.hinted
    def expected_reward(
        self, reward: Callable[[torch.Tensor], Any], n_samples: int = 16
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw rankings and estimate the expectation of their reward, differentiable by the scores.

        The gradient is that of REINFORCE, with the mean reward of the other rankings as baseline; it is unbiased.

        Parameters
        ----------
        reward : callable
            ``reward(rankings)`` maps all rankings at once to a number for each, (n_samples,) + batch_shape, such as
            what a language model makes of the documents. Where rewards require a gradient, as of a reader that is
            trained too, it passes to them.
        n_samples : int
            Rankings to draw from each distribution of the batch, at least 2.

        Returns
        -------
        value : Tensor, shape batch_shape
            Mean reward, to be maximised.
        rankings : Tensor of int64, shape (n_samples,) + batch_shape + (cutoff,)
        log_prob : Tensor, shape (n_samples,) + batch_shape
            Log-probability of each ranking, differentiable by the scores.

        Examples
        --------
        >>> import torch
        >>> from plrank_fast.torch import PlackettLuce
        >>> scores = torch.zeros(3, requires_grad=True)
        >>> shows_last = lambda rankings: (rankings == 2).any(-1)
        >>> value, rankings, log_prob = PlackettLuce(scores, cutoff=1).expected_reward(shows_last, 1000)
        >>> value.backward()
        >>> bool(scores.grad[2] > 0.1), rankings.shape, log_prob.shape
        (True, torch.Size([1000, 1]), torch.Size([1000]))
        """
        validation.of_type(callable(reward), "reward", "a function", type(reward).__name__)
        rankings = self.sample((validation.count(n_samples, "n_samples", 2),))
        log_prob = self.log_prob(rankings)
        rewards = torch.as_tensor(reward(rankings.clone())).to(log_prob)
        shape, expected = tuple(rewards.shape), tuple(log_prob.shape)
        validation.require(shape == expected, f"reward(rankings) must have the shape {expected}, got {shape}")
        validation.require(rewards.isfinite().all(), "reward(rankings) must be finite, got NaN or infinity")
        return _score_function(rewards, log_prob), rankings, log_prob

    def entropy(self, n_samples: int = 1000) -> torch.Tensor:
        """Estimate the entropy in nats, differentiable by the scores; value and gradient are unbiased.

        Parameters
        ----------
        n_samples : int
            Rankings to draw from each distribution of the batch, at least 2.

        Returns
        -------
        Tensor, shape batch_shape
        """
        return -self._mean_log_ratio(None, n_samples)

    @validation.hinted
    def kl(self, other: Any, n_samples: int = 1000) -> torch.Tensor:
        """Estimate the Kullback-Leibler divergence from ``other`` in nats; value and gradient are unbiased.

        Parameters
        ----------
        other : PlackettLuce
            Distribution over the same items, with the same cutoff; its scores are differentiated too.
        n_samples : int
            Rankings to draw from each distribution of the batch, at least 2.

        Returns
        -------
        Tensor, shape batch_shape
        """
        return self._mean_log_ratio(other, n_samples)

    def _mean_log_ratio(self, other: Any, n_samples: int) -> Any:
        """Estimate E[log p - log other]."""
        rankings = self.sample((validation.count(n_samples, "n_samples", 2),))
        log_prob = self.log_prob(rankings)
        ratio = log_prob.detach() - (0.0 if other is None else other._log_prob_of(rankings, False))
        return _score_function(ratio, log_prob)


def _score_function(values: Any, log_prob: Any) -> Any:
    """Return the mean of draws, whose gradient is the expectation's, with the mean of other draws as baseline."""
    n_draws = len(values)
    centred = (values - values.mean(0)).detach().nan_to_num(0.0, 0.0, 0.0) * (n_draws / (n_draws - 1))
    return (values + centred * (log_prob - log_prob.detach())).mean(0)


torch.distributions.register_kl(PlackettLuce, PlackettLuce)(PlackettLuce.kl)
