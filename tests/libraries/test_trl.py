"""trl: preference optimisation of ranked answers beside trl's own DPO, on a tiny model that is made on the spot."""

import copy
import importlib
import itertools

import numpy as np
import pytest

pytest.importorskip("trl", reason="trl is not installed; `make test-all` installs it")

import torch
import trl
from datasets import Dataset, IterableDataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

import plrank_fast.trl
from plrank_fast.trl import PlackettLuceDPOTrainer

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own, of many kinds
WORDS, PROMPTS = [f"w{i}" for i in range(12)], [f"p{i}" for i in range(4)]
SIZES = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None,
}  # fmt: skip
TEMPLATE = "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' ' }}{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}assistant {% else %}<end>{% endif %}"


@pytest.fixture(scope="module")
def tokenizer():
    vocabulary = {word: i for i, word in enumerate(["<pad>", "<end>", "user", "assistant", *WORDS, *PROMPTS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokens = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", pad_token="<pad>")
    tokens.chat_template = TEMPLATE
    return tokens


@pytest.fixture
def pair(tokenizer):
    """A model and a reference that differ, as after some steps."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SIZES))
    reference = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return model, reference


def ranked(n_prompts, seed=0, n_answers=None, conversation=False):
    """Return rows of prompts with 2 to 6 answers, whose grade is how many of their words belong to the prompt."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n_prompts):
        topic, n = rng.integers(4), n_answers or rng.integers(2, 7)
        words = [rng.integers(12, size=rng.integers(3, 7)) for _ in range(n)]
        grades = [float(np.sum(each % 4 == topic)) for each in words]
        if n_answers == 2 and grades[0] == grades[1]:
            grades[0] += 0.5
        prompt, answers = f"p{topic}", [" " + " ".join(WORDS[word] for word in each) for each in words]
        if conversation:
            prompt = [{"role": "user", "content": prompt}]
            answers = [[{"role": "assistant", "content": answer}] for answer in answers]
        rows.append({"prompt": prompt, "completions": answers, "grades": grades})
    return rows


def as_pairs(rows):
    """Return rows of two answers as trl takes them."""
    order = [np.argsort(row["grades"])[::-1] for row in rows]
    return [
        {"prompt": row["prompt"], "chosen": row["completions"][best], "rejected": row["completions"][worst]}
        for row, (best, worst) in zip(rows, order, strict=True)
    ]


def trainer(kind, pair, tokenizer, rows, tmp_path, evaluated=None, options=None, stream=False, **arguments):
    model, reference = map(copy.deepcopy, pair)
    settings = {
        "output_dir": str(tmp_path), "report_to": [], "use_cpu": True, "logging_steps": 1, "save_strategy": "no",
        "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "learning_rate": 1e-3, "beta": 0.5,
        "num_train_epochs": 1, "bf16": False, "disable_tqdm": True, "seed": 3,
    }  # fmt: skip
    dataset = IterableDataset.from_generator(lambda: iter(rows)) if stream else Dataset.from_list(rows)
    return kind(
        model, reference, DPOConfig(**settings | arguments), processing_class=tokenizer,
        train_dataset=dataset, eval_dataset=Dataset.from_list(evaluated or rows), **options or {},
    )  # fmt: skip


def weights(trained):
    return torch.cat([each.detach().reshape(-1) for each in trained.model.parameters()])


def scores_of(pair, tokenizer, row, beta=0.5):
    """Beta times the log-ratio of each answer, from the models' logits."""
    ratios = []
    for answer in row["completions"]:
        start = len(tokenizer(row["prompt"])["input_ids"])
        tokens = torch.tensor([tokenizer(row["prompt"] + answer + "<end>")["input_ids"]])
        with torch.no_grad():
            one, other = (model(tokens[:, :-1]).logits.double().log_softmax(-1) for model in pair)
        following = tokens[:, 1:, None]
        ratios.append(float((one - other).gather(2, following)[0, start - 1 :].sum()))
    return beta * np.array(ratios)


def enumerated(scores, grades, cutoff):
    """Minus the log-probability of all orders whose first ranks have the grades of a sorted ranking: those to the
    cutoff, and the answers tied with it."""
    ranked = sorted(grades, reverse=True)
    last, total = len(grades) if cutoff is None else sum(grade >= ranked[:cutoff][-1] for grade in grades), 0.0
    for order in itertools.permutations(range(len(scores))):
        if [grades[i] for i in order][:last] == ranked[:last]:
            f = scores[list(order)]
            total += np.exp(sum(f[rank] - np.logaddexp.reduce(f[rank:]) for rank in range(len(f))))
    return -np.log(total)


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"max_length": 6, "bf16": True}, {"max_length": 6, "truncation_mode": "keep_end"},
        {"pad_to_multiple_of": 8, "gradient_accumulation_steps": 2, "gradient_checkpointing": True},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("conversation", [False, True], ids=["texts", "messages"])
def test_two_answers_are_the_pairs_of_trl(pair, tokenizer, tmp_path, settings, conversation):
    """Loss and metrics, then weights after training. Mutants: beta left out; the reference left out;
    the last token of the prompt left out, or counted as the answer's; texts cut at the other end, or not padded to a
    multiple; no end of text; a prompt of messages without the next one's role; long prompts kept."""
    rows = ranked(21, n_answers=2, conversation=conversation)
    rows[5]["prompt"] = 7 * rows[5]["prompt"] if conversation else " ".join(7 * [rows[5]["prompt"]])
    theirs = trainer(DPOTrainer, pair, tokenizer, as_pairs(rows), tmp_path, **settings)
    ours = trainer(PlackettLuceDPOTrainer, pair, tokenizer, rows, tmp_path, **settings)
    assert len(ours.train_dataset) == len(theirs.train_dataset)
    batches = [each.data_collator([each.train_dataset[i] for i in range(9)]) for each in (theirs, ours)]
    for name in ("input_ids", "attention_mask", "completion_mask"):
        expected, found = (sorted(batch[name].tolist()) for batch in batches)
        assert found == expected
    agree(theirs, ours)


def agree(theirs, ours):
    expected, found = theirs.evaluate(), ours.evaluate()
    assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=3e-7)  # the last digit of float32
    for name in ("eval_rewards/accuracies", "eval_rewards/margins"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5, abs=1e-6)
    start = weights(ours)
    theirs.train()
    ours.train()
    assert torch.dist(start, weights(ours)) > 1e-2
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=0, atol=1e-4)


