"""The structure of the compiled core: what the map of ``plrank_fast/__init__.py`` says is so."""

import re
from pathlib import Path

import plrank_fast

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "plrank_fast"
CIMPORT = re.compile(r"^from plrank_fast\.(\w+) cimport", re.MULTILINE)


def compiled_in_the_map():
    text = plrank_fast.__doc__.partition("::")[2].partition("----")[0]
    return [word for line in text.splitlines() for word in line[42:].split()]


def modules_of_setup():
    text = (ROOT / "setup.py").read_text().partition("MODULES: ")[2]
    return re.findall(r'^    "(\w+)": \[', text.partition("\n}\n")[0], re.MULTILINE)


def test_the_map_is_complete():
    files = {path.stem for pattern in ("*.pyx", "*.pxd") for path in PACKAGE.glob(pattern)}
    listed = compiled_in_the_map()
    assert sorted(listed) == sorted(files)
    assert modules_of_setup() == [name for name in listed if (PACKAGE / f"{name}.pyx").exists()]


def test_compiled_modules_import_only_what_stands_above_them():
    """Mutants: ``_threads`` imports ``_random``, as it once did; two lines of the map exchanged."""
    listed = compiled_in_the_map()
    wrong = [
        (path.name, name)
        for pattern in ("*.pyx", "*.pxd")
        for path in PACKAGE.glob(pattern)
        for name in CIMPORT.findall(path.read_text())
        if name != path.stem and listed.index(name) >= listed.index(path.stem)
    ]
    assert not wrong


def test_one_driver_of_batches():
    """Whoever works on queries in parallel asks ``_batch``, which knows of empty queries, Ctrl-C and threads."""
    assert [path.stem for path in PACKAGE.glob("*.pyx") if "prange(" in path.read_text()] == ["_batch"]
