#!/usr/bin/env bash
# FLAML 2.8.0: metric="ndcg" of a ranking task takes all queries as one list; metric="ndcg@k" takes each by itself.
#
# A model that ranks every query perfectly has an "ndcg" below 1 as soon as the scores of two queries have different
# levels, which no ranking objective determines. AutoML(task="rank", metric="ndcg") tunes and selects by that number, and
# the groups given to it do not change it.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q flaml==2.8.0 lightgbm==4.7.0 xgboost-cpu==3.2.0 scikit-learn==1.9.1 \
    numpy==2.4.6 pandas==2.3.3
"$folder/env/bin/python" - <<'PYTHON'
import numpy as np
from flaml.automl.ml import sklearn_metric_loss_score
from sklearn.metrics import ndcg_score

labels = np.array([0, 1, 2, 0, 1, 2])
scores = np.array([1.0, 2.0, 3.0, 101.0, 102.0, 103.0])  # each query in the order of its labels
queries = np.array([1, 1, 1, 2, 2, 2])
whole = 1 - sklearn_metric_loss_score("ndcg", scores, labels, groups=queries)
at_3 = 1 - sklearn_metric_loss_score("ndcg@3", scores, labels, groups=queries)
print(f"ndcg {whole:.4f}, ndcg@3 {at_3:.4f}, scikit-learn on one list {ndcg_score([labels], [scores]):.4f}")
assert at_3 == 1.0
assert abs(whole - ndcg_score([labels], [scores])) < 1e-12 and abs(whole - 0.9252) < 1e-4
PYTHON
