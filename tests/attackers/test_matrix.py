"""``make matrix`` and ``make tsan``: their changes are those of the sources as they stand, and runs are resumed."""

import os
from pathlib import Path

import numpy as np
import pytest

import calls_on_teams
import matrix
from matrix import ROOT, ROWS, Row, Tree
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
        with pytest.raises(ValueError, match="0 times 'cdef int TEAMS = 0 '"):
            CONSTANTS[0].replaced("cdef int TEAMS = 2\n", "0")

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
    def test_rows(self, tmp_path, monkeypatch, capsys):
        """Mutants: the row's own switches lost beside ``--levels``; 0 in spite of a failure; a failure not named."""
        builds = []

        def test(self, tree, tests):
            failures = ["test_x"] if "tests/b" in tests else []
            return {"passed": 5, "failed": len(failures), "skipped": 1}, failures

        monkeypatch.setattr(Row, "compile", lambda row, _: builds.append(row.build) or "gcc | avx2 | 3.11 | x86_64")
        monkeypatch.setattr(Row, "test", test)
        arguments = ["--rows", "checks", "--folder", str(tmp_path), "--levels", "baseline", "--tests", "tests/a"]
        assert matrix.main(arguments) == 0
        assert builds == [{"PLRANK_FAST_CHECKS": "1", "PLRANK_FAST_LEVELS": "baseline"}]
        assert matrix.main([*arguments, "tests/b"]) == 1
        shown = capsys.readouterr().out
        assert "    test_x" in shown
        assert "| gcc | avx2 | 3.11 | x86_64 | PLRANK_FAST_CHECKS=1 | 5 | 1 | 1 |" in shown

    def test_copies(self, tmp_path):
        """Mutants: what is as it was written again, so that it would be compiled again; the change not made."""
        module = tmp_path / "plrank_fast" / "_core" / "runtime" / "teams.pyx"
        tree = Tree(tmp_path, ROWS["lowest"].change)
        tree.refresh()
        os.utime(tmp_path / "setup.py", ns=(1, 1))
        tree.refresh()
        assert (tmp_path / "setup.py").stat().st_mtime_ns == 1
        assert "cdef int TEAMS = -1 " in module.read_text()

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
        row = Row("lowest", "")
        tree = row.in_folder(tmp_path)
        tree.folder.mkdir()
        (tree.folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['chosen_path']\n")
        (tree.folder / "test_it.py").write_text(program)
        assert row.test(tree, ["test_it.py"])[0] == counts


def test_teams_share_the_same_batch():
    """Mutant: offsets of the copies not shifted."""
    call = calls_on_teams.WITH_TEAM["pl_rank_exact"]
    alone = call(**calls_on_teams.times(1, call))
    np.testing.assert_array_equal(call(**calls_on_teams.times(3, call)), np.tile(alone, 3))
    assert calls_on_teams.as_one_query(1, call)["offsets"] == [0, alone.size]
