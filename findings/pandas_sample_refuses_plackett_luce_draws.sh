#!/usr/bin/env bash
# pandas 3.1.1: sample(n, weights=...) refuses weights above sum / n, and draws the others with the bias it names.
#
# pandas 2.3.3 draws any weights without replacement, one row after another (Plackett-Luce). pandas 3 raises where
# n * max(weights) exceeds their sum, "to avoid biased results", so that no weights but equal ones order all rows.
# Within the limit the draws are the same as before: at weights of .5, .3 and .2, two rows include the first in .84 of
# the draws, where rows in proportion to their weights, which the limit is for, would include it always.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/draw.py" <<'PYTHON'
import sys

import numpy as np
import pandas as pd

frame = pd.DataFrame({"row": [0, 1, 2]})
refuses = sys.argv[1] == "3.1.1"
for n, weights in ((2, [0.6, 0.3, 0.1]), (3, [0.6, 0.3, 0.1]), (3, [0.334, 0.333, 0.333])):
    try:
        found = frame.sample(n, weights=weights, random_state=0)["row"].tolist()
    except ValueError as error:
        found = str(error).partition(". ")[0]
    print(f"pandas {pd.__version__}, {n} rows by {weights}: {found}")
    assert refuses == (found == "Weighted sampling cannot be achieved with replace=False")
drawn = [frame.sample(2, weights=[0.5, 0.3, 0.2], random_state=seed)["row"].values for seed in range(4000)]
included = np.mean([0 in rows for rows in drawn])
print(f"pandas {pd.__version__}, 2 rows by [0.5, 0.3, 0.2]: the first is in {included:.3f} of the draws")
assert abs(included - (0.5 + 0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8)) < 0.03  # five standard errors
PYTHON
for version in 2.3.3 3.1.1; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/python" -m pip install -q pandas==$version numpy==2.4.6
    "$folder/$version/bin/python" "$folder/draw.py" $version
done
