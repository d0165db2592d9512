"""The parts of a release agree with each other: versions, files, pinned tools."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from setuptools.config.pyprojecttoml import read_configuration

import plrank_fast

ROOT = Path(__file__).resolve().parents[2]
NOT_RELEASED = (".github/", "packaging/", ".gitignore", ".pre-commit-config.yaml")  # for the repository and its forge


def text(name):
    return (ROOT / name).read_text()


def test_one_version():
    """Mutants: the version raised in one place only; a heading "Unreleased" in the changelog."""
    version = re.search(r'^version = "(.+)"$', text("pyproject.toml"), re.M)[1]
    assert version == plrank_fast.__version__
    assert re.search(r"^version: (.+)$", text("CITATION.cff"), re.M)[1] == version
    assert re.search(r'version: "(.+)"', text("packaging/conda/recipe.yaml"))[1] == version
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)[1].rstrip(",") == version


def test_every_file_is_in_the_sdist(tmp_path):
    """Whoever has the sdist has what `make test` needs. Mutant: MANIFEST.in without asv_benchmarks."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    released = set(next(tmp_path.glob("*.egg-info/SOURCES.txt")).read_text().split())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    assert [path for path in tracked if not path.startswith(NOT_RELEASED) and path not in released] == []
    assert [path for path in released if path.endswith((".so", ".o"))] == []


def test_every_package_is_in_the_wheel():
    """Mutant: a list of packages that lacks ``strengths``, without which an installed plrank_fast is not imported."""
    in_wheel = read_configuration(ROOT / "pyproject.toml")["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "plrank_fast").rglob("__init__.py")}
    assert sorted(in_wheel) == sorted(".".join(folder.parts) for folder in folders)


def test_wheels_are_tested_with_what_the_tests_import():
    """cibuildwheel's environment has NumPy, the wheel and ``test-requires``. Mutant: scikit-learn left out of these,
    which test_data_sets.py imports at its top."""
    options = text("pyproject.toml").partition("[tool.cibuildwheel]")[2].partition("\n[")[0]
    required = set(re.findall(r'"([\w-]+)>=', options)) | {"numpy", "plrank-fast", "plrank_fast"}
    folders = re.search(r"pytest -q (.+)\"", options)[1].split()
    assert folders
    ours = {path.stem for path in (ROOT / "tests").rglob("*.py")}
    patterns = [name if name.endswith(".py") else f"{name}/*.py" for name in folders]
    for path in [path for pattern in patterns for path in (ROOT / "tests").glob(pattern)]:
        names = re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.M)
        names = {{"sklearn": "scikit-learn"}.get(name, name) for name in names}
        assert names - ours - set(sys.stdlib_module_names) <= required, path.name


def test_cibuildwheel_builds_with_the_pinned_tools():
    """requirements-release.txt names the tools. Mutant: build isolation, which fetches the newest ones."""
    options = text("pyproject.toml").partition("[tool.cibuildwheel]")[2].partition("\n[")[0]
    assert re.search(r'^before-build = ".*--require-hashes -r \{project\}/requirements-release.txt"$', options, re.M)
    assert re.search(r'^build-frontend = .*"--no-isolation"', options, re.M)


def test_one_range_of_pythons():
    """Mutants: 3.10 left in one of the places; a wheel for a version that no classifier names."""
    project = tomllib.loads(text("pyproject.toml"))
    named = [found[1] for found in re.finditer(r"Python :: (3\.\d+)", str(project["project"]["classifiers"]))]
    wheels = project["tool"]["cibuildwheel"]["build"].split()
    assert wheels == [f"cp{version.replace('.', '')}-*" for version in named] + [f"cp{named[-1].replace('.', '')}t-*"]
    assert project["project"]["requires-python"] == f">={named[0]}"
    assert re.search(r"^PYTHONS \?= (.+)$", text("Makefile"), re.M)[1].split() == [f"python{each}" for each in named]
    assert f"sys.version_info < ({named[0].replace('.', ', ')})" in text("Makefile")
    for name in ("README.md", "docs/installing.md", "docs/tutorial.md"):
        assert set(re.findall(r"Python (3\.\d+) or later", text(name))) == {named[0]}, name


@pytest.mark.parametrize(
    ("lock", "names"),
    [("constraints-test.txt", ("lint", "test", "docs", "asv")), ("constraints-newest.txt", ("test",))],
)
def test_the_locks_have_every_group(lock, names):
    """Mutant: a package added to a group without new locks."""
    groups = tomllib.loads(text("pyproject.toml"))["dependency-groups"]
    locked = {name.lower() for name in re.findall(r"^([\w.-]+)==", text(lock), re.M)}
    for group in names:
        names = {re.match(r"[\w-]+", each)[0] for each in groups[group] if isinstance(each, str)}
        assert {name.lower().replace("_", "-") for name in names} <= locked, group


def test_the_conda_recipe_asks_for_the_same():
    """Mutants: another bound of Cython or NumPy in one of the two files."""
    project = tomllib.loads(text("pyproject.toml"))
    required = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    recipe = text("packaging/conda/recipe.yaml")
    for requirement in required:
        name, bound = re.fullmatch(r"([\w-]+)(>=.+)", requirement).groups()
        assert re.findall(rf"^ +- {name.lower()} (.+)$", recipe, re.M) == [bound], requirement


def test_tools_of_a_release_are_pinned():
    """Each with hashes, and what the build asks for is among them. Mutant: a line without its hashes."""
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text("requirements-release.txt"), flags=re.M).strip())
    assert all(re.match(r"[\w-]+==\S+", entry) and "--hash=sha256:" in entry for entry in entries)
    pinned = {re.match(r"[\w-]+", entry)[0].lower() for entry in entries}
    required = re.search(r"^requires = \[(.+)\]$", text("pyproject.toml"), re.M)[1]
    assert {name.lower() for name in re.findall(r'"([\w-]+)', required)} <= pinned
