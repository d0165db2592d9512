"""Train a two-tower recommender whose policy is Plackett-Luce over a catalogue of a million items.

    python examples/two_towers.py
    python examples/two_towers.py --candidates 1000          # the policy ranks the 1000 best items of each user only

A user tower and an item tower give vectors, whose inner product is the score of an item for a user. Each step draws
slates of ten items for some users, by weighted sampling without replacement from all items. It observes whether
something on each slate was bought, and follows the policy gradient with the leave-one-out baseline. Purchases depend on
hidden vectors, of which both towers see distorted features; the reward is not a sum over the ranks of a slate.

The program prints the share of slates with a purchase, the time of a step and of its parts, and the time of the draws
in PyTorch (``multinomial`` of the softmax) and in NumPy (``choice(replace=False, p=)``). It needs PyTorch.
"""

import argparse
import time

import numpy as np
import torch

import plrank_fast as plr

K = 10


class World:
    """Users and items with hidden vectors, probabilities of purchases, and features for the towers."""

    def __init__(self, n_items, dim, rng):
        self.rng, self.dim = rng, dim
        self.items = rng.normal(size=(n_items, dim)).astype(np.float32)
        self.mixing = (rng.normal(size=(2, dim, dim)) / np.sqrt(dim)).astype(np.float32)
        self.item_features = torch.from_numpy(self.items @ self.mixing[0])

    def users(self, n_users):
        """Draw hidden vectors and features of new users."""
        hidden = self.rng.normal(size=(n_users, self.dim)).astype(np.float32)
        return hidden, torch.from_numpy(hidden @ self.mixing[1])

    def purchases(self, hidden, slates):
        """Draw whether anything on each slate is bought, (n_users, n_slates)."""
        taste = np.einsum("ud,unkd->unk", hidden, self.items[slates]) / np.sqrt(self.dim)
        chance = 1.0 / (1.0 + np.exp(4.0 - 2.0 * taste))
        return (self.rng.random(slates.shape) < chance).any(axis=2)


def best_items(scores, n_candidates):
    """Return the best items of each user, (n_users, n_candidates), in any order."""
    return np.argpartition(scores, -n_candidates, axis=1)[:, -n_candidates:]


def timed(part, seconds, call, *arguments, **options):
    """Call a function, add its time under the name of a part, and return its result."""
    start = time.perf_counter()
    result = call(*arguments, **options)
    seconds.setdefault(part, []).append(time.perf_counter() - start)
    return result


def step(world, towers, optimizer, n_users, n_slates, n_candidates, rng, seconds):
    """Take one step of training, and return the share of slates with a purchase."""
    hidden, features = world.users(n_users)

    def score():
        return towers[0](features) @ towers[1](world.item_features).T

    scores = timed("scores", seconds, score)
    values = scores.detach().numpy().astype(np.float64)
    items = None
    if n_candidates:
        items = timed("candidates", seconds, best_items, values, n_candidates)
        values = np.take_along_axis(values, items, axis=1)
    offsets = np.arange(n_users + 1) * values.shape[1]
    flat = values.ravel()
    slates = timed("draws", seconds, plr.sample_rankings, flat, n_slates, K, offsets=offsets, rng=rng)
    shown = slates if items is None else np.take_along_axis(items[:, np.newaxis], slates, axis=2)
    bought = world.purchases(hidden, shown).astype(np.float64)
    gradient = timed(
        "policy gradient", seconds, plr.policy_gradient, flat, rankings=slates, rewards=bought, baseline=True,
        offsets=offsets,
    ).reshape(values.shape)  # fmt: skip
    descent = torch.zeros_like(scores)
    if items is None:
        descent.copy_(torch.from_numpy(-gradient))
    else:
        descent.scatter_(1, torch.from_numpy(items), torch.from_numpy(-gradient).to(scores.dtype))

    def learn():
        optimizer.zero_grad()
        scores.backward(descent / n_users)
        optimizer.step()

    timed("backward", seconds, learn)
    return bought.mean()


def draws_of_others(values, n_slates):
    """Return the seconds of PyTorch and of NumPy for the slates of one user."""
    tensor, rng, seconds = torch.from_numpy(values), np.random.default_rng(0), {}

    def with_torch():
        return torch.multinomial(torch.softmax(tensor, 0).expand(n_slates, -1), K)

    def with_numpy():
        p = np.exp(values - values.max())
        p /= p.sum()
        return [rng.choice(values.size, K, replace=False, p=p) for _ in range(n_slates)]

    timed("PyTorch", seconds, with_torch)
    timed("NumPy", seconds, with_numpy)
    timed("plrank_fast", seconds, plr.sample_rankings, values, n_slates, K, rng=0)
    return {name: times[0] for name, times in seconds.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=16, help="dimension of the hidden vectors, features and towers")
    parser.add_argument("--users", type=int, default=4, help="users in each step")
    parser.add_argument("--slates", type=int, default=50, help="slates for each user and step")
    parser.add_argument(
        "--candidates", type=int, default=0, help="items that the policy ranks for each user (default 0: all items)"
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    world = World(options.items, options.dim, rng)
    towers = [torch.nn.Linear(options.dim, options.dim, bias=False) for _ in range(2)]
    optimizer = torch.optim.Adam([weight for tower in towers for weight in tower.parameters()], lr=0.02)
    seconds, shares = {}, []
    for number in range(options.steps):
        shares.append(step(world, towers, optimizer, options.users, options.slates, options.candidates, rng, seconds))
        if (number + 1) % max(1, options.steps // 5) == 0:
            recent = np.mean(shares[-max(1, options.steps // 5) :])
            print(f"step {number + 1:4d}: {recent:.3f} of the slates had a purchase")
    medians = {part: float(np.median(times)) for part, times in seconds.items()}
    print(f"a step takes {1e3 * sum(medians.values()):.0f} ms: ", end="")
    print(", ".join(f"{part} {1e3 * median:.0f}" for part, median in medians.items()))
    with torch.no_grad():
        scores = (towers[0](world.users(1)[1]) @ towers[1](world.item_features).T)[0].numpy().astype(np.float64)
    others = draws_of_others(scores, options.slates)
    print(f"{options.slates} slates of one user, from all items, take: ", end="")
    print(", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in others.items()))
    return shares, medians, others


if __name__ == "__main__":
    main()
