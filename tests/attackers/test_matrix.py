"""``make matrix`` and ``make tsan``: their changes are those of the sources as they stand, and runs are resumed."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import calls_on_teams
import matrix
import plrank_fast as plr
from matrix import ROOT, ROWS, Result, Row, Tree, run_rows, table
from path_constants import CONSTANTS, RULE, SAMPLERS


class TestConstants:
    @pytest.mark.parametrize("constant", [*CONSTANTS, RULE], ids=lambda constant: constant.before.strip()[:40])
    def test_stands_once_in_the_sources(self, constant):
        """Mutant: a constant renamed, given another value, or defined twice."""
        source = (ROOT / "plrank_fast" / constant.path).read_text()
        changed = constant.replaced(source, "OTHER")
        assert changed != source
        assert changed.count("OTHER") == source.count("OTHER") + 1

    def test_a_line_that_is_gone_is_told(self):
        with pytest.raises(ValueError, match="0 times 'cdef double WORTH_NS = 2e6'"):
            CONSTANTS[0].replaced("cdef double WORTH_NS = 3e6\n", "0.0")

    def test_extremes_enclose_the_value(self):
        for constant in CONSTANTS:
            assert constant.lowest != constant.value != constant.highest, constant

    @pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
    def test_rows_change_what_they_say(self, row):
        """Mutants: a path that is compared with another spelling, so that nothing is changed."""
        paths = [path.relative_to(ROOT).as_posix() for path in (ROOT / "plrank_fast").rglob("*") if path.is_file()]
        different = {
            path for path in [*paths, "setup.py"] if Path(path).suffix in {".py", ".pyx", ".h", ".c"}
            and row.change(path, (ROOT / path).read_text()) != (ROOT / path).read_text()
        }  # fmt: skip
        if row.name in ("lowest", "highest"):
            assert different == {f"plrank_fast/{constant.path}" for constant in CONSTANTS}
        elif row.name.startswith("auto-"):
            assert different == {f"plrank_fast/{RULE.path}"}
        else:
            assert different == ({"setup.py"} if row.name == "O0" else set())
        assert {f"auto-{name}" for name in SAMPLERS} < ROWS.keys()


class TestRuns:
    @pytest.fixture
    def tested(self, monkeypatch):
        """Rows and folders that were tested; compilation and tests are stand-ins."""
        calls = []
        monkeypatch.setattr(Tree, "refresh", lambda self: None)
        monkeypatch.setattr(Tree, "compile", lambda self: "gcc | avx2 | 3.11 | x86_64")

        def test(self, tests):
            calls.append((self.row.name, tests))
            failures = ["test_x"] if tests == "tests/b" else []
            return {"passed": 5, "failed": len(failures), "skipped": 1}, failures

        monkeypatch.setattr(Tree, "test", test)
        return calls

    def test_resumed(self, tmp_path, tested):
        """Mutants: rows or folders confused; results of other sources taken."""
        rows = [Row("one", "a"), Row("two", "b")]
        first = run_rows(rows, ["tests/a"], tmp_path)
        assert tested == [("one", "tests/a"), ("two", "tests/a")]
        assert run_rows(rows, ["tests/a"], tmp_path) == first
        assert len(tested) == 2
        run_rows(rows, ["tests/a", "tests/b"], tmp_path)
        assert tested[2:] == [("one", "tests/b"), ("two", "tests/b")]
        both = run_rows(rows, ["tests/a", "tests/b"], tmp_path)
        assert [(one.row, one.tests) for one in both] == list(itertools.product(["one", "two"], ["tests/a", "tests/b"]))
        assert len(tested) == 4
        run_rows([dataclasses.replace(rows[0], options="c")], ["tests/a"], tmp_path)
        assert tested[4:] == [("one", "tests/a")]

    @pytest.mark.parametrize(
        ("changed", "repeated"),
        [
            ("docs/theory.md", False),
            ("CHANGELOG.md", False),
            ("tests/hand/test_metrics.py", False),
            ("tests/oracles/test_losses.py", True),
            ("tests/problems.py", True),
            ("tests/attackers/matrix.py", False),
            ("tests/enumeration/a_helper.py", True),
            ("plrank_fast/kernels/gradients/exact/exact.h", True),
            ("setup.py", True),
        ],
    )
    def test_what_is_tested_again(self, tmp_path, changed, repeated):
        """Mutants: all files count; tests of other folders do; helpers in other folders do not."""
        tree = Tree(ROWS["plain"], tmp_path)
        tree.contents = {changed: "before", "tests/oracles/test_selection.py": "x"}
        before = tree.digest("tests/oracles")
        tree.contents[changed] = "after"
        assert (tree.digest("tests/oracles") != before) == repeated

    def test_levels(self, tmp_path, tested, monkeypatch):
        """Mutants: the row's own switches lost; what was seen of other levels taken."""
        builds = []
        monkeypatch.setattr(Tree, "compile", lambda self: builds.append(self.row.build) or "gcc")
        arguments = ["--rows", "checks", "--tests", "tests/a", "--folder", str(tmp_path)]
        for levels in [["--levels", "baseline", "avx2"], ["--levels", "baseline"], []]:
            matrix.main([*arguments, *levels])
        checks = {"PLRANK_FAST_CHECKS": "1"}
        both, one = {**checks, "PLRANK_FAST_LEVELS": "baseline avx2"}, {**checks, "PLRANK_FAST_LEVELS": "baseline"}
        assert builds == [both, one, checks]

    def test_table_and_status(self, tmp_path, tested, capsys):
        """Mutants: folders not added up, or not named; 0 in spite of a failure."""
        assert matrix.main(["--rows", "checks", "--tests", "tests/a", "--folder", str(tmp_path)]) == 0
        assert matrix.main(["--rows", "checks", "--tests", "tests/a", "tests/b", "--folder", str(tmp_path)]) == 1
        line = "| gcc | avx2 | 3.11 | x86_64 | PLRANK_FAST_CHECKS=1 | a, b | 10 | 1 | 2 |"
        assert line in capsys.readouterr().out
        results = [Result(**json.loads(line)) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
        assert line in table(results)
        everything = [dataclasses.replace(results[0], tests=f"tests/{folder}") for folder in matrix.FOLDERS]
        assert "| all | 25 | 0 | 5 |" in table(everything)

    @pytest.mark.parametrize(
        ("program", "counts"),
        [
            ("import os\ndef test_a():\n    os._exit(3)\n", {"passed": 0, "failed": 1, "skipped": 0}),
            (
                "import pytest\n@pytest.mark.chosen_path\ndef test_a():\n    assert 0\n"
                "def test_b():\n    pytest.skip('')\ndef test_c():\n    assert 0\ndef test_d():\n    pass\n",
                {"passed": 1, "failed": 1, "skipped": 1},
            ),
        ],
        ids=["crash", "outcomes"],
    )
    def test_counts(self, tmp_path, program, counts):
        """Mutants: a crash taken for success; marked tests run all the same."""
        tree = Tree(Row("lowest", ""), tmp_path)
        tree.folder.mkdir()
        (tree.folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['chosen_path']\n")
        (tree.folder / "test_it.py").write_text(program)
        assert tree.test("test_it.py")[0] == counts


def test_teams_share_the_same_batch():
    """Mutant: offsets of the copies not shifted."""
    function, arguments = next(call for call in calls_on_teams.calls() if call[0] is plr.pl_rank_exact)
    alone = function(**arguments)
    np.testing.assert_array_equal(function(**calls_on_teams.times(3, arguments)), np.tile(alone, 3))
    together = calls_on_teams.as_one_query(1, arguments)
    assert together["offsets"] == [0, alone.size]
