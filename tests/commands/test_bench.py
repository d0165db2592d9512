"""The command ``bench``: every cell is measured with what its row says, the picture and the figures are written."""

import functools
import re
from dataclasses import replace

import pytest

from plrank_fast.__main__ import main
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.benchmarks.epoch_cost import Workload, fastest_in_turn
from plrank_fast.data import PROFILES

pytest.importorskip("tqdm")


def test_table_figures_and_picture(tmp_path, capsys, monkeypatch):
    """Mutants: the method's name not used for the call; N of the row not passed on; seconds not scaled to the epoch."""
    pytest.importorskip("matplotlib")
    calls = set()
    for name in ("pl_rank_3", "exact"):
        original = ESTIMATORS[name].function

        @functools.wraps(original)
        def spy(scores, relevance, rank_weights, name=name, original=original, **options):
            calls.add((name, rank_weights.size, options.get("n_samples"), options["n_threads"]))
            return original(scores, relevance, rank_weights, **options)

        monkeypatch.setitem(ESTIMATORS, name, replace(ESTIMATORS[name], function=spy))
    picture = tmp_path / "cost.png"
    status = main([
        *("bench", "--shapes", "yahoo", "--methods", "pl_rank_3", "exact", "--cutoffs", "2", "7"),
        *("--samples", "3", "20", "--queries", "4", "--seconds", "0"),
        *("--picture", str(picture)),
    ])  # fmt: skip
    assert status == 0
    assert calls == {
        *(("pl_rank_3", cutoff, n_samples, 1) for cutoff in (2, 7) for n_samples in (3, 20)),
        *(("exact", cutoff, None, 1) for cutoff in (2, 7)),
    }
    printed = capsys.readouterr().out
    assert "yahoo, seconds per epoch" in printed
    assert printed.count("NumPy PL-Rank-3") == 2  # a row for each N
    cells = re.findall(r"([\d.e+-]+) \(([\d.e+-]+)\)", printed)
    assert len(cells) == 6
    assert all(1e-3 < float(seconds) < 1e5 and float(ratio) > 0 for seconds, ratio in cells)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("shape", PROFILES)
def test_workload_stands_for_an_epoch(shape):
    """Mutants: NumPy's query taken for the whole batch; the batch for the epoch."""
    workload, profile = Workload.of_profile(shape, 5), PROFILES[shape]
    docs_of_epoch = profile.n_queries * profile.mean_length
    typical = workload.typical.stop - workload.typical.start
    assert [workload.scores.size * workload.per_epoch, typical * workload.typical_per_epoch] == pytest.approx(
        [docs_of_epoch, docs_of_epoch]
    )


def test_calls_are_timed_in_turn():
    """Each is called while some of its share of the time is left. Mutants: one after the other; the mean; a long call
    repeated until a short one has had its share; no call without seconds."""
    now, calls = [0.0], []

    def call(name, took):
        calls.append(name)
        now[0] += took

    for seconds, expected in ((2.0, "abaa"), (0.0, "ab")):
        calls.clear()
        times = iter((0.4, 0.3, 0.5))
        first, second = lambda times=times: call("a", next(times)), lambda: call("b", 5.0)
        fastest = fastest_in_turn(first, second, seconds=seconds, clock=lambda: now[0])
        assert "".join(calls) == expected
        assert fastest == pytest.approx([0.3 if seconds else 0.4, 5.0])
