"""docs/boosting.md: every block runs in the order in which it stands, and what it warns of is so.

Mutants of the recipe: the gradient to ascend, no division by the mean.
"""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

import plrank_fast as plr
from plrank_fast.data import generate

ROOT = Path(__file__).parents[2]


def test_documented_blocks_run(capsys):
    """The blocks print what their comments say. Mutant: another number in a comment."""
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    text = (ROOT / "docs" / "boosting.md").read_text()
    pytest.importorskip("catboost")
    pytest.importorskip("sklearn")
    names = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 4
    with threadpoolctl.threadpool_limits(1):  # small data: threads that wait for a processor cost more than they do
        for block in blocks:
            first_line = text[: block.start()].count("\n") + 1  # so that a traceback points into the document
            exec(compile("\n" * first_line + block.group(1), "docs/boosting.md", "exec"), names)
    stated = re.findall(r"^print\(.*\)  # ([\d.]+)", text, flags=re.MULTILINE)
    assert len(stated) >= 8
    printed = capsys.readouterr().out.split()  # other versions of the libraries grow somewhat other trees
    np.testing.assert_allclose(np.array(printed, float), np.array(stated, float), atol=0.03)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["diagonal", "minus_diagonal"])
def test_raw_hessian_trains_nothing(sign):
    """The warning of the documents: whoever passes the diagonal on gets constant scores."""
    xgboost = pytest.importorskip("xgboost")
    data = generate("yahoo", 200, n_features=30)
    matrix = xgboost.DMatrix(data.features, data.labels)

    def objective(scores, _):
        options = {"offsets": data.offsets, "hessian": True, "rtol": 1e-4}
        gradient, diagonal = plr.pl_rank_exact(scores, plr.gains(data.labels), plr.dcg_weights(10), **options)
        return -gradient / 30, sign * diagonal / 30

    parameters = {"learning_rate": 0.1, "base_score": 0.0, "nthread": 1}
    assert np.ptp(xgboost.train(parameters, matrix, 30, obj=objective).predict(matrix)) == 0.0


@pytest.fixture
def run_example(monkeypatch, capsys):
    """`run_example(name, *arguments)` is what an example prints: here, where its libraries are imported already."""
    monkeypatch.syspath_prepend(ROOT / "examples")

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with threadpoolctl.threadpool_limits(1):
            runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_example_runs_and_learns(run_example):
    """Both rankers get above the constant one."""
    pytest.importorskip("lightgbm")
    output = run_example("boosted_trees.py", "--queries", "80", "--rounds", "40")
    values = {line.split(" NDCG@10 ")[0].strip(): float(line.split()[-4]) for line in output.splitlines()}
    assert set(values) == {"expected NDCG", "lambdarank"}
    assert min(values.values()) > 0.55


def test_comparison_runs_and_resumes(tmp_path, run_example):
    """A row for each method, and nothing is run twice. Mutant: results not written as they come."""
    for library in ("lightgbm", "xgboost", "catboost", "sklearn"):
        pytest.importorskip(library)
    data = generate("yahoo", 40, n_features=6)
    lines = (
        f"{label:g} qid:{query} " + " ".join(f"{column}:{value:.4f}" for column, value in enumerate(row, 1))
        for label, query, row in zip(
            data.labels, np.repeat(np.arange(40), np.diff(data.offsets)), data.features, strict=True
        )
    )
    (tmp_path / "set.txt").write_text("\n".join(lines))
    methods = ["LightGBM, ours, exact", "XGBoost, ours, exact", "XGBoost rank:ndcg", "CatBoost, ours, exact"]
    program = [
        *("compare_boosting.py", str(tmp_path / "results"), f"small={tmp_path / 'set.txt'}"),
        *("--seeds", "1", "--rounds", "3", "--methods", *methods),
    ]
    first = run_example(*program)
    known = (tmp_path / "results").read_text()
    assert [line.split(" | ")[0].strip("| ") for line in first.splitlines()[3:]] == [
        "LightGBM lambdarank", "LightGBM lambdarank, best", *methods
    ]  # fmt: skip
    assert len(known.splitlines()) == 5 * (3 + len(methods))
    assert run_example(*program) == first
    assert (tmp_path / "results").read_text() == known


def test_comparison_of_metrics_runs(tmp_path, capsys):
    """All are judged on the same queries, and those that can be learned are. Mutant: scores of another fold."""
    for library in ("lightgbm", "torch"):
        pytest.importorskip(library)
    rng = np.random.default_rng(0)
    grades = rng.choice([1, 1, 1, 1, 2, 3], size=600)
    lines = (f"{grade} qid:{row // 20} 1:{grade + rng.random():.3f}" for row, grade in enumerate(grades))
    (tmp_path / "set.txt").write_text("\n".join(lines))
    main = runpy.run_path(str(ROOT / "examples" / "compare_metrics.py"))["main"]
    tables = main([f"small={tmp_path / 'set.txt'}", "--seeds", "1", "--rounds", "4"])
    assert capsys.readouterr().out.count("| trained on |") == 4
    for rows in tables.values():
        assert {values[metric].size for values in rows.values() for metric in values} == {30}
        assert rows["ndcg"]["ndcg"].mean() > 0.8
