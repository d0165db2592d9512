"""Arrays of other libraries on the CPU: DLPack, Arrow, the array API, columns; and what is said to those elsewhere."""

import re
import sys
from functools import partial

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import losses

SCORES = np.array([0.3, 0.2, 0.9])
LABELS = np.array([0, 1, 2])
OFFSETS = np.array([0, 2, 3])
RANKINGS = np.array([[[0, 1]], [[0, -1]]])


def only(array, *protocol):
    """An object that has nothing of an array but these methods: no conversion of NumPy's, no shape, no type."""
    return type("Only", (), {name: staticmethod(getattr(array, name)) for name in protocol})()


def only_dlpack(array):
    return only(array, "__dlpack__", "__dlpack_device__")


def library(name, make):
    return lambda array: make(pytest.importorskip(name, reason=f"{name} is not installed"), array)


arrow = partial(library, "pyarrow")


def read_only_by_dlpack(array):
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy hands out arrays that are read only by DLPack since 2.1")
    array = array.copy()
    array.flags.writeable = False
    return only_dlpack(array)


KINDS = {
    "DLPack": only_dlpack,
    "DLPack, read only": read_only_by_dlpack,
    "DLPack, strided": lambda array: only_dlpack(np.repeat(array, 2, axis=-1)[..., ::2]),
    "DLPack of torch": library("torch", lambda torch, array: only_dlpack(torch.tensor(array))),
    "array API": library("array_api_strict", lambda xp, array: xp.asarray(array)),
    "torch": library("torch", lambda torch, array: torch.tensor(array)),
    "JAX": library("jax", lambda jax, array: jax.numpy.asarray(array)),
    "polars": library("polars", lambda polars, array: polars.Series(array)),
    "pandas": library("pandas", lambda pandas, array: pandas.Series(array)),
    "pandas, nullable": library("pandas", lambda pandas, array: pandas.Series(array).convert_dtypes()),
    "Arrow": arrow(lambda pa, array: pa.array(array)),
    "Arrow, chunked": arrow(lambda pa, array: pa.chunked_array([array[:1], array[1:]])),
    "Arrow, dictionary": arrow(lambda pa, array: pa.array(array).dictionary_encode()),
    "Arrow, protocol": arrow(lambda pa, array: only(pa.array(array), "__arrow_c_array__")),
    "Arrow, stream": arrow(lambda pa, array: only(pa.chunked_array([array[:1], array[1:]]), "__arrow_c_stream__")),
}
FLAT = [name for name in KINDS if name.startswith(("Arrow", "pandas"))]  # these have one axis


@pytest.mark.parametrize("kind", KINDS)
def test_wherever_arrays_are_taken(kind):
    """The bits of NumPy's arrays. Mutants: a foreign object taken for an array of one object; a stream read as an
    array; the shape asked of an object that has none."""
    make = KINDS[kind]
    scores = np.float32(SCORES) if "JAX" in kind else SCORES  # all that it has by default
    weights = np.ones(2)
    for name, function, arguments in [
        ("dcg", plr.dcg, (scores, LABELS, weights)),
        ("exact", plr.pl_rank_exact, (scores, LABELS, weights)),
        ("loss", losses.lambda_rank, (scores, LABELS)),
    ]:
        expected = function(*arguments, offsets=OFFSETS)
        got = function(*map(make, arguments), offsets=make(OFFSETS))
        np.testing.assert_equal(got, expected, name)
    np.testing.assert_array_equal(plr.gains(make(LABELS)), plr.gains(LABELS))
    np.testing.assert_array_equal(plr.offsets_from_qid(make(np.array([4, 4, 7]))), OFFSETS)
    np.testing.assert_array_equal(plr.offsets_from_group(make(np.array([2, 1]))), OFFSETS)
    if kind not in FLAT:
        expected = plr.ranking_log_prob(scores, RANKINGS, offsets=OFFSETS)
        np.testing.assert_array_equal(plr.ranking_log_prob(make(scores), make(RANKINGS), offsets=OFFSETS), expected)
        with pytest.raises(ValueError, match=r"rankings must have shape \(2, n_samples, length\), .* got \(2, 2\)"):
            plr.ranking_log_prob(make(scores), make(RANKINGS[:, 0]), offsets=OFFSETS)
    with pytest.raises(ValueError, match="scores must be finite, got nan at index 1"):
        plr.dcg(make(np.array([0.5, np.nan, 0.1])), LABELS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("Arrow")])
def test_identifiers_of_arrow(kind):
    np.testing.assert_array_equal(plr.offsets_from_qid(KINDS[kind](np.array(["a", "a", "b"]))), OFFSETS)


def test_missing_values():
    """Mutant: offsets with a gap told to be cast, which would make a number of it."""
    polars = pytest.importorskip("polars")
    gap = polars.Series([0, None, 3])
    with pytest.raises(ValueError, match="offsets must not be missing, got nan at index 1"):
        plr.dcg(SCORES, LABELS, offsets=gap)
    with pytest.raises(ValueError, match="sizes must not be missing, got nan at index 1"):
        plr.offsets_from_group(gap)
    with pytest.raises(ValueError, match="qid must not be missing, got nan at index 1"):
        plr.offsets_from_qid(gap)
    with pytest.raises(ValueError, match="relevance must be finite, got nan at index 1"):
        plr.dcg(SCORES, gap)
    with pytest.raises(ValueError, match=r"offsets must hold integers, got dtype float64: cast it, offsets.astype"):
        plr.dcg(SCORES, LABELS, offsets=[0.0, 3.0])


