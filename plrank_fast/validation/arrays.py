"""Arrays: their types, the conversion of any array-like argument to numbers, limits of values, and output."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast._core.runtime import arguments as _arguments
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast._shared.extras import import_extra
from plrank_fast.validation.checks import LARGEST_MAGNITUDE, SMALLEST_MAGNITUDE, each

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
RankingArray: TypeAlias = NDArray[np.int32]
KeyArray: TypeAlias = NDArray[np.uint64]
RandomState: TypeAlias = int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None

DLPACK_HOST_DEVICES = (1, 3, 11)  # memory of the CPU, and what CUDA and ROCm have pinned of it
ARRAY_PROTOCOLS = ("__array__", "__dlpack__", "__arrow_c_array__", "__arrow_c_stream__")
FILLED_ROWS = {"rankings": -1, "rewards": 0, "rank_rewards": 0, "clicks": 0, "propensities": 0}  # past their ends
LIST_COLUMNS = {  # the documents of a column of lists and their numbers: offsets of a sliced one are of the whole
    "polars": ("{0}.explode()", "{0}.list.len()"),
    "pyarrow": ("pyarrow.compute.list_flatten({0})", "pyarrow.compute.list_value_length({0})"),
    "awkward": ("awkward.flatten({0})", "awkward.num({0})"),
}
WEIGHTLESS = (
    ": leave out documents of weight 0, in a loss of PyTorch or JAX by mask=scores > -inf, as only functions of "
    "rankings take them"
)
LARGEST_EXACT_INTEGER = 2**53  # above it doubles do not represent every integer
BELOW_0 = "set grades below 0 to 0 if they mean not relevant, as trec_eval does"


def real_array(
    values: ArrayLike,
    name: str,
    ndim: tuple[int, ...] | None = (1,),
    minus_infinity: bool = False,
    n_threads: int | None = 1,
) -> FloatArray:
    """Return a finite, C-contiguous float64 copy of real numbers that `as_array` reads; ``minus_infinity`` allows -inf.

    With ``ndim`` None they may have any number of dimensions.
    """
    plain = _arguments.plain_copy(values, n_threads)
    if plain is not None and (ndim is None or plain.ndim in ndim):
        return plain
    array = numbers(values, name)
    of_dimensions(array, name, ndim)
    if array.dtype == np.longdouble:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    copy = np.array(array, dtype=np.float64, order="C")
    if array.dtype.kind in "iu" or isinstance(values, (list, tuple)):
        _check_integers(array if array.dtype.kind in "iu" else values, copy, name)
    if not _magnitudes.all_finite(copy.reshape(-1)):
        finite = np.isfinite(copy)
        if minus_infinity:
            finite |= copy == -np.inf
        weightless = name == "scores" and (copy[~finite][:1] == -np.inf).any()
        each(finite, copy, name, "be finite", WEIGHTLESS if weightless else "")
    return copy


def _check_integers(values: Any, copy: FloatArray, name: str) -> None:
    """Refuse integers, in an array or among the numbers of a list, of which ``copy`` holds another number."""
    if not copy.size or np.abs(copy).max() < LARGEST_EXACT_INTEGER:
        return
    given = np.array(values, dtype=object)
    pairs = zip(given.reshape(-1).tolist(), copy.reshape(-1).tolist(), strict=True)
    held = [not isinstance(item, (int, np.integer)) or int(item) == kept for item, kept in pairs]
    why = ": integers beyond 2**53 would be rounded"
    each(np.array(held).reshape(copy.shape), given, name, "be numbers that float64 holds", why)


def of_dimensions(array: NDArray[Any], name: str, ndim: tuple[int, ...] | None = (1,)) -> None:
    """Refuse an array with another number of axes, such as a padded batch, or a cutoff for rank weights."""
    if ndim is None or array.ndim in ndim:
        return
    hint = ""
    if array.ndim == 0 and name == "rank_weights":
        cutoff = int(array) if array.dtype.kind in "fiu" and 1 <= array < np.inf and array % 1 == 0 else 10
        hint = f": pass an array of weights, such as dcg_weights({cutoff}) for the DCG of the first {cutoff} ranks"
    elif array.ndim == 2 and 1 in array.shape:
        hint = f": pass {name}.ravel()"
    elif array.ndim == 2:
        hint = (
            f": if its rows are queries, pass {name}[mask] with mask of the same shape, True for documents, "
            "and offsets=offsets_from_group(mask.sum(axis=1))"
        )
    expected = " or ".join(f"{n}-dimensional" for n in ndim)
    raise ValueError(f"{name} must be {expected}, got shape {array.shape}{hint}")


def within(array: FloatArray, name: str, lowest: float, highest: float, why: str = "") -> FloatArray:
    """Return ``array`` if all its values lie in [lowest, highest]; ``why`` follows the message."""
    if array.min(initial=np.inf) < lowest or (highest < np.inf and array.max(initial=-np.inf) > highest):
        limits = f"at least {lowest:g}" if highest == np.inf else f"from {lowest:g} to {highest:g}"
        each((array >= lowest) & (array <= highest), array, name, f"be {limits}", why)
    return array


def within_limits(array: FloatArray, name: str, offsets: IntArray | None = None, remedy: str = "") -> FloatArray:
    """Return ``array`` if products with it stay far from both ends of a double's range.

    The values of a query must all be 0, or the largest of their magnitudes must be from 2**-200 to 2**200. With
    ``offsets`` the first axis holds documents. Without it each entry of the first axis is a query, and an array of one
    axis is a single query.
    """
    if _magnitudes.each_within_limits(array.reshape(-1)):
        return array
    rows = array.shape[0] if array.ndim > 1 or offsets is not None else 1
    largest = np.abs(array).reshape(rows, -1).max(axis=1)
    if offsets is not None:
        largest = _largest_of_queries(largest, offsets)
    wrong = (largest > LARGEST_MAGNITUDE) | ((largest < SMALLEST_MAGNITUDE) & (largest > 0.0))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be 0 or have a largest magnitude from 2**-200 to 2**200, about 6e-61 to 2e60, "
            f"got {largest[first]:g}{f' in query {first}' if largest.size > 1 else ''}: {remedy or f'rescale {name}'}"
        )
    return array


def _largest_of_queries(magnitudes: FloatArray, offsets: IntArray) -> FloatArray:
    from_offset = np.maximum.reduceat(np.append(magnitudes, 0.0), offsets[:-1])
    return np.where(offsets[:-1] < offsets[1:], from_offset, 0.0)


def homogeneous(function: Callable[[FloatArray], FloatArray], array: FloatArray, offsets: IntArray) -> FloatArray:
    """Apply a function, of degree 1 in the documents of each query, to an ``array`` that need not be `within_limits`.

    The function computes with magnitudes near 1, and the result has its bits.
    """
    exponents = np.repeat(np.frexp(_largest_of_queries(np.abs(array), offsets))[1], np.diff(offsets))
    return np.ldexp(function(np.ldexp(array, -exponents)), exponents)


def limited_gains(
    array: FloatArray, name: str, offsets: IntArray, not_negative: bool, n_threads: int | None
) -> FloatArray:
    """Return ``array``, of documents, if it is `within_limits`, and not negative if that is asked; in one pass."""
    outside = _magnitudes.TOO_LARGE | _magnitudes.TOO_SMALL | (_magnitudes.NEGATIVE if not_negative else 0)
    if _arguments.found_among(array, n_threads) & outside:
        within_limits(array, name, offsets)
        within(array, name, 0.0 if not_negative else -np.inf, np.inf, f": {BELOW_0}")
    return array


def whole_numbers(array: FloatArray, name: str) -> IntArray:
    """Return ``array`` as integers if it holds only integers that doubles represent exactly."""
    whole = (array == np.rint(array)) & (np.abs(array) <= LARGEST_EXACT_INTEGER)
    return each(whole, array, name, "be whole numbers up to 2**53").astype(np.int64)


def integer_array(values: ArrayLike, name: str, ndim: tuple[int, ...] | None = (1,)) -> IntArray:
    """Return an int64 copy of an array of integers that fit, with any number of dimensions if ``ndim`` is None."""
    return np.array(integers(values, name, ndim), dtype=np.int64, order="C")


def integers(values: ArrayLike, name: str, ndim: tuple[int, ...] | None) -> NDArray[Any]:
    """Return an array of integers that fit int64, of any type and layout; it may be the caller's own."""
    array = as_array(values, name)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name} must not be missing, got nan at index {int(np.argmax(np.isnan(array.reshape(-1))))}")
    if array.dtype.kind not in "iu":
        if array.size or array.dtype.kind not in "fO":
            cast = f": cast it, {name}.astype(int)" if array.dtype.kind == "f" else ""
            raise ValueError(f"{name} must hold integers, got dtype {array.dtype}{cast}")
    elif array.dtype.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit 64-bit signed integers, got {array.max()}")
    of_dimensions(array, name, ndim)
    return array


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Read anything that holds an array on the CPU: arrays, sequences, columns, DLPack, Arrow."""
    if values is None:
        raise TypeError(f"{name} must be an array, got None")
    unmasked(values, name)
    if getattr(values, "requires_grad", False):
        raise TypeError(
            f"{name} must not require a gradient: pass {name}.detach(), or use plrank_fast.torch, whose losses "
            "autograd differentiates"
        )
    try:
        array = np.asarray(values)
        return _imported(values, array) if array.ndim == 0 and array.dtype.kind == "O" else array
    except (TypeError, ValueError, RuntimeError, OverflowError, BufferError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        if type(error).__name__ == "TracerArrayConversionError":
            message = f"{name} must not be traced by JAX: use plrank_fast.jax, which supports jit, grad and vmap"
        else:
            message = f"{name} cannot be read as an array: {str(error).rstrip('.')}{_remedy(values, name)}"
        raise kind(message) from error


def numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return a real or boolean array; its values are not checked."""
    array = as_array(values, name)
    if array.dtype.kind not in "biuf":
        remedy = f": cast it, {name}.astype('float32')" if array.dtype.name == "bfloat16" else ""
        if array.dtype.kind == "O" and any(
            hasattr(row, "__len__") and not isinstance(row, (str, bytes)) for row in array.flat
        ):
            remedy = flattening(values, name)
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}{remedy}")
    return array


