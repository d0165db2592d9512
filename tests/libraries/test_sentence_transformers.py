"""Losses for cross-encoders of sentence-transformers: numbers, mini-batches, the trainer, several processes."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plrank_fast import validation

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read at the import
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip(
    "sentence_transformers", reason="sentence-transformers is not installed; `make test-all` installs it"
)

from plrank_fast import torch as adapters  # noqa: E402
from plrank_fast.sentence_transformers import RankingLoss  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of the other libraries

EXAMPLE = Path(__file__).parents[2] / "examples/adapters/reranker.py"
EXAMPLES = runpy.run_path(str(EXAMPLE))
DATA = EXAMPLES["lists"](5, 0, 2, 9)
INPUTS = DATA["query"][:], DATA["documents"][:]
LABELS = [torch.tensor(labels) for labels in DATA["labels"]]
SIZES = [len(labels) for labels in LABELS]
N_PAIRS = sum(SIZES)
NAMES = ["expected_metric", *validation.RankingLossName.__args__]
OPTIONS = {
    "expected_metric": {"metric": "dcg", "method": "exact"},
    "list_mle": {"cutoff": 2},
    "lambda_rank": {"slope": 2.0},
}
MODULES = {
    "expected_metric": adapters.ExpectedMetricLoss, "pointwise": adapters.PointwiseLoss,
    "softmax_cross_entropy": adapters.SoftmaxCrossEntropyLoss, "list_mle": adapters.ListMLELoss,
    "plackett_luce": adapters.PlackettLuceLoss, "pairwise_logistic": adapters.PairwiseLogisticLoss,
    "lambda_rank": adapters.LambdaRankLoss, "lambda_loss": adapters.LambdaLoss,
    "approx_ndcg": adapters.ApproxNDCGLoss, "soft_rank": adapters.SoftRankLoss,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of tiny networks cost more than they save."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model():
    return EXAMPLES["tiny_model"](dropout=0.3)


def value_and_gradient(model, loss):
    """Value of a loss without arguments, and its gradient by all parameters."""
    model.zero_grad()
    value = loss()
    value.backward()
    return value.item(), torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def assert_same(got, expected):
    assert got[0] == pytest.approx(expected[0], rel=1e-5)
    torch.testing.assert_close(got[1], expected[1], rtol=1e-4, atol=1e-5 * expected[1].abs().max().item())
    assert expected[1].any()


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_the_modules(model, name):
    """By name and as a module, on lists of different lengths, one pair at a time through the model. Mutants: an option
    dropped; the offsets of another order; labels of another query; documents of the first query for all."""
    model.eval()
    module = MODULES[name](**OPTIONS.get(name, {}))
    pairs = [(query, document) for query, each in zip(*INPUTS, strict=True) for document in each]
    offsets = np.cumsum([0, *SIZES])

    def of_module():
        scores = torch.cat([model(model.preprocess([pair]))["scores"][0] for pair in pairs])
        return module(scores, torch.cat(LABELS), offsets)

    expected = value_and_gradient(model, of_module)
    for loss, labels in [
        (RankingLoss(model, name, **OPTIONS.get(name, {})), LABELS), (RankingLoss(model, module), DATA["labels"][:]),
    ]:  # fmt: skip
        assert_same(value_and_gradient(model, lambda loss=loss, labels=labels: loss(INPUTS, labels)), expected)


@pytest.mark.parametrize("size", [1, 4, N_PAIRS - 1, N_PAIRS, N_PAIRS + 1])
def test_mini_batches_have_the_gradient_of_the_batch(model, size):
    """Mutants: a mini-batch left out; the last one twice; each by a loss of its own."""
    model.eval()
    expected = value_and_gradient(model, lambda: RankingLoss(model, "list_mle")(INPUTS, LABELS))
    loss = RankingLoss(model, "list_mle", mini_batch_size=size)
    assert_same(value_and_gradient(model, lambda: loss(INPUTS, LABELS)), expected)


def test_mini_batches_repeat_their_dropout(model, monkeypatch):
    """The second pass has the masks of the first, and leaves the generator where it was. Mutants: no `RandContext`; one
    of the generator's state after the pass."""
    model.train()
    loss = RankingLoss(model, "list_mle", mini_batch_size=3)

    def evaluate():
        torch.manual_seed(5)
        return value_and_gradient(model, lambda: loss(INPUTS, LABELS)), torch.rand(1).item()

    got, next_draw = evaluate()
    monkeypatch.setattr(torch.utils.checkpoint, "checkpoint", lambda function, **_: function())  # all graphs are kept
    expected, expected_draw = evaluate()
    assert_same(got, expected)
    assert next_draw == expected_draw
    torch.manual_seed(6)
    assert value_and_gradient(model, lambda: loss(INPUTS, LABELS))[0] != got[0]


