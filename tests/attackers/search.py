"""Parts that all programs that search for faults share: options, the limit of time, findings, and the exit status."""

from __future__ import annotations

import abc
import argparse
import collections
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

SECONDS_BETWEEN_LINES = 20.0


class ViolationError(AssertionError):
    """A guarantee that does not hold; the message holds all that it takes to see it again."""


def wrong_with(call: Callable[..., object], *arguments: object) -> str | None:
    """Return the fault of a call that raises an error: the violation, or else the whole traceback."""
    try:
        call(*arguments)
    except ViolationError as violation:
        return str(violation)
    except Exception:
        return traceback.format_exc()
    return None


class Search(abc.ABC):
    """A search in steps, until its time is over, its steps are, or it has found enough. Ctrl-C ends it as well.

    ``options`` of the command are keyword arguments of the class; ``minutes`` is the limit of time by default.
    """

    minutes = 1.0
    most_findings = 20
    options: ClassVar[Mapping[str, dict[str, Any]]] = {}
    again: Callable[[dict[str, Any]], bool] | None = None  # repeats a case, and says whether it is a finding

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.tally: collections.Counter[str] = collections.Counter()
        self.findings: list[str] = []

    @abc.abstractmethod
    def steps(self) -> Iterator[object]:
        """Search, and yield as often as the search may be ended."""

    def broken(self, what: str, **case: object) -> None:
        """Note a finding, and print it with the case that ``--again`` takes."""
        self.findings.append(what)
        print(f"BROKEN  {what[:4000]}", *([json.dumps(case)] if case else []), sep="\n        ", flush=True)

    def run(self, minutes: float = float("inf")) -> None:
        """Search for so long at most."""
        start = shown = time.monotonic()
        try:
            for _ in self.steps():
                now = time.monotonic()
                if now - start >= 60 * minutes or len(self.findings) >= self.most_findings:
                    break
                if now - shown > SECONDS_BETWEEN_LINES:
                    shown = now
                    print(f"{(now - start) / 60:.1f} min: {self.summary()}", flush=True)
        except KeyboardInterrupt:
            print("interrupted")

    def summary(self) -> str:
        """Say in a line what has been done."""
        counts = [f"{what}: {count}" for what, count in sorted(self.tally.items())]
        return ", ".join([*counts, f"{len(self.findings)} findings"])

    def report(self) -> str:
        """Say at the end what has been done and found."""
        return f"seed {self.seed}, {self.summary()}"

    @classmethod
    def main(cls, arguments: Sequence[str] | None = None) -> int:
        """Run the command; return its exit status, 1 if there is a finding."""
        parser = argparse.ArgumentParser(
            description=sys.modules[cls.__module__].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--minutes", type=float, default=cls.minutes, help=f"the limit of time ({cls.minutes:g})")
        parser.add_argument("--seed", type=int, default=0, help="another seed is another search (0)")
        if cls.again is not None:
            parser.add_argument("--again", type=json.loads, metavar="CASE", help="repeat one case of an earlier search")
        for name, option in cls.options.items():
            parser.add_argument(name, **option)
        options = vars(parser.parse_args(arguments))
        minutes, case = options.pop("minutes"), options.pop("again", None)
        if case is not None:
            return int(cls.again(case))
        search = cls(**options)
        search.run(minutes)
        print(search.report())
        return int(bool(search.findings))
