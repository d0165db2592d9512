"""The loss for PyTorch: value and gradient of the library's own functions, in every shape, dtype and setting."""

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

import plrank_fast as plr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from plrank_fast import torch as adapter  # noqa: E402
from plrank_fast.torch import PlackettLuceLoss, plackett_luce_loss  # noqa: E402
from plrank_fast.value_and_gradient import SAMPLED  # noqa: E402

OFFSETS = np.array([0, 4, 4, 9, 10, 16])  # an empty query and one of a single document among them
LENGTHS = np.diff(OFFSETS)
N_QUERIES, N_DOCS = LENGTHS.size, int(OFFSETS[-1])
RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=N_DOCS)
LABELS = RNG.integers(0, 4, size=N_DOCS).astype(float)
LABELS[OFFSETS[4] :] = 0  # the last query has nothing relevant
WEIGHTS = plr.dcg_weights(3)


def leaf(values=SCORES, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def test_value_and_gradient_are_minus_those_of_the_library():
    """Mutants: the sign of the value, or of the gradient, turned; the gradient not divided by the number of queries."""
    scores = leaf()
    loss = PlackettLuceLoss(3, method="exact")(scores, LABELS, OFFSETS)
    loss.backward()
    expected = plr.expected_metric(SCORES, LABELS, WEIGHTS, offsets=OFFSETS)
    assert loss.item() == pytest.approx(-expected.mean(), rel=1e-6)
    gradient = plr.pl_rank_exact(SCORES, LABELS, WEIGHTS, offsets=OFFSETS)
    np.testing.assert_allclose(scores.grad.numpy(), -gradient / N_QUERIES, rtol=1e-14)


@pytest.mark.parametrize("method", SAMPLED)
def test_sampled_methods_have_the_bits_of_their_functions(method):
    """Mutants: ``rng`` not handed on; ``n_samples`` fixed; the function of another name called."""
    scores = leaf()
    loss = plackett_luce_loss(
        scores, LABELS, OFFSETS, cutoff=3, method=method, n_samples=7, rng=11, reduction="sum", first_query=2
    )
    loss.backward()
    options = dict(offsets=OFFSETS, n_samples=7, rng=11, first_query=2)
    gradient = getattr(plr, method)(SCORES, LABELS, WEIGHTS, **options)
    assert (scores.grad.numpy() == -gradient).all()
    value = plr.expected_metric(SCORES, LABELS, WEIGHTS, method="sample", **options).sum()
    assert loss.item() == pytest.approx(-value, rel=1e-14)


def test_value_and_gradient_take_one_draw_from_a_generator():
    """Mutant: the generator used for both calls, which draws two keys, and the value is of other rankings."""
    generator, twin = np.random.default_rng(3), np.random.default_rng(3)
    values, gradient = plr.value_and_gradient(
        SCORES, LABELS, WEIGHTS, offsets=OFFSETS, method="pl_rank_3", n_samples=5, rng=generator
    )
    key = copy.deepcopy(twin)
    assert (gradient == plr.pl_rank_3(SCORES, LABELS, WEIGHTS, offsets=OFFSETS, n_samples=5, rng=twin)).all()
    again = plr.expected_metric(SCORES, LABELS, WEIGHTS, offsets=OFFSETS, method="sample", n_samples=5, rng=key)
    assert (values == again).all()
    assert generator.bit_generator.state == twin.bit_generator.state
    with pytest.raises(ValueError, match="relevance"):
        plr.value_and_gradient(SCORES, LABELS[1:], WEIGHTS, method="pl_rank_3", rng=generator)
    assert generator.bit_generator.state == twin.bit_generator.state


# --- shapes


def padded(values, filling, length=7, gap=False):
    """Rows of the ragged values, (n_queries, length), and where they stand; ``gap`` leaves places in between."""
    rows, mask = np.full((N_QUERIES, length), filling), np.zeros((N_QUERIES, length), dtype=bool)
    for query, n_docs in enumerate(LENGTHS):
        places = np.arange(length)[length - n_docs :] if gap and query % 2 else np.arange(n_docs)
        mask[query, places] = True
        rows[query, places] = values[OFFSETS[query] : OFFSETS[query + 1]]
    return rows, mask


@pytest.mark.parametrize("method", ["exact", "cmc", "pl_rank_3"])
@pytest.mark.parametrize("gap", [False, True])
def test_padded_has_the_bits_of_ragged(method, gap):
    """Whatever stands in the padding. Mutants: the mask inverted; padding counted into the lengths; the upstream
    gradient of query 0 taken for all (with reduction "none")."""
    loss = PlackettLuceLoss(3, method=method, reduction="none", seed=1)
    rows, mask = padded(SCORES, np.nan, gap=gap)
    labels, _ = padded(LABELS, np.inf, gap=gap)
    flat, table = leaf(), leaf(rows)
    upstream = torch.arange(1.0, N_QUERIES + 1, dtype=torch.float64)
    ragged = copy.deepcopy(loss)(flat, torch.tensor(LABELS), torch.tensor(OFFSETS))
    ragged.backward(upstream)
    rectangular = loss(table, torch.tensor(labels), mask=torch.tensor(mask))
    rectangular.backward(upstream)
    assert (ragged == rectangular).all()
    assert (table.grad.numpy()[mask] == flat.grad.numpy()).all()
    assert (table.grad.numpy()[~mask] == 0.0).all()
    queries = np.repeat(np.arange(N_QUERIES), LENGTHS)
    one_by_one = copy.deepcopy(loss)
    one_by_one.passes, one_by_one.reduction, scores = 0, "sum", leaf()
    one_by_one(scores, LABELS, OFFSETS).backward()
    np.testing.assert_allclose(flat.grad.numpy(), scores.grad.numpy() * (queries + 1), rtol=1e-14)


def test_columns_and_rows_without_padding():
    """Mutant: a column taken for rows of one document each, whose gradients are zero."""
    loss = PlackettLuceLoss(3, method="exact")
    column = leaf(SCORES[:, np.newaxis])
    loss(column, LABELS, OFFSETS).backward()
    flat = leaf()
    loss(flat, LABELS, OFFSETS).backward()
    assert (column.grad[:, 0] == flat.grad).all()
    column, flat = leaf(SCORES[:, np.newaxis]), leaf()
    assert loss(column, LABELS[:, np.newaxis]) == loss(flat, LABELS)  # a single query
    rows = leaf(SCORES.reshape(4, 4))
    loss(rows, LABELS.reshape(4, 4)).backward()
    flat = leaf()
    loss(flat, LABELS, np.arange(0, 17, 4)).backward()
    assert (rows.grad.reshape(-1) == flat.grad).all()


def test_parts_of_a_batch_add_up_to_the_whole():
    """Mutant: ``first_query`` not handed on."""
    loss = PlackettLuceLoss(3, method="pl_rank_3", n_samples=3, reduction="sum", seed=0)
    whole, parts = leaf(), leaf()
    part = copy.deepcopy(loss)
    labels = LABELS + np.arange(N_DOCS)
    loss(whole, labels, OFFSETS).backward()
    part(parts[:9], labels[:9], OFFSETS[:4]).backward()
    part.passes = 0
    part(parts[9:], labels[9:], OFFSETS[3:] - 9, first_query=3).backward()
    assert (whole.grad == parts.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_of_scores_is_kept(dtype):
    """And computed in float64 from what the dtype holds. Mutant: bfloat16 sent through float16."""
    scores = leaf(dtype=dtype)
    with torch.no_grad():
        scores[0] = 60_000.0 if dtype == torch.float16 else 100_000.0
    loss = PlackettLuceLoss(3, method="exact")(scores, LABELS, OFFSETS)
    loss.backward()
    assert loss.dtype == dtype
    assert scores.grad.dtype == dtype
    held = scores.detach().to(torch.float64).numpy()
    gradient = plr.pl_rank_exact(held, LABELS, WEIGHTS, offsets=OFFSETS)
    np.testing.assert_allclose(
        scores.grad.to(torch.float64).numpy(), -gradient / N_QUERIES, rtol=2 * torch.finfo(dtype).eps, atol=1e-7
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_of_a_cuda_device():
    """The numbers of the CPU, by way of pinned memory."""
    here, there = leaf(), torch.tensor(SCORES, device="cuda", requires_grad=True)
    loss = PlackettLuceLoss(3, method="exact", reduction="none")
    loss(here, LABELS, OFFSETS).sum().backward()
    result = loss(there, torch.tensor(LABELS, device="cuda"), torch.tensor(OFFSETS, device="cuda"))
    result.sum().backward()
    assert result.device.type == there.grad.device.type == "cuda"
    assert (there.grad.cpu() == here.grad).all()


class OnDevice:
    """A tensor of a CUDA device, as far as the way to the host looks at it."""

    is_cuda = True

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.device = values, values.shape, values.dtype, torch.device("cuda")

    def detach(self):
        return self


class Stream:
    """Copies that are done when somebody waits for them, and not before."""

    def __init__(self):
        self.waiting = []

    def __call__(self, device):
        assert device.type == "cuda"
        return self

    def synchronize(self):
        for target, values in self.waiting:
            torch.Tensor.copy_(target, values)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_way_from_a_device_and_back_is_by_pinned_memory(dtype, monkeypatch):
    """With stand-ins for the device, where there is none: values are read when the copy is done, and no earlier.

    Mutants: no wait for the stream; pageable memory, either way; the gradient copied before it is pinned.
    """
    stream, moves, empty, to = Stream(), [], torch.empty, torch.Tensor.to

    class Pinned(torch.Tensor):
        def copy_(self, source, non_blocking=False):
            assert non_blocking
            stream.waiting.append((self, source.values))

    def allocate(shape, *, dtype, pin_memory):
        assert pin_memory
        return empty(shape, dtype=dtype).fill_(torch.nan).as_subclass(Pinned)

    def move(tensor, target, **options):
        if isinstance(target, torch.dtype):
            return to(tensor, target)
        moves.append((str(target), options))
        return tensor

    values = torch.tensor(SCORES).to(dtype)
    monkeypatch.setattr(torch, "empty", allocate)
    monkeypatch.setattr(torch.cuda, "current_stream", stream)
    on_host = adapter._on_host(OnDevice(values))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: moves.append("pinned") or tensor)
    monkeypatch.setattr(torch.Tensor, "to", move)
    back = adapter._on_device(on_host.astype(np.float64), OnDevice(values), torch.float64)
    monkeypatch.undo()
    assert (on_host == values.to(torch.float64).numpy()).all()
    assert moves == ["pinned", ("cuda", {"non_blocking": True})]
    assert (back == values.to(torch.float64)).all()


# --- what is optimised


def test_reductions_and_weights():
    """Mutants: the weighted mean divided by the number of queries; weights squared."""
    values = -plr.expected_metric(SCORES, LABELS, WEIGHTS, offsets=OFFSETS)
    weight = np.array([2.0, 1.0, 0.0, 1.0, 4.0])
    for reduction, expected in {
        "none": values * weight, "sum": (values * weight).sum(), "mean": (values * weight).sum() / weight.sum(),
    }.items():  # fmt: skip
        loss = PlackettLuceLoss(3, method="exact", reduction=reduction)
        result = loss(leaf(), LABELS, OFFSETS, weight=torch.tensor(weight)).detach().numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert plackett_luce_loss(leaf(), LABELS, OFFSETS, weight=np.zeros(N_QUERIES)).item() == 0.0


def test_normalised_to_expected_ndcg():
    """Nothing relevant: value 0, gradient 0. Mutant: divided by the ideal of the whole batch."""
    scores = leaf()
    loss = PlackettLuceLoss(3, method="exact", gain="exponential", normalize=True, reduction="none")
    values = loss(scores, LABELS, OFFSETS)
    values.sum().backward()
    worth = plr.gains(LABELS)
    ideal = plr.dcg(worth, worth, WEIGHTS, offsets=OFFSETS)
    expected = plr.expected_metric(SCORES, worth, WEIGHTS, offsets=OFFSETS)
    share = np.divide(expected, ideal, out=np.zeros(N_QUERIES), where=ideal > 0)
    assert (ideal == 0).any()
    np.testing.assert_allclose(values.detach().numpy(), -share, rtol=1e-6)
    assert (scores.grad[OFFSETS[4] :] == 0.0).all()


def test_other_metrics_by_rank_weights():
    """Mutants: ``cutoff`` cuts the weights given; a weight for each rank of the cutoff, beyond the longest list."""
    weights = plr.precision_weights(5)
    loss = PlackettLuceLoss(2, rank_weights=torch.tensor(weights), method="exact")
    expected = plr.expected_metric(SCORES, LABELS, weights, offsets=OFFSETS).mean()
    assert loss(leaf(), LABELS, OFFSETS).item() == pytest.approx(-expected, rel=1e-6)
    every = plr.expected_metric(SCORES, LABELS, plr.dcg_weights(6), offsets=OFFSETS).mean()
    for cutoff in (None, 10**15):
        loss = PlackettLuceLoss(cutoff, method="exact")(leaf(), LABELS, OFFSETS)
        assert loss.item() == pytest.approx(-every, rel=1e-6)


def test_training_raises_ndcg():
    """From worse than chance to nearly ideal. Mutant: the gradient's sign turned."""
    torch.manual_seed(0)
    features = torch.randn(200, 6)
    labels = (features @ torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0, 1.0]) > 1.0).double()
    offsets = np.arange(0, 201, 10)
    model = torch.nn.Linear(6, 1)
    loss = PlackettLuceLoss(5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = plr.ndcg(model(features).detach().numpy()[:, 0], labels, plr.dcg_weights(5), offsets=offsets).mean()
    for _ in range(100):
        optimizer.zero_grad()
        loss(model(features), labels, offsets).backward()
        optimizer.step()
    after = plr.ndcg(model(features).detach().numpy()[:, 0], labels, plr.dcg_weights(5), offsets=offsets).mean()
    assert before < 0.75 < 0.95 < after


# --- autograd


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradcheck(reduction):
    """Finite differences of the value. Mutant: the upstream gradient not multiplied in."""
    options = dict(cutoff=3, method="exact", rtol=1e-10, normalize=True, weight=np.arange(1.0, 6.0))
    assert torch.autograd.gradcheck(
        lambda scores: plackett_luce_loss(scores * 0.7, LABELS, OFFSETS, reduction=reduction, **options) * 3, (leaf(),)
    )


def test_double_backward_is_refused():
    """A gradient penalty must not be left out in silence. Mutant: ``once_differentiable``, which lets this pass, as the
    gradient that backward starts with is a constant."""
    scores = leaf()
    (gradient,) = torch.autograd.grad(plackett_luce_loss(scores, LABELS, OFFSETS), scores, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        (gradient**2).sum().backward()
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.functional.hessian(lambda scores: plackett_luce_loss(scores, LABELS, OFFSETS), leaf().detach())


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_compiled_models_leave_a_gap_for_it():
    """One break, the same numbers, compiled once. Mutants: ``torch.compiler.disable`` taken away from the function (26
    breaks), or from the module (compiled anew in each pass, as the number of passes is another)."""
    loss = PlackettLuceLoss(3, method="exact")

    def with_module(scores):
        return loss(torch.tanh(scores), LABELS, OFFSETS) * 2

    def with_function(scores):
        return plackett_luce_loss(torch.tanh(scores), LABELS, OFFSETS, cutoff=3, method="exact") * 2

    for step in (with_module, with_function):
        plain, compiled = leaf(), leaf()
        step(plain).backward()
        frames = torch._dynamo.utils.counters["frames"]
        before = frames["ok"]
        step_compiled = torch.compile(step, backend="eager")
        step_compiled(compiled).backward()
        assert (plain.grad == compiled.grad).all()
        after = frames["ok"]
        assert after > before
        step_compiled(leaf())
        assert frames["ok"] == after
        assert torch._dynamo.explain(step)(leaf()).graph_break_count == 1


def test_no_graph_is_needed():
    with torch.no_grad():
        assert not PlackettLuceLoss(3)(leaf(), LABELS, OFFSETS).requires_grad


# --- random numbers


def losses_of(loss, passes):
    return [loss(leaf(), LABELS, OFFSETS).item() for _ in range(passes)]


def test_random_numbers_move_on_and_are_in_the_state_dict():
    """A resumed training has the bits of the uninterrupted one. Mutants: the pass not counted; not saved."""
    loss = PlackettLuceLoss(3, method="cmc", seed=4)
    whole = losses_of(copy.deepcopy(loss), 6)
    assert len(set(whole)) > 3
    assert losses_of(loss, 3) == whole[:3]
    file = io.BytesIO()
    torch.save(torch.nn.Sequential(torch.nn.Linear(1, 1), loss).state_dict(), file)
    file.seek(0)
    resumed = torch.nn.Sequential(torch.nn.Linear(1, 1), PlackettLuceLoss(3, method="cmc"))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert losses_of(resumed[1], 3) == whole[3:]
    assert losses_of(pickle.loads(pickle.dumps(loss)), 3) == whole[3:]


def test_manual_seed_sets_what_is_not_set():
    """Mutants: seeds from fresh entropy; a pass that failed counted."""
    torch.manual_seed(9)
    first = losses_of(PlackettLuceLoss(3, method="cmc"), 2)
    torch.manual_seed(9)
    loss = PlackettLuceLoss(3, method="cmc")
    with pytest.raises(ValueError, match="scores must be finite, got nan"):
        loss(leaf(np.full(N_DOCS, np.nan)), LABELS, OFFSETS)
    assert losses_of(loss, 2) == first


def test_functional_draws_from_generators_of_pytorch():
    """And leaves them where they were on an error. Mutants: the state not put back; the default one always used."""
    options = dict(cutoff=3, method="cmc")
    torch.manual_seed(2)
    values = [plackett_luce_loss(leaf(), LABELS, OFFSETS, **options).item() for _ in range(2)]
    assert values[0] != values[1]
    own = torch.Generator().manual_seed(2)
    with pytest.raises(ValueError, match="scores must be finite"):
        plackett_luce_loss(leaf(np.full(N_DOCS, np.inf)), LABELS, OFFSETS, rng=own, **options)
    assert [plackett_luce_loss(leaf(), LABELS, OFFSETS, rng=own, **options).item() for _ in range(2)] == values
    before = torch.get_rng_state()
    plackett_luce_loss(leaf(), LABELS, OFFSETS, method="exact")
    assert (torch.get_rng_state() == before).all()


# --- worker processes


class Gradients(torch.utils.data.Dataset):
    """Every item a gradient, computed in the worker that is asked for it."""

    def __len__(self):
        return 6

    def __getitem__(self, item):
        scores = leaf(SCORES + item)
        PlackettLuceLoss(3, method="pl_rank_3", seed=item)(scores, LABELS * (item + 1), OFFSETS).backward()
        return scores.grad


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_workers_of_a_data_loader(context):
    """The same bits as here, after a parallel region in the parent."""
    if context not in torch.multiprocessing.get_all_start_methods():
        pytest.skip(f"no {context} on this system")
    here = torch.stack([Gradients()[item] for item in range(6)])
    loader = torch.utils.data.DataLoader(Gradients(), batch_size=6, num_workers=2, multiprocessing_context=context)
    for batch in loader:
        assert (batch == here).all()


# --- errors


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (TypeError, "scores must be a floating point tensor, got ndarray", (SCORES, LABELS), {}),
        (TypeError, "scores must be a floating point tensor, got torch.int64", (torch.arange(16), LABELS), {}),
        (ValueError, "scores must have shape", (torch.zeros(2, 2, 2), LABELS), {}),
        (ValueError, "scores must have shape .* with offsets", (torch.zeros(4, 4), LABELS, OFFSETS), {}),
        (ValueError, "relevance must have the shape of scores", (leaf(), LABELS[1:]), {}),
        (TypeError, "relevance must not require a gradient", (leaf(), leaf(LABELS)), {}),
        (ValueError, "relevance must be at least 0", (leaf(), -LABELS), {"gain": "exponential"}),
        (ValueError, "offsets must end with", (leaf(), LABELS, [0, 3]), {}),
        (TypeError, "mask must hold booleans", (leaf(), LABELS), {"mask": np.ones(N_DOCS)}),
        (ValueError, "mask must have the shape", (leaf(), LABELS), {"mask": np.ones(3, dtype=bool)}),
        (ValueError, "offsets must not be given with a mask", (leaf(), LABELS, OFFSETS),
         {"mask": np.ones(N_DOCS, dtype=bool)}),
        (ValueError, "weight must have one entry", (leaf(), LABELS, OFFSETS), {"weight": [1.0]}),
        (ValueError, "weight must be at least 0", (leaf(), LABELS, OFFSETS), {"weight": [1.0, -1.0, 1.0, 1.0, 1.0]}),
        (ValueError, "method must be one of", (leaf(), LABELS), {"method": "best"}),
        (ValueError, "reduction must be one of", (leaf(), LABELS), {"reduction": "batchmean"}),
        (ValueError, "gain must be one of", (leaf(), LABELS), {"gain": "log"}),
        (TypeError, "normalize must be True or False", (leaf(), LABELS), {"normalize": "query"}),
        (ValueError, "normalize needs ideal metrics", (leaf(), -1.0 - LABELS), {"normalize": True}),
        (ValueError, "n_samples must be at least 1", (leaf(), LABELS), {"n_samples": 0}),
        (TypeError, "relevance must not be a masked array", (leaf(), np.ma.array(LABELS, mask=LABELS > 2)), {}),
        (TypeError, "mask must not be a masked array", (leaf(), LABELS), {"mask": np.ma.array(LABELS > 0)}),
        (ValueError, "cutoff must be at least 0", (leaf(), LABELS), {"cutoff": -1}),
    ],
)  # fmt: skip
def test_errors_name_the_argument(error, message, arguments, options):
    with pytest.raises(error, match=message):
        plackett_luce_loss(*arguments, **options)


def test_a_missing_library_is_named_with_its_extra():
    """And the rest of the library does not need it. Mutant: a plain import."""
    code = """
import sys
sys.modules["torch"] = None
import plrank_fast
try:
    import plrank_fast.torch
except ImportError as error:
    print(error)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "torch>=' in answer.stdout
