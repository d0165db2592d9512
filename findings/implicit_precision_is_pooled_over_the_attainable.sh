#!/usr/bin/env bash
# implicit 0.7.3: "precision" at K is the hits of all users over the sum of min(K, liked), and no mean over users.
#
# Precision at K elsewhere is the share of relevant ones among K, averaged over users. A user who likes one item has a
# precision of 1 here if that item is among the first ten, where others say .1, and users with many likes count more.
# "map" divides by min(K, liked) too, but is a mean over users, as "ndcg" and "auc" are: one table has both kinds.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q implicit==0.7.3 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OPENBLAS_NUM_THREADS=1 env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from implicit.evaluation import precision_at_k, ranking_metrics_at_k
from scipy.sparse import csr_matrix

ITEMS = 20


class Fixed:
    """A model that recommends items 0 to N - 1 to everybody."""

    def recommend(self, users, user_items, N=10, **options):
        items = np.tile(np.arange(N, dtype=np.int32), (len(users), 1))
        return items, -items.astype(np.float32)


def likes(*lists):
    rows = np.zeros((len(lists), ITEMS))
    for row, items in zip(rows, lists):
        row[list(items)] = 1
    return csr_matrix(rows)


def metrics(*lists):
    liked = likes(*lists)
    return ranking_metrics_at_k(Fixed(), csr_matrix(liked.shape), liked, K=10, show_progress=False)


one, both = metrics([9]), metrics([0], range(9, 19))
print("the only liked item is the tenth:", one)
print("a user with 1 hit of 1 and a user with 1 hit of 10:", both)
assert one["precision"] == 1.0 and abs(one["map"] - 0.1) < 1e-12
assert abs(both["precision"] - (1 + 1) / (1 + 10)) < 1e-12  # the mean of .1 and .1 is .1, of 1 and .1 is .55
assert abs(both["map"] - (1 + 0.1 / 10) / 2) < 1e-12
PYTHON
