#!/usr/bin/env bash
# mlflow 3.17.2: precision_at_k and ndcg_at_k are computed over the documents returned, so returning fewer raises them.
#
# A retriever that returns one of three relevant documents has a precision@3 of 1/3 and an NDCG@3 of .47 in trec_eval.
# The metrics here divide by the length of its list and by the ideal DCG of as many documents: both are 1. With two
# irrelevant documents behind it they fall to 1/3 and .47. recall_at_k is the same for both.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q mlflow==3.17.2
cd "$folder"
env/bin/python -W ignore - <<'PYTHON' 2> /dev/null
import pandas as pd
from mlflow.metrics import ndcg_at_k, precision_at_k, recall_at_k


def values(retrieved):
    relevant = pd.Series([["a", "b", "c"]])
    metrics = (precision_at_k, ndcg_at_k, recall_at_k)
    return [round(float(each(3).eval_fn(pd.Series([retrieved]), relevant).scores[0]), 4) for each in metrics]


alone, followed = values(["a"]), values(["a", "x", "y"])
print("precision@3, NDCG@3, recall@3 of one document:", alone, "and of three:", followed)
assert alone == [1.0, 1.0, 0.3333]
assert followed == [0.3333, 0.4693, 0.3333]
PYTHON
