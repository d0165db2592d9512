"""``make fuzz``: a seeded part finds nothing, so its judge is right, and it finds faults that are put in."""

import dataclasses
import itertools
import json
import signal

import pytest

import fuzz as fuzz_command
import fuzz_letor
from fuzz import TARGETS, Fuzz, generator
from fuzz_letor import LetorFuzz
from plrank_fast.data import load_letor

CASES = {"letor": 400, "long_letor": 1}


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


def with_other_labels(*arguments, **options):
    data = load_letor(*arguments, **options)
    return dataclasses.replace(data, labels=data.labels + 1)


@pytest.mark.usefixtures("without_address_sanitizer")  # which ends the process in its own way
def test_a_process_that_hangs_is_a_finding(monkeypatch, capsys):
    """One case in ten. Mutants: the case after it named; the rest of the cases not made; the timer left out."""
    monkeypatch.setattr(fuzz_command, "WALL_SECONDS_OF_A_CASE", 0.3)
    monkeypatch.setattr(Fuzz, "most_findings", 2)
    monkeypatch.setattr(LetorFuzz, "attack", lambda target, rng: rng.random() < 0.1 and signal.pause())
    fuzz = Fuzz(1, ["letor"])
    fuzz.run()
    assert fuzz.findings == ["the process ended in this case: signal SIGALRM"] * 2
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
