"""Readable reference implementations of every kernel in NumPy: one query at a time, written from the formulas.

The tests and benchmarks compare the kernels with them. They take and return plain arrays of one query, check nothing,
and are exact while the scores lie within a few hundred nats of each other. Symbols: f scores, w = exp(f), rho
relevance, theta rank weights, y a ranking, N rankings, D documents, K ranks.
"""

from plrank_fast.reference import exact, gradients, losses, metrics, rankings
from plrank_fast.reference.exact import *
from plrank_fast.reference.gradients import *
from plrank_fast.reference.losses import *
from plrank_fast.reference.metrics import *
from plrank_fast.reference.rankings import *

__all__ = [*exact.__all__, *gradients.__all__, *losses.__all__, *metrics.__all__, *rankings.__all__]


def __dir__() -> list[str]:
    return __all__
