"""Train a retriever on rewards of a reader, as retrieval for language models does, by a Plackett-Luce policy.

python examples/adapters/retrieval_policy.py

A query asks for two topics, and the reader sees three documents of 20 to 40. It answers rightly most of the time if
both topics are among them: a reward of the set, which is no sum over documents. The reader stands for a language model,
which would answer all drawn sets at once. The program prints how often answers are right before and after.
"""

import torch

from plrank_fast.torch import PlackettLuce

TOPICS, SHOWN, MOST = 8, 3, 40
RIGHT = torch.tensor([0.05, 0.3, 0.9])  # how often, by the number of topics found


def batch(n_queries, generator):
    """Make queries, (n_queries, TOPICS), and the topic of each document, (n_queries, MOST), -1 for padding."""
    queries = torch.rand((n_queries, TOPICS), generator=generator).argsort(dim=1) < 2
    topics = torch.randint(TOPICS, (n_queries, MOST), generator=generator)
    lengths = torch.randint(MOST // 2, MOST + 1, (n_queries, 1), generator=generator)
    return queries, topics.where(torch.arange(MOST) < lengths, -1)


def read(queries, topics, rankings, generator):
    """Return whether the answer to each query from the documents shown is right, of the shape of rankings."""
    shown = topics.expand(*rankings.shape[:-1], -1).gather(-1, rankings)
    found = torch.nn.functional.one_hot(shown, TOPICS).any(dim=-2) & queries
    return (torch.rand(found.shape[:-1], generator=generator) < RIGHT[found.sum(dim=-1)]).float()


class Retriever(torch.nn.Module):
    """Scores of documents by query and topic; padding has the score -inf, and is never drawn."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(TOPICS, TOPICS))

    def forward(self, queries, topics):
        of_topics = queries.float() @ self.weights
        return of_topics.gather(1, topics.clamp(min=0)).masked_fill(topics < 0, -torch.inf)


def main(n_steps=200, n_queries=32, n_samples=16):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Retriever()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def answers(n_queries):
        queries, topics = batch(n_queries, generator)
        policy = PlackettLuce(model(queries, topics), cutoff=SHOWN)
        return policy.expected_reward(lambda rankings: read(queries, topics, rankings, generator), n_samples)[0]

    before = answers(500).mean().item()
    for _ in range(n_steps):
        optimizer.zero_grad()
        (-answers(n_queries).mean()).backward()
        optimizer.step()
    return before, answers(500).mean().item()


if __name__ == "__main__":
    print("right answers before {:.2f}, after {:.2f}".format(*main()))
