"""Every public function that computes with queries, found by its call in ``tests/public_calls.py``."""

import sys
from pathlib import Path

import numpy as np

import plrank_fast as plr

from .workloads import batch

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from public_calls import BATCHES


class EveryFunction:
    """A call for 16 queries at K = 10 on one thread, 70 rankings for each where it draws any."""

    params = (list(BATCHES), [24, 120])
    param_names = ("call", "n_docs")

    def setup(self, call, n_docs):
        scores, relevance, self.offsets = batch([n_docs] * 16)
        self.arguments = scores, np.log2(relevance + 1), plr.dcg_weights(10)

    def time_call(self, call, n_docs):
        BATCHES[call](*self.arguments, offsets=self.offsets, n_threads=1)
