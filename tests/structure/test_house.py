"""The structure of the package follows the map in ``plrank_fast/_core/__init__.py``."""

import ast
import collections
import re
import runpy
from pathlib import Path

import pytest

import plrank_fast
from plrank_fast import _core

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plrank_fast"
CORE = PACKAGE / "_core"
CIMPORT = re.compile(r"^from plrank_fast\.([\w.]+) cimport", re.MULTILINE)
KERNELS = PACKAGE / "kernels"
INCLUDE = re.compile(r'^#include "(\w+)/', re.MULTILINE)
NAMES = 42  # column


def read_map():
    """Paths of compiled modules and names of Python ones, in the order of the map, and what "..." stands for."""
    compiled, python = [], []
    folder, listed = "", compiled
    for line in _core.__doc__.partition("imports another::")[2].partition("\n\nA module that")[0].splitlines():
        if line.strip().startswith("---"):
            listed = python
            continue
        folder = line[:24].strip() or folder
        prefix = "" if folder == "." else folder + "/"
        listed += [prefix + name for name in line[NAMES:].split()]
    interchangeable = []
    for place in [name for name in compiled if name.endswith("/...")]:
        modules = (PACKAGE / place).parent.glob("*.pyx")
        others = sorted({path.relative_to(PACKAGE).with_suffix("").as_posix() for path in modules} - set(compiled))
        compiled[compiled.index(place) : compiled.index(place) + 1] = others
        interchangeable.append(set(others))
    return compiled, python, interchangeable


COMPILED, PYTHON, INTERCHANGEABLE = read_map()


def cython_files():
    for pattern in ("*.pyx", "*.pxd"):
        for path in PACKAGE.rglob(pattern):
            yield path.relative_to(PACKAGE).with_suffix("").as_posix(), path


def python_unit(path):
    """A module or a package of the top folder."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_the_map_is_complete():
    assert sorted(COMPILED) == sorted({name for name, _ in cython_files()})
    python = {python_unit(path) for path in PACKAGE.rglob("*.py") if CORE not in path.parents}
    assert sorted(PYTHON) == sorted(python - {"__init__"})


def test_compiled_modules_import_only_what_stands_above_them():
    """Mutants: ``threads`` imports ``stream``; two lines of the map exchanged; ``exposure`` imports ``conditional``."""
    imports = [
        (importer, name.replace(".", "/"))
        for importer, path in cython_files()
        for name in CIMPORT.findall(path.read_text())
    ]
    assert len(imports) > 100
    assert not [pair for pair in imports if pair[0] != pair[1] and COMPILED.index(pair[1]) >= COMPILED.index(pair[0])]
    assert not [pair for pair in imports if pair[0] != pair[1] and any({*pair} <= names for names in INTERCHANGEABLE)]


def test_kernels_include_only_folders_above_theirs():
    """The kernels have the folders of the modules, with ``simd`` above them all."""
    folders = ["simd", *dict.fromkeys(name.split("/")[1] for name in COMPILED if name.startswith("_core/"))]
    includes = [
        (path.relative_to(KERNELS).parts[0], included)
        for pattern in ("*.c", "*.h")
        for path in (KERNELS).rglob(pattern)
        for included in INCLUDE.findall(path.read_text())
    ]
    assert len(includes) > 50
    assert not [pair for pair in includes if folders.index(pair[1]) > folders.index(pair[0])]


def imported_units(path):
    """Modules of this package that a Python file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "plrank_fast":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plrank_fast."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from ((alias.name + ".__init__").split(".")[1] for alias in node.names if "plrank_fast" in alias.name)


def test_python_modules_import_only_what_stands_above_them():
    """Mutants: ``validation`` imports ``offsets``; ``metrics`` imports ``plrank_fast`` itself."""
    order = ["_core", "cython_plrank", *PYTHON]
    order.insert(order.index("reference"), "__init__")  # the public functions
    imports = {
        (python_unit(path), unit)
        for path in PACKAGE.rglob("*.py")
        if CORE not in path.parents and path != PACKAGE / "__init__.py"
        for unit in imported_units(path)
    }
    assert len(imports) > 80
    names = {name for _, name in imports} - set(order)
    assert names <= set(plrank_fast.__all__) | {"__version__"}  # of ``plrank_fast`` itself
    wrong = [
        (importer, name if name in order else "__init__")
        for importer, name in imports
        if importer != name and order.index(name if name in order else "__init__") >= order.index(importer)
    ]
    assert not wrong


