"""A failing test is told when it fails, and the end says whether the library can be used."""

NUMBERS = ("hand", "enumeration", "references", "invariants", "statistical")  # folders of tests of results


class Verdict:
    """A plugin of pytest, in the process that writes to the terminal."""

    def __init__(self, pluginmanager):
        self.pluginmanager = pluginmanager
        self.ran, self.failed = set(), set()

    def pytest_runtest_logreport(self, report):
        folder = report.nodeid.removeprefix("tests/").partition("/")[0]
        self.ran.add(folder)
        if report.failed:
            self.failed.add(folder)
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message.partition("\n")[0] if crash else report.when
            terminal = self.pluginmanager.get_plugin("terminalreporter")
            terminal.write_line("")  # ends the row of dots
            terminal.write_line(f"FAILED {report.nodeid}: {message}", red=True)

    def pytest_terminal_summary(self, terminalreporter):
        """Say so only if all tests of results have run."""
        if not self.ran.issuperset(NUMBERS):
            return
        wrong = [folder for folder in NUMBERS if folder in self.failed]
        if wrong:
            told = f"Do not use this build: tests of its results failed, in {', '.join(wrong)}."
        elif self.failed:
            told = f"The results are right and can be used. Failures concern {', '.join(sorted(self.failed))}."
        else:
            told = "All tests passed: this build can be used."
        terminalreporter.write_line(told, bold=True, red=bool(wrong), green=not wrong)
