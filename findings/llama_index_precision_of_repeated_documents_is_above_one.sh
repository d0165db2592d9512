#!/usr/bin/env bash
# llama-index-core 0.14.25: a document that is retrieved again counts again, so AP reaches 3 and NDCG 2.13.
#
# Several passages of one document, or two retrievers whose results are joined, return its name more than once. Average
# precision and NDCG add each return to the numerator, while the denominator has the expected documents once. A system
# that finds one of two documents and repeats it scores above one that finds both. Recall, hit rate and MRR count once.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q llama-index-core==0.14.25
cd "$folder"
env/bin/python -W ignore - <<'PYTHON'
from llama_index.core.evaluation.retrieval.metrics import MRR, NDCG, AveragePrecision, HitRate, Recall


def values(expected, retrieved):
    metrics = (AveragePrecision, NDCG, Recall, HitRate, MRR)
    return {each.__name__: each().compute(expected_ids=expected, retrieved_ids=retrieved).score for each in metrics}


alone, repeated = values(["a"], ["a", "a", "a"]), values(["a", "b"], ["a", "a", "a"])
both = values(["a", "b"], ["a", "b", "c"])
print("a of a, three times:", alone)
print("a of a and b, three times:", repeated)
print("both:", both)
assert alone["AveragePrecision"] == 3.0 and abs(alone["NDCG"] - 2.1309) < 1e-4
assert repeated["AveragePrecision"] == 1.5 and repeated["Recall"] == 0.5
assert both == dict.fromkeys(both, 1.0)
PYTHON
