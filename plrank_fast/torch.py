"""Minus the expected metric as a loss of PyTorch, and the Plackett-Luce distribution among its distributions.

The gradient of the loss is computed on the CPU in float64, together with the value; ``backward`` multiplies it by the
incoming gradient. Tensors of a CUDA device travel through pinned host memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._shared.expected_loss import GAINS, REDUCTIONS, LossBatch, loss_batch
from plrank_fast._shared.extras import import_extra
from plrank_fast.sampling import ranking_log_prob, ranking_log_prob_vjp, sample_rankings
from plrank_fast.validation import FloatArray
from plrank_fast.value_and_gradient import EXACT, METHODS

torch = import_extra("torch", "torch")
constraints = import_extra("torch.distributions.constraints", "torch")


class _MinusExpectedMetric(torch.autograd.Function):  # type: ignore[name-defined, misc]
    """Loss of each query, of scores of any layout."""

    @staticmethod
    def forward(scores: Any, batch: LossBatch, options: Any) -> Any:
        values, gradient = batch.evaluate(_on_host(scores), **options)
        dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
        return _on_device(values, scores, dtype), _on_device(gradient, scores, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        scores, batch, _ = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1], scores)
        ctx.layout = batch.layout

    @staticmethod
    def backward(ctx: Any, upstream: Any, _: Any) -> Any:
        gradient, scores = ctx.saved_tensors
        with torch.no_grad():
            if upstream.numel() != 1:
                upstream = upstream[torch.from_numpy(ctx.layout.queries()).to(upstream.device)]
            gradient = gradient * upstream  # autograd turns it into the dtype of the scores
        if torch.is_grad_enabled():  # create_graph=True: a gradient that was a constant would be silently wrong
            gradient = _OnceDifferentiable.apply(gradient, "plackett_luce_loss", scores, upstream)
        return gradient, None, None


class _OnceDifferentiable(torch.autograd.Function):  # type: ignore[name-defined, misc]
    """A gradient by ``scores`` and ``upstream`` that refuses to be differentiated.

    ``once_differentiable`` of PyTorch refuses only where ``upstream`` is differentiated too, which the one that starts
    ``backward`` is not.
    """

    @staticmethod
    def forward(gradient: Any, name: str, scores: Any, upstream: Any) -> Any:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.name = inputs[1]

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        raise RuntimeError(f"{ctx.name} cannot be differentiated twice: it has no second derivative (double backward)")


def _on_host(tensor: Any) -> NDArray[Any]:
    """NumPy array of a tensor's values, in a dtype that holds them exactly."""
    tensor = tensor.detach()
    if tensor.is_cuda:
        pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        pinned.copy_(tensor, non_blocking=True)
        torch.cuda.current_stream(tensor.device).synchronize()
        tensor = pinned
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.to(torch.float32)
    array: NDArray[Any] = tensor.numpy(force=True)
    return array


def _on_device(array: FloatArray, like: Any, dtype: Any) -> Any:
    """Tensor of the array's values, on the device of ``like``."""
    tensor = torch.from_numpy(array).to(dtype)
    return tensor.pin_memory().to(like.device, non_blocking=True) if like.is_cuda else tensor.to(like.device)


def _as_array(values: Any, name: str) -> Any:
    """NumPy array of a tensor that is not differentiated; other things are left as they are."""
    if not isinstance(values, torch.Tensor):
        return values
    validation.constant(values.requires_grad, name, "require a gradient", f"{name}.detach()")
    return _on_host(values)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def plackett_luce_loss(
    scores: Any,
    relevance: Any,
    offsets: Any = None,
    *,
    mask: Any = None,
    weight: Any = None,
    cutoff: int | None = 10,
    rank_weights: ArrayLike | None = None,
    gain: str = "linear",
    normalize: bool = False,
    reduction: str = "mean",
    method: str = "auto",
    n_samples: int | None = None,
    rtol: float = 1e-6,
    rng: Any = None,
    n_threads: int | None = None,
    first_query: int = 0,
) -> Any:
    """Minus the expected metric of rankings drawn from the Plackett-Luce distribution of ``scores``.

    The functional form of `PlackettLuceLoss`, which describes the shapes.

    Parameters
    ----------
    scores, relevance, offsets, mask, weight, first_query
        As in ``PlackettLuceLoss.forward``.
    cutoff, rank_weights, gain, normalize, reduction, method, n_samples, rtol, n_threads
        As in `PlackettLuceLoss`.
    rng : None, torch.Generator, int, SeedSequence, BitGenerator or Generator
        For sampled methods. None draws from PyTorch's default generator, which ``torch.manual_seed`` sets.

    Returns
    -------
    Tensor
        A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import plackett_luce_loss
    >>> scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    >>> loss = plackett_luce_loss(scores, torch.tensor([1.0, 0.0]), cutoff=1)
    >>> loss.backward()
    >>> round(loss.item(), 6), scores.grad
    (-0.5, tensor([-0.2500,  0.2500], dtype=torch.float64))
    """
    is_tensor = isinstance(scores, torch.Tensor)
    got = scores.dtype if is_tensor else type(scores).__name__
    validation.of_type(is_tensor and scores.is_floating_point(), "scores", "a floating point tensor", got)
    batch = loss_batch(
        tuple(scores.shape), _as_array(relevance, "relevance"), offsets=_as_array(offsets, "offsets"),
        mask=_as_array(mask, "mask"), weight=_as_array(weight, "weight"), cutoff=cutoff,
        rank_weights=_as_array(rank_weights, "rank_weights"), gain=gain, normalize=normalize, reduction=reduction,
        method=method,
    )  # fmt: skip
    options = {"n_samples": n_samples, "rtol": rtol, "n_threads": n_threads, "first_query": first_query}
    with _stream(rng, batch.method) as stream:
        values, _ = _MinusExpectedMetric.apply(scores, batch, {**options, "rng": stream})
    return (values if reduction == "none" else values.sum()).to(scores.dtype)


