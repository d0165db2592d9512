"""``make matrix`` and ``make tsan``: their changes fit the sources as they stand."""

from pathlib import Path

import numpy as np
import pytest

import calls_on_teams
from matrix import ROOT, ROWS
from path_constants import CONSTANTS, RULE, SAMPLERS


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_rows_change_what_they_say(row):
    """Mutants: a constant renamed, given another value, or defined twice; a path that is compared with another
    spelling, so that nothing is changed."""
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


def test_teams_share_the_same_batch():
    """Mutant: offsets of the copies not shifted."""
    call = calls_on_teams.WITH_TEAM["pl_rank_exact"]
    alone = call(**calls_on_teams.times(1, call))
    np.testing.assert_array_equal(call(**calls_on_teams.times(3, call)), np.tile(alone, 3))
    assert calls_on_teams.as_one_query(1, call)["offsets"] == [0, alone.size]
