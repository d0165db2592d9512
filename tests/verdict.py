"""Progress and verdict of a run of tests: failures are told at once, and the end says if the library can be used."""

import threading
import time

NUMBERS = ("hand", "enumeration", "references", "invariants", "statistical")  # folders of tests of results


class Verdict:
    """A plugin of pytest, in the process that writes to the terminal."""

    def __init__(self, pluginmanager):
        self.pluginmanager = pluginmanager
        self.ran, self.failed, self.running = set(), set(), {}
        self.heard, self.ended = time.monotonic(), threading.Event()

    def pytest_sessionstart(self):
        """Watch from a thread, but not in a process that runs tests itself: some of them fork."""
        if self.pluginmanager.has_plugin("dsession"):
            threading.Thread(target=self.watch, daemon=True).start()

    def pytest_sessionfinish(self):
        self.ended.set()

    def watch(self, seconds=8):
        while not self.ended.wait(1):
            if time.monotonic() - self.heard >= seconds:
                self.write(f"  still running: {', '.join(self.running)}" if self.running else "  collecting tests")

    def write(self, line, **markup):
        self.heard = time.monotonic()
        terminal = self.pluginmanager.get_plugin("terminalreporter")
        terminal.ensure_newline()  # ends the row of dots
        terminal.write_line(line, **markup)

    def pytest_runtest_logstart(self, nodeid):
        self.running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid):
        self.running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report):
        self.heard = time.monotonic()
        folder = report.nodeid.removeprefix("tests/").partition("/")[0]
        self.ran.add(folder)
        if report.failed:
            self.failed.add(folder)
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message.partition("\n")[0] if crash else report.when
            self.write(f"FAILED {report.nodeid}: {message}", red=True)

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
