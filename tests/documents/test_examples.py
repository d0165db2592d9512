"""The examples in docstrings and documents run, and every public function has one or is documented by another."""

import doctest
import inspect
import pkgutil
from pathlib import Path

import pytest

import plrank_fast as plr

ROOT = Path(__file__).parents[2]
MODULES = [module.name for module in pkgutil.walk_packages(plr.__path__, "plrank_fast.") if "._" not in module.name]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    if name == "plrank_fast.__main__":
        pytest.skip("the command line")
    module = pytest.importorskip(name, reason=f"a library that {name} adapts to is not installed", exc_type=ImportError)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize(
    "path", [path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]]
)
def test_documents(path):
    text = (ROOT / path).read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, str(path), str(path), 0)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


@pytest.mark.parametrize("name", plr.__all__)
def test_every_public_name_is_documented(name):
    thing = getattr(plr, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        for parameter in inspect.signature(thing).parameters:
            documented = parameter in thing.__doc__ or "are those of ``pl_rank_3``" in thing.__doc__
            assert documented, f"{name}: {parameter}"
