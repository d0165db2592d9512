"""The switches of ``setup.py``: what is handed to the compiler, here a stand-in that writes down what it is told."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from Cython.Build.Dependencies import create_dependency_tree

ROOT = Path(__file__).resolve().parents[2]
# An object file has the arguments it was made with, and a module the arguments of its objects.
COMPILER = r"""#!/bin/sh
arguments=$(printf '%s ' "$@" | tr -d '\\')
printf '%s\n' "$arguments" >> "$0.log"
case "$arguments" in *-mavx512f*) [ ! -e "$0.no_avx512" ] || exit 1 ;; esac
objects=
while [ $# -gt 0 ]; do
    case "$1" in
        *.o) objects="$objects $1" ;;
        -o) output=$2; shift ;;
    esac
    shift
done
[ -z "$output" ] || { printf '%s\n' "$arguments"; [ -z "$objects" ] || cat $objects; } > "$output"
"""


ONE = {"MODULES": "_core/losses/likelihood"}
TWO = {"MODULES": "_core/runtime/simd _core/losses/likelihood", "LEVELS": "baseline"}
BUILDS = {  # the first word is the folder
    "avx2": {**ONE, "LEVELS": "avx2"},
    "avx2 less": {**ONE, "LEVELS": "baseline"},
    "unknown_level": {**ONE, "LEVELS": "avx2 neon"},
    "unknown_module": {"MODULES": "_core/losses/pair"},
    "plain": TWO,
    "plain again": TWO,
    "plain sanitized": {**TWO, "SANITIZE": "address,undefined"},
    "plain sanitized again": {**TWO, "SANITIZE": "address,undefined"},
    "no_compiler": ONE,
    "no_avx512": {**ONE, "LEVELS": " "},
    "no_avx512 named": {**ONE, "LEVELS": "avx2 avx512"},
}
IN_A_COPY = {"in_place": TWO, "in_place touched": TWO, "editable": TWO}
# In one process, as a build that compiles nothing takes the time of importing Cython.
PROGRAM = """
import json, os, runpy, sys
from pathlib import Path
folder, others = Path(sys.argv[1]), {name: value for name, value in os.environ.items() if "PLRANK_FAST" not in name}
log = folder / "compiler.log"
for name, switches in json.loads(sys.argv[2]).items():
    target = folder / name.split()[0]
    if name == "in_place touched":
        os.utime("setup.py")
    command = ["build_ext", "--build-lib", str(target), "--build-temp", str(target)]
    in_copy = {"in_place": ["build_ext", "--inplace"], "editable": ["editable_wheel"]}
    sys.argv[1:] = ["-q", *in_copy.get(name.split()[0], command)]
    os.environ.clear()
    os.environ.update(others, CC=str(folder / "compiler"))
    os.environ.update({f"PLRANK_FAST_{switch}": value for switch, value in switches.items()})
    if name == "no_compiler":
        os.environ["CC"] = "no-such-compiler -O2"
    if name == "no_avx512":
        (folder / "compiler.no_avx512").touch()
    log.write_text("")
    try:
        runpy.run_path("setup.py", run_name="__main__")
        answer = None
    except SystemExit as refusal:
        answer = str(refusal)
    print(json.dumps([name, answer, log.read_text().splitlines()]))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return the compiler's commands for the modules of each build, without Cython's own, or the refusal."""
    folder, copy = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "plrank_fast", copy / "plrank_fast", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, copy)
    compiler = folder / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    answers, printed = {}, []
    for where, builds in ((ROOT, BUILDS), (copy, IN_A_COPY)):
        command = [sys.executable, "-c", PROGRAM, folder, json.dumps(builds)]
        printed += subprocess.run(command, cwd=where, check=True, text=True, capture_output=True).stdout.splitlines()
    for line in (line for line in printed if line.startswith('["')):
        name, refusal, commands = json.loads(line)
        commands = [one.split() for one in commands if not re.search("probe|--version|shared_utility", one)]
        assert not (refusal and commands)
        answers[name] = refusal or commands
    return answers


def words(commands, prefix):
    return sorted(word.removeprefix(prefix) for command in commands for word in command if word.startswith(prefix))


def test_levels(told):
    """Mutants: the baseline left out where it is not named; modules told of levels that their kernels lack."""
    assert words(told["avx2"], "-DPLR_ISA=") == ["avx2", "baseline"]
    assert words(told["avx2"], "-DPLR_HAVE_") == ["AVX2=1", "BASELINE=1"]


def test_refusals(told):
    """Mutants: names that nothing has are passed over; a level that the compiler does not know dropped where somebody
    names it; modules translated before the compiler is looked for, so that the error is the operating system's."""
    assert words(told["no_avx512"], "-DPLR_ISA=") == ["avx2", "baseline"]
    message = "PLRANK_FAST_LEVELS names avx512, which compiler or target does not know"
    assert told["no_avx512 named"] == message
    message = "plrank-fast needs a C compiler, and 'no-such-compiler' was not found. Debian"
    assert told["no_compiler"].startswith(message)
    assert told["unknown_level"] == "PLRANK_FAST_LEVELS must name some of baseline, avx2, avx512; got neon"
    assert told["unknown_module"].startswith("PLRANK_FAST_MODULES must name some of _adapters/xla_calls, _core/")
    assert told["unknown_module"].endswith("; got _core/losses/pair")