def test_mini_batches_save_memory():
    """One graph is kept at a time. Mutants: all graphs kept; all but the first."""
    model = EXAMPLES["tiny_model"]()
    data = EXAMPLES["lists"](4, 0, 64, 64)
    whole, parts = (EXAMPLES["peak_memory"](RankingLoss(model, mini_batch_size=size), data) for size in (None, 16))
    assert parts < 0.25 * whole


def test_without_gradient(model):
    """Evaluation keeps no graph. Mutant: a check that needs one."""
    model.eval()
    with torch.no_grad():
        values = [RankingLoss(model, "list_mle", mini_batch_size=size)(INPUTS, LABELS) for size in (None, 4)]
    assert not values[1].requires_grad
    torch.testing.assert_close(*values)


@pytest.mark.parametrize("arguments", [
    {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4, "bf16": True},
    {"activation_checkpointing": True},
], ids=str)  # fmt: skip
def test_training(arguments, tmp_path):
    """By the trainer of sentence-transformers, with evaluation; the card of the model names loss, options and source.
    Mutants: the gradient ascended; no citation; no options."""
    model, test = EXAMPLES["tiny_model"](), EXAMPLES["lists"](40, 1)
    before = EXAMPLES["ndcg"](model, test)
    loss = RankingLoss(model, "softmax_cross_entropy", mini_batch_size=100)
    EXAMPLES["train"](loss, EXAMPLES["lists"](300, 2), **arguments)
    assert EXAMPLES["ndcg"](model, test) > before + 0.1
    model.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "plrank_fast.sentence_transformers.RankingLoss" in card
    assert '"loss": "softmax_cross_entropy",\n      "reduction": "mean",\n      "mini_batch_size": 100' in card
    assert "@inproceedings{bruch2019analysis," in card


@pytest.mark.parametrize("name", NAMES)
def test_what_the_card_says(model, name):
    """Mutants: an option left out; the name of the class; the source of another loss."""
    loss = RankingLoss(model, name, **OPTIONS.get(name, {}))
    config = loss.get_config_dict()
    assert config["loss"] == name
    assert OPTIONS.get(name, {}).items() <= config.items()
    assert RankingLoss(model, **config).get_config_dict() == config
    assert re.fullmatch(r"\n@inproceedings\{\w+,\n(    \w+ = \{[^{}]+\},\n){4}\}\n", loss.citation)


PROGRAM = f"""
import runpy, sys
import torch
from plrank_fast.sentence_transformers import RankingLoss
torch.set_num_threads(1)
example = runpy.run_path({str(EXAMPLE)!r})

models = [example["tiny_model"]() for _ in range(2)]  # of several processes, transformers saves those of the first

def weights(model, at_once, mini_batch_size=None):
    example["train"](
        RankingLoss(model, "list_mle", mini_batch_size=mini_batch_size), example["lists"](8, 3, 2, 30), 3,
        per_device_train_batch_size=at_once, optim="sgd", max_grad_norm=0.0, learning_rate=0.1,
    )
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
"""
OF_RANK = """
import os
torch.save([weights(models[0], 4), weights(models[1], 4, 10)], sys.argv[1] + os.environ["RANK"])
"""


