"""The figures of speed in README and docs stand in ``benchmarks/claims.py`` as well, and each has a measurement."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from plrank_fast.__main__ import main
from plrank_fast.benchmarks import claims

ROOT = Path(__file__).parents[2]
SPEED = re.compile(
    r"\d(?: us\b| ms\b| ns\b| times (?:as|faster|slower|what|ours|longer))"
    r"|\b(?:half|twice|a third|a tenth)\b.{0,20}\btime"
)


def words_of(document):
    """The text of a document with single spaces."""
    return " ".join((ROOT / document).read_text().split())


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.text[:40])
def test_documents_say_what_the_table_says(claim):
    """Mutants: a figure changed in README only; in the table's text only; in the figures only."""
    assert claim.text in words_of(claim.document)
    numbers = [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)", claim.text)]
    assert claim.figures
    assert set(claim.figures) <= set(numbers)


def test_no_figure_of_speed_without_a_measurement():
    """In README. Mutant: "and 3 times as fast as XGBoost" added to the section on speed."""
    text = words_of("README.md")
    for claim in claims.CLAIMS:
        if claim.document == "README.md":
            text = text.replace(claim.text, "")
    assert not SPEED.findall(text)


def test_report(monkeypatch, capsys):
    """Every figure beside the one that is written. Mutant: the written figure printed twice."""

    def missing(seconds):
        raise ImportError("no such library", name="lightgbm")

    stubs = [replace(claim, measure=lambda seconds: (1234.5, seconds)) for claim in claims.CLAIMS]
    stubs[0] = replace(stubs[0], measure=missing)
    monkeypatch.setattr(claims, "CLAIMS", stubs)
    assert main(["bench", "--claims", "--seconds", "0.5"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == len(stubs)
    assert "- (lightgbm)" in lines[0]
    assert all("1.23e+03  0.5" in line for line in lines[1:])
    for line, claim in zip(lines, stubs, strict=True):
        assert line.startswith(claim.text[:30])
        assert re.search(rf"  {re.escape(claim.unit)} \({claim.document}\)$", line)
        assert "  ".join(f"{figure:g}" for figure in claim.figures) in line


def test_measurements_run():
    """The quickest of them; the others are called by ``bench --claims``. Mutant: seconds and ratio exchanged."""
    assert 0.0 < claims.one_ranking(0.0)[0] < 1e4
    assert 0.0 < claims.share_of_exponentials(0.0)[0] < 1e2
    assert all(0.0 < figure < 1e4 for figure in claims.one_call(0.0))
    for options in ({"hessian": True}, {"noise": "normal"}):
        assert all(0.0 < figure < 1e3 for figure in claims.over_plain_gradient(**options)(0.0))
