"""The loss in PyTorch alone: operators, compilation, copies of devices, workers; and batches of queries."""

import functools
import inspect
import pickle
from itertools import pairwise

import numpy as np
import pytest

from frameworks import DCG, LABELS, LENGTHS, OFFSETS, SCORES, padded

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from plrank_fast import torch as adapter  # noqa: E402
from plrank_fast._adapters import device_copies  # noqa: E402
from plrank_fast.torch import QueryBatchSampler  # noqa: E402

PlackettLuceLoss = functools.partial(adapter.PlackettLuceLoss, **DCG)
plackett_luce_loss = functools.partial(adapter.plackett_luce_loss, **DCG)


def leaf(values=SCORES, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


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


@pytest.mark.parametrize("options", [
    {"cutoff": 3, "metric": "dcg", "gain": "linear", "rank_weights": [1.0], "normalize": False, "reduction": "sum",
     "method": "cmc", "n_samples": 7, "rtol": 1e-3, "n_threads": 2},
    {"metric": "err", "max_label": 4.0},
])  # fmt: skip
def test_the_module_hands_on_its_options(options, monkeypatch):
    """Mutants: an option dropped; another default than the function's."""
    given, function = {}, inspect.signature(adapter.plackett_luce_loss).parameters
    for name, each in inspect.signature(adapter.PlackettLuceLoss).parameters.items():
        assert each.default == function[name].default
    monkeypatch.setattr(adapter, "plackett_luce_loss", lambda *_, **others: given.update(others))
    loss = adapter.PlackettLuceLoss(**options)
    loss(leaf(), LABELS, weight=3, rng=5, first_query=2)
    assert (options | {"weight": 3, "rng": 5, "first_query": 2}).items() <= given.items()
    assert ("rank_weights given" if "rank_weights" in options else "metric='err', cutoff=10") in repr(loss)


def test_errors_of_pytorch():
    with pytest.raises(TypeError, match="scores must be a floating point tensor, got ndarray"):
        plackett_luce_loss(SCORES, LABELS)
    with pytest.raises(TypeError, match="relevance must not require a gradient"):
        plackett_luce_loss(leaf(), leaf(LABELS))


# --- autograd


def test_double_backward():
    """Mutants: a gradient that is a constant for autograd; the product with the Hessian without the weights of
    queries."""
    options = {"cutoff": 3, "method": "exact", "reduction": "none", "weight": np.arange(1.0, 6.0)}
    loss = functools.partial(plackett_luce_loss, relevance=LABELS, offsets=OFFSETS, **options)
    assert torch.autograd.gradgradcheck(loss, (leaf(),), atol=1e-6)


# --- compilation, export and transformations


def padded_tensors():
    rows, mask = padded(SCORES, 0.0)
    return torch.tensor(rows), torch.tensor(padded(LABELS, 0.0)[0]), torch.tensor(mask)


@pytest.mark.parametrize("method", ["exact", "cmc"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_compiled_without_a_break(method, reduction):
    """To the bits of what is not, random numbers too, once for all passes. Mutants: the operator not differentiable;
    `_Loss` applied when traced; labels of NumPy checked when traced; the wrong query's upstream gradient."""
    torch._dynamo.reset()
    loss = PlackettLuceLoss(3, method=method, reduction=reduction)
    weights = torch.arange(1.0, 6.0, dtype=torch.float64)

    def ragged(scores, labels, offsets):
        return (loss(torch.tanh(scores), labels, offsets) * weights).sum()

    def rows(scores, labels, mask):
        return (loss(torch.tanh(scores), labels, mask=mask) * weights).sum()

    for step, data in (ragged, (leaf(), LABELS, torch.tensor(OFFSETS))), (rows, padded_tensors()):
        compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for seed in range(2):
                gradients = []
                for function in (step, compiled):
                    torch.manual_seed(seed)
                    scores = data[0].detach().requires_grad_()
                    function(scores, *data[1:]).backward()
                    gradients.append(scores.grad)
                assert (gradients[0] == gradients[1]).all()
                assert gradients[0].any()


def test_exported():
    """Mutant: no autograd formula of the operator's own."""
    loss, data = PlackettLuceLoss(3, method="exact"), (leaf(), torch.tensor(LABELS), torch.tensor(OFFSETS))
    exported = torch.export.export(loss, data).module()
    gradients = [torch.autograd.grad(each(*data), data[0])[0] for each in (loss, exported)]
    assert torch.equal(*gradients)


def operators():
    rows, labels, mask = padded_tensors()
    options = ["ndcg", 3, "linear", None, False, "none", "pl_rank_3", 4, 1e-6, None, 0]
    ragged = (leaf(), torch.tensor(LABELS), torch.tensor(OFFSETS), None, None, None, torch.tensor([7]), *options)
    yield "plackett_luce_loss", ragged
    yield (
        "plackett_luce_loss",
        (rows.float().requires_grad_(), labels, None, mask, *[None] * 2, torch.tensor([7]), *options),
    )
    rankings = torch.tensor([[[0, 1]], [[3, 2]]])
    for tied, order in ((False, rankings), (True, rankings.repeat(1, 1, 4))):
        yield "ranking_log_prob", (leaf(SCORES.reshape(2, 8)), order, tied)
        yield "ranking_log_prob_vjp", (torch.tensor(SCORES.reshape(2, 8)), order, tied, torch.ones(2, 1).double())


@pytest.mark.parametrize(("name", "arguments"), list(operators()))
def test_operators(name, arguments):
    """By PyTorch's own check. Mutants: the shapes of rows for a mask; float64 promised for float32."""
    torch.library.opcheck(getattr(torch.ops.plrank_fast, name).default, arguments)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_jagged_nested_tensors():
    """Scores are nested, relevance has the same lengths or is flat. Mutant: relevance of other lengths taken."""
    flat, filled = leaf(), OFFSETS[[0, 1, 3, 4, 5]]
    loss = PlackettLuceLoss(3, method="exact", reduction="none")
    expected = loss(flat, LABELS, filled)
    expected.sum().backward()
    labels = torch.nested.nested_tensor_from_jagged(torch.tensor(LABELS), torch.tensor(filled))
    for relevance in (LABELS, labels):
        values = leaf()
        scores = torch.nested.nested_tensor_from_jagged(values, torch.tensor(filled))
        result = loss(scores, relevance)
        result.sum().backward()
        assert (result == expected).all()
        assert (values.grad == flat.grad).all()
    other = torch.nested.nested_tensor_from_jagged(torch.tensor(LABELS), torch.tensor([0, 1, 8, 9, 16]))
    with pytest.raises(ValueError, match="relevance must be over the same queries"):
        loss(scores, other)
    holes = torch.nested.narrow(flat.detach().reshape(4, 4), 1, *torch.ones(2, 4, dtype=int), layout=torch.jagged)
    for wrong in (torch.nested.nested_tensor([flat.detach()[:3], flat.detach()[3:]]), holes):
        with pytest.raises(TypeError, match="scores must be a jagged nested tensor without holes"):
            loss(wrong, LABELS)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_empty_and_meta_tensors(reduction):
    """No queries, or queries without documents, have a loss and a gradient; on the meta device, shapes. Mutants: a
    result of ``vmap`` from its first row alone; -1 for the size of an axis that may be empty."""
    options = {"reduction": reduction, "method": "exact"}
    for shape, masked in ((0,), False), ((0, 3), False), ((0, 3), True), ((3, 0), True):
        scores, mask = torch.zeros(shape, requires_grad=True), torch.ones(shape, dtype=bool) if masked else None
        loss = plackett_luce_loss(scores, torch.zeros(shape), mask=mask, **options)
        loss.sum().backward()
        assert loss.shape == ((1 if shape == (0,) else shape[0],) if reduction == "none" else ())
        assert scores.grad.shape == shape
    rows = torch.zeros(0, 3)
    loss = torch.vmap(functools.partial(plackett_luce_loss, **options))(rows, rows)
    assert (loss.shape, loss.dtype) == ((0, 1) if reduction == "none" else (0,), torch.float32)
    scores = torch.zeros(4, 3, device="meta", requires_grad=True)
    loss = plackett_luce_loss(scores, torch.zeros(4, 3, device="meta"), **options)
    assert loss.shape == ((4,) if reduction == "none" else ())
    loss.sum().backward()
    assert scores.grad.shape == (4, 3)


# --- random numbers


def losses_of(loss, passes, **options):
    return [loss(leaf(), LABELS, OFFSETS, **options).item() for _ in range(passes)]


def test_random_numbers_are_those_of_pytorch():
    """Every pass has others, by its generator or a given one. Mutants: seeds from fresh entropy; the default
    generator always used; draws for the exact method."""
    loss = PlackettLuceLoss(3, method="cmc")
    torch.manual_seed(9)
    whole = losses_of(loss, 6)
    assert len(set(whole)) > 3
    torch.manual_seed(9)
    assert losses_of(loss, 3) == whole[:3]
    assert losses_of(pickle.loads(pickle.dumps(loss)), 3) == whole[3:]
    assert losses_of(loss, 6, rng=torch.Generator().manual_seed(9)) == whole
    before = torch.get_rng_state()
    losses_of(PlackettLuceLoss(3, method="exact"), 1)
    assert (torch.get_rng_state() == before).all()


def test_the_loss_leaves_no_trace_in_checkpoints():
    """Mutant: a state of its own, without which, or with which, a model would not load."""
    with_loss = torch.nn.Sequential(torch.nn.Linear(1, 1), PlackettLuceLoss(3, method="cmc"))
    assert list(with_loss.state_dict()) == list(torch.nn.Sequential(torch.nn.Linear(1, 1)).state_dict())


# --- batches


class Queries(torch.utils.data.Dataset):
    def __getitem__(self, query):
        return slice(OFFSETS[query], OFFSETS[query + 1])


def test_batches_of_whole_queries():
    """Every query once, none cut, as many documents as may be. Mutants: a batch one query too long; the last left out;
    a query that is too long left out; the same order in each pass; the generator left out."""
    sampler = adapter.QueryBatchSampler(LENGTHS, 6, generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(Queries(), batch_sampler=sampler, collate_fn=list)
    passes = [list(loader) for _ in range(2)]
    sampler.generator.manual_seed(0)
    assert passes[0] == list(loader) != passes[1]
    for batches in passes:
        sizes = [sum(docs.stop - docs.start for docs in batch) for batch in batches]
        assert max(sizes) <= 6
        firsts = [batch[0].stop - batch[0].start for batch in batches]
        assert all(size + first > 6 for size, first in zip(sizes, firsts[1:], strict=False))
        assert sorted((docs.start, docs.stop) for batch in batches for docs in batch) == list(pairwise(OFFSETS))
    in_order = adapter.QueryBatchSampler(torch.tensor(LENGTHS), 4, shuffle=False)
    assert list(in_order) == [[0, 1], [2], [3], [4]]
    assert repr(in_order) == "QueryBatchSampler(n_queries=5, n_docs=16, max_docs=4, shuffle=False)"
    with pytest.raises(ValueError, match="max_docs must be at least 1"):
        adapter.QueryBatchSampler(LENGTHS, 0)


# --- errors


def test_a_batch_without_offsets_warns():
    """A batch has more documents than any list. Mutants: no warning; one for a list, or beside offsets."""
    loss = PlackettLuceLoss(1)
    with pytest.warns(UserWarning, match=r"all 10001 documents count as one query: pass .* offsets=\[0, 10001\]"):
        loss(torch.zeros(10001, 1), torch.zeros(10001))
    loss(torch.zeros(10001), torch.zeros(10001), offsets=[0, 10001])
    loss(torch.zeros(10000), torch.zeros(10000))


@pytest.mark.parametrize("name", ["scores", "relevance", "weight"])
def test_tensors_without_arithmetic_are_named(name):
    given = {"scores": torch.zeros(2), "relevance": torch.zeros(2), "weight": torch.ones(1)}
    for change, remedy in (
        (lambda tensor: tensor.to_sparse(), "to_dense"),
        (lambda tensor: tensor.to(torch.float8_e4m3fn), "float"),
    ):
        with pytest.raises(TypeError, match=rf"{name} must be .*: pass {name}\.{remedy}\(\)"):
            plackett_luce_loss(**given | {name: change(given[name])})
    with pytest.raises(TypeError, match="lengths must be a dense tensor"):
        QueryBatchSampler(torch.ones(3).to_sparse(), 2)


class Operations(TorchDispatchMode):
    """Adds the names of the operations that PyTorch dispatches: each is a kernel or a copy on a GPU, but for views."""

    def __init__(self, names):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


class Pinned(torch.Tensor):
    """Memory of NaN to which copies are done when somebody waits for the stream, and not before."""

    waiting = []  # noqa: RUF012

    def copy_(self, source, non_blocking=False):
        assert non_blocking
        self.waiting.append((self, source))


@pytest.fixture
def gpu(monkeypatch):
    """Tensors whose addresses are in ``far`` count as those of a GPU; ``events`` has its waits and pinned blocks."""
    far, events = set(), []

    class Stream:
        def synchronize(self):
            while Pinned.waiting:
                target, source = Pinned.waiting.pop()
                torch.Tensor.copy_(target, source)
            events.append("wait")

    def there(value):
        return isinstance(value, torch.Tensor) and value.data_ptr() in far

    def pinned(n_bytes):
        events.append("block")
        return torch.full((n_bytes,), 255, dtype=torch.uint8).as_subclass(Pinned)

    stream = Stream()
    monkeypatch.setattr(device_copies, "is_cuda", there)
    monkeypatch.setattr(device_copies, "stream_of", lambda _: stream)
    monkeypatch.setattr(device_copies, "pinned", pinned)
    return far, events


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("relevance_is_far", [False, True])
def test_copies_of_a_gpu(gpu, dtype, reduction, relevance_is_far):
    """One copy of each array that is there, one wait for all, one copy back, one product in ``backward``.

    After the wait, while the GPU idles, there is only the copy back. PyTorch's own ``ones_like`` begins ``backward``.
    Mutants: a copy back of each result; a wait for each array; blocks for each call; relevance of the CPU copied; the
    gradient's place in that of the losses; losses as views; operations for each view; memory of results allocated after
    the wait; halves converted after the product; relevance of the CPU read after the wait.
    """
    far, events = gpu
    rng = np.random.default_rng(0)
    scores, relevance = (torch.tensor(rng.random((3, 5)), dtype=dtype) for _ in range(2))
    expected = scores.clone().requires_grad_()
    loss = PlackettLuceLoss(4, method="exact", reduction=reduction)
    wanted = loss(expected, relevance)
    wanted.sum().backward()
    scores.requires_grad_()
    far.add(scores.data_ptr())
    far |= {relevance.data_ptr()} if relevance_is_far else set()
    half = dtype in (torch.float16, torch.bfloat16)
    for call in range(3):
        scores.grad = None
        events.clear()
        with Operations(events):
            got = loss(scores, relevance)
            forward = list(events)
            far.add(got.data_ptr())
            got.sum().backward()
        assert torch.equal(got, wanted)
        assert torch.equal(scores.grad, expected.grad)
        assert forward.count("copy_") == 2 + relevance_is_far
        assert forward.count("_to_copy") == (3 if half else 0)
        waits = (1 + relevance_is_far) * ["wait"]  # an idle one takes a microsecond
        assert forward[forward.index("wait") :] == [*waits, "copy_", *half * ["_to_copy"]]
        assert forward.count("block") == (2 if call == 0 else 0)
        assert call == 0 or len(forward) <= (11 if half else 8) + 3 * relevance_is_far
        assert events[len(forward) :].count("mul") == 1
        assert not {"copy_", "_to_copy"} & set(events[len(forward) :])
    got = loss(scores, relevance)
    got += 1.0  # which autograd refuses for views
    got.sum().backward()
    compiled = scores.detach().clone().requires_grad_()
    far.add(compiled.data_ptr())
    value, _ = torch.ops.plrank_fast.plackett_luce_loss(
        compiled, relevance, *[None] * 5, "ndcg", 4, "linear", None, False, reduction, "exact", None, 1e-6, None, 0
    )
    assert torch.equal(value, wanted)


def test_all_arguments_of_a_gpu(gpu):
    """Sampled methods and padded rows, whose gradients are computed elsewhere, weights and other metrics.

    Mutants: a gradient not copied to the block; a mask, weights or labels read before they are awaited.
    """
    far, _ = gpu
    rows, labels, mask = (torch.tensor(each) for each in (padded(SCORES, 0.0)[0], *padded(LABELS, 0.0)))
    mask[:, 0] = False
    weight = torch.arange(1.0, 6.0)
    for options in ({"method": "cmc", "rng": 3}, {"mask": mask}, {"weight": weight}, {"metric": "mrr"}, {}):
        gradients = []
        for place in (set(), {each.data_ptr() for each in (rows, labels, mask, weight)}):
            device_copies._blocks.of_streams.clear()
            far |= place
            scores = rows.detach().requires_grad_()
            value = plackett_luce_loss(scores, labels, **options)
            far.add(value.data_ptr())
            value.backward()
            gradients.append(scores.grad)
            far.clear()
        assert torch.equal(*gradients)
        assert gradients[0].abs().max() > 0.0


def test_blocks_grow(gpu):
    """Mutants: a block that is too small; a smaller one for a shorter list."""
    far, events = gpu
    for n_items, blocks in ((3, 2), (5000, 2), (9000, 4), (3, 4)):
        scores = torch.linspace(0.0, 1.0, n_items)
        plain = PlackettLuceLoss(4, method="exact")(scores.clone(), torch.arange(n_items))
        far.add(scores.data_ptr())
        assert torch.equal(PlackettLuceLoss(4, method="exact")(scores, torch.arange(n_items)), plain)
        assert events.count("block") == blocks, n_items
        far.clear()
