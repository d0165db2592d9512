"""Copies of PyTorch's tensors to the CPU and back: a call awaits all that it reads at once, and returns one block.

A CUDA device copies to and from pinned memory. Each thread keeps two blocks of it for each stream: one that a call
reads, and one for its results. The copy of results is not awaited: the next call of the stream writes to the block
after it has awaited its own copies, which come later on the stream.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast._shared.extras import import_extra

torch = import_extra("torch", "torch")

ALIGNMENT = 16  # bytes, of any dtype
SMALLEST_BLOCK = 1 << 15
HALVES = (torch.float16, torch.bfloat16)  # NumPy has no bfloat16, and takes long to convert float16


class _Block:
    """Pinned memory, cut into the arrays of a call; most calls ask for the arrays of the last one."""

    def __init__(self) -> None:
        self.views: dict[Any, tuple[Any, NDArray[Any]]] = {}  # the whole of it, by dtype
        self.wanted: list[tuple[Any, Any]] = []
        self.parts: list[tuple[Any, NDArray[Any]]] = []

    def cut(self, wanted: list[tuple[Any, Any]]) -> list[tuple[Any, NDArray[Any]]]:
        """Return a tensor and an array over the same memory for each dtype and shape."""
        if wanted != self.wanted:
            sizes = [-(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT for dtype, shape in wanted]
            if not self.views or self.views[torch.uint8][0].numel() < sum(sizes):
                block = pinned(max(SMALLEST_BLOCK, 1 << sum(sizes).bit_length()))
                self.views = {torch.uint8: (block, block.numpy())}
            self.parts = [self._part(dtype, shape, sum(sizes[:i])) for i, (dtype, shape) in enumerate(wanted)]
            self.wanted = wanted
        return self.parts

    def _part(self, dtype: Any, shape: Any, begin: int) -> tuple[Any, NDArray[Any]]:
        if dtype not in self.views:
            view = self.views[torch.uint8][0].view(dtype)
            self.views[dtype] = view, view.numpy()
        (tensor, array), start = self.views[dtype], begin // dtype.itemsize
        return _part(tensor, start, shape), array[start : start + math.prod(shape)].reshape(shape)


class _Blocks(threading.local):
    """The blocks of a thread by stream: that for values read, and that for results."""

    def __init__(self) -> None:
        self.of_streams: dict[Any, tuple[_Block, _Block]] = defaultdict(lambda: (_Block(), _Block()))


_blocks = _Blocks()


def pinned(n_bytes: int) -> Any:
    """Allocate memory that a CUDA device reads and writes while the CPU goes on."""
    return torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)


def is_cuda(value: Any) -> bool:
    """Return whether a value is a tensor on a CUDA device."""
    return getattr(value, "is_cuda", False)


def stream_of(tensor: Any) -> Any:
    """Return the stream on which a tensor of a CUDA device is copied."""
    return torch.cuda.current_stream(tensor.device)


def reading(*values: Any) -> tuple[list[Any], Callable[[], Any]]:
    """Begin to copy tensors to arrays, and return these, or other values unchanged, with the function that awaits them.

    Halves become float32. The arrays are valid until the next call by this thread.
    """
    remote: list[int] = []
    arrays: list[Any] = [None] * len(values)
    for place, value in enumerate(values):
        if value is None:
            continue
        if is_cuda(value):
            remote.append(place)
        else:
            arrays[place] = _array(value)
    if not remote:
        return arrays, lambda: None
    there = [_wide(values[place]) for place in remote]
    streams = list(map(stream_of, {value.device: value for value in there}.values()))
    parts = _blocks.of_streams[streams[0]][0].cut([(value.dtype, value.shape) for value in there])
    for place, value, (part, array) in zip(remote, there, parts, strict=True):
        part.copy_(value, non_blocking=True)
        arrays[place] = array
    return arrays, lambda: [stream.synchronize() for stream in streams]


def on_host(*values: Any) -> list[Any]:
    """Return arrays of the tensors' values, and other values unchanged, as `reading` does."""
    arrays, wait = reading(*values)
    wait()
    return arrays


def results(
    like: Any, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any]
) -> tuple[list[NDArray[Any]], Callable[[], list[Any]]]:
    """Return arrays to write results to, and the function that makes tensors of them on the device of ``like``.

    The arrays are of float64, or of float32 for the other dtypes. A caller that has begun to read tensors of the same
    stream awaits them before it writes. On a CUDA device the tensors share one block of memory, and all but the last
    are views.
    """
    if not is_cuda(like):
        held = [np.float64 if dtype == torch.float64 else np.float32 for dtype in dtypes]
        arrays = list(map(np.empty, shapes, held))
        tensors = list(map(torch.from_numpy, arrays))
        return arrays, lambda: [
            tensor if like.is_cpu and tensor.dtype is dtype else tensor.to(like.device, dtype)
            for tensor, dtype in zip(tensors, dtypes, strict=True)
        ]
    sizes = [math.prod(shape) for shape in shapes]
    common = torch.float64 if torch.float64 in dtypes else torch.float32
    moved = torch.empty(sum(sizes), dtype=common, device=like.device)
    ((block, values),) = _blocks.of_streams[stream_of(like)][1].cut([(common, moved.shape)])
    arrays, tensors = [], []
    for i, (size, shape) in enumerate(zip(sizes, shapes, strict=True)):
        begin = sum(sizes[:i])
        arrays.append(values[begin : begin + size].reshape(shape))
        if i < len(sizes) - 1:
            tensors.append(_part(moved, begin, shape))
        else:  # no view, which autograd would not let users change in place
            tensors.append(moved.new_empty(0).set_(moved.untyped_storage(), begin, shape, _strides(shape)))

    def send() -> list[Any]:
        moved.copy_(block, non_blocking=True)
        return [tensor.to(dtype) for tensor, dtype in zip(tensors, dtypes, strict=True)]

    return arrays, send


def _part(block: Any, begin: int, shape: tuple[int, ...]) -> Any:
    return block.as_strided(shape, _strides(shape), begin)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _wide(tensor: Any) -> Any:
    return tensor.to(torch.float32) if tensor.dtype in HALVES else tensor


def _array(value: Any) -> Any:
    # isinstance takes a microsecond for a tensor
    return _wide(value).numpy(force=True) if hasattr(value, "is_cuda") else value
