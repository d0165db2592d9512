"""The terminal during a run of all tests, and at its end."""

from types import SimpleNamespace

import pytest

from verdict import NUMBERS, Verdict


class Terminal:
    """A terminal that keeps its lines, and the plugin manager that has it."""

    def __init__(self):
        self.lines = []

    def get_plugin(self, name):
        return self if name == "terminalreporter" else None

    def ensure_newline(self):
        pass

    def write_line(self, line, **markup):
        self.lines.append(line)


def after(failing, folders=(*NUMBERS, "commands")):
    """Return the lines after a test in each folder, of which some fail."""
    terminal = Terminal()
    verdict = Verdict(terminal)
    for folder in folders:
        crash = SimpleNamespace(message="assert 1 == 2\n  more")
        longrepr = SimpleNamespace(reprcrash=crash) if folder == "hand" else "text"
        report = SimpleNamespace(
            nodeid=f"tests/{folder}/test_x.py::test_y", failed=folder in failing, longrepr=longrepr, when="setup"
        )
        verdict.pytest_runtest_logreport(report)
    verdict.pytest_terminal_summary(terminal)
    return terminal.lines


@pytest.mark.parametrize(
    ("failing", "verdict"),
    [
        ((), "All tests passed: this build can be used."),
        (("commands",), "The results are right and can be used. Failures concern commands."),
        (("hand", "commands"), "Do not use this build: tests of its results failed, in hand."),
    ],
)
def test_failures_and_the_end(failing, verdict):
    """Mutants: failures kept for the end; any failure, or none, taken for wrong results."""
    shown = {"hand": "assert 1 == 2", "commands": "setup"}
    told = [f"FAILED tests/{folder}/test_x.py::test_y: {shown[folder]}" for folder in failing]
    assert after(failing) == [*told, verdict]


def test_no_verdict_on_some_of_the_tests():
    """Mutant: a build that passes the tests of one folder can be used."""
    assert after((), folders=("hand", "commands")) == []


def test_what_takes_long_is_told():
    """Mutants: tests told that have ended; no line while tests are collected; a line where dots have been written."""
    terminal = Terminal()
    verdict = Verdict(terminal)
    steps = iter(range(5))
    verdict.ended = SimpleNamespace(wait=lambda seconds: step(next(steps)))
    report = SimpleNamespace(nodeid="tests/hand/test_x.py::test_y", failed=False)

    def step(number):
        verdict.heard = 0
        if number == 1:
            verdict.pytest_runtest_logstart("a")
            verdict.pytest_runtest_logstart("b")
        elif number == 2:
            verdict.pytest_runtest_logreport(report)
        elif number == 3:
            verdict.pytest_runtest_logfinish("a")
        return number == 4

    verdict.watch()
    assert terminal.lines == ["  collecting tests", "  still running: a, b", "  still running: b"]
