#!/usr/bin/env bash
# CatBoost 1.2.10: objectives in Python that train without Numba end the training where Numba 0.68.1 is installed.
#
# CatBoost compiles calc_ders_range with Numba if it can import it, and goes back to Python where Numba raises an error
# of its own. For zip(strict=True) and enumerate(start=0), Numba raises an AssertionError, and for a ufunc with dtype= a
# NotImplementedError: CatBoost passes these on, with a trace through Numba, which the user may not know of.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q catboost==1.2.10 numpy==2.4.6
cat > "$folder/train.py" <<'PYTHON'
import sys

import numpy as np
from catboost import CatBoost, CatBoostError, Pool


class Zip:
    def calc_ders_range(self, scores, labels, weights):
        return [(label - score, -1.0) for score, label in zip(scores, labels, strict=True)]


class Enumerate:
    def calc_ders_range(self, scores, labels, weights):
        return [(labels[row] - score, -1.0) for row, score in enumerate(scores, start=0)]


class Ufunc:
    def calc_ders_range(self, scores, labels, weights):
        return [(float(each), -1.0) for each in np.subtract(labels, scores, dtype=np.float64)]


class Dictionary:  # Numba raises an error of its own: CatBoost goes back to Python
    def calc_ders_range(self, scores, labels, weights):
        values = {"labels": labels, "scores": scores, "curvature": -1.0}
        return [(values["labels"][row] - values["scores"][row], values["curvature"]) for row in range(len(scores))]


found = {}
for kind in (Zip, Enumerate, Ufunc, Dictionary):
    parameters = {"loss_function": kind(), "eval_metric": "RMSE", "iterations": 1, "verbose": False}
    pool = Pool(np.arange(40.0).reshape(40, 1), np.arange(40) % 3)
    try:
        CatBoost(parameters | {"allow_writing_files": False}).fit(pool)
        found[kind.__name__] = "trains"
    except CatBoostError as error:
        found[kind.__name__] = str(error).strip().splitlines()[-1].partition(":")[0]
print(f"Numba {sys.argv[1]}:", found)
failing = dict.fromkeys(found, "trains")
if sys.argv[1] == "installed":
    failing |= {"Zip": "AssertionError", "Enumerate": "AssertionError", "Ufunc": "NotImplementedError"}
assert found == failing
PYTHON
cd "$folder"
env/bin/python -W ignore train.py absent
env/bin/python -m pip install -q numba==0.68.1
env/bin/python -W ignore train.py installed
