"""Measure the tables of ``plrank_fast._methods.cost_model`` again, and print them as source."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plrank_fast._methods import cost_model
from plrank_fast.benchmarks.epoch_cost import Method, Workload, seconds_per_epoch


def measure(method: str, length: int, cutoff: int, seconds: float = 0.1) -> float:
    """Measure the nanoseconds per document of one thread, the fastest of a few calls on a batch."""
    workload = Workload.of_length(length, max(2, 40_000 // length))
    return 1e9 * seconds_per_epoch(Method.of(method, 1), workload, cutoff, seconds)[0] / length


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
