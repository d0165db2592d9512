"""``make mutants``: its changes are of code and of nothing else, every module has its tests, and runs are resumed."""

import json
import sysconfig
import textwrap

import pytest

import mutants
from mutants import EQUIVALENT, ROOT, TESTS, Result, Scratch, explained, report, run_tests, sources, stands
from mutations import KINDS, blanked, mutations, of_file

CYTHON = textwrap.dedent('''
    """Words - and 1 number."""

    from libc.math cimport exp

    cdef extern from "kernel.h" nogil:
        double plr_sum(const double *x, int n, double least)


    cdef double total(const double *x, int n) noexcept nogil:
        """Sum of n < 3 numbers."""
        cdef int i
        cdef double sum = 0.5
        for i in range(1, n):
            if x[i] < sum and i != 3:  # 7 - 8
                sum += <double>x[i] * exp(-x[i])
        plr_clear(x, n)
        if n < 0:
            raise ValueError(f"n - 1 must be 0, got {n}")
        return plr_sum(x, n, sum)
''')
C = textwrap.dedent("""
    /* 1 + 1 and
     * 2 - 1 */
    #define LANES 8
    static double
    total(const double *x, int n)
    {
        double sum = 0, half = 0.5;  // 5 < 6
        for (int i = 0; i < n; i++)
            sum += larger(x[i], half) * x->y[i];
        clear(x, "1 - 2", n);
        return -sum;
    }
""")


def changes(source, path):
    return {(one.kind, one.before.strip(), one.after.strip()) for one in mutations(source, path)}


class TestMutations:
    """Mutants: comments not blanked; a cast of Cython, or a minus in front, taken for an operator between two terms."""

    def test_cython(self):
        found = changes(CYTHON, "total.pyx")
        loop, product = "if x[i] < sum and i != 3:  # 7 - 8", "sum += <double>x[i] * exp(-x[i])"
        assert ("comparison", loop, loop.replace("<", "<=")) in found
        assert ("comparison", loop, loop.replace("!=", "==")) in found
        assert ("logic", loop, loop.replace("and", "or")) in found
        assert ("off by one", loop, loop.replace("3", "4")) in found
        assert ("sign", product, product.replace("+=", "-=")) in found
        assert ("sign", product, product.replace("-x", "x")) in found
        assert ("product", product, product.replace("*", "/")) in found
        assert ("dropped statement", product, "pass") in found
        assert ("dropped statement", "plr_clear(x, n)", "pass") in found
        assert ("constant", "cdef double sum = 0.5", "cdef double sum = 1.0") in found
        assert ("swapped arguments", "plr_clear(x, n)", "plr_clear(n, x)") in found
        assert ("swapped arguments", "return plr_sum(x, n, sum)", "return plr_sum(x, sum, n)") in found
        untouched = {before for _, before, _ in found}
        assert not [line for line in untouched if "Words" in line or "extern" in line or "raise" in line]
        assert not [line for line in untouched if "least" in line or "Sum of" in line]
        assert not [after for _, _, after in found if "7 - 8" not in after and "# 7" in after]
        assert len(found) == 18

    def test_c(self):
        found = changes(C, "total.c")
        assert ("comparison", "for (int i = 0; i < n; i++)", "for (int i = 0; i <= n; i++)") in found
        total = "sum += larger(x[i], half) * x->y[i];"
        assert ("logic", total, total.replace("larger", "smaller")) in found
        assert ("dropped statement", total, ";") in found
        assert ("sign", "return -sum;", "return sum;") in found
        assert ("dropped statement", 'clear(x, "1 - 2", n);', ";") in found
        assert not [before for _, before, _ in found if "LANES" in before or "1 + 1" in before]
        assert not [after for _, _, after in found if "5 <=" in after or "1 + 2" in after]
        assert not [after for kind, _, after in found if kind == "swapped arguments" and "larger" in after]

    def test_whole_tree(self):
        """Each changes one line of code and nothing else; there are hundreds of each kind."""
        numbers = dict.fromkeys(KINDS, 0)
        for paths in sources().values():
            for path in paths:
                source = (ROOT / path).read_text()
                codes = blanked(source, path)
                for one in mutations(source, path):
                    numbers[one.kind] += 1
                    assert one.after != one.before
                    assert codes[one.number][one.start : one.stop].strip()
        assert min(numbers.values()) > 200

    def test_applied(self):
        path = sources()["_core/ranking/remaining"][0]
        source = (ROOT / path).read_text()
        for one in of_file(ROOT, path)[::20]:
            changed = one.apply(source)
            different = [
                (a, b) for a, b in zip(source.split("\n"), changed.split("\n"), strict=True) if a != b
            ]  # fmt: skip
            assert different == [(one.before, one.after)]


