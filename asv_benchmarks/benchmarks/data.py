"""Data sets."""

import tempfile
from pathlib import Path

import numpy as np

import plrank_fast as plr


class Letor:
    """Reading 2000 queries of 20 documents with 46 features: a file of 20 MB, or of 36 MB with all digits."""

    params = (("six decimals", "all digits"), ("float32", "float64"))
    param_names = ("numbers", "dtype")

    def setup(self, numbers, dtype):
        rng = np.random.default_rng(0)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "train.txt"
        spelling = "{:d}:{:.6f}" if numbers == "six decimals" else "{:d}:{!r}"
        with open(self.path, "w") as file:
            for row, features in enumerate(rng.random((40_000, 46)).tolist()):
                values = " ".join(spelling.format(index, value) for index, value in enumerate(features, start=1))
                file.write(f"{row % 5} qid:{row // 20} {values} # docid = {row}\n")

    def teardown(self, numbers, dtype):
        self.folder.cleanup()

    def time_load_letor(self, numbers, dtype):
        plr.data.load_letor(self.path, dtype=dtype)

    def peakmem_load_letor(self, numbers, dtype):
        plr.data.load_letor(self.path, dtype=dtype)
