#!/usr/bin/env bash
# cwl-eval 1.0.12: the order of the lines of a TREC run is the ranking; its score and its rank are not read.
#
# trec_eval sorts by the score. Here the lines of a run stand in the opposite order: the relevant document has the
# highest score and rank 1, but stands on the last line. trec_eval (pytrec-eval-terrier 0.5.11) says a reciprocal rank of
# 1, cwl-eval .25. The run with its lines sorted gives 1 in both.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q cwl-eval==1.0.12 pytrec-eval-terrier==0.5.11 numpy==2.4.6
cd "$folder"
printf '%s\n' "q1 0 a 1" "q1 0 b 0" "q1 0 c 0" "q1 0 d 0" > judgements
printf '%s\n' "q1 Q0 a 1 4.0 run" "q1 Q0 b 2 3.0 run" "q1 Q0 c 3 2.0 run" "q1 Q0 d 4 1.0 run" > sorted
tac sorted > reversed
env/bin/python - <<'PYTHON'
import subprocess

import pytrec_eval


def of_trec_eval(name):
    with open("judgements") as judgements, open(name) as run:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judgements), {"recip_rank"})
        return evaluator.evaluate(pytrec_eval.parse_run(run))["q1"]["recip_rank"]


def of_cwl_eval(name):
    lines = subprocess.run(["env/bin/cwl-eval", "judgements", name], capture_output=True, text=True, check=True).stdout
    return next(float(line.split("\t")[2]) for line in lines.splitlines() if line.split("\t")[1] == "RR")


for name, expected in ("sorted", 1.0), ("reversed", 0.25):
    print(f"{name} lines: trec_eval {of_trec_eval(name)}, cwl-eval {of_cwl_eval(name)}")
    assert of_trec_eval(name) == 1.0 and of_cwl_eval(name) == expected
PYTHON
