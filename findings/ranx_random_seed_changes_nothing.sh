#!/usr/bin/env bash
# ranx 0.3.21: compare(stat_test="fisher", random_seed=...) draws other permutations in each call, whatever the seed.
#
# The permutations are drawn by compiled code, whose generator NumPy's seed does not reach. With 1,000 permutations, the
# default, the p-value of one pair of runs spreads over a factor of two, so that "significant" may differ in two calls
# with the same seed. The other tests draw nothing. n_permutations=100_000 keeps the spread near .0005.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q ranx==0.3.21 numpy==2.4.6
cd "$folder"
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from ranx import Qrels, Run, compare

judgements = Qrels({f"q{query}": {f"d{document}": 1 for document in range(3)} for query in range(40)})


def run(seed, noise):
    rng = np.random.default_rng(seed)
    scores = {f"q{q}": {f"d{d}": float((d < 3) + noise * rng.normal()) for d in range(10)} for q in range(40)}
    return Run(scores, name=f"noise {noise}")


def p_values(calls, **options):
    options |= {"stat_test": "fisher", "random_seed": 7}
    reports = [compare(judgements, runs, ["ndcg@5"], **options) for _ in range(calls)]
    return [next(iter(report.comparisons.values()))["ndcg@5"]["p_value"] for report in reports]


runs = [run(1, 1.0), run(2, 1.2)]
few, many = p_values(20), p_values(2, n_permutations=100_000)
print("1,000 permutations, one seed:", sorted(few))
print("100,000 permutations, one seed:", sorted(many))
assert len(set(few)) > 5 and max(few) > 1.5 * min(few)
assert abs(many[0] - many[1]) < 0.003
PYTHON
