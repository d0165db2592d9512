"""Strengths of items from observed rankings, with or without ties: maximum likelihood under Plackett-Luce."""

from plrank_fast.strengths.fit import fit_strengths as fit_strengths
from plrank_fast.strengths.fitted import FittedStrengths as FittedStrengths

__all__ = ["FittedStrengths", "fit_strengths"]


def __dir__() -> list[str]:
    return __all__
