#!/usr/bin/env bash
# torcheval 0.0.7 (torch 2.13.0): a model that scores all items alike is perfect.
#
# hit_rate and reciprocal_rank count the items that score strictly more than the relevant one, so every tie is won: a
# model that has collapsed to one score has a hit rate at 1 and a mean reciprocal rank of 1. Of four tied items, a
# random order would give .25 and .5208.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q torch==2.13.0 torcheval==0.0.7 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
import torch
from torcheval.metrics import functional

scores = torch.full((6, 4), 0.5)
relevant = torch.tensor([0, 1, 2, 3, 0, 1])
hits = functional.hit_rate(scores, relevant, k=1)
ranks = functional.reciprocal_rank(scores, relevant)
print("hit rate at 1:", hits.tolist())
print("reciprocal ranks:", ranks.tolist())
assert hits.tolist() == [1.0] * 6 and ranks.tolist() == [1.0] * 6

# It is the tie and not the item: 1e-6 below the others, the item has the last rank.
below = scores.clone()
below[range(6), relevant] -= 1e-6
ranks = functional.reciprocal_rank(below, relevant)
print("with 1e-6 less:", ranks.tolist())
assert ranks.tolist() == [0.25] * 6
PYTHON
