"""The samplers of rankings, and the selection on which they are built."""

import numpy as np

import plrank_fast as plr
from plrank_fast._core.random import selection as _selection
from plrank_fast._core.sampling.samplers import SAMPLER_NAMES

from .workloads import batch


class Sampling:
    """1000 rankings of each of 16 queries, on one thread."""

    params = (list(SAMPLER_NAMES), [24, 120, 1000], [5, 10, 100], [1.0, 3.0])
    param_names = ("sampler", "n_docs", "cutoff", "spread")

    def setup(self, sampler, n_docs, cutoff, spread):
        self.scores, _, self.offsets = batch([n_docs] * 16, spread)
        try:
            plr.sample_rankings(self.scores, 1, cutoff, offsets=self.offsets, sampler=sampler)
        except ValueError as error:
            raise NotImplementedError(str(error)) from None

    def time_sample_rankings(self, sampler, n_docs, cutoff, spread):
        plr.sample_rankings(self.scores, 1000, cutoff, offsets=self.offsets, rng=0, sampler=sampler, n_threads=1)


class Introselect:
    """A million keys in orders that are hard for naive selection; all should take at most 3 times the random order."""

    params = ("random", "sorted", "reversed", "organ pipe", "all equal", "two values")
    param_names = ("order",)

    def setup(self, order):
        n = 1_000_000
        rising = np.arange(n, dtype=float)
        self.keys = {
            "random": np.random.default_rng(0).permutation(n).astype(float),
            "sorted": rising,
            "reversed": rising[::-1].copy(),
            "organ pipe": np.minimum(rising, n - rising),
            "all equal": np.zeros(n),
            "two values": rising % 2,
        }[order]
        self.items = np.arange(n, dtype=np.int32)

    def time_select_1000(self, order):
        _selection.smallest(self.keys.copy(), self.items.copy(), 1000)
