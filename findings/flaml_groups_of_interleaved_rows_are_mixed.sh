#!/usr/bin/env bash
# FLAML 2.8.0: group labels of rows that are not sorted by query become group sizes of rows in another order.
#
# AutoML(task="rank") takes `groups` as one label for each row. The rows keep their order and the labels are counted, so
# that LightGBM trains on groups of the right sizes with the wrong rows. Nothing is raised. With rows sorted by query,
# each group holds one query.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q flaml==2.8.0 lightgbm==4.7.0 xgboost-cpu==3.2.0 scikit-learn==1.9.1 \
    numpy==2.4.6 pandas==2.3.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import lightgbm
import numpy as np
from flaml import AutoML

rng = np.random.default_rng(0)
queries = np.repeat(np.arange(40), 10)
features = np.column_stack([rng.normal(size=(400, 2)), queries])  # the last column tells the query of a row
labels = np.clip(np.round(features[:, 0] + 1), 0, 4).astype(int)
fit, most = lightgbm.LGBMRanker.fit, []


def watched(self, X, y, *args, group=None, **options):
    ends = np.cumsum(group)
    rows = np.split(np.asarray(X)[:, 2], ends[:-1])
    most.append(max(np.unique(part).size for part in rows))
    return fit(self, X, y, *args, group=group, **options)


lightgbm.LGBMRanker.fit = watched
for name, order in ("sorted", np.arange(400)), ("shuffled", rng.permutation(400)):
    most.clear()
    AutoML().fit(features[order], labels[order], task="rank", metric="ndcg@5", groups=queries[order],
                 estimator_list=["lgbm"], max_iter=1, time_budget=-1, eval_method="holdout", verbose=0)
    print(f"{name} rows: at most {max(most)} queries in one group")
    assert (max(most) == 1) == (name == "sorted")
PYTHON
