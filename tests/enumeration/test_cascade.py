"""Metrics of readers who stop, in all calls with ``stop_probability``; test_exact.py has values and derivatives."""

import numpy as np
import pytest

import plrank_fast as plr
from problems import with_stop


def test_who_stops_nowhere_changes_no_bit():
    """Zeros are as None: nothing is planned for readers who stop."""
    rng = np.random.default_rng(0)
    for n_docs, cutoff in [(3, 3), (40, 10), (400, 10)]:
        problem = rng.normal(size=n_docs), 1 + rng.random(n_docs), rng.normal(size=cutoff)
        for noise in ("gumbel", "normal"):
            for ours, theirs in zip(
                plr.pl_rank_exact(*problem, stop_probability=np.zeros(n_docs), hessian=True, noise=noise),
                plr.pl_rank_exact(*problem, hessian=True, noise=noise), strict=True,
            ):  # fmt: skip
                np.testing.assert_array_equal(ours, theirs)


def test_value_and_gradient():
    *problem, stop = with_stop("any", 6, 4)
    for method in ("exact", "auto"):
        values, gradient = plr.value_and_gradient(*problem, stop_probability=stop, method=method, rtol=1e-8)
        np.testing.assert_allclose(
            values, plr.expected_metric(*problem, stop_probability=stop, rtol=1e-8), rtol=0, atol=1e-7
        )
        np.testing.assert_array_equal(gradient, plr.pl_rank_exact(*problem, stop_probability=stop, rtol=1e-8))


def test_methods_that_do_not_take_it():
    *problem, stop = with_stop("any", 4, 3)
    for method in ("pl_rank_3", "cmc"):
        with pytest.raises(ValueError, match="stop_probability only goes with method='exact', got an array"):
            plr.value_and_gradient(*problem, stop_probability=stop, method=method)
    with pytest.raises(ValueError, match="stop_probability only goes with method='exact', got an array"):
        plr.expected_metric(*problem, stop_probability=stop, method="sample")
