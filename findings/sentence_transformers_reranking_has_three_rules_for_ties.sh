#!/usr/bin/env bash
# sentence-transformers 6.2.0: CrossEncoderRerankingEvaluator orders equal scores in three ways in one dictionary.
#
# A cross-encoder that gives all ten documents the same score (as one does that has collapsed, or whose half-precision
# scores saturate) has an MRR@10 between .1, with the relevant document first in the list, and 1, with it last. MAP is .1
# wherever it stands, and NDCG@10 is .4544, the mean over all orders. That mean would be .2929 for MRR and MAP.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q torch==2.13.0 sentence-transformers==6.2.0 transformers==5.24.0 \
    scikit-learn==1.9.1 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
import numpy as np
from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator


class Constant:
    """What the evaluator asks of a model: it scores all pairs alike."""

    class model_card_data:
        set_evaluation_metrics = staticmethod(lambda *args: None)

    def predict(self, pairs, **options):
        return np.zeros(len(pairs), dtype=np.float32)


seen = {}
for place in 0, 4, 9:
    documents = [f"document {i}" for i in range(10)]
    sample = {"query": "a question", "positive": [documents[place]], "documents": documents}
    evaluator = CrossEncoderRerankingEvaluator(
        [sample], at_k=10, always_rerank_positives=False, show_progress_bar=False, write_csv=False
    )
    seen[place] = {name: round(value, 4) for name, value in evaluator(Constant()).items() if "base" not in name}
    print(f"relevant document at place {place}:", seen[place])
assert {metrics["map"] for metrics in seen.values()} == {0.1}
assert {metrics["ndcg@10"] for metrics in seen.values()} == {0.4544}
assert len({metrics["mrr@10"] for metrics in seen.values()}) == 3
PYTHON
