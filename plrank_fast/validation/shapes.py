"""Shapes of batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from plrank_fast.validation.checks import of_type
from plrank_fast.validation.scalars import count


def at_least_one_axis(shape: tuple[int, ...], name: str) -> None:
    """Check that a tensor is no scalar."""
    if not shape:
        raise ValueError(f"{name} must have an axis of items, got a scalar")


def number_of_axes(got: int, name: str, expected: int) -> None:
    """Check the number of axes of an array whose values are not known yet."""
    if got != expected:
        raise ValueError(f"{name} must have {expected} {'axis' if expected == 1 else 'axes'}, got {got}")


def sizes_of_axes(values: Any, name: str) -> tuple[int, ...]:
    """Return a shape that a caller gave."""
    of_type(isinstance(values, (tuple, list)), name, "a tuple of integers", type(values).__name__)
    return tuple(count(size, name, 0) for size in values)


def broadcast_with_batch(shape: tuple[int, ...], batch_shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Return what the axes of an array before its last and those of a batch broadcast to."""
    try:
        return np.broadcast_shapes(shape, batch_shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast with the batch, of shape {batch_shape}, got {shape}") from None


def addressable(shape: tuple[int, ...], itemsize: int, name: str) -> tuple[int, ...]:
    """Return ``shape`` if an array of it could exist at all."""
    size = itemsize
    for length in shape:
        size *= length
    if size >= 2**63:
        raise ValueError(f"{name} asks for an array of shape {shape}, {size} bytes: more than can be addressed")
    return shape
