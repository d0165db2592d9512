"""``make fuzz``: a seeded part finds nothing, its judge is right, and it finds faults that are put in."""

import dataclasses
import itertools
import json
import os
import signal

import numpy as np
import pytest

import fuzz as fuzz_command
import fuzz_letor
import naive_letor_reader as naive
from damage import generator
from fuzz import TARGETS, Fuzz
from fuzz_letor import LetorFuzz
from plrank_fast.data import load_letor

CASES = {"letor": 400, "long_letor": 1}
PLAIN = naive.Options(None, np.float64, False, False)


@pytest.mark.parametrize("name", TARGETS)
def test_seeded(name, monkeypatch, capsys):
    """Part of the search, the same every time.

    Mutant that the search has found within 600 cases: thousands separators let through.
    """
    monkeypatch.setattr(LetorFuzz, "long_share", 0.0)
    fuzz = Fuzz(0, [name], CASES[name])
    fuzz.run()
    assert not fuzz.findings, capsys.readouterr().out
    assert fuzz.next == {name: CASES[name]}


def test_naive_reader():
    """Mutants: the last query lost; a column of a zero-based file counted from 1; the line counted from 0."""
    rows = naive.read([b"1 qid:2 1:3 4:.5 # x\r\n\n-1e1\tqid:02\n", b"+2 qid:7 2:1"], PLAIN)
    assert rows.labels == [1, -10, 2]
    assert rows.qids == [2, 7]
    assert rows.starts == [0, 2]
    assert rows.values == [{0: 3, 3: 0.5}, {}, {1: 1}]
    assert rows.columns == 4
    zero_based = naive.Options(None, np.float64, True, False)
    assert naive.read([b"1 qid:2 0:3"], zero_based).values == [{0: 3}]
    for contents, line in [([b"1 qid:1\n1 qid:x"], 2), ([b"#"], 1), ([b"1 qid:1 0:3"], 1), ([b"1 qid:1\n"] * 2, 1)]:
        with pytest.raises(naive.RefusedError) as refused:
            naive.read(contents, PLAIN)
        assert (refused.value.file, refused.value.line) == (len(contents) - 1, line)


def with_other_labels(*arguments, **options):
    data = load_letor(*arguments, **options)
    return dataclasses.replace(data, labels=data.labels + 1)


@pytest.mark.usefixtures("without_address_sanitizer")  # which ends the process in its own way
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (os.abort, "signal SIGABRT"),
        (signal.pause, "signal SIGALRM"),
        (lambda: [0 for _ in itertools.count() if False], "signal SIGPROF"),
    ],
    ids=["dies", "waits", "computes"],
)
def test_a_process_that_dies_or_hangs_is_a_finding(fault, told, monkeypatch, capsys):
    """One case in ten. Mutants: the case after it named; the rest of the cases not made; either timer left out."""
    monkeypatch.setattr(fuzz_command, "WALL_SECONDS_OF_A_CASE", 60.0 if told == "signal SIGPROF" else 0.3)
    monkeypatch.setattr(fuzz_command, "SECONDS_OF_A_CASE", 0.3)
    monkeypatch.setattr(Fuzz, "most_findings", 2)
    monkeypatch.setattr(LetorFuzz, "attack", lambda target, rng: rng.random() < 0.1 and fault())
    fuzz = Fuzz(1, ["letor"])
    fuzz.run()
    assert fuzz.findings == [f"the process ended in this case: {told}"] * 2
    shown = capsys.readouterr().out.splitlines()
    found = [json.loads(line)["case"] for line in shown if line.startswith("        {")]
    expected = (number for number in itertools.count() if generator("letor", 1, number).random() < 0.1)
    assert found == list(itertools.islice(expected, 2))


def test_command(monkeypatch, capsys):
    """A finding can be made again from its line. Mutants: exit status 0; another generator with ``--again``."""
    monkeypatch.setattr(LetorFuzz, "long_share", 0.0)
    monkeypatch.setattr(fuzz_command, "SECONDS_OF_A_TURN", 3.0)
    assert Fuzz.main(["--minutes", "0", "--targets", "letor"]) == 0
    assert "0 findings" in capsys.readouterr().out
    monkeypatch.setattr(fuzz_letor, "load_letor", with_other_labels)
    assert Fuzz.main(["--targets", "letor", "--seed", "3", "--minutes", "60"]) == 1
    shown = capsys.readouterr().out.splitlines()
    line = next(row for row in shown if row.startswith("        {"))
    assert Fuzz.main(["--again", line]) == 1
    assert capsys.readouterr().out.splitlines()[0] == shown[0].removeprefix("BROKEN  ")
    monkeypatch.setattr(fuzz_letor, "load_letor", load_letor)
    assert Fuzz.main(["--again", line]) == 0
