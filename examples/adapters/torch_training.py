"""Train a PyTorch model on minus the expected NDCG@10 of queries of different lengths, and resume it in the middle.

python examples/adapters/torch_training.py
"""

import numpy as np
import torch

import plrank_fast as plr
from plrank_fast.torch import ExpectedMetricLoss


def batches(n_queries=64, batch_size=16, seed=0):
    """Make queries of 5 to 20 documents: features, grades and offsets."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=8)
    for _ in range(n_queries // batch_size):
        offsets = plr.offsets_from_group(rng.integers(5, 21, size=batch_size))
        features = rng.normal(size=(offsets[-1], 8))
        grades = np.clip(np.rint(features @ taste / 2 + rng.normal(size=offsets[-1]) / 2), 0, 4)
        yield torch.tensor(features, dtype=torch.float32), torch.tensor(grades), offsets


def ndcg(model, data):
    """Return the mean NDCG@10 of the ranking by score."""
    with torch.no_grad():
        values = [
            plr.ndcg(model(features)[:, 0].numpy(), plr.gains(grades), plr.dcg_weights(10), offsets=offsets)
            for features, grades, offsets in data
        ]
    return float(np.concatenate(values).mean())


def main():
    torch.manual_seed(0)
    data = list(batches())
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 1))
    loss = ExpectedMetricLoss(cutoff=10, method="cmc")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = ndcg(model, data)
    for epoch in range(30):
        for features, grades, offsets in data:
            optimizer.zero_grad()
            loss(model(features), grades, offsets=offsets).backward()
            optimizer.step()
        if epoch == 15:  # a checkpoint: the loss draws its random numbers from PyTorch's generator
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["rng"])
    return before, ndcg(model, data)


if __name__ == "__main__":
    print("NDCG@10 before {:.3f}, after {:.3f}".format(*main()))
