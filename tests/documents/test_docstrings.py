"""Docstrings stand in the source in full, for editors do not run it; what they share is the same text everywhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plrank_fast as plr
from plrank_fast import gradients, losses

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location("fill_docstrings", ROOT / "docs/fill_docstrings.py")
fill_docstrings = importlib.util.module_from_spec(specification)
specification.loader.exec_module(fill_docstrings)


def test_shared_descriptions_are_in_place():
    """``make docstrings`` mends it. Mutants: another word in a docstring, in the shared text; an entry left out."""
    assert [path.name for path in fill_docstrings.stale()] == []


def functions_of(module):
    return {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}


@pytest.mark.parametrize(("page", "module"), [("rankings.rst", gradients), ("metrics.rst", losses)])
def test_new_functions_are_added_to_the_reference(tmp_path, monkeypatch, page, module):
    """Behind the others of their module. Mutants: before them; to the first page; every function of the module; no
    losses."""
    original = ROOT / "docs/reference" / page
    names = [name for name in re.findall(r"^   (\w+)$", original.read_text(), re.M) if name in functions_of(module)]
    for path in fill_docstrings.REFERENCE.glob("*.rst"):
        text = path.read_text()
        tmp_path.joinpath(path.name).write_text(text.replace(f"   {names[-1]}\n", ""))
    monkeypatch.setattr(fill_docstrings, "REFERENCE", tmp_path)
    assert fill_docstrings.unlisted() == {tmp_path / original.name: original.read_text()}


def test_public_names_are_all_there_is():
    """Mutant: ``dir`` with what the module imports. Tools see the same as ``__all__``, and no submodule's machinery."""
    listed = subprocess.run(
        [sys.executable, "-c", "import plrank_fast; print(*dir(plrank_fast))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    public = [name for name in listed if not name.startswith("__")]
    assert public == sorted(plr.__all__)


REFERENCE = "".join(page.read_text() for page in sorted(fill_docstrings.REFERENCE.glob("[!i]*.rst")))  # but the index


@pytest.mark.parametrize("name", sorted(set(re.findall(r"currentmodule:: (plrank_fast\.[\w.]+)", REFERENCE))))
def test_completion_offers_what_is_public(name):
    """In every module that the reference names. Mutants: no ``__dir__``; a name that ``__all__`` lacks."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    blocks = re.findall(
        rf"currentmodule:: {name}\n(.*?)(?=^\.\. currentmodule|\Z)", REFERENCE, re.MULTILINE | re.DOTALL
    )
    documented = {each for block in blocks for each in re.findall(r"^   (\w+)$", block, re.MULTILINE)}
    assert documented <= set(dir(module)) == set(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)
