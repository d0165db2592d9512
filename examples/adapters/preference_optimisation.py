"""Tune a language model on rankings of its answers: list-wise preference optimisation in a loop of one's own.

python examples/adapters/preference_optimisation.py

The score of an answer is beta times the log-ratio of its probability under the model and under a frozen copy, summed
over its tokens. Minus the log-probability of the ranking that people prefer, under Plackett-Luce with these scores, is
the loss: DPO for two answers, its Plackett-Luce form for more (Rafailov et al., "Direct preference optimization",
NeurIPS 2023). `plrank_fast.trl` does this in trl's trainer. The model is tiny and made on the spot. The program prints
how often it prefers the better of two answers to prompts that it was not trained on, before and after; before, all
log-ratios are 0.
"""

import copy

import numpy as np
import torch

from plrank_fast.torch import PlackettLuceLoss

PROMPTS, WORDS, LENGTH, ANSWERS, BETA = 4, 16, 6, 5, 0.5


class LanguageModel(torch.nn.Module):
    """Tokens, (n_texts, length), to the log-probabilities of the next ones, (n_texts, length, n_tokens)."""

    def __init__(self, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(PROMPTS + WORDS, width)
        self.recurrent = torch.nn.GRU(width, width, batch_first=True)
        self.head = torch.nn.Linear(width, PROMPTS + WORDS)

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0]).log_softmax(dim=-1)


def log_prob(model, texts):
    """Return the log-probability of each answer, (n_texts,): the sum over its tokens, which follow the prompt."""
    following = texts[:, 1:, None]
    return model(texts[:, :-1]).gather(2, following)[:, :, 0].sum(dim=1)


def ranked_answers(n_prompts, rng):
    """Make prompts with some answers each: texts, their grades, and where the answers to each prompt start.

    People prefer answers with many words of the prompt's topic. Answers of equal grade are tied.
    """
    topic = np.repeat(rng.integers(PROMPTS, size=n_prompts), ANSWERS)
    words = rng.integers(WORDS, size=(topic.size, LENGTH))
    grades = (words % PROMPTS == topic[:, None]).sum(axis=1)
    texts = torch.tensor(np.column_stack([topic, PROMPTS + words]))
    return texts, grades, np.arange(n_prompts + 1) * ANSWERS


def preferred(model, reference, data):
    """Return the share of pairs of answers to a prompt, of different grades, that the log-ratios order rightly."""
    texts, grades, _ = data
    with torch.no_grad():
        ratio = (log_prob(model, texts) - log_prob(reference, texts)).numpy()
    ratio, grades = ratio.reshape(-1, ANSWERS), grades.reshape(-1, ANSWERS)
    better = grades[:, :, None] > grades[:, None, :]
    return float((ratio[:, :, None] > ratio[:, None, :])[better].mean())


def main(n_steps=80, n_prompts=16):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model, test = LanguageModel(), ranked_answers(200, rng)
    reference = copy.deepcopy(model).requires_grad_(False)
    loss = PlackettLuceLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    before = preferred(model, reference, test)
    for _ in range(n_steps):
        texts, grades, offsets = ranked_answers(n_prompts, rng)
        scores = BETA * (log_prob(model, texts) - log_prob(reference, texts))
        optimizer.zero_grad()
        loss(scores, torch.from_numpy(grades), offsets).backward()
        optimizer.step()
    return before, preferred(model, reference, test)


if __name__ == "__main__":
    print("better answer preferred before {:.2f}, after {:.2f}".format(*main()))
