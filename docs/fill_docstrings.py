"""Write the descriptions of parameters that functions share into docstrings, and new functions into the reference.

Editors and type checkers read docstrings in the source and do not run it, so each docstring stands there in full. The
texts that several functions share stand once, in ``shared_descriptions.txt``: edit them there, and run ``make
docstrings``. ``{methods}`` stands for the methods of gradients. A new function lists its own parameters under
"Parameters", and this script adds the others.

An entry is shared if its first line, of name and type, equals the first line of the shared description. A docstring
that needs other words under the same first line is named in the last section of the file.

A function of ``plrank_fast``, or a loss, that no page of the reference lists is added behind the others of its module.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "plrank_fast"
DESCRIPTIONS = Path(__file__).with_name("shared_descriptions.txt")
REFERENCE = Path(__file__).parent / "reference"
LISTED = re.compile(r"^Parameters\n-{10}\n(.*?)(?=\n+\w[\w ]*\n---|\n*\"\"\"\Z)", re.MULTILINE | re.DOTALL)
WIDTH = 120

Entries = dict[str, str]


def entries_of(listed: str) -> Entries:
    """Return the entries of a list of parameters by their names."""
    entries = [entry for entry in re.split(r"\n(?=\S)", listed.strip("\n")) if entry]
    return {re.split(r" :|\n", entry)[0]: entry.rstrip() for entry in entries}


def methods() -> str:
    """Return the names of ``validation.Method`` but "auto", with the functions of those that have another name."""
    source = (PACKAGE / "validation" / "choices.py").read_text()
    names = re.findall(r'"(\w+)"', source.partition("Method = Literal[")[2].partition("]")[0])
    words = [f'"{name}"' + (f" (``pl_rank_{name}``)" if name in ("exact", "cmc") else "") for name in names[1:]]
    return ", ".join(words[:-1]) + " or " + words[-1]


def read_descriptions(text: str) -> tuple[list[tuple[list[str], Entries]], set[str]]:
    """Return the sections, each with patterns of functions and its entries, and the names of what differs from them."""
    text = text.replace("{methods}", methods())
    *sections, (_, exceptions) = [
        (heading.split(), body) for heading, body in re.findall(r"^\[(.*?)\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)
    ]
    return [(patterns, entries_of(body)) for patterns, body in sections], set(exceptions.split())


def classes_of(package: Path) -> dict[str, ast.ClassDef]:
    """Return the classes of the package by their names."""
    trees = [ast.parse(path.read_text()) for path in package.rglob("*.py")]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def parameters_of(node: ast.ClassDef | ast.FunctionDef, classes: dict[str, ast.ClassDef]) -> list[str] | None:
    """Return the parameters of a function, or of the constructor of a class, its own or its base's."""
    if isinstance(node, ast.ClassDef):
        inits = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        bases = [classes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in classes]
        found = (parameters_of(each, classes) for each in [*inits, *bases])
        return next((parameters for parameters in found if parameters is not None), None)
    listed = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [each.arg for each in listed if each.arg not in ("self", "cls")]


def documented(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef, ast.Constant]]:
    """Yield the name, the node and the docstring of each function and class."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield f"{prefix}{node.name}", node, first.value
            yield from documented(node, f"{prefix}{node.name}.")


def fitting(entry: str, indentation: int) -> str:
    """Return a shared entry with its lines broken for this indentation."""
    first, *rest = entry.split("\n")
    words = " ".join(line.strip() for line in rest)
    unbroken = re.sub(r"``.*?``", lambda code: code[0].replace(" ", "\0"), words)
    body = textwrap.wrap(unbroken, WIDTH - indentation - 4, break_on_hyphens=False, break_long_words=False)
    return "\n    ".join([first, *body]).replace("\0", " ")


def filled(source: str, module: str, descriptions: str, classes: dict[str, ast.ClassDef]) -> str:
    """Return the source of a module with the shared descriptions in its docstrings."""
    sections, exceptions = read_descriptions(descriptions)
    lines = source.split("\n")
    for name, node, docstring in sorted(documented(ast.parse(source), f"{module}."), key=lambda each: -each[2].lineno):
        start, stop, column = docstring.lineno - 1, docstring.end_lineno or 0, docstring.col_offset
        text = textwrap.dedent("\n".join(lines[start:stop]))
        listed, parameters = LISTED.search(text), parameters_of(node, classes)
        if listed is None or parameters is None:
            continue
        shared: Entries = {}
        for patterns, entries in sections:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                shared |= entries
        own, entries = entries_of(listed[1]), {}
        for parameter in parameters:
            joint = next((names for names in own if parameter in names.split(", ")), parameter)
            entry, common = own.pop(joint, None), shared.get(joint)
            differs = entry and (
                f"{name}.{joint}" in exceptions or not common or first_line(entry) != first_line(common)
            )
            if text_of := entry if differs else common and fitting(common, column):
                entries[joint] = text_of
        rest = text[listed.end() :].lstrip("\n")
        new = "\n".join([*entries.values(), *own.values()]) + ("\n" if rest.startswith('"') else "\n\n")
        lines[start:stop] = textwrap.indent(text[: listed.start(1)] + new + rest, " " * column).split("\n")
    return "\n".join(lines)


def first_line(entry: str) -> str:
    """Return the line of a parameter's name and type."""
    return entry.partition("\n")[0]


def unlisted() -> dict[Path, str]:
    """Return the new text of each page of the reference that lacks a function of the modules whose others it lists."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "plrank_fast"]
    modules = {alias.name: node.module for node in imports for alias in node.names if alias.name[0] != "_"}
    losses = [node for node in ast.parse((PACKAGE / "losses.py").read_text()).body if isinstance(node, ast.FunctionDef)]
    modules |= {node.name: "plrank_fast.losses" for node in losses if node.name[0] != "_"}
    before = {path: path.read_text() for path in sorted(REFERENCE.glob("*.rst"))}
    pages = dict(before)
    for name, module in modules.items():
        if not any(f"\n   {name}\n" in text for text in pages.values()):
            for path, text in pages.items():
                listed = [other for other in modules if modules[other] == module and f"\n   {other}\n" in text]
                if listed:
                    last = max(listed, key=lambda other: text.index(f"\n   {other}\n"))
                    pages[path] = text.replace(f"\n   {last}\n", f"\n   {last}\n   {name}\n")
                    break
    return {path: text for path, text in pages.items() if text != before[path]}


def stale(descriptions: str | None = None) -> dict[Path, str]:
    """Return the new text of each file that lacks a shared description or a function, or has another description."""
    descriptions = descriptions or DESCRIPTIONS.read_text()
    found, classes = {}, classes_of(PACKAGE)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        source = path.read_text()
        if (text := filled(source, module, descriptions, classes)) != source:
            found[path] = text
    return found | unlisted()


if __name__ == "__main__":
    for path, text in stale().items():
        path.write_text(text)
        print(f"filled {path.relative_to(PACKAGE.parent)}", file=sys.stderr)
