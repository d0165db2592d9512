"""``make matrix`` and ``make tsan``: their changes are those of the sources as they stand, and failures are told."""

from pathlib import Path

import numpy as np
import pytest

import calls_on_teams
import matrix
from matrix import ROOT, ROWS, Row
from path_constants import CONSTANTS, RULE, SAMPLERS


class TestConstants:
    @pytest.mark.parametrize("constant", [*CONSTANTS, RULE], ids=lambda constant: constant.before.strip()[:40])
    def test_stands_once_in_the_sources(self, constant):
        """Mutant: a constant renamed, given another value, or defined twice."""
        source = (ROOT / "plrank_fast" / constant.path).read_text()
        changed = constant.replaced(source, "OTHER")
        assert changed != source
        assert changed.count("OTHER") == source.count("OTHER") + 1

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


def test_teams_share_the_same_batch():
    """Mutant: offsets of the copies not shifted."""
    call = calls_on_teams.WITH_TEAM["pl_rank_exact"]
    alone = call(**calls_on_teams.times(1, call))
    np.testing.assert_array_equal(call(**calls_on_teams.times(3, call)), np.tile(alone, 3))
    assert calls_on_teams.as_one_query(1, call)["offsets"] == [0, alone.size]
