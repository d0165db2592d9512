"""The examples in docstrings and documents run, and every public function has one or is documented by another."""

import doctest
import inspect
import pkgutil
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plrank_fast as plr

ROOT = Path(__file__).parents[2]
MODULES = [
    "plrank_fast",
    *(module.name for module in pkgutil.walk_packages(plr.__path__, "plrank_fast.") if "._core" not in module.name),
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    if name == "plrank_fast.__main__":
        pytest.skip("the command line")
    if name == "plrank_fast.dask":  # imported without it, but its example is not
        pytest.importorskip("dask.array", reason="dask is not installed; `make test-all` installs it")
    module = pytest.importorskip(name, reason=f"a library that {name} adapts to is not installed", exc_type=ImportError)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize(
    "path", [path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]]
)
def test_documents(path):
    text = (ROOT / path).read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, str(path), str(path), 0)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


def test_readme_prints_what_its_comments_say(capsys):
    """In blocks that can be copied one by one.

    Mutants: another digit in a comment; a comment without its print; a block that needs a name of the one before.
    """
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    code = "\n".join(blocks)
    for library in "lightgbm", "sklearn", "torch":
        pytest.importorskip(library)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    stated = re.findall(r"^print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert len(stated) == len(blocks) == 3
    assert capsys.readouterr().out.splitlines() == stated


@pytest.mark.parametrize("name", plr.__all__)
def test_every_public_name_is_documented(name):
    """``help`` and editors see a plain function.

    Mutants: an object in its place; the section of the result that functions share is not filled in; an entry of a
    parameter left out; a shared description that sends the reader of ``pl_rank_exact`` to ``pl_rank_exact``.
    """
    thing = getattr(plr, name)
    assert inspect.getdoc(thing)
    assert not re.search(rf"see (the notes of\s+)?``{name}``", inspect.getdoc(thing), re.IGNORECASE)
    if callable(thing) and not inspect.isclass(thing):
        assert f": function {name} in module plrank_fast" in pydoc.render_doc(thing).partition("\n")[0]
        assert "\nReturns\n---" in inspect.getdoc(thing)
        for parameter in inspect.signature(thing).parameters:
            assert re.search(rf"^ *([\w*]+, )*\*{{0,2}}{parameter}(, [\w*]+)*( :|$)", thing.__doc__, re.MULTILINE), (
                parameter
            )


def test_help_greets_a_user():
    """``help(plrank_fast)`` lists all public names and no private module.

    Mutants: the map of the modules; a public function that the list leaves out.
    """
    assert "_core" not in plr.__doc__
    assert not [name for name in plr.__all__ if f"``{name}``" not in plr.__doc__]


def test_submodules_are_attributes_and_imported_when_asked_for():
    """Mutants: no ``__getattr__`` (``plr.data`` is an AttributeError); ``data`` imported at once."""
    program = """
import sys
import plrank_fast as plr
late = {"boosting", "chunks", "data", "interchange", "reference"}
assert not {f"plrank_fast.{name}" for name in late} & set(sys.modules)
assert late <= set(dir(plr)) and late <= set(plr.__all__)
assert plr.data.generate and plr.reference.pl_rank_3 and plr.boosting.BoostingObjective
assert plr.chunks.query_chunks and plr.interchange.to_run
assert not hasattr(plr, "no_such_module")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
