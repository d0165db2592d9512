"""The terminal during a run of all tests, and at its end."""

from types import SimpleNamespace

import pytest

from verdict import NUMBERS, Verdict


@pytest.mark.parametrize(
    ("failing", "folders", "verdict"),
    [
        ((), ("hand", "commands"), None),
        ((), NUMBERS, "All tests passed: this build can be used."),
        (("commands",), NUMBERS, "The results are right and can be used. Failures concern commands."),
        (("hand", "commands"), NUMBERS, "Do not use this build: tests of its results failed, in hand."),
    ],
)
def test_failures_and_the_end(failing, folders, verdict):
    """Mutants: failures kept for the end; any failure, or none, taken for wrong results; a build that passes the tests
    of one folder can be used."""
    lines = []
    terminal = SimpleNamespace(ensure_newline=lambda: None, write_line=lambda line, **markup: lines.append(line))
    plugin = Verdict(SimpleNamespace(get_plugin=lambda name: terminal))
    for folder in {*folders, *failing}:
        longrepr = SimpleNamespace(reprcrash=SimpleNamespace(message="assert 1 == 2\n  more"))
        report = SimpleNamespace(nodeid=f"tests/{folder}/x.py::y", failed=folder in failing, longrepr=longrepr)
        plugin.pytest_runtest_logreport(report)
    plugin.pytest_terminal_summary(terminal)
    told = {f"FAILED tests/{folder}/x.py::y: assert 1 == 2" for folder in failing}
    assert {*lines} == told | ({verdict} if verdict else set())
