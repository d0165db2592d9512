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

ExpectedMetricLoss = functools.partial(adapter.ExpectedMetricLoss, **DCG)
expected_metric_loss = functools.partial(adapter.expected_metric_loss, **DCG)


def leaf(values=SCORES, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_of_a_cuda_device():
    """The numbers of the CPU, by way of pinned memory."""
    here, there = leaf(), torch.tensor(SCORES, device="cuda", requires_grad=True)
    loss = ExpectedMetricLoss(3, method="exact", reduction="none")
    loss(here, LABELS, OFFSETS).sum().backward()
    result = loss(there, torch.tensor(LABELS, device="cuda"), torch.tensor(OFFSETS, device="cuda"))
    result.sum().backward()
    assert result.device.type == there.grad.device.type == "cuda"
    assert (there.grad.cpu() == here.grad).all()


@pytest.mark.parametrize("options", [
    {"cutoff": 3, "metric": "dcg", "gain": "linear", "rank_weights": [1.0], "reduction": "sum",
     "method": "cmc", "n_samples": 7, "rtol": 1e-3, "n_threads": 2},
    {"metric": "err", "max_label": 4.0},
])  # fmt: skip
def test_the_module_hands_on_its_options(options, monkeypatch):
    """Mutants: an option dropped; another default than the function's."""
    given, function = {}, inspect.signature(adapter.expected_metric_loss).parameters
    for name, each in inspect.signature(adapter.ExpectedMetricLoss).parameters.items():
        assert each.default == function[name].default
    names = "scores", "labels", "offsets", "mask", "weights", "rank_weights", "generator"

    def receive(*arguments):
        given.update(
            zip(names, arguments[:7], strict=True), **dict(zip(adapter.OPTIONS[:-1], arguments[7], strict=True))
        )

    monkeypatch.setattr(adapter, "_loss_of", receive)
    loss = adapter.ExpectedMetricLoss(**options)
    loss(leaf(), LABELS, [0, 16], mask=1, weights=3, generator=5)
    of_call = {"labels": LABELS, "offsets": [0, 16], "mask": 1, "weights": 3, "generator": 5}
    assert (options | of_call).items() <= given.items()
    assert ("rank_weights given" if "rank_weights" in options else "metric='err', cutoff=10") in repr(loss)


def test_options_are_those_of_the_call():
    """Though they are checked once. Mutants: options told apart without their types; a tensor remembered, which has
    changed since; options that are not hashable refused as such."""
    loss = functools.partial(expected_metric_loss, leaf(), LABELS, OFFSETS, method="exact")
    assert loss(reduction="sum") == 5 * loss()
    assert loss(cutoff=3, n_threads=np.array(1)) == loss(cutoff=3) != loss(cutoff=1)
    with pytest.raises(TypeError, match="cutoff must be an integer, got True"):
        loss(cutoff=True)
    rtol = torch.tensor(1e-3)
    loss(rtol=rtol)
    with pytest.raises(ValueError, match="rtol must be at least 1e-10"):
        loss(rtol=rtol.fill_(-1.0))


def test_errors_of_pytorch():
    with pytest.raises(TypeError, match="scores must be a floating point tensor, got ndarray"):
        expected_metric_loss(SCORES, LABELS)
    with pytest.raises(TypeError, match="labels must not require a gradient"):
        expected_metric_loss(leaf(), leaf(LABELS))


# --- autograd


def test_double_backward():
    """Mutants: a gradient that is a constant for autograd; the product with the Hessian without the weights of
    queries."""
    options = {"cutoff": 3, "method": "exact", "reduction": "none", "weights": np.arange(1.0, 6.0)}
    loss = functools.partial(expected_metric_loss, labels=LABELS, offsets=OFFSETS, **options)
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
    loss = ExpectedMetricLoss(3, method=method, reduction=reduction)
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
    loss, data = ExpectedMetricLoss(3, method="exact"), (leaf(), torch.tensor(LABELS), torch.tensor(OFFSETS))
    exported = torch.export.export(loss, data).module()
    gradients = [torch.autograd.grad(each(*data), data[0])[0] for each in (loss, exported)]
    assert torch.equal(*gradients)


def operators():
    rows, labels, mask = padded_tensors()
    options = ["dcg", 3, "linear", None, "none", "pl_rank_3", 4, 1e-6, None, 0]
    ragged = (leaf(), torch.tensor(LABELS), torch.tensor(OFFSETS), None, None, None, torch.tensor([7]), *options)
    yield "expected_metric_loss", ragged
    yield (
        "expected_metric_loss",
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
    """Scores are nested, labels have the same lengths or are flat. Mutant: labels of other lengths taken."""
    flat, filled = leaf(), OFFSETS[[0, 1, 3, 4, 5]]
    loss = ExpectedMetricLoss(3, method="exact", reduction="none")
    expected = loss(flat, LABELS, filled)
    expected.sum().backward()
    jagged = torch.nested.nested_tensor_from_jagged(torch.tensor(LABELS), torch.tensor(filled))
    for labels in (LABELS, jagged):
        values = leaf()
        scores = torch.nested.nested_tensor_from_jagged(values, torch.tensor(filled))
        result = loss(scores, labels)
        result.sum().backward()
        assert (result == expected).all()
        assert (values.grad == flat.grad).all()
    other = torch.nested.nested_tensor_from_jagged(torch.tensor(LABELS), torch.tensor([0, 1, 8, 9, 16]))
    with pytest.raises(ValueError, match="labels must be over the same queries"):
        loss(scores, other)
    holes = torch.nested.narrow(flat.detach().reshape(4, 4), 1, *torch.ones(2, 4, dtype=int), layout=torch.jagged)
    for wrong in (torch.nested.nested_tensor([flat.detach()[:3], flat.detach()[3:]]), holes):
        with pytest.raises(TypeError, match=r"scores must be a jagged tensor without holes.*: .*torch.cat\(scores.unb"):
            loss(wrong, LABELS)
    for name in ("labels", "mask"):
        with pytest.raises(TypeError, match=rf"{name} must be a dense tensor, got .*: .* {name}.values\(\) and"):
            loss(**{"scores": flat, "labels": LABELS, name: jagged})


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_empty_and_meta_tensors(reduction):
    """No queries, or queries without documents, have a loss and a gradient; on the meta device, shapes. Mutants: a
    result of ``vmap`` from its first row alone; -1 for the size of an axis that may be empty."""
    options = {"reduction": reduction, "method": "exact"}
    for shape, masked in ((0,), False), ((0, 3), False), ((0, 3), True), ((3, 0), True):
        scores, mask = torch.zeros(shape, requires_grad=True), torch.ones(shape, dtype=bool) if masked else None
        loss = expected_metric_loss(scores, torch.zeros(shape), mask=mask, **options)
        loss.sum().backward()
        assert loss.shape == ((1 if shape == (0,) else shape[0],) if reduction == "none" else ())
        assert scores.grad.shape == shape
    rows = torch.zeros(0, 3)
    loss = torch.vmap(functools.partial(expected_metric_loss, **options))(rows, rows)
    assert (loss.shape, loss.dtype) == ((0, 1) if reduction == "none" else (0,), torch.float32)
    scores = torch.zeros(4, 3, device="meta", requires_grad=True)
    loss = expected_metric_loss(scores, torch.zeros(4, 3, device="meta"), **options)
    assert loss.shape == ((4,) if reduction == "none" else ())
    loss.sum().backward()
    assert scores.grad.shape == (4, 3)


# --- random numbers


def losses_of(loss, passes, **options):
    return [loss(leaf(), LABELS, OFFSETS, **options).item() for _ in range(passes)]


def test_random_numbers_are_those_of_pytorch():
    """Every pass has others, by its generator or a given one. Mutants: seeds from fresh entropy; the default
    generator always used; draws for the exact method."""
    loss = ExpectedMetricLoss(3, method="cmc")
    torch.manual_seed(9)
    whole = losses_of(loss, 6)
    assert len(set(whole)) > 3
    torch.manual_seed(9)
    assert losses_of(loss, 3) == whole[:3]
    assert losses_of(pickle.loads(pickle.dumps(loss)), 3) == whole[3:]
    assert losses_of(loss, 6, generator=torch.Generator().manual_seed(9)) == whole
    before = torch.get_rng_state()
    losses_of(ExpectedMetricLoss(3, method="exact"), 1)
    assert (torch.get_rng_state() == before).all()


def test_the_loss_leaves_no_trace_in_checkpoints():
    """Mutant: a state of its own, without which, or with which, a model would not load."""
    with_loss = torch.nn.Sequential(torch.nn.Linear(1, 1), ExpectedMetricLoss(3, method="cmc"))
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
        assert sorted((docs.start, docs.stop) for batch in batches for docs in batch) == list(pairwise(OFFSETS))
    in_order = adapter.QueryBatchSampler(torch.tensor(LENGTHS), 4, shuffle=False)
    assert list(in_order) == [[0, 1], [2], [3], [4]]
    assert repr(in_order) == "QueryBatchSampler(n_queries=5, n_docs=16, max_docs=4, shuffle=False)"
    with pytest.raises(ValueError, match="max_docs must be at least 1"):
        adapter.QueryBatchSampler(LENGTHS, 0)


@pytest.mark.parametrize("n_queries", [0, 1, 2, 60])
@pytest.mark.parametrize("num_replicas", [1, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_each_process(n_queries, num_replicas, shuffle):
    """The number of batches is that of `len` in each process and pass, as schedules of learning rates and Lightning
    expect. Each query occurs once, or in some processes if there are fewer than these. Mutants: as many batches as an
    order happens to have; batches left over; a query of those that are cut left out; an order of each process."""
    lengths = np.random.default_rng(0).integers(0, 9, n_queries)

    def samplers(seed):
        options = {"shuffle": shuffle, "num_replicas": num_replicas}
        generators = [torch.Generator().manual_seed(seed) if seed else None for _ in range(num_replicas)]
        return [QueryBatchSampler(lengths, 9, generator=each, rank=i, **options) for i, each in enumerate(generators)]

    of_ranks = samplers(7)
    passes = [[list(sampler) for sampler in of_ranks] for _ in range(20)]
    for batches in passes:
        assert {len(of_rank) for of_rank in batches} == {len(of_ranks[0])}
        every = [batch for of_rank in batches for batch in of_rank]
        assert max((lengths[batch].sum() for batch in every), default=0) <= 9
        queries = [query for batch in every for query in batch]
        assert sorted(set(queries)) == list(range(n_queries))
        assert len(queries) <= max(n_queries, num_replicas)
    if n_queries == 60:
        assert len({str(batches) for batches in passes}) == (20 if shuffle else 1)
        for others in samplers(7), samplers(0):
            for sampler in (*of_ranks, *others):
                sampler.set_epoch(3)
            same = [list(sampler) for sampler in others] == [list(sampler) for sampler in of_ranks]
            assert same == (not shuffle or others[0]._seed == 7)
    assert len({len(sampler) for sampler in samplers(0)}) == 1


def test_epochs_of_the_default_generator():
    """`torch.manual_seed` decides. Mutants: the seed left out, or the epoch."""
    orders = []
    for seed, epoch in ((1, 4), (1, 4), (1, 5), (9, 4)):
        torch.manual_seed(seed)
        sampler = QueryBatchSampler(LENGTHS.repeat(5), 20)
        torch.rand(len(orders))
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    assert orders[0] == orders[1]
    assert len({str(order) for order in orders}) == 3
    with pytest.raises(ValueError, match="rank must be at most 1, got 2"):
        QueryBatchSampler(LENGTHS, 9, num_replicas=2, rank=2)


# --- errors


@pytest.mark.parametrize("name", ["scores", "labels", "weights"])
def test_tensors_without_arithmetic_are_named(name):
    given = {"scores": torch.zeros(2), "labels": torch.zeros(2), "weights": torch.ones(1)}
    for change, remedy in (
        (lambda tensor: tensor.to_sparse(), "to_dense"),
        (lambda tensor: tensor.to(torch.float8_e4m3fn), "float"),
    ):
        with pytest.raises(TypeError, match=rf"{name} must be .*: pass {name}\.{remedy}\(\)"):
            expected_metric_loss(**given | {name: change(given[name])})
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
    """Tensors whose addresses are in ``far`` count as on a GPU; ``events`` has its waits and pinned blocks."""
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
@pytest.mark.parametrize("labels_are_far", [False, True])
def test_copies_of_a_gpu(gpu, dtype, reduction, labels_are_far):
    """One copy of each array that is there, one wait for all, one copy back, one product in ``backward``.

    After the wait, while the GPU idles, there is only the copy back. PyTorch's own ``ones_like`` begins ``backward``.
    Mutants: a copy back of each result; a wait for each array; blocks for each call; labels of the CPU copied; the
    gradient's place in the losses' place; losses as views; operations for each view; memory of results allocated after
    the wait; halves converted after the product; labels of the CPU read after the wait.
    """
    far, events = gpu
    rng = np.random.default_rng(0)
    scores, labels = (torch.tensor(rng.random((3, 5)), dtype=dtype) for _ in range(2))
    expected = scores.clone().requires_grad_()
    loss = ExpectedMetricLoss(4, method="exact", reduction=reduction)
    wanted = loss(expected, labels)
    wanted.sum().backward()
    scores.requires_grad_()
    far.add(scores.data_ptr())
    far |= {labels.data_ptr()} if labels_are_far else set()
    half = dtype in (torch.float16, torch.bfloat16)
    for call in range(3):
        scores.grad = None
        events.clear()
        with Operations(events):
            got = loss(scores, labels)
            forward = list(events)
            far.add(got.data_ptr())
            got.sum().backward()
        assert torch.equal(got, wanted)
        assert torch.equal(scores.grad, expected.grad)
        assert forward.count("copy_") == 2 + labels_are_far
        assert forward.count("_to_copy") == (3 if half else 0)
        waits = (1 + labels_are_far) * ["wait"]  # an idle one takes a microsecond
        assert forward[forward.index("wait") :] == [*waits, "copy_", *half * ["_to_copy"]]
        assert forward.count("block") == (2 if call == 0 else 0)
        assert call == 0 or len(forward) <= (11 if half else 8) + 3 * labels_are_far
        assert events[len(forward) :].count("mul") == 1
        assert not {"copy_", "_to_copy"} & set(events[len(forward) :])
    got = loss(scores, labels)
    got += 1.0  # which autograd refuses for views
    got.sum().backward()
    compiled = scores.detach().clone().requires_grad_()
    far.add(compiled.data_ptr())
    value, _ = torch.ops.plrank_fast.expected_metric_loss(
        compiled, labels, *[None] * 5, "dcg", 4, "linear", None, reduction, "exact", None, 1e-6, None, 0
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
    for options in ({"method": "cmc", "generator": 3}, {"mask": mask}, {"weights": weight}, {"metric": "mrr"}, {}):
        gradients = []
        for place in (set(), {each.data_ptr() for each in (rows, labels, mask, weight)}):
            device_copies._blocks.of_streams.clear()
            far |= place
            scores = rows.detach().requires_grad_()
            value = expected_metric_loss(scores, labels, **options)
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
        batch = torch.arange(n_items), [0, n_items]
        plain = ExpectedMetricLoss(4, method="exact")(scores.clone(), *batch)
        far.add(scores.data_ptr())
        assert torch.equal(ExpectedMetricLoss(4, method="exact")(scores, *batch), plain)
        assert events.count("block") == blocks, n_items
        far.clear()