@pytest.mark.parametrize("adapted", ["new", "given", "prompt tuning"])
def test_adapters_of_peft_are_compared_with_the_model_without_them(pair, tokenizer, tmp_path, adapted):
    """Mutants: the adapter left on for the reference; positions of virtual tokens counted."""
    peft = pytest.importorskip("peft", reason="peft is not installed")
    if adapted == "prompt tuning":
        if not plrank_fast.trl.FUSED:
            pytest.skip(f"trl {trl.__version__} does not support it")
        config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    else:
        config = peft.LoraConfig(r=4, init_lora_weights=False)
    rows, trainers = ranked(12, n_answers=2), []
    for kind, data in ((DPOTrainer, as_pairs(rows)), (PlackettLuceDPOTrainer, rows)):
        torch.manual_seed(1)
        model, options = copy.deepcopy(pair[0]), {"peft_config": config}
        if adapted == "given":
            model, options = peft.get_peft_model(model, config), {}
        trainers.append(trainer(kind, (model, None), tokenizer, data, tmp_path, options=options))
    assert trainers[1].ref_model is None
    agree(*trainers)


def test_the_loss_of_the_router_is_added(tokenizer, tmp_path):
    """Mutant: the balance of experts left out."""
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=len(tokenizer), num_local_experts=4, output_router_logits=True, router_aux_loss_coef=0.7, **SIZES
    )
    models, rows = [MixtralForCausalLM(config) for _ in range(2)], ranked(8, n_answers=2)
    both = [
        trainer(kind, models, tokenizer, data, tmp_path)
        for kind, data in ((DPOTrainer, as_pairs(rows)), (PlackettLuceDPOTrainer, rows))
    ]
    agree(*both)


