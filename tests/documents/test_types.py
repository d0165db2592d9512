"""Type checkers in strict mode accept the lines of the documentation, and refuse calls that are wrong."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/tutorial.md")
# A user's script: the types of results that depend on an argument, and names that completion offers.
SCRIPT = """
import numpy as np
from numpy.typing import NDArray

import plrank_fast as plr
from plrank_fast import fairness, losses, off_policy

Array = NDArray[np.float64]
scores: Array = np.array([0.2, 1.0, -0.5, 0.7, 0.1])
labels = np.array([0, 1, 2, 0, 1])
offsets = plr.offsets_from_qid([17, 17, 17, 18, 18])
relevance: Array = plr.gains(labels)
theta: Array = plr.dcg_weights(10)


def newton(start: Array) -> Array:
    gradient, diagonal = plr.pl_rank_exact(start, relevance, theta, offsets=offsets, hessian=True)
    return start + gradient / np.maximum(np.abs(diagonal), 1e-3)


def either(start: Array, second: bool) -> float:
    result = plr.pl_rank_cmc(start, relevance, theta, offsets=offsets, rng=0, hessian=second)
    return float(np.abs(result[0] if isinstance(result, tuple) else result).sum())


ascent: Array = plr.pl_rank_exact(scores, relevance, theta, offsets=offsets)
by_query: Array = plr.ndcg(scores, relevance, theta, offsets=offsets)
overall: float = plr.ndcg(scores, relevance, theta, offsets=offsets, normalize="dataset")
pairs: list[tuple[Array, Array]] = [
    losses.list_mle(scores, labels, offsets=offsets, ties="exact"),
    fairness.disparity(plr.exposure(scores, theta, offsets=offsets), relevance, offsets=offsets),
]
policy = plr.PlackettLuce(scores, offsets=offsets)
rankings: NDArray[np.int32] = policy.sample(10, rng=0)
log_prob: Array = plr.ranking_log_prob(scores, rankings, offsets=offsets)
estimate = off_policy.ips(scores, rankings, np.ones((2, 10)), logging_scores=scores, offsets=offsets)
print(ascent, by_query, overall, newton(scores), either(scores, True), pairs, log_prob, estimate)
"""
# mypy takes eight times as long if it reads these; pyright does, in a quarter of that.
OTHERS = ("torch", "jax", "lightgbm", "xgboost", "catboost", "sklearn", "scipy", "matplotlib", "pandas", "tqdm")
REFUSED = (
    'plr.pl_rank_3([0.0], [1.0], [1.0], sampler="gumbel")',
    'plr.losses.list_mle([0.0], [1], ties="exp")',
    'plr.boosting.BoostingObjective(gain="exp")',
    'plr.stochastic_rank([0.0], [1.0], [1.0], noise="gauss")',
    'plr.ndcg([0.0], [1.0], normalize="all")',
    "plr.precision([0.0], [1.0], k=1)",
    'x: int = plr.pl_rank_exact([0.0], [1.0], [1.0]); plr.value_and_gradient([0.0], [1.0], [1.0], method="PL-Rank")',
)


def lines_of(page: str) -> str:
    """Return the Python of a page as a program, without what a doctest shows."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    if any(line.startswith(">>> ") for line in shown):
        shown = [line[4:] for line in shown if line.startswith((">>> ", "... "))]
    return "\n".join(shown) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a program for each page, the user's script, and one for each call to refuse."""
    folder = tmp_path_factory.mktemp("types")
    for page in PAGES:
        (folder / f"{Path(page).stem.lower()}.py").write_text(lines_of(page))
    (folder / "script.py").write_text(SCRIPT)
    (folder / "refused.py").write_text("import plrank_fast as plr\n" + "\n".join(REFUSED) + "\n")
    # Libraries other than NumPy have no types, or partial ones, and to read them takes half of pyright's time: it does
    # not find them, and what they return is unknown.
    libraries = tmp_path_factory.mktemp("libraries")
    (libraries / "numpy").symlink_to(Path(np.__file__).parent)
    unknown = ("VariableType", "MemberType", "ArgumentType", "LambdaType", "ParameterType")
    settings = {f"reportUnknown{kind}": False for kind in unknown} | {"typeCheckingMode": "strict"}
    settings |= {"reportMissingImports": False, "reportUnusedExpression": False, "pythonVersion": "3.11"}
    settings |= {"extraPaths": [str(ROOT), str(libraries)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    skipped = "".join(f"[mypy-{library}.*]\nfollow_imports = skip\n" for library in OTHERS)
    (folder / "mypy.ini").write_text(f"[mypy]\n{skipped}")
    return folder


def test_the_script_runs(folder):
    """The program that the checkers accept works."""
    subprocess.run([sys.executable, folder / "script.py"], check=True, capture_output=True, cwd=ROOT)


def test_mypy_in_strict_mode(folder):
    """Mutants: the overloads of ``hessian`` gone; ``gain: str``, of which the refused calls know nothing."""
    files = [*(folder / f"{Path(page).stem.lower()}.py" for page in PAGES), folder / "script.py", folder / "refused.py"]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports",
               "--allow-untyped-calls", "--allow-any-unimported", "--no-warn-return-any",
               "--config-file", str(folder / "mypy.ini"), "--cache-dir", str(folder / "cache"),
               *map(str, files)]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
    errors = [line for line in said.splitlines() if ": error: " in line]
    of_pages = [line for line in errors if "refused.py" not in line]
    assert of_pages == []
    assert {int(line.split(":")[1]) for line in errors} == set(range(2, 2 + len(REFUSED)))


def test_pyright_in_strict_mode(folder):
    """Mutants: as for mypy."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')  # without installed libraries
    python.chmod(0o755)
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(folder), "--pythonpath", str(python)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout
    found = json.loads(said)["generalDiagnostics"]
    of_pages = [each for each in found if Path(each["file"]).name != "refused.py"]
    assert [(Path(each["file"]).name, each["range"]["start"]["line"], each["message"]) for each in of_pages] == []
    refused = {each["range"]["start"]["line"] for each in found}
    assert refused == set(range(1, 1 + len(REFUSED)))


LIBRARIES = ("torch", "jax", "sklearn", "lightgbm", "catboost", "matplotlib")
RESULTS = """
from typing import assert_type

import torch
from matplotlib.figure import Figure

import plrank_fast as plr
from plrank_fast.torch import ExpectedMetricLoss

assert_type(ExpectedMetricLoss()(torch.zeros(3), torch.zeros(3)), torch.Tensor)
assert_type(plr.load_model("model").plot(), Figure)
assert_type(plr.fit_strengths([[0, 1]]).plot(), Figure)
data = plr.data.generate("istella", n_queries=2)
print(data.rows_of([0, 1]))
"""


def test_all_that_is_public_has_a_type(tmp_path):
    """But for those whose base classes have none in their libraries. Mutants: a result without its type; ``Any``
    of ``torch.nn.Module`` or of `plot`; ``rows_of`` for arrays alone."""
    for library in LIBRARIES:
        pytest.importorskip(library)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def pyright(*arguments):
        command = [sys.executable, "-m", "pyright", "--outputjson", *arguments]
        return json.loads(subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment).stdout)

    symbols = pyright("--verifytypes", "plrank_fast", "--ignoreexternal")["typeCompleteness"]["symbols"]
    untyped = {each["name"] for each in symbols if each["isExported"] and not each["isTypeKnown"]}
    without = "catboost.Ranker", "lightgbm.Ranker", "sklearn.PlackettLuceRanker", "trl.PlackettLuceDPOTrainer"
    assert untyped == {f"plrank_fast.{each}" for each in without}
    (tmp_path / "results.py").write_text(RESULTS)
    assert [each["message"] for each in pyright("results.py")["generalDiagnostics"]] == []