def test_two_processes(tmp_path):
    """Their weights are those of one process, by the arguments' defaults, where mini-batches of one process outnumber
    the other's. Mutant: features that hide the results from the wrapper."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + OF_RANK)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    answer = subprocess.run([*launcher, program, tmp_path / "rank"], env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-3000:]
    alone = {}
    exec(PROGRAM, alone)
    before = torch.cat([parameter.detach().flatten() for parameter in EXAMPLES["tiny_model"]().parameters()])
    change = alone["weights"](alone["models"][0], 8) - before
    assert change.abs().max() > 1e-2
    for rank in range(2):
        for weights in torch.load(tmp_path / f"rank{rank}"):
            torch.testing.assert_close(weights - before, change, rtol=1e-3, atol=1e-4)


def test_example():
    """It compares losses. Mutants: memory of the model counted; one loss for all."""
    names = ["expected NDCG@10", "  in mini-batches of 32", "ListNetLoss"]
    found, seconds, memory = EXAMPLES["main"](names, 16, 8, 1, 1)
    assert found.shape == (3, 1)
    assert ((found > 0) & (found < 1)).all()
    assert (seconds > 0).all()
    assert memory[1] < 0.3 * memory[0]


def test_bad_input(model):
    """Errors name the argument, before a step. Mutants: a check left out."""
    loss = RankingLoss(model, "list_mle")
    with pytest.raises(ValueError, match=r"loss must be one of 'expected_metric', .*'soft_rank'.*, got 'ndcg'"):
        RankingLoss(model, "ndcg")
    with pytest.raises(TypeError, match="a loss module has its own options, got cutoff"):
        RankingLoss(model, adapters.ListMLELoss(), cutoff=3)
    with pytest.raises(TypeError, match="loss must be one of"):
        RankingLoss(model, torch.nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match="reduction must be 'mean' or 'sum', one value for a step, got 'none'"):
        RankingLoss(model, reduction="none")
    with pytest.raises(ValueError, match="mini_batch_size must be at least 1, got 0"):
        RankingLoss(model, mini_batch_size=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sigma'"):
        RankingLoss(model, "list_mle", sigma=1.0)
    with pytest.raises(ValueError, match="inputs must be two columns, the query and a list of documents, got 3"):
        loss([*INPUTS, INPUTS[0]], LABELS)
    with pytest.raises(ValueError, match="a list of documents, in this order, got 'a' as documents of query 1"):
        loss([["a", "b"], [["a"], "a"]], [torch.zeros(1)] * 2)
    with pytest.raises(ValueError, match="labels must be given, in a column 'labels' of the data set, got None"):
        loss(INPUTS, None)
    with pytest.raises(ValueError, match=rf"labels must .*, {SIZES[2]} for query 2, got shape \({SIZES[2] + 1},\)"):
        loss(INPUTS, [*LABELS[:2], torch.zeros(SIZES[2] + 1), *LABELS[3:]])
    with pytest.raises(ValueError, match=r"labels must be a list of one value per document .*, 5 lists, got 3"):
        loss(INPUTS, torch.zeros(3))
    with pytest.raises(ValueError, match="inputs must hold documents, got 1 queries without any"):
        loss([["a"], [[]]], [torch.zeros(0)])
    with pytest.raises(ValueError, match=r"labels must .*nan"):
        loss(INPUTS, [torch.full((size,), np.nan) for size in SIZES])
    model.config.num_labels, kept = 3, model.config.num_labels
    try:
        with pytest.raises(ValueError, match="model must have one label, got 3: pass num_labels=1 to CrossEncoder"):
            RankingLoss(model)
    finally:
        model.config.num_labels = kept
