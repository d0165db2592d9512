"""The embedding examples, in an empty folder, against the wheel; and the document that quotes them."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "embedding"


def run(*command, cwd, site, expect=0, **environment):
    """Run Python on ``command`` with the wheel in front of everything else on the path."""
    environment = {**os.environ, "PYTHONPATH": str(site), **environment}
    finished = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert finished.returncode == expect, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def make_wheel(folder):
    """Wheel of this checkout, from a copy of it; what is compiled already is not compiled again."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "runs", "*.egg-info", "__pycache__", "*.so")
    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    for kind in ("lib", "temp"):  # modules, and the switches and objects that they were compiled with
        built = Path("build", f"{kind}.{sysconfig.get_platform()}-{sys.implementation.cache_tag}")
        if (ROOT / built).exists():
            shutil.copytree(ROOT / built, folder / "source" / built)
    options = "-q", "--no-build-isolation", "--no-deps", "--disable-pip-version-check"
    run("-m", "pip", "wheel", *options, "-w", "dist", "./source", cwd=folder, site="")
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder with nothing in it but the installed wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = make_wheel(folder)
    options = "-q", "--no-deps", "--no-index", "--disable-pip-version-check"
    run("-m", "pip", "install", *options, "--target", "site", str(wheel), cwd=folder, site="")
    shutil.rmtree(folder / "source")
    where = run("-c", "import plrank_fast; print(plrank_fast.__file__)", cwd=folder, site=folder / "site")
    assert Path(where.strip()).is_relative_to(folder)
    return folder / "site"


@pytest.fixture
def project(request, tmp_path):
    """A copy of an example, away from the checkout."""
    shutil.copytree(EXAMPLES / request.param, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_wheel_holds_what_is_public(site):
    """It holds headers and Cython declarations of the C interface alone, and no source. Mutant: all of ``*.pxd``."""
    files = {path.relative_to(site).as_posix() for path in (site / "plrank_fast").rglob("*.*")}
    private = {name for name in files if Path(name).suffix in (".c", ".h", ".pxd", ".pyx")}
    assert private == {"plrank_fast/cython_plrank.pxd", "plrank_fast/include/plrank.h"}
    assert "plrank_fast/py.typed" in files
    stubs = {name for name in files if name.endswith(".pyi")}
    assert stubs == {"plrank_fast/cython_plrank.pyi", "plrank_fast/_adapters/xla_calls.pyi"}


WARNINGS_ARE_ERRORS = "-Wall -Wextra -Werror"


@pytest.mark.parametrize(
    ("project", "build", "flags"),
    [
        ("cython_prange", ("-m", "Cython.Build.Cythonize", "-i", "batch_gradient.pyx"), "-O0"),
        ("c_worker_pool", ("setup.py", "-q", "build_ext", "--inplace"), WARNINGS_ARE_ERRORS),
    ],
    indirect=["project"],
)
def test_module(project, build, flags, site):
    """The commands stand in the document."""
    run(*build, cwd=project, site=site, CFLAGS=flags)
    assert "equal to the last bit" in run("check.py", cwd=project, site=site)


@pytest.mark.parametrize("project", ["cython_prange"], indirect=True)
def test_cython_finds_the_declarations_of_a_development_install(project):
    """Its folder is on the path. Mutant: no ``package-dir``: a hook of the import hides the folder from Cython."""
    source = project / "source"
    shutil.copytree(ROOT / "plrank_fast", source / "plrank_fast", ignore=shutil.ignore_patterns("*.so", "*.c", "__*__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = "-q", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"
    run("-m", "pip", "install", *options, "--target", "site", "-e", "source", cwd=project, site="")
    (on_path,) = (project / "site").glob("*.pth")
    assert on_path.read_text().strip() == str(source)
    run("-m", "cython", "batch_gradient.pyx", cwd=project, site=source)


@pytest.mark.parametrize("project", ["c_worker_pool"], indirect=True)
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_c_extension_as_cpp(project, site):
    """The file and the header compile as C++11."""
    setup = project / "setup.py"
    (project / "worker_pool.c").rename(project / "worker_pool.cpp")
    setup.write_text(setup.read_text().replace("worker_pool.c", "worker_pool.cpp"))
    flags = f"{WARNINGS_ARE_ERRORS} -std=c++11"
    run("setup.py", "-q", "build_ext", "--inplace", cwd=project, site=site, CC="g++", CXX="g++", CFLAGS=flags)
    assert "equal to the last bit" in run("check.py", cwd=project, site=site)


@pytest.mark.parametrize("script", ["numba_loop.py", "cffi_call.py"])
def test_script(script, site, tmp_path):
    pytest.importorskip(script.partition("_")[0])
    assert "equal to the last bit" in run(shutil.copy(EXAMPLES / script, tmp_path), cwd=tmp_path, site=site)


@pytest.mark.parametrize("project", ["c_worker_pool"], indirect=True)
@pytest.mark.parametrize(
    ("change", "replacement", "message"),
    [
        ("#define PLRANK_ABI_VERSION 1", "#define PLRANK_ABI_VERSION 2", "version 2 of plrank_fast, but version 1 is"),
        ("} plrank_api;", "void (*from_the_future)(void); } plrank_api;", "a newer plrank_fast than the one"),
    ],
)
def test_other_version(project, site, change, replacement, message):
    """An extension made for another version is refused when it is imported."""
    header = (site / "plrank_fast" / "include" / "plrank.h").read_text()
    assert change in header
    (project / "plrank.h").write_text(header.replace(change, replacement))
    run("setup.py", "-q", "build_ext", "--inplace", cwd=project, site=site)
    assert message in run("-c", "import worker_pool", cwd=project, site=site, expect=1)


def test_declarations_without_python(tmp_path, site):
    """The header is of use to C code that is handed the table and does not know Python."""
    source = tmp_path / "plugin.c"
    source.write_text(
        '#include "plrank.h"\n'
        "int64_t plugin_workspace(const plrank_api *plrank) { return plrank->top_k_workspace(24, 5); }\n"
    )
    compiler = os.environ.get("CC", "cc").split()
    include = f"-I{site / 'plrank_fast' / 'include'}"
    for language in ("c", "c++"):
        command = [*compiler, "-x", language, *WARNINGS_ARE_ERRORS.split(), "-pedantic", include, "-c", str(source)]
        subprocess.run(command, check=True, cwd=tmp_path)


def test_document_quotes_the_examples():
    """Every block of code stands in the example that was linked last before it, and every example is quoted."""
    text = (ROOT / "docs" / "embedding.md").read_text()
    parts = re.split(r"\n```\w*\n", text)
    before, blocks = parts[0], list(zip(parts[1::2], parts[2::2], strict=True))
    linked, quoted = [], set()
    for code, after in blocks:
        linked += re.findall(r"\]\(\.\./(examples/embedding/[^)]+)\)", before)
        assert code.strip("\n") in (ROOT / linked[-1]).read_text(), linked[-1]
        quoted.add(Path(linked[-1]).parts[2])
        before = after
    assert quoted == {path.name for path in EXAMPLES.iterdir()} - {"overhead.py"}
    assert (EXAMPLES / "cython_prange/batch_gradient.pyx").read_text() in text  # it can be pasted
