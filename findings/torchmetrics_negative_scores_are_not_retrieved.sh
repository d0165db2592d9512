#!/usr/bin/env bash
# torchmetrics 1.9.0: precision, recall, AP and MRR take a relevant document with a score of 0 or below for irrelevant.
#
# Scores of rankers have any sign, and a constant added to them changes no ranking. Yet a ranking with the relevant
# document in front has an MRR of 1 with scores from 2 down to .5, and of 0 after 3 is subtracted from all. NDCG, hit
# rate and fall-out do not change, so that a hit rate of 1 stands beside an MRR of 0. torch.sigmoid(scores) gives the
# values of the ranking.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6
cd "$folder"
env/bin/python -W ignore - <<'PYTHON'
import torch
from torchmetrics import retrieval

scores = torch.tensor([2.0, 1.5, 1.0, 0.5])
relevant = torch.tensor([1, 0, 1, 0])
query = torch.zeros(4, dtype=torch.long)
metrics = {
    "MRR": retrieval.RetrievalMRR(),
    "AP": retrieval.RetrievalMAP(),
    "precision@2": retrieval.RetrievalPrecision(top_k=2),
    "recall@2": retrieval.RetrievalRecall(top_k=2),
    "hit rate@2": retrieval.RetrievalHitRate(top_k=2),
    "fall-out@2": retrieval.RetrievalFallOut(top_k=2),
    "NDCG": retrieval.RetrievalNormalizedDCG(),
}
values = {}
for name, metric in metrics.items():
    given = (scores, scores - 3, torch.sigmoid(scores - 3))
    first, lower, sigmoid = values[name] = [float(metric(each, relevant, indexes=query)) for each in given]
    print(f"{name:12} {first:.3f}, after the subtraction {lower:.3f}, sigmoid {sigmoid:.3f}")
for name in ("MRR", "AP", "precision@2", "recall@2"):
    assert values[name][0] >= 0.5 and values[name][1] == 0.0 and values[name][2] == values[name][0]
for name in ("hit rate@2", "fall-out@2", "NDCG"):
    assert values[name][0] > 0 and values[name][0] == values[name][1] == values[name][2]
PYTHON