@pytest.mark.parametrize("cutoff", [None, 1, 2])
def test_the_loss_is_the_likelihood_of_all_orders_with_the_grades(pair, tokenizer, tmp_path, cutoff):
    """Each prompt by itself, and the mean. Mutants: answers of all prompts in one list; cutoff left out; ties by
    index."""
    rows = ranked(9, seed=2)
    assert any(len(set(row["grades"])) < len(row["grades"]) for row in rows)
    single = {"per_device_eval_batch_size": 1}
    for options in (single, {"per_device_eval_batch_size": 9}):
        trained = trainer(
            PlackettLuceDPOTrainer, pair, tokenizer, rows, tmp_path, options={"cutoff": cutoff}, **options
        )
        expected = [enumerated(scores_of(pair, tokenizer, row), row["grades"], cutoff) for row in rows]
        assert trained.evaluate()["eval_loss"] == pytest.approx(np.mean(expected), rel=1e-5)
        if options is single:
            for row, value in zip(rows, expected, strict=True):
                found = trained.evaluate(Dataset.from_list([row]))["eval_loss"]
                assert found == pytest.approx(value, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("stream", [False, True], ids=["rows", "stream"])
def test_it_learns_which_answers_are_better(pair, tokenizer, tmp_path, stream):
    """By the pairs of prompts that it has not seen. Mutant: the sign of the gradient."""
    start = pair[1], copy.deepcopy(pair[1])
    rows, unseen = ranked(300), ranked(60, seed=1)
    settings = {"learning_rate": 1e-2, "per_device_train_batch_size": 10, "max_steps": 60, "logging_steps": 60}
    trained = trainer(PlackettLuceDPOTrainer, start, tokenizer, rows, tmp_path, unseen, stream=stream, **settings)
    before = trained.evaluate()
    trained.train()
    after = trained.evaluate()
    assert before["eval_rewards/margins"] == 0
    assert after["eval_loss"] < before["eval_loss"]
    assert after["eval_rewards/accuracies"] > 0.8


@pytest.mark.parametrize(
    ("settings", "options", "told"),
    [
        ({"precompute_ref_log_probs": True}, {}, "args.precompute_ref_log_probs must be False, got True"),
        ({"loss_type": ["ipo"]}, {}, r"args.loss_type must be \['sigmoid'\], got \['ipo'\]"),
        ({"label_smoothing": 0.1}, {}, "args.label_smoothing"),
        ({"f_divergence_type": "js_divergence"}, {}, "args.f_divergence_type"),
        ({"ld_alpha": 0.5}, {}, "args.ld_alpha"),
        ({"use_weighting": True}, {}, "args.use_weighting"),
        ({}, {"compute_metrics": len}, "compute_metrics must be None"),
        ({}, {"data_collator": list}, "data_collator must be None"),
        ({}, {"cutoff": -1}, "cutoff"),
    ],
)
def test_what_the_likelihood_does_not_use_is_refused(pair, tokenizer, tmp_path, settings, options, told):
    """Mutant: each check left out."""
    with pytest.raises((ValueError, TypeError), match=told):
        trainer(PlackettLuceDPOTrainer, pair, tokenizer, ranked(3), tmp_path, options=options, **settings)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"grades": [1.0, float("nan")]}, "grades of the train dataset"),
        ({"grades": [1.0, 2.0, 3.0]}, r"grades of the train dataset.* 2 "),
        ({"image": "x"}, "got the column image"),
        ({"completions": " w0 w1"}, "completions of the train dataset must be texts.* got ' w0 w1' for the prompt"),
        ({"completions": [], "grades": []}, r"completions of the train dataset must be texts, .* got \[\]"),
        ({"completions": [" w0", None]}, "completions of the train dataset must be texts"),
        ({"prompt": None}, "completions of the train dataset must be lists of messages, as the prompt is, .* None"),
        ({"prompt": [{"role": "user", "content": "w0"}]}, "completions of the train dataset must be lists of messages"),
    ],
)
def test_a_row_is_refused_before_the_first_step(pair, tokenizer, tmp_path, change, told):
    """Mutant: each check left out."""
    rows = [row | change for row in ranked(2, n_answers=2)]
    with pytest.raises(ValueError, match=told):
        trainer(PlackettLuceDPOTrainer, pair, tokenizer, rows, tmp_path, ranked(2))
    if "image" not in change:
        with pytest.raises(ValueError, match=told.replace("train", "eval")):
            trainer(PlackettLuceDPOTrainer, pair, tokenizer, ranked(2), tmp_path, rows)


@pytest.mark.parametrize("column", ["prompt", "completions", "grades"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_column_is_missed(pair, tokenizer, tmp_path, column, stream):
    """Mutant: the bare KeyError."""
    rows = [{"other": 1} | {name: each for name, each in row.items() if name != column} for row in ranked(2)]
    told = rf"train dataset must have the columns .*, got none named \['{column}'\]"
    with pytest.raises(ValueError, match=told):
        trainer(PlackettLuceDPOTrainer, pair, tokenizer, rows, tmp_path, ranked(2), stream=stream, max_steps=1).train()


def test_another_trainer_of_trl_is_told_at_the_import(monkeypatch):
    """Mutant: the methods not looked for."""
    monkeypatch.delattr(trl.DPOTrainer, "_compute_loss")
    with pytest.raises(ImportError, match=f"trl {trl.__version__} has another DPOTrainer: pip install"):
        importlib.reload(plrank_fast.trl)
