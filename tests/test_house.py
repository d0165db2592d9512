"""The structure of the compiled core: what the map of ``plrank_fast/__init__.py`` says is so."""

import re
from pathlib import Path

import plrank_fast

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "plrank_fast"
KERNELS = PACKAGE / "kernels"
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


def test_kernel_headers_hold_no_state():
    """Tables that are filled at import stand in one source file, not in every one that includes a header.

    Mutant: the table of exponential arrivals in ``arrival_profile.h``.
    """
    state = re.compile(r"^static (?!const\b)[^(\n]*[;=]", re.MULTILINE)
    assert not [path.name for path in KERNELS.glob("*.h") if state.search(path.read_text())]


def test_reading_order_of_the_exact_kernel():
    """``exact.h`` and ``docs/numerics.md`` name every file of the exact kernel, and no other.

    Mutants: ``power_sums`` left out of the list; a file of the list renamed.
    """
    listed = re.findall(r"^ \*     (\w+(?:, \w+)*)(?:\.c)?  ", (KERNELS / "exact.h").read_text(), re.MULTILINE)
    listed = {name for names in listed for name in names.split(", ")}
    sources = re.search(r'"_exact": \[(.*?)\]', (ROOT / "setup.py").read_text(), re.DOTALL)[1]
    used = {name.removesuffix(".c") for name in re.findall(r"\w+\.c", sources)}
    for _ in range(4):  # what they include, and so on
        texts = [path.read_text() for name in used for path in KERNELS.glob(f"{name}.[ch]")]
        used |= {name for text in texts for name in re.findall(r'#include "(\w+)\.h"', text)}
    general = {"isa", "vectors", "vector_math", "cancellation", "weights"}
    assert listed == used - general
    assert not [name for name in listed if not [*KERNELS.glob(f"{name}.[ch]")]]
    page = (ROOT / "docs" / "numerics.md").read_text()
    assert not [name for name in listed if f"`{name}" not in page]
