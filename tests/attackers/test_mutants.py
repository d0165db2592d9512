"""``make mutants``: every module has its tests, its changes are of code and of nothing else, and all is put back."""

import collections

import mutants
from mutants import MODULES, explanations, sources, stands
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
