#!/usr/bin/env bash
# recommenders 1.2.1: a user without recommendations counts in the mean of NDCG, but not in the means of other metrics.
#
# Of two users one has a perfect list and the other has none. precision_at_k, recall_at_k and map_at_k leave the second
# user out and are 1; ndcg_at_k has a 0 for the same user and is .5.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q recommenders==1.2.1 numpy==2.4.6 pandas==2.3.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import pandas as pd
from recommenders.evaluation.python_evaluation import map_at_k, ndcg_at_k, precision_at_k, recall_at_k

chosen = pd.DataFrame({"userID": [1, 1, 2], "itemID": [10, 11, 12], "rating": [1.0, 1.0, 1.0]})
recommended = pd.DataFrame({"userID": [1, 1], "itemID": [10, 11], "prediction": [2.0, 1.0]})
means = {metric.__name__: metric(chosen, recommended, k=2) for metric in (precision_at_k, recall_at_k, map_at_k, ndcg_at_k)}
print(means)
assert means == {"precision_at_k": 1.0, "recall_at_k": 1.0, "map_at_k": 1.0, "ndcg_at_k": 0.5}
PYTHON
