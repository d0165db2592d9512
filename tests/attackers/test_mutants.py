"""``make mutants``: its changes are of code and of nothing else, every module has its tests, and all is put back."""

import collections
import sysconfig

import pytest

import mutants
from mutants import TESTS, Scratch, explanations, run_tests, sources, stands
from mutations import KINDS, mutations, of_file
from tree import ROOT, Tree


class TestMutations:
    def test_whole_tree(self):
        """Each changes one line, no comment, and there are hundreds of each kind. Mutant: comments not blanked."""
        numbers = collections.Counter()
        for path in (path for paths in sources().values() for path in paths):
            source = (ROOT / path).read_text()
            found = mutations(source, path)
            numbers.update(one.kind for one in found)
            for one in found[::50]:
                changed = zip(source.split("\n"), one.apply(source).split("\n"), strict=True)
                assert [(a, b) for a, b in changed if a != b] == [(one.before, one.after)]
                assert not one.before.lstrip().startswith(("#", "//", "/*"))
        assert min(numbers[kind] for kind in KINDS) > 200


class TestTables:
    def test_every_module_has_its_tests(self):
        """Mutant: a test file renamed."""
        assert set(TESTS) == set(sources())
        named = {test.partition("::")[0] for tests in TESTS.values() for test in tests}
        assert not [name for name in named if not (ROOT / "tests" / name).exists()]

    def test_every_kernel_belongs_to_a_module(self):
        listed = [path for paths in sources().values() for path in paths]
        assert len(set(listed)) == len(listed)
        kernels = (ROOT / "plrank_fast" / "kernels").rglob("*.[ch]")
        assert not {path.relative_to(ROOT).as_posix() for path in kernels} - set(listed)

    def test_explanations(self):
        """Each has a reason; `make mutants` tells which lines are gone. Mutant: none of them is."""
        assert all(len(reason) > 20 for reason in explanations().values())
        path, before, after = change = of_file(ROOT, sources()["_core/ranking/remaining"][0])[0].change
        assert stands(change)
        assert not stands((path, "gone", after))
        assert not stands(("gone.c", before, after))


class TestRuns:
    @pytest.mark.parametrize(
        ("compiled", "tested", "outcome"),
        [
            ("other code", ("killed", "a.py::test"), "killed"),
            ("other code", ("survived", ""), "survived"),
            ("code", None, "same code"),
            (None, None, "not compiled"),
        ],
    )
    def test_everything_is_put_back(self, tmp_path, monkeypatch, compiled, tested, outcome):
        """In a tree of one Cython file and a stand-in for its compiler.

        Mutants: the source not put back; not compiled again; tests run where the code is the same; the test that
        noticed not looked at; the empty name of a survivor's killer, for which pytest runs all tests, kept.
        """
        module = "_core/ranking/remaining"
        path = f"plrank_fast/{module}.pyx"
        source, mutation = (ROOT / path).read_text(), of_file(ROOT, path)[5]
        library = tmp_path / f"plrank_fast/{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        library.parent.mkdir(parents=True)
        library.write_text("code")
        (tmp_path / path).write_text(source)
        scratch, tested_as, alone = Scratch(tmp_path), [], ("survived", "")

        def compiles(module):
            code = "code" if (tmp_path / path).read_text() == source else compiled
            library.write_text(code or library.read_text())
            return code is not None

        def run_tests(tree, tests):
            tested_as.append(library.read_text())
            return tested if library.read_text() == "other code" else alone

        monkeypatch.setattr(scratch, "compiles", compiles)
        monkeypatch.setattr(mutants, "run_tests", run_tests)
        assert scratch.attack(module, mutation)[0] == outcome
        assert (tmp_path / path).read_text() == source
        assert library.read_text() == "code"
        assert tested_as == ["other code"] * (tested is not None) + ["code"] * (outcome == "killed")
        assert dict(scratch.killers[module]) == ({"a.py::test": 1} if outcome == "killed" else {})
        if outcome == "killed":
            alone = tested
            scratch.passing.clear()
            with pytest.raises(SystemExit, match=r"without a mutation too: a\.py::test killed"):
                scratch.attack(module, mutation)


@pytest.mark.usefixtures("without_address_sanitizer")  # which ends processes in its own way
@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("pass", ("survived", "")),
        ("os.kill(os.getpid(), 11)", ("killed", "test_it.py::test_b")),
        ("\n    while True: pass", ("timed out", "test_it.py::test_b")),
    ],
    ids=["passes", "crashes", "computes"],
)
def test_outcomes(tmp_path, body, outcome):
    """Mutants: the limit of time left out, or one for all tests; another test named at a crash."""
    (tmp_path / "test_it.py").write_text(f"import os\ndef test_a(): pass\ndef test_b(): {body}\ndef test_c(): pass\n")
    assert run_tests(Tree(tmp_path), ["test_it.py"], SECONDS_OF_A_TEST="1") == outcome
