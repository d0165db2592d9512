"""Measure the tables of ``plrank_fast._methods.cost_model`` again, and print them as source."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

import plrank_fast as plr
from plrank_fast._methods import cost_model


def measure(method: str, length: int, cutoff: int, seconds: float = 0.1) -> float:
    """Measure the nanoseconds per document of one thread, the fastest of a few calls on a batch."""
    n_queries = max(2, 40_000 // length)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=n_queries * length)
    relevance = plr.gains(rng.choice(5, p=[0.52, 0.32, 0.13, 0.02, 0.01], size=scores.size))
    options = {"offsets": np.arange(n_queries + 1) * length, "n_threads": 1}
    if method == "pl_rank_cmc":
        options |= {"n_samples": 1, "rng": 0}
    fastest, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        getattr(plr, method)(scores, relevance, plr.dcg_weights(cutoff), **options)
        fastest = min(fastest, time.perf_counter() - start)
    return 1e9 * fastest / scores.size


def measure_tables(rounds: int = 10) -> dict[str, npt.NDArray[np.float64]]:
    """Measure every cell once in each round and keep the fastest, so that no disturbance affects all of a cell."""
    tables = {
        method: np.full((len(cost_model.LENGTHS), len(cost_model.CUTOFFS)), np.inf) for method in cost_model.NANOSECONDS
    }
    for _ in range(rounds):
        for i, length in enumerate(cost_model.LENGTHS):
            for j, cutoff in enumerate(cost_model.CUTOFFS):
                for method, table in tables.items():
                    table[i, j] = min(table[i, j], measure(method, length, cutoff))
    return tables


if __name__ == "__main__":
    for name, table in measure_tables().items():
        rows = [tuple(round(cell) for cell in row) for row in table.tolist()]
        print(f'    "{name}": (')
        print("".join(f"        {row},\n" for row in rows) + "    ),")
