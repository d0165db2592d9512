"""``make fuzz``: a seeded part finds nothing, so its judge is right, and it finds faults that are put in."""

import dataclasses
import itertools

import fuzz as fuzz_command
from fuzz import Fuzz
from plrank_fast.data import load_letor


def test_seeded(capsys):
    """Part of the search, the same every time. Mutant: thousands separators let through, found in case 20."""
    fuzz = Fuzz(6)
    assert len([*itertools.islice(fuzz.steps(), 300)]) == 300
    assert not fuzz.findings, capsys.readouterr().out


def test_command(monkeypatch, capsys):
    """A finding can be made again from its line. Mutants: exit status 0; another generator with ``--again``."""

    def with_other_labels(*arguments, **options):
        data = load_letor(*arguments, **options)
        return dataclasses.replace(data, labels=data.labels + 1)

    assert Fuzz.main(["--minutes", "0"]) == 0
    assert "0 findings" in capsys.readouterr().out
    monkeypatch.setattr(fuzz_command, "load_letor", with_other_labels)
    assert Fuzz.main(["--seed", "3", "--minutes", "60"]) == 1
    shown = capsys.readouterr().out.splitlines()
    line = next(row for row in shown if row.startswith("        {"))
    assert Fuzz.main(["--again", line]) == 1
    assert capsys.readouterr().out.startswith(shown[0].removeprefix("BROKEN  "))
    monkeypatch.undo()
    assert Fuzz.main(["--again", line]) == 0
