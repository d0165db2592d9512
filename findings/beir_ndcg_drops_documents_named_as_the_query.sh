#!/usr/bin/env bash
# beir 2.2.0: evaluate() takes documents with the name of their query out of the run, also out of the caller's.
#
# Where queries and documents are numbered, a document is lost wherever its number equals the query's. NDCG, MAP,
# recall and precision are computed without it, while its judgement still counts. evaluate_custom, which has MRR, keeps
# the document, unless evaluate() was called before it with the same dictionary.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q torch==2.13.0 beir==2.2.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON' 2> /dev/null
from beir.retrieval.evaluation import EvaluateRetrieval

judgements = {"1": {"1": 1, "2": 0, "3": 0}}
run = {"1": {"1": 3.0, "2": 2.0, "3": 1.0}}  # the relevant document comes first
before = EvaluateRetrieval.evaluate_custom(judgements, run, [3], "mrr")
ndcg = EvaluateRetrieval.evaluate(judgements, run, [3])[0]
after = EvaluateRetrieval.evaluate_custom(judgements, run, [3], "mrr")
print("MRR before:", before, "NDCG:", ndcg, "MRR after:", after, "run after:", run)
assert before == {"MRR@3": 1.0} and ndcg == {"NDCG@3": 0.0} and after == {"MRR@3": 0.0}
assert run == {"1": {"2": 2.0, "3": 1.0}}

run = {"1": {"1": 3.0, "2": 2.0, "3": 1.0}}
assert EvaluateRetrieval.evaluate(judgements, run, [3], ignore_identical_ids=False)[0] == {"NDCG@3": 1.0}
PYTHON