@contextmanager
def _stream(rng: Any, method: str) -> Iterator[Any]:
    """Source of random numbers as the library takes it; after an error PyTorch's generator is where it was."""
    if method == EXACT or (rng is not None and not isinstance(rng, torch.Generator)):
        yield None if method == EXACT else rng
        return
    generator = torch.default_generator if rng is None else rng
    before = generator.get_state()
    drawn = torch.randint(2**63 - 1, (2,), generator=generator, device=generator.device)
    try:
        yield np.random.SeedSequence(drawn.tolist())
    except BaseException:
        generator.set_state(before)
        raise


class PlackettLuceLoss(torch.nn.Module):  # type: ignore[name-defined, misc]
    """Minus the expected metric of rankings drawn from the Plackett-Luce distribution of a network's scores.

    Parameters
    ----------
    cutoff : int or None
        Ranks that count, K: the metric is DCG@K. None: all ranks of the longest query.
    method : str
        Estimator of the gradient: "exact" (``pl_rank_exact``), "cmc" (``pl_rank_cmc``), "pl_rank_3", or another
        estimator by its name (see ``value_and_gradient``). "auto" takes the exact one, or one sample of "cmc" where the
        cost model says that this is far cheaper.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Weight of each rank, for another metric; in place of ``cutoff``.
    gain : {"linear", "exponential"}
        Whether ``relevance`` holds gains, or grades whose gains are 2**grade - 1.
    normalize : bool
        Divide each query's metric by that of its ideal ranking, which gives the expected NDCG. Queries without relevant
        documents have loss 0 and gradient 0.
    reduction : {"mean", "sum", "none"}
        The mean over all queries of the batch, weighted if there are weights; their sum; or one value for each query.
    n_samples : int, optional
        Rankings per query of sampled methods; 1 for "cmc" and 100 for the others by default.
    rtol : float
        Accuracy of the exact method, as in ``pl_rank_exact``.
    seed : int, optional
        For sampled methods. Every forward pass has random numbers of its own, which depend on the seed and on the
        number of passes before it. By default the seed is drawn from PyTorch's generator, which ``torch.manual_seed``
        sets. ``state_dict`` holds the seed and the number of passes, so that training resumes with the same bits.
    n_threads : int, optional
        None: all available processors; the result does not depend on it.

    Notes
    -----
    Value and gradient are computed on the CPU in float64; their dtype is that of the scores. The gradient is computed
    in the forward pass, and there is no second derivative: double backward raises RuntimeError. ``torch.compile``
    leaves a gap in its graph here.

    Examples
    --------
    >>> import torch
    >>> from plrank_fast.torch import PlackettLuceLoss
    >>> model = torch.nn.Linear(3, 1)
    >>> loss = PlackettLuceLoss(cutoff=10)
    >>> features, relevance = torch.rand(5, 3), torch.tensor([0.0, 1.0, 3.0, 0.0, 1.0])
    >>> loss(model(features), relevance, offsets=[0, 3, 5]).backward()  # queries of three and two documents
    >>> model.weight.grad.shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        cutoff: int | None = 10,
        *,
        method: str = "auto",
        rank_weights: ArrayLike | None = None,
        gain: str = "linear",
        normalize: bool = False,
        reduction: str = "mean",
        n_samples: int | None = None,
        rtol: float = 1e-6,
        seed: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__()
        self.cutoff = None if cutoff is None else validation.count(cutoff, "cutoff", 0)
        self.method = validation.choice(method, "method", METHODS)
        self.rank_weights = rank_weights
        self.gain = validation.choice(gain, "gain", GAINS)
        self.normalize = validation.flag(normalize, "normalize")
        self.reduction = validation.choice(reduction, "reduction", REDUCTIONS)
        self.n_samples = n_samples if n_samples is None else validation.count(n_samples, "n_samples", 1)
        self.rtol = validation.relative_tolerance(rtol)
        self.n_threads = validation.threads(n_threads)
        drawn = int(torch.randint(validation.LARGEST_COUNT, ())) if seed is None else seed
        self.seed = validation.count(drawn, "seed", 0)
        self.passes = 0

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self,
        scores: Any,
        relevance: Any,
        offsets: Any = None,
        *,
        mask: Any = None,
        weight: Any = None,
        first_query: int = 0,
    ) -> Any:
        """Loss of a batch.

        Parameters
        ----------
        scores : Tensor, shape (n_docs,), (n_docs, 1) or (n_queries, length)
            The documents of all queries one after another, or a row for each query. float16, bfloat16, float32 or
            float64, on any device.
        relevance : Tensor or array_like, of the shape of scores or (n_docs,)
            Gain or grade of each document (see ``gain``); any finite value.
        offsets : Tensor or array_like of int, shape (n_queries + 1,), optional
            Where each query's documents start; a single query by default. Not for rows.
        mask : Tensor or array_like of bool, of the shape of scores, optional
            True where a document stands, False in the padding, whose values are ignored and whose gradient is 0.
            Without a mask, rows have no padding. Results are bit-identical to those of the ragged batch.
        weight : Tensor or array_like, shape (n_queries,), optional
            Weight of each query, at least 0.
        first_query : int
            Number of the first query in the numbering of random streams: batches cut into parts, on one process or
            several with the same seed, have the same random numbers as the whole.

        Returns
        -------
        Tensor
            A scalar, or (n_queries,) with ``reduction="none"``; of the dtype of ``scores``.

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.
        """
        loss = plackett_luce_loss(
            scores, relevance, offsets, mask=mask, weight=weight, cutoff=self.cutoff, rank_weights=self.rank_weights,
            gain=self.gain, normalize=self.normalize, reduction=self.reduction, method=self.method,
            n_samples=self.n_samples, rtol=self.rtol, n_threads=self.n_threads, first_query=first_query,
            rng=np.random.SeedSequence(self.seed, spawn_key=(self.passes,)),
        )  # fmt: skip
        self.passes += 1
        return loss

    def extra_repr(self) -> str:
        """What the loss optimises and how, for ``print(model)``."""
        metric = "rank_weights given" if self.rank_weights is not None else f"cutoff={self.cutoff}"
        options = f"method={self.method!r}, gain={self.gain!r}, normalize={self.normalize}"
        return f"{metric}, {options}, reduction={self.reduction!r}"

    def get_extra_state(self) -> dict[str, int]:
        """Position in the random numbers of sampled methods, for ``state_dict``."""
        return {"seed": self.seed, "passes": self.passes}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Restore what `get_extra_state` returned."""
        self.seed = validation.count(state["seed"], "seed", 0)
        self.passes = validation.count(state["passes"], "passes", 0)


