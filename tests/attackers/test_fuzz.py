"""``make fuzz``: a seeded part finds nothing, its judge is right, and it finds faults that are put in."""

import ctypes
import json
import signal

import numpy as np
import pytest

import fuzz as fuzz_command
import naive_letor_reader as naive
import plrank_fast as plr
from fuzz import TARGETS, Fuzz, main
from fuzz_c_interface import FUNCTIONS, Memory
from fuzz_letor import LetorFuzz

CASES = {"letor": 60, "long_letor": 1, "cache": 15, "archives": 10, "c_interface": 150, "offsets": 100}
PLAIN = naive.Options(None, np.float64, False, False)


@pytest.mark.parametrize("name", TARGETS)
def test_seeded(name, monkeypatch, capsys):
    """Part of the search, the same every time.

    Mutants that the search has found, most within 600 cases of their target: the checksums of the cache, its types or
    the identity of its text not compared; weights of another type taken over, the state of the optimizer not checked,
    entries of a wrong type not told with the name of the file; thousands separators let through; queries worked on
    without offsets.
    """
    monkeypatch.setattr(LetorFuzz, "long_share", 0.0)
    fuzz = Fuzz(0, [name])
    fuzz.run_here(CASES[name])
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


def one_query(scores, relevance, rank_weights, *, offsets, **options):
    return np.zeros(len(scores))


@pytest.mark.parametrize("fault", ["status", "output"])
def test_finds_a_fault_of_the_c_interface(fault, monkeypatch, capsys):
    """A refusal that is not one, and an output that is written all the same."""
    dcg = FUNCTIONS["dcg"]

    def wrong(*arguments):
        status = dcg(*arguments)
        if status and fault == "status":
            return 0
        if status and arguments[5]:
            ctypes.memset(arguments[5], 0, 8)
        return status

    monkeypatch.setitem(FUNCTIONS, "dcg", wrong)
    fuzz = Fuzz(1, ["c_interface"])
    fuzz.run_here(400)
    assert fuzz.findings


@pytest.mark.usefixtures("without_address_sanitizer")  # which ends the process in its own way
def test_a_process_that_dies_is_a_finding(monkeypatch, capsys):
    """A byte written behind an array. Mutants: the case after it named; the rest of the cases not made."""
    dcg = FUNCTIONS["dcg"]

    def overrun(*arguments):
        if arguments[0] and arguments[2] == 3:
            memory = Memory(1)
            ctypes.memset(memory.end_of(1, 0)[0], 0, 2)
        return dcg(*arguments)

    monkeypatch.setitem(FUNCTIONS, "dcg", overrun)
    monkeypatch.setattr(fuzz_command, "MOST_FINDINGS", 2)
    fuzz = Fuzz(1, ["c_interface"])
    fuzz.run(60)
    assert [wrong for _, wrong in fuzz.findings] == ["the process ended in this case: signal SIGSEGV"] * 2
    first, second = (json.loads(line)["case"] for line, _ in fuzz.findings)
    assert first < second < fuzz.next["c_interface"]


def test_a_process_that_hangs_is_a_finding(monkeypatch, capsys):
    monkeypatch.setattr(fuzz_command, "WALL_SECONDS_OF_A_CASE", 0.5)
    monkeypatch.setattr(fuzz_command, "MOST_FINDINGS", 1)
    monkeypatch.setattr(TARGETS["offsets"], "attack", lambda target, rng: signal.pause())
    fuzz = Fuzz(1, ["offsets"])
    fuzz.run(60)
    assert fuzz.findings[0][1] == "the process ended in this case: signal SIGKILL"


def test_command(monkeypatch, capsys):
    """A finding can be made again from its line. Mutants: exit status 0; another generator with ``--again``."""
    assert main(["--minutes", "0.02", "--targets", "offsets"]) == 0
    assert "seed 0, 0 findings" in capsys.readouterr().out
    monkeypatch.setattr(plr, "pl_rank_3", one_query)
    assert main(["--minutes", "0.02", "--targets", "offsets", "--seed", "3"]) == 1
    shown = capsys.readouterr().out.splitlines()
    line = next(row for row in shown if row.startswith("BROKEN")).removeprefix("BROKEN  ")
    assert main(["--again", line]) == 1
    assert shown[1] in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["--again", line]) == 0