def unmasked(values: Any, name: str) -> Any:
    """Return ``values`` unless it is a masked array: NumPy's conversions would unmask its hidden values."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: fill or drop the masked entries first")
    return values


def _imported(values: Any, otherwise: NDArray[Any]) -> NDArray[Any]:
    """Read an object that NumPy cannot read through its DLPack or Arrow protocol."""
    if hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        pyarrow = import_extra("pyarrow", "arrow")
        import_array = pyarrow.array if hasattr(values, "__arrow_c_array__") else pyarrow.chunked_array
        return np.asarray(import_array(values))
    return otherwise


def _remedy(values: Any, name: str) -> str:
    """Return a hint with the call that converts an array that NumPy cannot read."""
    if isinstance(values, (list, tuple)) and values and all(hasattr(row, "__len__") for row in values):
        if name in FILLED_ROWS:
            return f": fill its rows with {FILLED_ROWS[name]} up to the length of the longest"
        return flattening(values, name)
    if str(getattr(values, "dtype", "")).endswith("bfloat16"):  # a tensor's type of its own
        return f": cast it, {name}.float()"
    if getattr(values, "is_nested", False) or type(values).__module__.startswith("awkward"):
        return flattening(values, name)
    device = getattr(values, "device", None)  # of NumPy and the array API, of torch, CuPy and JAX
    if device is not None:
        on_cpu = "cpu" in str(device).lower()
    else:
        on_cpu = not hasattr(values, "__dlpack_device__") or values.__dlpack_device__()[0] in DLPACK_HOST_DEVICES
    if on_cpu:
        return ""
    library = type(values).__module__.partition(".")[0]
    call = {"torch": "cpu()", "cupy": "get()"}.get(library, 'to_device("cpu")')
    return f": copy it to the CPU first, {name}.{call}"


def flattening(values: Any, name: str) -> str:
    """Return a hint with the documents and the offsets of a list of lists, or of a column of lists."""
    if getattr(values, "is_nested", False):
        return f": if its rows are queries, pass {_of_nested(values).format(name)}"
    library = type(values).__module__.partition(".")[0]
    documents, lengths = LIST_COLUMNS.get(library, ("numpy.concatenate({0})", "[len(row) for row in {0}]"))
    pair = f"{documents.format(name)} and offsets=offsets_from_group({lengths.format(name)})"
    return f": if its rows are queries, pass {pair}"


def _of_nested(tensor: Any) -> str:
    """Return the calls for the documents and offsets of PyTorch's nested tensor, which may be a part of its values."""
    if "jagged" not in str(tensor.layout) or tensor.lengths() is not None:
        return "torch.cat({0}.unbind()) and offsets=offsets_from_group([len(row) for row in {0}.unbind()])"
    first, last = int(tensor.offsets()[0]), int(tensor.offsets()[-1])
    if (first, last) == (0, len(tensor.values())):
        return "{0}.values() and offsets={0}.offsets()"
    return f"{{0}}.values()[{first}:{last}] and offsets={{0}}.offsets() - {first}"


