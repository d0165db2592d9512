"""Copies of PyTorch's tensors to the CPU and back: a call awaits all that it reads at once, and returns one block.

A CUDA device copies to and from pinned memory. Each thread keeps a block of it for each stream, which holds what a call
reads and then its results. The copy of results from the block is not awaited: the next call of the stream writes to the
block after it has awaited its own copies, which come later on the stream.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast._shared.extras import import_extra

torch = import_extra("torch", "torch")

ALIGNMENT = 16  # bytes, of any dtype
SMALLEST_BLOCK = 1 << 15


class _Blocks(threading.local):
    """Pinned memory of a thread, by stream, as a tensor of each dtype and as an array."""

    def __init__(self) -> None:
        self.of_streams: dict[Any, dict[Any, Any]] = {}

    def of(self, stream: Any, n_bytes: int, dtype: Any) -> tuple[Any, Any]:
        views = self.of_streams.get(stream)
        if views is None or views[torch.uint8][0].numel() < n_bytes:
            block = pinned(max(SMALLEST_BLOCK, 1 << n_bytes.bit_length()))
            views = self.of_streams[stream] = {torch.uint8: (block, block.numpy())}
        if dtype not in views:
            view = views[torch.uint8][0].view(dtype)
            views[dtype] = view, None if dtype == torch.bfloat16 else view.numpy()  # NumPy has no bfloat16
        of_dtype: tuple[Any, Any] = views[dtype]
        return of_dtype


_blocks = _Blocks()


def pinned(n_bytes: int) -> Any:
    """Allocate memory that a CUDA device reads and writes while the CPU goes on."""
    return torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)


def is_cuda(value: Any) -> bool:
    """Return whether a value is a tensor on a CUDA device."""
    return value is not None and getattr(value, "is_cuda", False)


def is_on_cpu(tensor: Any) -> bool:
    """Return whether a tensor's values are in the memory of the CPU."""
    return tensor.is_cpu


def stream_of(tensor: Any) -> Any:
    """Return the stream on which a tensor of a CUDA device is copied."""
    return torch.cuda.current_stream(tensor.device)


def on_host(*values: Any) -> list[Any]:
    """Return arrays of the tensors' values, in dtypes that hold them, and other values unchanged.

    The arrays are valid until the next call by this thread.
    """
    if not any(map(is_cuda, values)):
        return [value if value is None else _array(value) for value in values]
    remote = [value for value in values if is_cuda(value)]
    sizes = [-(-value.numel() * value.element_size() // ALIGNMENT) * ALIGNMENT for value in remote]
    streams = {device: stream_of(value) for device, value in {each.device: each for each in remote}.items()}
    first, begin, copies = streams[remote[0].device], 0, {}
    for value, size in zip(remote, sizes, strict=True):
        view, array = _blocks.of(first, sum(sizes), value.dtype)
        start, shape = begin // value.element_size(), tuple(value.shape)
        part = _part(view, start, shape)
        part.copy_(value.detach() if value.requires_grad else value, non_blocking=True)
        copies[id(value)] = part if array is None else array[start : start + value.numel()].reshape(shape)
        begin += size
    for stream in streams.values():
        stream.synchronize()
    return [_array(copies.get(id(value), value)) for value in values]


def room(like: Any, dtype: Any) -> NDArray[Any]:
    """Return an array of as many numbers as ``like`` has, in the place from which `on_device` copies its first result.

    What `on_host` returned may lie there too, so it must have been read before anything is written.
    """
    if is_cuda(like):
        place: NDArray[Any] = _blocks.of(stream_of(like), like.numel() * dtype.itemsize, dtype)[1][: like.numel()]
        return place
    return np.empty(like.numel(), np.float64 if dtype == torch.float64 else np.float32)


def on_device(like: Any, arrays: list[NDArray[Any]], dtypes: list[Any]) -> list[Any]:
    """Return tensors of the arrays' values on the device of ``like``, of whose values `on_host` has made a copy.

    On another device than the CPU they share one block of memory, and all but the last are views.
    """
    with np.errstate(over="ignore"):  # as PyTorch's conversions, which take longer
        if is_on_cpu(like):
            return [_tensor(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True)]
        return _in_one_copy(like, arrays, dtypes)


def _tensor(array: NDArray[Any], dtype: Any) -> Any:
    if dtype == torch.float64:
        return torch.from_numpy(array)
    single = torch.from_numpy(array.astype(np.float32, copy=False))
    return single if dtype == torch.float32 else single.to(dtype)


def _in_one_copy(like: Any, arrays: list[NDArray[Any]], dtypes: list[Any]) -> list[Any]:
    size = sum(array.size for array in arrays)
    common = torch.float64 if torch.float64 in dtypes else torch.float32  # NumPy has no bfloat16
    moved = torch.empty(size, dtype=common, device=like.device)
    if is_cuda(like):
        block, values = _blocks.of(stream_of(like), size * common.itemsize, common)
    else:
        block = torch.empty(size, dtype=common)
        values = block.numpy()
    begin, results = 0, []
    for array in arrays:
        if array.base is not values:  # it was not computed in its place
            values[begin : begin + array.size] = array.reshape(-1)
        if begin + array.size < size:
            results.append(_part(moved, begin, array.shape))
        else:  # no view, which autograd would not let users change in place
            place = moved.untyped_storage(), begin, array.shape, _strides(array.shape)
            results.append(moved.new_empty(0).set_(*place))
        begin += array.size
    moved.copy_(block[:size], non_blocking=True)
    return [part.to(dtype) for part, dtype in zip(results, dtypes, strict=True)]


def _part(block: Any, begin: int, shape: tuple[int, ...]) -> Any:
    return block.as_strided(shape, _strides(shape), begin)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _array(value: Any) -> Any:
    if not hasattr(value, "is_cuda"):  # isinstance takes a microsecond for a tensor
        return value
    if value.dtype == torch.bfloat16:
        value = value.to(torch.float32)
    return value.numpy(force=True)
