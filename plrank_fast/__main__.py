"""The command line: ``python -m plrank_fast COMMAND``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from plrank_fast.training.commands import add_evaluate, add_train

COMMANDS = (add_train, add_evaluate)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments, by default those of the process.

    Returns
    -------
    int
        Exit status: 0, or 130 after an abort by Ctrl-C. Mistakes of the user end the process with status 2 and one
        line that names the argument.
    """
    command_line = _Parser(prog="python -m plrank_fast", description="Gradients of expected ranking metrics.")
    commands = command_line.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    arguments = command_line.parse_args(argv)
    parser: _Parser = arguments.parser
    try:
        return int(arguments.run(arguments))
    except (ValueError, OSError, MemoryError, ImportError) as error:
        parser.error(_in_command_line_terms(" ".join(str(error).split()), parser))
    except KeyboardInterrupt:
        print("aborted", file=sys.stderr)
        return 130


def _in_command_line_terms(message: str, parser: argparse.ArgumentParser) -> str:
    """Messages of the library begin with a parameter's name; here that is an option."""
    options = {action.dest: action.option_strings[0] for action in parser._actions if action.option_strings}
    return re.sub(r"^\w+", lambda word: options.get(word[0], word[0]), message)


if __name__ == "__main__":
    sys.exit(main())