class OnDevice:
    """An array in the memory of a GPU."""

    def __init__(self, array):
        pass

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise BufferError("not on the CPU")


CupyArray = type("ndarray", (OnDevice,), {"__module__": "cupy", "device": "<CUDA Device 0>"})


def strict(array):
    xp = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    return xp.asarray(array, device=xp.Device("device1"))


def meta(array):
    return pytest.importorskip("torch").empty(len(array), device="meta")


@pytest.mark.parametrize(
    ("make", "call"),
    [(OnDevice, 'to_device("cpu")'), (CupyArray, "get()"), (strict, 'to_device("cpu")'), (meta, "cpu()")],
)
def test_arrays_on_a_device(make, call):
    """Mutants: no word of the device; a method that the library does not have."""
    message = rf"^scores cannot be read as an array: .*: copy it to the CPU first, scores.{re.escape(call)}$"
    with pytest.raises((TypeError, ValueError), match=message):
        plr.dcg(make(SCORES), LABELS)


def test_other_tensors():
    """Mutants: the device blamed for a type; a gradient lost without an error."""
    torch = pytest.importorskip("torch")
    with pytest.raises(
        TypeError, match=r"scores must not require a gradient: pass scores.detach\(\), or use plrank_fast"
    ):
        plr.dcg(torch.zeros(3, requires_grad=True), LABELS)
    for tensor in (torch.zeros(3, requires_grad=True), torch.zeros(3, dtype=torch.bfloat16)):
        with pytest.raises((TypeError, ValueError), match="scores cannot be read as an array") as caught:
            plr.dcg(only_dlpack(tensor), LABELS)
        assert "copy it" not in str(caught.value)


def test_traced_by_jax():
    """Mutant: the message of JAX alone, ten lines of which none says what to call."""
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match=r"^scores must not be traced by JAX: use plrank_fast.jax"):
        jax.jit(lambda scores: plr.dcg(scores, LABELS))(SCORES)


def test_arrow_without_pyarrow(monkeypatch):
    """Mutant: an array of one object."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install ("pyarrow>=|arrow$)'):  # where the project is not installed
        plr.dcg(type("Column", (), {"__arrow_c_array__": None})(), LABELS)


LISTS = {
    "polars": library("polars", lambda polars, rows: polars.Series(rows)),
    "polars, sliced": library("polars", lambda polars, rows: polars.Series([[9.0], *rows])[1:]),
    "pandas": library("pandas", lambda pandas, rows: pandas.Series(rows)),
    "Arrow": arrow(lambda pa, rows: pa.array(rows)),
    "Arrow, sliced": arrow(lambda pa, rows: pa.array([[9.0], *rows])[1:]),
    "Arrow, chunked": arrow(lambda pa, rows: pa.chunked_array([rows[:1], rows[1:]])),
    "awkward": library("awkward", lambda awkward, rows: awkward.Array([[9.0], *rows])[1:]),
    "lists": list,
    "torch": library("torch", lambda torch, rows: torch.nested.nested_tensor(rows, layout=torch.jagged)),
    "torch, strided": library("torch", lambda torch, rows: torch.nested.nested_tensor(rows)),
    "torch, a part": library("torch", lambda torch, rows: torch.nested.nested_tensor_from_jagged(
        torch.tensor([9.0, *np.concatenate(rows), 9.0]), 1 + torch.tensor([0, *map(len, rows)]).cumsum(0)
    )),
    "torch, with holes": library("torch", lambda torch, rows: torch.nested.nested_tensor_from_jagged(
        torch.tensor(np.concatenate([[*row, 9.0] for row in rows])), torch.tensor([0, 3, 4, 6]), torch.tensor([2, 0, 1])
    )),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kind", LISTS)
def test_columns_of_lists(kind):
    """A query in each row: what the error says to pass is right. Mutants: the values of the whole column for its
    part; another library's calls; rows without documents left out; PyTorch's message alone."""
    scores = LISTS[kind]([[0.3, 0.2], [], [0.9]])
    with pytest.raises((TypeError, ValueError), match=r"^scores ") as caught:
        plr.dcg(scores, LABELS)
    values, offsets = re.search(": if its rows are queries, pass (.*) and offsets=(.*)$", str(caught.value)).groups()
    known = {name: sys.modules.get(name) for name in ("numpy", "pyarrow", "awkward", "torch")}
    known |= {"offsets_from_group": plr.offsets_from_group, "scores": scores}
    values, offsets = eval(values, known), eval(offsets, known)
    assert plr.dcg(values, LABELS, offsets=offsets).tolist() == plr.dcg(SCORES, LABELS, offsets=[0, 2, 2, 3]).tolist()
