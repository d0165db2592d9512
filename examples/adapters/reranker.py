"""Train a cross-encoder of sentence-transformers with losses of this library and with its own.

python examples/adapters/reranker.py

The transformer is tiny and made on the spot. The words of a topic tell documents from others, and one rare word of the
topic tells the best: losses differ in how much they ask about the order below. The program prints NDCG@10 on other
lists, the memory of a step beyond the model's, and its time, for each loss.
"""

import argparse
import tempfile
import time

import numpy as np
import tokenizers
import torch
import transformers
from datasets import Dataset
from sentence_transformers.cross_encoder import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    losses,
)

import plrank_fast as plr
from plrank_fast.sentence_transformers import RankingLoss

TOPICS, WORDS, LENGTH = 4, 4, 12
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY += [f"{kind}{topic}_{i}" for topic in range(TOPICS) for kind in ("word", "rare") for i in range(WORDS)]
VOCABULARY += [f"topic{topic}" for topic in range(TOPICS)]


def tiny_model(seed=0, width=32, dropout=0.0):
    """Return a cross-encoder of two layers, with a token for each word."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [(word, VOCABULARY.index(word)) for word in ("[CLS]", "[SEP]")]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=LENGTH + 8,
    )  # fmt: skip
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=width, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=2 * width, max_position_embeddings=LENGTH + 8, num_labels=1, initializer_range=0.1,
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    torch.manual_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return CrossEncoder(folder, device="cpu")


def lists(n_lists, seed, shortest=10, longest=60):
    """Make a data set of queries with their documents and grades from 0 to 4, in random order."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n_lists):
        topic, n_docs = rng.integers(TOPICS), rng.integers(shortest, longest + 1)
        of_word = np.where(rng.random((n_docs, LENGTH)) < 0.15, topic, rng.integers(TOPICS, size=(n_docs, LENGTH)))
        is_rare = rng.random((n_docs, LENGTH)) < 0.03
        number = rng.integers(WORDS, size=(n_docs, LENGTH))
        n_words = ((of_word == topic) & ~is_rare).sum(axis=1)
        has_rare = ((of_word == topic) & is_rare).any(axis=1)
        grades = np.clip(n_words - 2 + rng.normal(0, 0.7, n_docs), 0, 2).round() + 2 * has_rare
        kind = np.where(is_rare, "rare", "word")
        documents = [
            " ".join(f"{k}{t}_{i}" for k, t, i in zip(*words, strict=True))
            for words in zip(kind, of_word, number, strict=True)
        ]
        rows.append({"query": f"topic{topic}", "documents": documents, "labels": grades.astype(int).tolist()})
    return Dataset.from_list(rows)


def ndcg(model, data):
    """Return the mean NDCG@10 of the ranking by score."""
    return float(np.mean([
        plr.ndcg(
            model.predict([(row["query"], document) for document in row["documents"]], show_progress_bar=False),
            plr.gains(row["labels"]), cutoff=10,
        )
        for row in data
    ]))  # fmt: skip


def train(loss, data, n_epochs=1, **arguments):
    """Train the model of a loss with the trainer of sentence-transformers."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "num_train_epochs": n_epochs, "per_device_train_batch_size": 8, "learning_rate": 5e-3, "use_cpu": True,
            "report_to": "none", "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True,
        }  # fmt: skip
        settings = CrossEncoderTrainingArguments(folder, **{**settings, **arguments})
        CrossEncoderTrainer(model=loss.model, args=settings, train_dataset=data, loss=loss).train()


def peak_memory(loss, data):
    """Return the bytes that a step needs at most beyond those it starts with, by PyTorch's profiler."""
    inputs = data["query"][:], data["documents"][:]
    labels = [torch.tensor(each) for each in data["labels"]]
    loss.model.zero_grad(set_to_none=False)
    loss.model.train()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        loss(inputs, labels).backward()
    events = sorted(profile.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return int(np.cumsum([0, *changes]).max())


OF_EACH = {
    "expected NDCG@10": lambda model: RankingLoss(model),
    "  by the exact method": lambda model: RankingLoss(model, method="exact"),
    "  in mini-batches of 32": lambda model: RankingLoss(model, mini_batch_size=32),
    "plackett_luce": lambda model: RankingLoss(model, "plackett_luce"),
    "softmax_cross_entropy": lambda model: RankingLoss(model, "softmax_cross_entropy"),
    "lambda_rank": lambda model: RankingLoss(model, "lambda_rank"),
    "lambda_loss": lambda model: RankingLoss(model, "lambda_loss"),
    "ListNetLoss": lambda model: losses.ListNetLoss(model, mini_batch_size=-1),
    "  in mini-batches of 32 ": lambda model: losses.ListNetLoss(model, mini_batch_size=32),
    "LambdaLoss": lambda model: losses.LambdaLoss(model, mini_batch_size=-1),
    "ListMLELoss": lambda model: losses.ListMLELoss(model, mini_batch_size=-1),
    "PListMLELoss": lambda model: losses.PListMLELoss(model, mini_batch_size=-1, respect_input_order=False),
    "PListMLELoss, default": lambda model: losses.PListMLELoss(model, mini_batch_size=-1),
    "RankNetLoss": lambda model: losses.RankNetLoss(model, mini_batch_size=-1),
}


def seconds_of_steps(of_each, data, rounds):
    """Return the least seconds of a step of each loss, in turns, for a machine that others use."""
    inputs, labels = (data["query"][:], data["documents"][:]), [torch.tensor(each) for each in data["labels"]]
    seconds = np.full((len(of_each), rounds), np.inf)
    for i in range(rounds):
        for j, loss in enumerate(of_each):
            began = time.perf_counter()
            loss(inputs, labels).backward()
            seconds[j, i] = time.perf_counter() - began
    return seconds.min(axis=1)


def main(names=tuple(OF_EACH), n_lists=1200, n_tests=100, n_seeds=3, rounds=20):
    """Return for each loss NDCG@10 of each seed, (n_losses, n_seeds), and the seconds and the bytes of a step."""
    test = lists(n_tests, 1)
    batch = test.select(range(8))
    of_each = [OF_EACH[name](tiny_model()) for name in names]
    memory, seconds = [peak_memory(loss, batch) for loss in of_each], seconds_of_steps(of_each, batch, rounds)
    found = np.zeros((len(names), n_seeds))
    for seed in range(n_seeds):
        data = lists(n_lists, 2 + seed)
        for i, name in enumerate(names):
            loss = OF_EACH[name](tiny_model(seed))
            train(loss, data, seed=seed)
            found[i, seed] = ndcg(loss.model, test)
    return found, seconds, memory


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lists", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--losses", nargs="*", default=list(OF_EACH))
    flags = parser.parse_args()
    results = main(flags.losses, flags.lists, n_seeds=flags.seeds)
    print(f"{'loss':26}{'NDCG@10':>9}{'spread':>8}{'MB':>7}{'ms':>7}")
    for name, found, seconds, memory in zip(flags.losses, *results, strict=True):
        print(f"{name:26}{found.mean():9.4f}{found.std():8.4f}{memory / 1e6:7.1f}{seconds * 1e3:7.1f}")