class _LogProb(torch.autograd.Function):  # type: ignore[name-defined, misc]
    """Log-probabilities, (n_queries, n_rankings), of rankings of that many rows of scores, (n_queries, length)."""

    @staticmethod
    def forward(scores: Any, rankings: Any) -> Any:
        log_prob = ranking_log_prob(_on_host(scores).reshape(-1), _on_host(rankings), offsets=_rows(scores))
        return _on_device(log_prob, scores, scores.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        scores, rankings = ctx.saved_tensors
        gradient = ranking_log_prob_vjp(
            _on_host(scores).reshape(-1), _on_host(rankings), _on_host(upstream), offsets=_rows(scores)
        )
        gradient = _on_device(gradient.reshape(tuple(scores.shape)), scores, scores.dtype)
        if torch.is_grad_enabled():
            gradient = _OnceDifferentiable.apply(gradient, "PlackettLuce.log_prob", scores, upstream)
        return gradient, None


def _rows(scores: Any) -> NDArray[np.int64]:
    """Offsets of rows of the same length."""
    return np.arange(scores.shape[0] + 1, dtype=np.int64) * scores.shape[1]


class _Rankings(constraints.Constraint):  # type: ignore[name-defined, misc]
    """Distinct items of so many, by rank."""

    is_discrete = True
    event_dim = 1

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        super().__init__()

    def check(self, value: Any) -> Any:
        ordered = value.sort(dim=-1).values
        distinct = (ordered[..., 1:] != ordered[..., :-1]).all(dim=-1)
        return distinct & ((value >= 0) & (value < self.n_items) & (value == value.floor())).all(dim=-1)


class PlackettLuce(torch.distributions.Distribution):  # type: ignore[name-defined, misc]
    """The Plackett-Luce distribution over rankings, or over their first ranks, as a PyTorch distribution.

    Parameters
    ----------
    scores : Tensor, shape (..., n_items)
        Log-weights; the axes before the last are the batch. ``log_prob`` is differentiable by them, once.
    cutoff : int, optional
        Ranks of a ranking, K; all items by default.
    validate_args : bool, optional
        Whether scores and rankings are checked; by default PyTorch's global setting.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    Draws are of int64 and use PyTorch's default generator, which ``torch.manual_seed`` sets. Everything is
    computed on the CPU in float64 and returned in the dtype of the scores. For queries of different lengths, and for
    entropy and divergence, there is ``plrank_fast.PlackettLuce``.

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

    arg_constraints = {"scores": constraints.real_vector}  # noqa: RUF012 - as PyTorch's own have it

    def __init__(self, scores: Any, cutoff: int | None = None, validate_args: bool | None = None) -> None:
        is_tensor = isinstance(scores, torch.Tensor)
        got = scores.dtype if is_tensor else type(scores).__name__
        validation.of_type(is_tensor and scores.is_floating_point(), "scores", "a floating point tensor", got)
        validation.at_least_one_axis(tuple(scores.shape), "scores")
        n_items = scores.shape[-1]
        self.scores = scores
        self.cutoff = n_items if cutoff is None else min(validation.count(cutoff, "cutoff", 0), n_items)
        super().__init__(scores.shape[:-1], torch.Size([self.cutoff]), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)  # type: ignore[untyped-decorator]
    def support(self) -> Any:
        """Rankings of ``cutoff`` distinct items."""
        return _Rankings(self.scores.shape[-1])

    @property
    def mode(self) -> Any:
        """The most probable ranking, by descending score; of equal scores the lower number first."""
        return self.scores.detach().argsort(dim=-1, descending=True, stable=True)[..., : self.cutoff]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
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

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw rankings, without a gradient.

        Parameters
        ----------
        sample_shape : torch.Size
            How many rankings to draw from each distribution of the batch.

        Returns
        -------
        Tensor of int64, shape sample_shape + batch_shape + (cutoff,)
        """
        shape = self._extended_shape(torch.Size(sample_shape))
        n_samples = int(np.prod(tuple(sample_shape), dtype=np.int64))
        rows = self.scores.detach().reshape(self._batch_shape.numel(), self.scores.shape[-1])
        if shape.numel() == 0:
            return torch.zeros(shape, dtype=torch.int64, device=self.scores.device)
        with _stream(None, "sample") as stream:
            rankings = sample_rankings(
                _on_host(rows).reshape(-1), n_samples, self.cutoff, offsets=_rows(rows), rng=stream
            )
        return torch.from_numpy(rankings.astype(np.int64)).movedim(0, 1).reshape(shape).to(self.scores.device)

    def log_prob(self, value: Any) -> Any:
        """Compute the log-probability of rankings, differentiable by the scores.

        Parameters
        ----------
        value : Tensor of integers, shape (..., cutoff)
            Rankings; the axes before the last broadcast against the batch.

        Returns
        -------
        Tensor
            Of the dtype of the scores; without the last axis.
        """
        if self._validate_args:
            self._validate_sample(value)
        shape = torch.broadcast_shapes(value.shape[:-1], self._batch_shape)
        n_queries, n_items = self._batch_shape.numel(), self.scores.shape[-1]
        # one row of scores for each of the batch, with all of its rankings
        n_more = len(shape) - len(self._batch_shape)
        if shape[n_more:] != self._batch_shape:
            return self.expand(shape[n_more:]).log_prob(value)
        rankings = value.expand(shape + value.shape[-1:]).reshape(-1, n_queries, value.shape[-1]).movedim(0, 1)
        if rankings.numel() == 0:
            return self.scores.sum() * 0.0 + self.scores.new_zeros(shape)
        log_prob = _LogProb.apply(self.scores.reshape(n_queries, n_items), rankings.contiguous())
        return log_prob.movedim(0, 1).reshape(shape)
