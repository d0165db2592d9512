"""The command line: ``python -m plrank_fast COMMAND``, or ``plrank-fast COMMAND``."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from plrank_fast import __version__
from plrank_fast._shared.interruption import EXIT_STATUS
from plrank_fast.commands.bench import add_bench
from plrank_fast.commands.evaluate import add_evaluate
from plrank_fast.commands.train import add_train

COMMANDS = (add_train, add_evaluate, add_bench)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End the process with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments, by default the process's own, and return the exit status.

    It is 0, or 130 after Ctrl-C. Mistakes of the user end the process with status 2 and one line that names the
    argument.
    """
    return run_command(make_parser(), argv)


def run_command(command_line: Parser, argv: Sequence[str] | None) -> int:
    """Call the function ``run`` of the arguments that a parser reads, as `main` does."""
    if argv is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # stderr has it too: any name of a file can be told
    arguments = command_line.parse_args(argv)
    if not hasattr(arguments, "run"):
        command_line.print_help()
        return 0
    parser: Parser = arguments.parser
    try:
        return int(arguments.run(arguments))
    except (ValueError, OSError, MemoryError, ImportError) as error:
        parser.error(_in_command_line_terms(error, arguments, parser))
    except KeyboardInterrupt:
        print("aborted", file=sys.stderr)
        return EXIT_STATUS


def make_parser() -> Parser:
    """Return the parser of the whole command line, under the name by which it was called."""
    script = Path(sys.argv[0]).stem == "plrank-fast"
    parser = Parser(
        prog="plrank-fast" if script else "python -m plrank_fast", description="Gradients of expected ranking metrics."
    )
    parser.add_argument("--version", action="version", version=f"plrank-fast {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser


def _in_command_line_terms(error: Exception, arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """Name the option to blame: the file's, or the one of the parameter with which the message begins."""
    message = " ".join(str(error).split())
    options = {action.dest: str((*action.option_strings, action.metavar)[0]) for action in parser._actions}
    filename = getattr(error, "filename", None)
    if filename is None:
        return re.sub(r"^\w+(?= )", lambda word: options.get(word[0], word[0]), message)
    if isinstance(error, OSError):
        message = f"{filename}: {error.strerror}"
    named = []
    for name, option in options.items():
        values = getattr(arguments, name, None)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, str) and Path(value) in (Path(filename), *Path(filename).parents):
                named.append((len(Path(value).parts), option))
    nearest = max(named, key=lambda parts_and_option: parts_and_option[0], default=None)
    return f"argument {nearest[1]}: {message}" if nearest else message


if __name__ == "__main__":
    sys.exit(main())
