"""Train a cross-encoder on minus the expected NDCG@10 of lists of 10 to 100 documents, in bfloat16.

python examples/adapters/cross_encoder.py

The transformer is tiny and made on the spot; it reads a query and a document together, and gives one score. A step
takes several lists, one after another (gradient accumulation). The program prints NDCG@10 before and after, and the
share of the time of a step that the loss and its gradient take. For models of libraries see docs/adapters.md.
"""

import time

import numpy as np
import torch

import plrank_fast as plr
from plrank_fast.torch import ExpectedMetricLoss

TOPICS, WORDS, LENGTH = 4, 8, 8  # the words of a document are of several topics; the query is the name of one topic


class CrossEncoder(torch.nn.Module):
    """Token ids of query and document, (n_documents, 1 + LENGTH), to scores, (n_documents,)."""

    def __init__(self, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(TOPICS * (WORDS + 1), width)
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.score = torch.nn.Linear(width, 1)

    def forward(self, tokens):
        return self.score(self.encoder(self.embedding(tokens))[:, 0])[:, 0]


def lists(n_lists, rng):
    """Make queries with 10 to 100 documents each: tokens, and grades by the number of words of the query's topic."""
    for _ in range(n_lists):
        topic, n_docs = rng.integers(TOPICS), rng.integers(10, 101)
        words = rng.integers(TOPICS * WORDS, size=(n_docs, LENGTH))
        grades = np.clip((words // WORDS == topic).sum(axis=1) - 1, 0, 4)
        tokens = np.column_stack([np.full(n_docs, TOPICS * WORDS + topic), words])
        yield torch.tensor(tokens), torch.tensor(grades)


def ndcg(model, data):
    """Return the mean NDCG@10 of the ranking by score."""
    with torch.no_grad():
        return float(np.mean([plr.ndcg(model(tokens), plr.gains(grades), cutoff=10) for tokens, grades in data]))


def main(n_steps=30, accumulate=4):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model, test = CrossEncoder(), list(lists(50, rng))
    loss = ExpectedMetricLoss(cutoff=10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    before, seconds, start = ndcg(model, test), [], time.perf_counter()
    for _ in range(n_steps):
        for tokens, grades in lists(accumulate, rng):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = model(tokens)
            leaf = scores.detach().requires_grad_()  # apart from the model, to measure the time of the loss
            began = time.perf_counter()
            (loss(leaf, grades) / accumulate).backward()
            seconds.append(time.perf_counter() - began)
            scores.backward(leaf.grad)
        optimizer.step()
        optimizer.zero_grad()
    return before, ndcg(model, test), sum(seconds) / (time.perf_counter() - start)


if __name__ == "__main__":
    print("NDCG@10 before {:.3f}, after {:.3f}; the loss takes {:.1%} of a step".format(*main()))