def test_what_was_compiled_with_other_switches_is_compiled_again(told):
    """But nothing twice, though ``setup.py`` has changed otherwise. Mutants: a change of switches not seen, or seen in
    the module itself only, or where ``simd`` is built only; always; modules that depend on ``setup.py``."""
    assert words(told["plain"], "-DPLR_ISA=") == ["baseline"]
    assert told["plain again"] == told["plain sanitized again"] == told["in_place touched"] == []
    sanitized = told["plain sanitized"]
    assert len([command for command in sanitized if "-c" in command]) == 3
    assert all("-fsanitize=address,undefined" in command for command in sanitized)
    assert words(told["avx2 less"], "-DPLR_ISA=") == ["baseline"]


def test_editable_installation_takes_what_was_compiled_in_place(told):
    """Mutant: pip's temporary folders, in which nothing is up to date."""
    assert words(told["in_place"], "-DPLR_ISA=") == ["baseline"]
    assert told["editable"] == []


def test_import_of_what_is_not_compiled(tmp_path):
    """A fresh checkout says how to build it, and so does one whose sources have changed. Mutant: Python's error, which
    is about a module of ours."""
    folder = tmp_path / "plrank_fast"
    shutil.copytree(ROOT / "plrank_fast", folder, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    answer = subprocess.run([sys.executable, "-c", "import plrank_fast"], cwd=tmp_path, text=True, capture_output=True)
    told = f"ImportError: plrank_fast in {folder} is not compiled, or has changed since: run `make build` or `pip "
    assert told in answer.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def setup():
    return runpy.run_path(str(ROOT / "setup.py"))


def test_kernels_depend_on_what_the_compiler_reads(setup, monkeypatch):
    """Mutants: includes of headers not followed; a source that includes another one depends on itself alone."""
    monkeypatch.chdir(ROOT)
    kernels = sorted({str(setup["KERNELS"] / source) for sources in setup["MODULES"].values() for source in sources})
    command = ["cc", "-MM", "-DPLR_ISA=baseline", "-DPLR_ISA_BASELINE=1", f"-I{setup['KERNELS']}", *kernels]
    rules = subprocess.run(command, check=True, text=True, capture_output=True).stdout.replace("\\\n", " ")
    by_compiler = {
        words[0]: {os.path.normpath(word) for word in words}
        for words in (rule.partition(":")[2].split() for rule in rules.splitlines())
    }
    assert by_compiler == {kernel: set(map(str, setup["files_read"](Path(kernel)))) for kernel in kernels}


def test_modules_depend_on_what_cython_reads(setup, monkeypatch):
    """Mutants: a module's own ``.pxd``, or what a cimported ``.pxd`` cimports, left out; every ``.pxd`` taken."""
    monkeypatch.chdir(ROOT)
    tree = create_dependency_tree()
    for module in setup["MODULES"]:
        source = setup["PACKAGE"] / f"{module}.pyx"
        by_cython = {Path(name) for name in tree.all_dependencies(str(source)) if name.startswith("plrank_fast")}
        read = setup["files_read"](source)
        assert by_cython <= read
        assert {path for path in read if path.suffix in (".pyx", ".pxd")} <= by_cython
