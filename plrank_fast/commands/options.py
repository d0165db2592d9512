"""Options that several commands have, and the names of files that they share."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Collection, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, get_args, get_type_hints

from plrank_fast.training.config import names_of


def parameters_of(kind: type) -> dict[str, str]:
    """Return the descriptions of the parameters of a class from its docstring, for the help of options."""
    listed = inspect.cleandoc(kind.__doc__ or "").partition("----------\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^(\w+) : .*\n((?: .*\n?)+)", listed, re.MULTILINE)
    return {name: " ".join(text.replace("`", "").split()) for name, text in entries}


def add_parameters(group: Any, kind: type[Any], names: Collection[str] = (), default: str = "") -> None:
    """Add options for fields of a dataclass, by default all but flags, with the help that its docstring gives."""
    described, hints = parameters_of(kind), get_type_hints(kind)
    for field in fields(kind):
        name, hint = field.name, hints[field.name]
        if name in names or not (names or hint is bool):
            own = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
            text = described.get(name, "") + (f" The default is {default or own}." if own not in ("", None) else "")
            group.add_argument("--" + name.replace("_", "-"), help=text, **option_of(hint))


def option_of(hint: Any) -> dict[str, Any]:
    """Return the option that reads a value of this type."""
    kinds, names = get_args(hint) or (hint,), names_of(hint)
    if str in kinds:
        return {"nargs": "+", "type": some_path, "metavar": "FILE"}
    if ... in kinds:
        return {"nargs": "*", "type": int, "metavar": "N"}
    number = next((kind for kind in (int, float) if kind in kinds), None)
    if number is None:
        return {"choices": names}
    return {"type": partial(number_or, names, number) if names else number, "metavar": "|".join(("N", *names))}


def some_path(text: str) -> str:
    """Parse the name of a file or folder; "" would mean the working folder, or that the option was not given."""
    if not text:
        raise argparse.ArgumentTypeError("must name a file or folder, got ''")
    return text


def add_list(parser: Any, name: str, default: Collection[Any], text: str, choices: Collection[str] = ()) -> None:
    """Add an option with several words of ``choices``, or several whole numbers."""
    kind: dict[str, Any] = {"choices": list(choices)} if choices else {"type": int, "metavar": "N"}
    shown = "all" if default is choices else "%(default)s"
    parser.add_argument(f"--{name}", nargs="+", default=list(default), help=f"{text} (default: {shown})", **kind)


def add_reading(parser: Any) -> None:
    """Add the options of reading LETOR files to a parser, or to a group of one."""
    parser.add_argument(
        "--cache",
        type=some_path,
        metavar="FOLDER",
        help="keep the parsed files in this folder, and read them from there next time (default: parse them each time)",
    )
    parser.add_argument(
        "--string-qids", action="store_true", help="take any text for a qid (default: qids are whole numbers)"
    )


def number_or(words: Sequence[str], kind: type[float], text: str) -> float | str:
    """Parse a number, or one of these words."""
    try:
        return text if text in words else kind(text)
    except ValueError:
        expected = f"{'a number' if kind is float else 'a whole number'} or {' or '.join(map(repr, words))}"
        raise argparse.ArgumentTypeError(f"must be {expected}, got {text!r}") from None
