"""Direct preference optimisation of several ranked answers to each prompt, by the ``DPOTrainer`` of trl.

trl compares two answers. `PlackettLuceDPOTrainer` takes any number, with ties, and ranks that do not count::

    rows = [{"prompt": "Sky?", "completions": [" Blue.", " Grey.", " A sort of fish."], "grades": [2, 2, 0]}, ...]
    PlackettLuceDPOTrainer(model, args=DPOConfig(...), train_dataset=Dataset.from_list(rows), cutoff=1).train()
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra, requirements
from plrank_fast.torch import PlackettLuceLoss

if TYPE_CHECKING:
    import torch
    import trl
else:
    torch, trl = import_extra("torch", "torch"), import_extra("trl", "trl")

__all__ = ["PlackettLuceDPOTrainer"]


def __dir__() -> list[str]:
    return __all__


# trl has no hook for a loss. Without one of these, the methods below would not be called, or not do what they must.
USED = "_prepare_dataset", "_set_signature_columns_if_needed", "_compute_loss", "compute_ref_log_probs"
validation.require(
    all(hasattr(trl.DPOTrainer, name) for name in USED),
    f"trl {trl.__version__} has another DPOTrainer: pip install {requirements('trl')}", ImportError,
)  # fmt: skip
FUSED = hasattr(trl.trainer.utils, "add_fused_lm_head")  # from 1.15 on, models return log-probabilities for logits
ONLY: dict[str, Any] = {
    "loss_type": ["sigmoid"], "loss_weights": None, "label_smoothing": 0.0, "f_divergence_type": "reverse_kl",
    "ld_alpha": None, "use_weighting": False, "precompute_ref_log_probs": False, "use_liger_kernel": False,
}  # fmt: skip
COLUMNS = ["prompt_ids", "answer_ids", "grades"]
TEXTS = ["input_ids", "attention_mask", "completion_mask"]


class PlackettLuceDPOTrainer(trl.DPOTrainer):  # type: ignore[misc]
    """A ``trl.DPOTrainer`` whose loss is the negative log-likelihood of a ranking of several answers.

    The score of an answer is beta times its log-ratio: the log-probability of its tokens under the model minus the one
    under the reference. The loss is `plrank_fast.torch.PlackettLuceLoss` of these scores; for two answers of different
    grades, it is the one of ``DPOTrainer``.

    Parameters
    ----------
    model, ref_model, args, **options
        The arguments of ``DPOTrainer``; it takes PEFT too, and a batch is of prompts. A model without a name needs a
        ``ref_model``, its copy. Refused are options of ``args`` for other losses, ``precompute_ref_log_probs=True``,
        ``use_liger_kernel=True``, ``compute_metrics``, ``data_collator`` and images.
    cutoff : int, optional
        Answers ranked below it are tied for the last place, except those tied with this rank. By default all ranks
        count.

    Notes
    -----
    Rows of the data sets have a ``prompt``, ``completions`` and their ``grades``, the higher the better; equal grades
    are ties. A prompt is a text and its completions are texts, or both are lists of messages. "rewards/accuracies" and
    "rewards/margins" are means over the pairs of answers with different grades.

    Source: the Plackett-Luce form of DPO in Rafailov et al., "Direct preference optimization", NeurIPS 2023.
    """

    def __init__(
        self, model: Any, ref_model: Any = None, args: Any = None, *, cutoff: int | None = None, **options: Any
    ) -> None:
        for name, only in ONLY.items():
            value = getattr(args, name, only)
            validation.require(value == only, f"args.{name} must be {only!r}, got {value!r}: the loss is a likelihood")
        for name in ("compute_metrics", "data_collator"):
            validation.require(options.get(name) is None, f"{name} must be None: batches are rankings, without logits")
        images = {"image", "images"}.intersection(getattr(options.get("train_dataset"), "column_names", None) or ())
        validation.require(not images, f"train_dataset must hold texts alone, got the column {', '.join(images)}")
        self._likelihood = PlackettLuceLoss(cutoff)
        collator = options["data_collator"] = _Collator()
        super().__init__(model, ref_model, args, **options)
        collator.args, collator.pad_token = self.args, self.model.config.get_text_config().pad_token_id

    def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, dataset_name: str) -> Any:
        if set(COLUMNS) <= set(next(iter(dataset))):
            return dataset
        options = {"tokenizer": getattr(processing_class, "tokenizer", processing_class), "name": dataset_name}
        workers = {"num_proc": args.dataset_num_proc} if hasattr(dataset, "__len__") else {}  # not where rows stream
        dataset = dataset.map(_tokenized, fn_kwargs=options, **workers)
        if args.max_length is None or args.truncation_mode == "keep_end":
            return dataset
        return dataset.filter(lambda row: len(row["prompt_ids"]) < args.max_length, **workers)

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = COLUMNS

    def _compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False) -> Any:
        texts = {name: inputs[name] for name in TEXTS}
        labels = texts["input_ids"].masked_fill(texts["completion_mask"] == 0, -100)
        call = {name: texts[name] for name in TEXTS[:2]} | {"use_cache": False}
        if self.aux_loss_enabled:
            call["output_router_logits"] = True
        if FUSED:
            outputs = model(**call, labels=labels, fused_lm_head=True)
            length = labels.shape[1] - 1  # prompt tuning puts tokens of its own before the text
            log_probs = outputs.log_probs[:, -length:].float().sum(dim=1)
        else:
            outputs = model(**call)
            log_probs = trl.trainer.utils.selective_log_softmax(outputs.logits[:, :-1], texts["input_ids"][:, 1:])
            log_probs = (log_probs.float() * texts["completion_mask"][:, 1:]).sum(dim=1)
        reference = torch.cat(self.compute_ref_log_probs(self.ref_model or self.model, texts)).float()
        scores, grades, sizes = self.beta * (log_probs - reference), inputs["grades"], inputs["sizes"]
        loss = self._likelihood(scores, grades, torch.nn.functional.pad(sizes.cumsum(0), (1, 0)))
        if self.aux_loss_enabled:
            loss = loss + self.router_aux_loss_coef * outputs.aux_loss
        prompt = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
        better = (prompt[:, None] == prompt) & (grades[:, None] > grades)
        margins = (scores.detach()[:, None] - scores.detach())[better]
        sums = torch.stack([(margins > 0).sum().float(), margins.sum(), torch.ones_like(margins).sum()])
        right, margin, pairs = self.accelerator.gather(sums).reshape(-1, 3).sum(dim=0).tolist()
        metrics = self._metrics["train" if self.model.training else "eval"]
        if pairs:
            metrics["rewards/accuracies"].append(right / pairs)
            metrics["rewards/margins"].append(margin / pairs)
        return (loss, outputs) if return_outputs else loss


def _tokenized(row: dict[str, Any], tokenizer: Any, name: str) -> dict[str, Any]:
    """Return the tokens of a prompt and of its answers, and the grades as numbers from 0."""
    columns = "prompt", "completions", "grades"
    missing = [column for column in columns if column not in row]
    validation.require(not missing, f"{name} dataset must have the columns {columns}, got none named {missing}")
    prompt, answers = row["prompt"], row["completions"]
    kind, several = (str, "texts") if isinstance(prompt, str) else (list, "lists of messages")
    listed = isinstance(prompt, kind) and isinstance(answers, (list, np.ndarray)) and len(answers) > 0
    fits = listed and all(isinstance(each, kind) for each in answers)
    got = f"got {validation.shown(answers)} for the prompt {validation.shown(prompt)}"
    validation.require(fits, f"completions of the {name} dataset must be {several}, as the prompt is, {got}")
    grades = validation.real_array(row["grades"], f"grades of the {name} dataset")
    validation.one_entry_each(grades, f"grades of the {name} dataset", len(answers), "completions")
    if isinstance(prompt, str):
        end = tokenizer.eos_token
        texts = [prompt, *(prompt + answer.removesuffix(end) + end for answer in answers)]
        tokens = [tokenizer(text=text)["input_ids"] for text in texts]
    else:
        tools = json.loads(row["tools"]) if isinstance(row.get("tools"), str) else row.get("tools")
        options = {"tools": tools, "tokenize": True, "return_dict": True, **(row.get("chat_template_kwargs") or {})}
        talks = [{"conversation": prompt, "add_generation_prompt": True}]
        talks += [{"conversation": prompt + answer} for answer in answers]
        tokens = [tokenizer.apply_chat_template(**talk, **options)["input_ids"] for talk in talks]
    common = [np.cumprod([a == b for a, b in zip(tokens[0], each, strict=False)]).sum() for each in tokens]
    answer_ids = [each[min(common) :] for each in tokens[1:]]
    order = np.unique(grades, return_inverse=True)[1]
    return {"prompt_ids": tokens[0][: min(common)], "answer_ids": answer_ids, "grades": order}


class _Collator:
    """Makes a batch of the answers to several prompts, one after another."""

    args: Any
    pad_token: int

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return texts as rows of one length, and the number of answers to each prompt."""
        most = self.args.max_length
        kept = slice(-most, None) if most and self.args.truncation_mode == "keep_end" else slice(most)
        texts = [(row["prompt_ids"], answer) for row in rows for answer in row["answer_ids"]]
        tokens = [(prompt + answer)[kept] for prompt, answer in texts]
        answered = [([0] * len(prompt) + [1] * len(answer))[kept] for prompt, answer in texts]
        unit = self.args.pad_to_multiple_of or 1
        longest = -(-max(map(len, tokens)) // unit) * unit
        columns = (tokens, self.pad_token), ([[1] * len(each) for each in tokens], 0), (answered, 0)
        padded = (torch.tensor([each + [fill] * (longest - len(each)) for each in of]) for of, fill in columns)
        return {
            "sizes": torch.tensor([len(row["answer_ids"]) for row in rows]),
            "grades": torch.tensor([grade for row in rows for grade in row["grades"]]),
            **dict(zip(TEXTS, padded, strict=True)),
        }
