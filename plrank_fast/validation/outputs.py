"""Output arrays, and whether doubles can hold the results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast.validation.arrays import FloatArray
from plrank_fast.validation.checks import require


def output(out: Any, shape: tuple[int, ...], name: str = "out") -> FloatArray | None:
    """Check an output array: float64, of the right shape, writeable."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, got {type(out).__name__}")
    if out.dtype != np.float64 or not out.dtype.isnative or out.shape != shape:
        raise ValueError(f"{name} must be float64 of shape {shape}, got {out.dtype} of shape {out.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name} must be writeable, got a read-only array")
    return out


def representable(result: FloatArray, names: str) -> FloatArray:
    """Return ``result`` if it is finite; ``names`` are the arguments to name if it is not."""
    if not _magnitudes.all_finite(result):
        first = int(np.argmin(np.isfinite(result)))
        raise ValueError(f"{names} lead to a result beyond the largest double, about 1.8e308, at index {first}")
    return result


def tolerance_missed(query: int, reached: float, rtol: float) -> None:
    """Refuse a result of which a query has only reached a tolerance above ``rtol``."""
    raise ArithmeticError(
        f"rtol={rtol:g} cannot be held for query {query}: the result may be off by {reached:.2g} times its norm; "
        f"pass rtol={1.1 * reached:.2g} or more, or a sampled method"
    )


def deliver(result: FloatArray, out: FloatArray | None) -> FloatArray:
    """Return ``result``, copied to ``out`` if the caller gave one, so that only finished results are written."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


def output_pair(
    out: Any, shape: tuple[int, ...], second_shape: tuple[int, ...] | None = None
) -> tuple[FloatArray | None, FloatArray | None]:
    """Check the output of two results, such as a gradient and its Hessian diagonal: a pair of arrays."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"out must be a pair of arrays, one for each result, got {type(out).__name__}")
    pair = output(out[0], shape, "out[0]"), output(out[1], second_shape or shape, "out[1]")
    if pair[0] is not None and pair[1] is not None and np.shares_memory(pair[0], pair[1]):
        raise ValueError("out must be a pair of separate arrays, got two that share memory")
    return pair


def broadcast_with_batch(shape: tuple[int, ...], batch_shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Return the shape to which the axes of an array before its last and those of a batch broadcast."""
    try:
        return np.broadcast_shapes(shape, batch_shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast with the batch, of shape {batch_shape}, got {shape}") from None


def addressable(shape: tuple[int, ...], itemsize: int, name: str) -> tuple[int, ...]:
    """Return ``shape`` if an array of it could exist at all."""
    size = math.prod(shape, start=itemsize)
    require(size < 2**63, f"{name} asks for an array of shape {shape}, {size} bytes: more than can be addressed")
    return shape