class TestTables:
    def test_every_module_has_its_tests(self):
        """Mutant: a test file renamed."""
        assert set(TESTS) == set(sources())
        assert not [test for tests in TESTS.values() for test in tests
                    if not (ROOT / "tests" / test.partition("::")[0]).is_file()]  # fmt: skip

    def test_every_kernel_belongs_to_a_module(self):
        listed = [path for paths in sources().values() for path in paths]
        assert len(set(listed)) == len(listed)
        kernels = (ROOT / "plrank_fast" / "kernels").rglob("*.[ch]")
        assert not {path.relative_to(ROOT).as_posix() for path in kernels} - set(listed)

    def test_explanations(self):
        """Each has a change and a reason; `make mutants` tells which lines are gone. Mutant: none of them is."""
        known = json.loads(EQUIVALENT.read_text())
        assert all(set(one) == {"path", "before", "after", "reason"} and len(one["reason"]) > 20 for one in known)
        one = of_file(ROOT, sources()["_core/ranking/remaining"][0])[0]
        explanation = {"path": one.path, "before": one.before.strip(), "after": one.after.strip()}
        assert stands(explanation)
        assert not stands({**explanation, "before": "gone"})
        assert not stands({**explanation, "path": "gone.c"})


class TestRuns:
    def test_choice_is_balanced_and_repeated(self, tmp_path):
        """Mutants: one kind more often; what the file has tried again; what does not compile counted."""
        tried = []

        def test(module, mutation):
            tried.append(mutation)
            if mutation.kind == "constant":
                return "not compiled", ""
            return ("killed", "test_x") if mutation.kind != "sign" else ("survived", "")

        arguments = ["_core/ranking/remaining", "_core/gradients/hessian"], 14, 3, tmp_path / "results.jsonl", test
        first = mutants.attack(*arguments)
        assert len(first) == len(tried) == 28 + sum(one.outcome == "not compiled" for one in first) > 28
        assert {one.kind for one in first} == set(KINDS)
        again = mutants.attack(*arguments)
        assert len(tried) == len(first)  # all from the file
        assert again == first
        text, unexplained = report(first, [])
        assert unexplained == sum(one.outcome == "survived" for one in first) > 0
        assert all(one.before in text for one in first if one.outcome == "survived")

    def test_explained(self):
        result = Result("0", "m", "a.c", 1, "sign", "x = -1;", "x = 1;", "survived", "", 0.1)
        reason = {"path": "a.c", "before": "x = -1;", "after": "x = 1;", "reason": "nobody reads x"}
        assert explained(result, [reason]) == "nobody reads x"
        assert explained(result, [{**reason, "after": "x = 2;"}]) is None
        assert report([result], [reason])[1] == 0

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

        Mutants: the source not put back; not compiled again; tests run where the code is the same.
        """
        module = "_core/ranking/remaining"
        path = f"plrank_fast/{module}.pyx"
        source = (ROOT / path).read_text()
        library = tmp_path / f"plrank_fast/{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        library.parent.mkdir(parents=True)
        library.write_text("code")
        (tmp_path / path).write_text(source)
        scratch, tested_as = Scratch(tmp_path), []

        def build(module):
            code = "code" if (tmp_path / path).read_text() == source else compiled
            library.write_text(code or library.read_text())
            return code is not None

        monkeypatch.setattr(scratch, "build", build)
        monkeypatch.setattr(scratch, "test", lambda module: tested_as.append(library.read_text()) or tested)
        monkeypatch.setattr(mutants, "run_tests", lambda tree, tests: (("survived", ""), tested_as.extend(tests))[0])
        assert scratch.attack(module, of_file(ROOT, path)[5])[0] == outcome
        assert (tmp_path / path).read_text() == source
        assert library.read_text() == "code"
        assert tested_as == ["other code"] * (tested is not None) + ["a.py::test"] * (outcome == "killed")
        assert scratch.killers[module]["a.py::test"] == (outcome == "killed")

    def test_tests_that_fail_without_a_mutation(self, tmp_path, monkeypatch):
        """Mutant: the test that noticed not looked at."""
        monkeypatch.setattr(mutants, "run_tests", lambda tree, tests: ("killed", tests[0]))
        with pytest.raises(SystemExit, match=r"without a mutation too: a\.py::test killed"):
            Scratch(tmp_path)._check("m", "killed", "a.py::test")


@pytest.mark.usefixtures("without_address_sanitizer")  # which ends processes in its own way
@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("pass", ("survived", "")),
        ("assert 0", ("killed", "test_it.py::test_b")),
        ("os.kill(os.getpid(), 11)", ("killed", "test_it.py::test_b")),
        ("\n    while True: pass", ("timed out", "test_it.py::test_b")),
    ],
    ids=["passes", "fails", "crashes", "computes"],
)
def test_outcomes(tmp_path, body, outcome):
    """Mutants: the limit of time left out, or one for all tests; another test named at a crash."""
    (tmp_path / "test_it.py").write_text(f"import os\ndef test_a(): pass\ndef test_b(): {body}\ndef test_c(): pass\n")
    assert run_tests(tmp_path, ["test_it.py"], SECONDS_OF_A_TEST="1") == outcome
