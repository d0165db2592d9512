#!/usr/bin/env bash
# torchmetrics 1.9.0, rax 0.4.0 and ranx 0.3.21 give one ranking other values, in every metric that they share.
#
# NDCG@3 has the grade as the gain in torchmetrics and in ranx (2^grade - 1 in its ndcg_burges), 2^grade - 1 in rax. Among
# equal scores torchmetrics averages, the others keep the order of the rows. A grade of -1 takes .34 off in torchmetrics,
# 1 - 1/2 times its discount in rax, and nothing in ranx. AP@2 is divided by the relevant documents within the first two
# in torchmetrics, by all in the others. Precision at 5 of three documents divides by 3 in rax, by 5 in the others.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q torchmetrics==1.9.0 rax==0.4.0 ranx==0.3.21 torch==2.13.0 jax==0.10.2 jaxlib==0.10.2
cd "$folder"
env/bin/python -W ignore - <<'PYTHON'
import jax.numpy as jnp
import numpy as np
import rax
import torch
from ranx import Qrels, Run, evaluate
from torchmetrics.functional import retrieval


def three(metric, cutoff, grades, scores):
    name = {"ndcg": "normalized_dcg", "ap": "average_precision"}.get(metric, metric)
    of_torchmetrics = getattr(retrieval, f"retrieval_{name}")
    labels = torch.tensor(grades)
    labels = labels if metric == "ndcg" else labels > 0
    names = [f"d{index}" for index in range(len(grades))]
    run, judgements = Run({"q": dict(zip(names, scores))}), Qrels({"q": dict(zip(names, grades))})
    return (
        of_torchmetrics(torch.tensor(scores), labels, top_k=cutoff),
        getattr(rax, f"{metric}_metric")(jnp.array(scores), jnp.array(grades, float), topn=cutoff),
        evaluate(judgements, run, f"{'map' if metric == 'ap' else metric}@{cutoff}"),
    )


ROWS = {
    ("ndcg", 3, (0, 2, 3, 0, 1), (5.0, 4.0, 3.0, 2.0, 1.0)): (0.580, 0.574, 0.580),
    ("ndcg", 3, (0, 3, 1, 2), (1.0, 1.0, 1.0, 1.0)): (0.671, 0.523, 0.502),
    ("ndcg", 3, (-1, 2, 1), (3.0, 2.0, 1.0)): (0.358, 0.560, 0.670),
    ("ap", 2, (0, 2, 3, 0, 1), (5.0, 4.0, 3.0, 2.0, 1.0)): (0.5, 0.167, 0.167),
    ("precision", 5, (1, 0, 1), (3.0, 2.0, 1.0)): (0.4, 0.667, 0.4),
}
for row, expected in ROWS.items():
    found = tuple(round(float(value), 3) for value in three(*row))
    print(*row[:3], "torchmetrics, rax, ranx:", found)
    np.testing.assert_allclose(found, expected, atol=0.001)
PYTHON
