#!/usr/bin/env bash
# crowd-kit 1.4.2: BradleyTerry stops after its second step, whatever n_iter and tol are.
#
# The model is fitted by minorisation-maximisation. Its test of convergence compares the new scores with an alias of the
# same array, so that the change it sees is always 0. In a chain of eleven items, each of which beats the next one twice
# and loses once, neighbours have a ratio of 2 at the maximum of the likelihood; the fit says 1.44 for the first pair, and
# 2.8 in place of 1024 for the ends.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q crowd-kit==1.4.2 numpy==2.4.6 pandas==2.3.3
"$folder/env/bin/python" - <<'PYTHON'
import pandas as pd
from crowdkit.aggregation import BradleyTerry

battles = []
for i in range(10):
    upper, lower = f"item{i:02d}", f"item{i + 1:02d}"
    battles += [(1, upper, lower, upper), (1, upper, lower, upper), (1, upper, lower, lower)]
battles = pd.DataFrame(battles, columns=["worker", "left", "right", "label"])

for steps in 3, 100, 100_000:
    model = BradleyTerry(n_iter=steps, tol=1e-15)
    scores = model.fit_predict(battles)
    neighbours, ends = scores.iloc[0] / scores.iloc[1], scores.iloc[0] / scores.iloc[10]
    print(f"n_iter={steps}: first over second {neighbours:.4f} (2), first over last {ends:.4f} (1024)")
    assert abs(neighbours - 1.4444) < 1e-3 and abs(ends - 2.8) < 1e-3
PYTHON
