"""The methods that are compared, and the figures of the SIGIR 2022 paper: minutes per training epoch (its Table 2)."""

from __future__ import annotations

from typing import Any

from plrank_fast.benchmarks.epoch_cost import SAMPLES, Method

HARDWARE = "AMD EPYC 7H12, NumPy estimators, TensorFlow network"

# Minutes per epoch at each of the cutoffs, by set, method and number of samples.
MINUTES: dict[tuple[str, str, int], tuple[float, ...]] = {
    ("yahoo", "stochastic_rank", 100): (0.52, 0.80, 1.64, 2.58, 3.01),
    ("yahoo", "stochastic_rank", 1000): (3.38, 6.18, 15.41, 26.17, 31.03),
    ("yahoo", "pl_rank_2", 100): (0.43, 0.58, 0.96, 1.35, 1.50),
    ("yahoo", "pl_rank_2", 1000): (2.41, 4.13, 8.96, 13.30, 15.19),
    ("yahoo", "pl_rank_3", 100): (0.33, 0.34, 0.38, 0.40, 0.40),
    ("yahoo", "pl_rank_3", 1000): (1.33, 1.53, 1.92, 2.18, 2.19),
    ("mslr", "stochastic_rank", 100): (1.55, 2.53, 6.01, 13.23, 31.12),
    ("mslr", "stochastic_rank", 1000): (14.15, 25.46, 65.25, 150.00, 353.01),
    ("mslr", "pl_rank_2", 100): (1.19, 1.75, 4.04, 8.36, 15.71),
    ("mslr", "pl_rank_2", 1000): (10.34, 18.91, 46.27, 94.81, 185.42),
    ("mslr", "pl_rank_3", 100): (0.74, 0.77, 0.86, 1.00, 1.20),
    ("mslr", "pl_rank_3", 1000): (4.77, 5.09, 5.93, 7.31, 9.37),
    ("istella", "stochastic_rank", 100): (2.79, 4.61, 10.75, 22.25, 51.94),
    ("istella", "stochastic_rank", 1000): (27.34, 49.07, 116.73, 240.40, 531.09),
    ("istella", "pl_rank_2", 100): (1.96, 2.87, 6.72, 13.25, 27.07),
    ("istella", "pl_rank_2", 1000): (18.49, 30.37, 74.09, 142.55, 278.01),
    ("istella", "pl_rank_3", 100): (1.24, 1.26, 1.34, 1.46, 1.72),
    ("istella", "pl_rank_3", 1000): (9.93, 10.14, 10.87, 12.20, 14.75),
}

PUBLISHED = tuple(Method(name, n) for name in ("stochastic_rank", "pl_rank_2", "pl_rank_3") for n in SAMPLES)
BEYOND = (Method("cmc", 1), Method("exact", 0))
ALL = (*PUBLISHED, *BEYOND)


def published_minutes(method: Method, shape: str) -> tuple[float, ...]:
    """Return the minutes per epoch that the paper prints for a set, none for a method that it does not have."""
    return MINUTES.get((shape, method.estimator, method.n_samples), ())


def cell_of(method: Method) -> dict[str, Any]:
    """Describe a method by entries of a cell, which `method_of` reads."""
    return {"method": method.estimator, "samples": method.n_samples}


def method_of(cell: dict[str, Any]) -> Method:
    """Read the method of a cell."""
    return Method(cell["method"], cell["samples"])
