"""``make mutants``: every module has its tests, its changes are of code and of nothing else, and all is put back."""

import collections
import sysconfig

import mutants
from mutants import MODULES, Scratch, explanations, sources, stands
from mutations import KINDS, mutations, of_file
from tree import ROOT


def test_tables():
    """Each mutation changes one line of code, and there are hundreds of each kind; each module has tests, and each
    kernel a module. Mutants: comments not blanked; a test file renamed; an explanation that stands of a line gone."""
    of_modules = sources()
    listed = [path for paths in of_modules.values() for path in paths]
    numbers = collections.Counter()
    for path in listed:
        source = (ROOT / path).read_text()
        found = mutations(source, path)
        numbers.update(one.kind for one in found)
        for one in found[::50]:
            changed = zip(source.split("\n"), one.apply(source).split("\n"), strict=True)
            assert [(a, b) for a, b in changed if a != b] == [(one.before, one.after)]
            assert not one.before.lstrip().startswith(("#", "//", "/*"))
    assert min(numbers[kind] for kind in KINDS) > 200
    assert set(MODULES) == set(of_modules)
    assert all(map(mutants.files_of, MODULES))
    assert len(set(listed)) == len(listed)
    kernels = (ROOT / "plrank_fast" / "kernels").rglob("*.[ch]")
    assert not {path.relative_to(ROOT).as_posix() for path in kernels} - set(listed)
    assert all(len(reason) > 20 for reason in explanations().values())
    path, _, after = change = of_file(ROOT, of_modules["_core/ranking/remaining"][0])[0].change
    assert stands(change)
    assert not stands((path, "gone", after))


def test_everything_is_put_back(tmp_path, monkeypatch):
    """In a tree of one Cython file and a stand-in for its compiler. Mutants: the source not put back; not compiled
    again; tests run where the code is the same; the test that noticed not tried without the mutation."""
    module = "_core/ranking/remaining"
    path = f"plrank_fast/{module}.pyx"
    source, mutation = (ROOT / path).read_text(), of_file(ROOT, path)[5]
    library = tmp_path / f"plrank_fast/{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
    library.parent.mkdir(parents=True)
    library.write_text("code")
    (tmp_path / path).write_text(source)
    scratch, tested_as = Scratch(tmp_path), []
    changed_code, noticed = "", ("killed", "a.py::test")

    def compiles(module):
        library.write_text("code" if (tmp_path / path).read_text() == source else changed_code)
        return True

    def run_tests(tree, tests):
        tested_as.append(library.read_text())
        return noticed if library.read_text() != "code" else ("survived", "")

    monkeypatch.setattr(scratch, "compiles", compiles)
    monkeypatch.setattr(mutants, "run_tests", run_tests)
    for changed_code, outcome, tested in (  # noqa: B007 - compiles reads it
        ("other code", "killed", ["other code", "code"]),
        ("code", "same code", []),
    ):
        tested_as.clear()
        assert scratch.attack(module, mutation)[0] == outcome
        assert ((tmp_path / path).read_text(), library.read_text(), tested_as) == (source, "code", tested)
    assert dict(scratch.killers[module]) == {"a.py::test": 1}