def one_entry_each(array: NDArray[Any], name: str, number: int, of: str) -> NDArray[Any]:
    """Return ``array`` if it has one entry for each of ``number`` queries or documents."""
    if array.shape != (number,):
        raise ValueError(f"{name} must have one entry for each of the {number} {of}, got shape {array.shape}")
    return array


def weights_of(values: ArrayLike, name: str, number: int, of: str) -> FloatArray:
    """Return weights that are not negative, one for each of ``number`` queries or documents."""
    array = one_entry_each(real_array(values, name), name, number, of)
    return within_limits(within(array, name, 0.0, np.inf), name)


def chances_to_stop(stop: ArrayLike, n_docs: int) -> FloatArray:
    """Return the probability with which a reader stops at each document."""
    return within(
        one_entry_each(real_array(stop, "stop_probability"), "stop_probability", n_docs, "documents"),
        "stop_probability",
        0.0,
        1.0,
    )


class Unchangeable:
    """Base of objects that keep arrays which kernels trust: the attributes ``_kept`` are set once, and read-only.

    NumPy makes the arrays of copies and of unpickled objects writeable, so these go the same way.
    """

    _kept: tuple[str, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._kept and name in self.__dict__:
            raise AttributeError(f"{name} of {self!r} cannot be changed: make another {type(self).__name__}")
        is_kept = name in self._kept and isinstance(value, np.ndarray)
        super().__setattr__(name, read_only(value) if is_kept else value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array of this package that is read-only for good, and lock the array itself."""
    array.flags.writeable = False
    return array[...]


def output(out: Any, shape: tuple[int, ...], name: str = "out") -> FloatArray | None:
    """Check an output array: float64, of the right shape, writeable, each entry with memory of its own."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, got {type(out).__name__}")
    if out.dtype != np.float64 or not out.dtype.isnative or out.shape != shape or not out.flags.writeable:
        got = f"{out.dtype} of shape {out.shape}{'' if out.flags.writeable else ', read-only'}"
        raise ValueError(f"{name} must be writeable, of float64 and shape {shape}, got {got}")
    end = out.itemsize  # end of what the axes so far take
    for stride, length in sorted((abs(stride), length) for stride, length in zip(out.strides, shape, strict=True)):
        if out.size and length > 1 and stride < end:
            raise ValueError(f"{name} must not overlap itself, got strides {out.strides} for shape {shape}")
        end += stride * (length - 1)
    return out


def representable(result: FloatArray, names: str) -> FloatArray:
    """Return ``result`` if it is finite; ``names`` are the arguments to name if it is not."""
    if not _magnitudes.all_finite(result.reshape(-1)):
        first = int(np.argmin(np.isfinite(result)))
        raise ValueError(f"{names} lead to a result beyond the largest double, about 1.8e308, at index {first}")
    return result


def tolerance_held(missed: tuple[int, float] | None, rtol: float) -> None:
    """Refuse results in which a query, by its number, only reached a tolerance above ``rtol``."""
    if missed is not None:
        query, reached = missed
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
    """Return the shape to which the axes of a batch and of an array without its last axis broadcast."""
    try:
        return np.broadcast_shapes(shape, batch_shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast with the batch, of shape {batch_shape}, got {shape}") from None


def addressable(shape: tuple[int, ...], itemsize: int, name: str) -> tuple[int, ...]:
    """Return ``shape`` if an array of it could exist at all."""
    size = math.prod(shape, start=itemsize)
    if size >= 2**63:
        raise ValueError(f"{name} asks for an array of shape {shape}, {size} bytes: more than can be addressed")
    return shape