def test_modules_of_training_import_only_those_named_before_them():
    """In the docstring of their package. Mutants: ``loss`` imports ``trainer``; a module that is not named."""
    folder = PACKAGE / "training"
    order = re.findall(r"`(\w+)`", ast.get_docstring(ast.parse((folder / "__init__.py").read_text())).split("\n\n")[1])
    paths = [path for path in folder.glob("*.py") if path.stem != "__init__"]
    assert sorted(order) == sorted(path.stem for path in paths)
    imports = [(path.stem, name) for path in paths for name in re.findall(r"_fast\.training\.(\w+)", path.read_text())]
    assert len(imports) > 30
    assert not [pair for pair in imports if order.index(pair[1]) >= order.index(pair[0])]


def raised(path):
    """Names of the exceptions that a Python file raises by itself; a bare ``raise`` has none."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield getattr(getattr(node.exc, "func", node.exc), "id", ast.unparse(node.exc))


def test_what_computes_with_queries_leaves_errors_of_arguments_to_validation():
    """Only a second derivative, which autograd asks of PyTorch's loss, is no argument.

    Mutants: ``rank_weights`` raises for a label; the shape of ``gumbel_scores`` checked in ``compat.sigir22``.
    """
    units = PYTHON[PYTHON.index("validation") + 1 : PYTHON.index("compat") + 1]
    files = [path for path in PACKAGE.rglob("*.py") if python_unit(path) in units]
    assert len(files) >= len(units) > 25
    told = {(path.name, name) for path in files for name in raised(path)}
    assert told == {("torch.py", "RuntimeError")}


def test_no_linear_algebra_below_the_adapters():
    """NumPy's can hang in the child of a fork; matrices of strengths are too large to do without.

    Mutants: a product with ``@`` in an estimate from a log; ``np.linalg.pinv`` there.
    """
    below = tuple(PYTHON[: PYTHON.index("reference")])
    paths = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in below]
    found = {
        path.relative_to(PACKAGE).parts[0]
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(getattr(node, "op", None), ast.MatMult) or getattr(node, "attr", "") in ("linalg", "matmul")
    }
    assert found <= {"strengths"}


def test_one_driver_of_batches():
    """Whoever works on queries in parallel asks ``batch``, which knows of empty queries, Ctrl-C and threads."""
    assert [path.name for path in KERNELS.rglob("*.[ch]") if "#pragma omp" in path.read_text()] == ["team.h"]
    assert [name for name, path in cython_files() if "prange(" in path.read_text()] == ["_core/runtime/teams"]


def test_sections_of_modules_that_run_batches():
    """Mutants: "Batch" before "Per query"; no "Entry points"."""
    sources = [path.read_text() for path in CORE.rglob("*.pyx") if path.name != "batch.pyx"]
    sections = [re.findall(r"^# -+\n# (.*)\n", source, re.MULTILINE) for source in sources if "run_batch(" in source]
    assert len(sections) > 5
    named = "Per query", "Batch", "Entry points"
    assert {tuple(name for name in some if name in named) for some in sections} == {named}


def test_arrays_are_memoryviews():
    """The reader takes buffers of any type; every other entry point takes memoryviews, or a batch.

    Mutants: ``PyObject_GetBuffer`` in ``metrics``; ``def modes(scores, offsets)`` there.
    """
    readers = {"_core/runtime/arguments"}
    assert {name for name, path in cython_files() if "GetBuffer(" in path.read_text()} == readers
    untyped = re.compile(r"^def \w+\((?:[^:\"]*?, ?|\s*)(?:scores|relevance|offsets|rank_weights)\b", re.MULTILINE)
    typed = re.compile(r"^def \w+\([^\"]*?\[(?::, )*::1\] \w+", re.MULTILINE)
    assert {name for name, path in cython_files() if untyped.search(path.read_text())} <= readers
    assert sum(len(typed.findall(path.read_text())) for _, path in cython_files()) > 15


def test_the_core_calls_nothing_above_it():
    """Mutant: ``validation.count`` imported within a function of the core."""
    imports = re.compile(r"^ *(?:from plrank_fast[\w.]* import|import plrank_fast)", re.MULTILINE)
    assert not [name for name, path in cython_files() if name.startswith("_core/") and imports.search(path.read_text())]


def test_kernel_headers_hold_no_state(monkeypatch):
    """Tables that are filled at import are compiled once per level: a header with one has a single reader.

    Mutant: the table of exponential arrivals in ``vector_math.h``.
    """
    state = re.compile(r"^static (?!const\b)[^(\n]*[;=]", re.MULTILINE)
    monkeypatch.chdir(ROOT)
    setup = runpy.run_path("setup.py")
    read = collections.Counter(header for path in setup["KERNELS"].rglob("*.c") for header in setup["files_read"](path))
    headers = [path for path in setup["KERNELS"].rglob("*.h") if state.search(path.read_text())]
    assert {path.parent.name for path in headers} == {"exact"}
    assert {read[path] for path in headers} == {1}


def test_reading_order_of_the_exact_kernel():
    """``exact.h`` and ``docs/numerics.md`` name every file of the exact kernel, and no other.

    Mutants: ``power_sums`` left out of the list; a file of the list renamed.
    """
    folder = KERNELS / "gradients" / "exact"
    listed = re.findall(r"^ \*     (\w+(?:, \w+)*)(?:\.c)?  ", (folder / "exact.h").read_text(), re.MULTILINE)
    listed = {name for names in listed for name in names.split(", ")}
    assert listed == {path.stem for path in folder.iterdir()}
    page = (ROOT / "docs" / "numerics.md").read_text()
    assert not [name for name in listed if f"`{name}" not in page]


def test_every_test_stands_in_a_folder_that_conftest_describes():
    """Mutants: ``test_faults.py`` left in ``tests``; ``references`` not in the list; two files of the same name."""
    tests = ROOT / "tests"
    listed, _, _ = (tests / "conftest.py").read_text().partition("\n\nA test")
    described = re.findall(r"^    (\w+)  ", listed, re.MULTILINE)
    files = list(tests.rglob("test_*.py"))
    assert {path.parent.relative_to(tests).as_posix() for path in files} == set(described)
    assert len({path.name for path in files}) == len(files)  # they are imported by their bare names


def test_no_test_depends_on_a_clock():
    """Programs that tests start have no time limit of their own, and legends have a place, for to look for the best one
    takes more than a second on a busy machine, which is a warning. Mutants: ``timeout=60`` in a test; ``legend()``."""

    def calls(*folders):
        for path in [path for folder in folders for path in (ROOT / folder).rglob("*.py")]:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield path.name, node.func.attr, {word.arg for word in node.keywords}

    limited = [at for at, _, words in calls("tests") if "timeout" in words and at.startswith("test_")]
    assert limited == ["test_plain_arguments.py"]  # a thread that must not end
    drawn = calls("plrank_fast", "examples", "docs")
    assert [at for at, name, words in drawn if name == "legend" and "loc" not in words] == []


def test_tests_that_make_and_continuous_integration_name_exist():
    """Mutant: a file of tests renamed, which the sanitizers then leave out, or stop at."""
    if not (ROOT / ".ci" / "run").is_file():
        pytest.skip("not a checkout")
    makefile, script = ((ROOT / name).read_text() for name in ("Makefile", ".ci/run"))
    named = re.findall(r"\b(\w+/test_\w+)", script) + re.findall(r"\b(\w+/test_\w+)\.py", makefile)
    for prefix, names in re.findall(r"\(addprefix (\w+/test_),([^()]*)\)", makefile):
        named += [prefix + name.removesuffix(".py") for name in names.split() if name != "\\"]
    assert len(named) > 20
    assert [name for name in named if not list((ROOT / "tests").glob(f"**/{name}.py"))] == []


def test_findings_run_from_an_empty_folder_without_the_library():
    """Mutants: a script without its run bit; a package without a version; one that installs ``plrank_fast``."""
    scripts = list((ROOT / "findings").glob("*.sh"))
    if not scripts:
        pytest.skip("not a checkout")
    for path in scripts:
        script = path.read_text().replace("\\\n", "")
        assert path.stat().st_mode & 0o111, f"{path.name} has no run bit"
        assert {"set -euo pipefail", "mktemp -d"} <= set(re.findall("set -euo pipefail|mktemp -d", script)), path.name
        assert "plrank" not in script, path.name
        installed = re.findall(r"pip install (.*)", script)
        packages = [word for line in installed for word in line.split() if not word.startswith("-")]
        assert packages, path.name
        assert [word for word in packages if "==" not in word] == [], path.name
