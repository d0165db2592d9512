"""Compare marginalised Plackett-Luce (Knyazev and Oosterhuis, ECIR 2026) with the methods of this library.

That method computes the probability of each document at each rank without sampling, as this library does. Given the
Gumbel variable of a document, the number of others above it has a Poisson binomial distribution, which is integrated
over this variable. The method uses a Gauss-Legendre rule with a fixed number of nodes on an interval that holds nearly
all of the mass. For each node, it computes the distribution without one document from the distributions of the
documents before and after it, in O(D K^2). Its gradients come from automatic differentiation.

``placement_probabilities`` below is written from these formulas, for PyTorch, in double precision with sums of positive
terms (the authors compute with logarithms, which takes longer). The program prints tables of errors against processor
time per query, and draws the gradients' errors:

    python examples/marginalized_plackett_luce.py --picture picture.png
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import plrank_fast as plr
from plrank_fast.data import PROFILES

SHAPES = {
    "D = 24": (24, 1.0),
    "D = 120": (120, 1.0),
    "D = 1000": (1000, 1.0),
    "D = 120, scores five times as wide": (120, 5.0),
}
CUTOFF = 10
NODES = 12, 25, 50, 100, 200  # 100 is what the authors' code takes by default
REFERENCE_NODES = 800


def placement_probabilities(scores: torch.Tensor, cutoff: int, nodes: int, outside: float = 1e-6) -> torch.Tensor:
    """Compute the probability of each document at each of the first ``cutoff`` ranks.

    ``scores`` has shape (queries, documents), the result (queries, documents, ``cutoff``). A standard Gumbel variable
    lies below the interval with probability ``outside``, and above it with the same.
    """
    points, weights = (torch.tensor(x) for x in np.polynomial.legendre.leggauss(nodes))
    low = scores.amin(1) - np.log(-np.log(outside))
    high = (scores.amax(1) - np.log(-np.log1p(-outside))).detach()
    place = (high + low)[:, None] / 2 + (high - low)[:, None] / 2 * points
    rate = torch.exp(scores[:, None] - place[:, :, None])  # queries, nodes, documents
    below = torch.exp(-rate)
    above = -torch.expm1(-rate)
    others = convolve(counts(below, above, cutoff), counts(below.flip(2), above.flip(2), cutoff).flip(2))
    density = (high - low)[:, None, None] / 2 * weights[:, None] * rate * below
    later = torch.einsum("qnd,qndk->qdk", density, others)[:, :, 1:]
    return torch.cat([torch.softmax(scores, 1)[:, :, None], later], 2)  # the first rank has a closed form


def counts(below: torch.Tensor, above: torch.Tensor, cutoff: int) -> torch.Tensor:
    """Compute the probability that m < ``cutoff`` of the documents before each one are above the node."""
    found = [torch.nn.functional.one_hot(torch.zeros(below.shape[:2], dtype=int), cutoff).to(below.dtype)]
    for document in range(below.shape[2] - 1):
        fewer = torch.nn.functional.pad(found[-1][:, :, :-1], (1, 0))
        found.append(below[:, :, document, None] * found[-1] + above[:, :, document, None] * fewer)
    return torch.stack(found, 2)


def convolve(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Compute the distribution of the sum of two counts, as far as both are known."""
    reverse = after.flip(3)
    return torch.stack([(before[..., : m + 1] * reverse[..., -m - 1 :]).sum(3) for m in range(before.shape[3])], 3)


def marginalized_gradient(scores: np.ndarray, relevance: np.ndarray, theta: np.ndarray, nodes: int) -> np.ndarray:
    """Differentiate the expected metric automatically; arrays have shape (queries, documents)."""
    leaf = torch.tensor(scores, requires_grad=True)
    probabilities = placement_probabilities(leaf, theta.size, nodes)
    torch.einsum("qdk,qd,k->", probabilities, torch.tensor(relevance), torch.tensor(theta)).backward()
    return leaf.grad.numpy()


def frequencies(scores: np.ndarray, cutoff: int, n_samples: int) -> np.ndarray:
    """Return the share of drawn rankings that have each document at each rank, for one query."""
    rankings = plr.sample_rankings(scores, n_samples, cutoff, rng=1, n_threads=1)
    cells = rankings * cutoff + np.arange(cutoff)
    return np.bincount(cells.ravel(), minlength=scores.size * cutoff).reshape(-1, cutoff) / n_samples


def fastest(function, seconds: float):
    """Return the result of ``function`` and the processor seconds of its fastest call."""
    least, begin = np.inf, time.process_time()
    while True:
        start = time.process_time()
        result = function()
        least = min(least, time.process_time() - start)
        if time.process_time() - begin > seconds:
            return result, least


def problem(docs: int, spread: float, queries: int):
    """Make scores, relevance, offsets and rank weights of ``queries`` lists of ``docs`` documents."""
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, spread, (queries, docs))
    relevance = plr.gains(rng.choice(5, p=PROFILES["mslr"].label_shares, size=queries * docs)).reshape(queries, docs)
    return scores, relevance, np.arange(queries + 1) * docs, plr.dcg_weights(CUTOFF)


def gradients(docs: int, spread: float, queries: int, seconds: float):
    """List (method, setting, microseconds per query, root mean square of the relative error of the gradients)."""
    scores, relevance, offsets, theta = problem(docs, spread, queries)
    arguments = scores.ravel(), relevance.ravel(), theta
    options = {"offsets": offsets, "n_threads": 1}
    exact, _ = plr.pl_rank_exact(*arguments, rtol=1e-10, hessian=True, **options)

    def row(name, setting, function):
        found, took = fastest(function, seconds)
        difference, norm = (np.linalg.norm(x.reshape(queries, docs), axis=1) for x in (found.ravel() - exact, exact))
        return name, setting, 1e6 * took / queries, float(np.sqrt(np.mean((difference / norm) ** 2)))

    for nodes in NODES:
        yield row(
            "marginalised", f"{nodes} nodes", lambda nodes=nodes: marginalized_gradient(scores, relevance, theta, nodes)
        )
    for rtol in (1e-3, 1e-6, 1e-9):
        yield row(
            "pl_rank_exact", f"rtol {rtol:g}", lambda rtol=rtol: plr.pl_rank_exact(*arguments, rtol=rtol, **options)
        )
    for method, numbers in ((plr.pl_rank_cmc, (1, 10)), (plr.pl_rank_3, (10, 100, 1000, 10_000))):
        for n_samples in numbers:
            drawn = {"n_samples": n_samples, "rng": 1} | options
            yield row(
                method.__name__, f"N = {n_samples}", lambda method=method, drawn=drawn: method(*arguments, **drawn)
            )


def placements(docs: int, spread: float, queries: int, seconds: float):
    """List (method, setting, microseconds per query, largest error of a probability)."""
    scores, _, offsets, _ = problem(docs, spread, queries)
    lists = torch.tensor(scores)
    reference = placement_probabilities(lists, CUTOFF, REFERENCE_NODES, outside=1e-15).numpy().reshape(-1, CUTOFF)

    def row(name, setting, function):
        found, took = fastest(function, seconds)
        return name, setting, 1e6 * took / queries, float(np.abs(found.reshape(reference.shape) - reference).max())

    for nodes in NODES:
        yield row(
            "marginalised", f"{nodes} nodes", lambda nodes=nodes: placement_probabilities(lists, CUTOFF, nodes).numpy()
        )
    yield row(
        "rank_probabilities", "", lambda: plr.rank_probabilities(scores.ravel(), CUTOFF, offsets=offsets, n_threads=1)
    )
    for n_samples in (1000, 100_000):
        drawn = lambda n_samples=n_samples: np.concatenate([frequencies(row, CUTOFF, n_samples) for row in scores])  # noqa: E731
        yield row("drawn rankings", f"N = {n_samples}", drawn)


def draw(tables: dict[str, list], path: str) -> None:
    """Draw a panel for each shape, with a line for each method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = -(-len(tables) // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(8.5, 3.4 * rows), sharey=True, layout="constrained", squeeze=False)
    for panel, (title, measured) in zip(grid.flat, tables.items(), strict=False):
        for name, marker in zip(dict.fromkeys(row[0] for row in measured), "D^so", strict=True):
            points = [row[2:] for row in measured if row[0] == name]
            panel.plot(*zip(*points, strict=True), marker=marker, markersize=4, label=name)
        panel.set(xscale="log", yscale="log", title=title)
        panel.grid(alpha=0.3)
    for panel in grid.flat[len(tables) :]:
        panel.remove()
    figure.supxlabel("microseconds of one processor per query", fontsize="medium")
    figure.supylabel("relative error of the gradient", fontsize="medium")
    grid[0, 0].legend(fontsize="small", loc="lower left")
    figure.savefig(path, dpi=110)


def main(arguments: list[str] | None = None) -> dict[str, list]:
    """Print both tables for each shape, draw the picture, and return the rows of the gradients."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, help="lists of each shape, one batch (default: 960 documents)")
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time for each row (default: 1)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--picture", help="PNG or SVG to write")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tables = {}
    for shape in options.shapes:
        queries = options.queries or max(1, 960 // SHAPES[shape][0])
        tables[shape] = list(gradients(*SHAPES[shape], queries, options.seconds))
        for what, rows in (
            ("gradients", tables[shape]),
            ("rank probabilities", placements(*SHAPES[shape], queries, options.seconds)),
        ):
            print(f"{what}, {shape}, K = {CUTOFF}")
            for name, setting, microseconds, error in rows:
                print(f"  {name:<20}{setting:<12}{microseconds:>12.1f} us per query   error {error:.1e}", flush=True)
    if options.picture:
        draw(tables, options.picture)
    return tables


if __name__ == "__main__":
    main()
