"""The command ``bench``: every cell is measured with what its row says, the picture and the figures are written."""

import json

import pytest

import plrank_fast as plr
from plrank_fast.__main__ import main

pytest.importorskip("tqdm")


def test_table_figures_and_picture(tmp_path, capsys, monkeypatch):
    """Mutants: the method's name not used for the call; N of the row not passed on; seconds not scaled to the epoch."""
    pytest.importorskip("matplotlib")
    calls = set()
    for name in ("pl_rank_3", "pl_rank_exact"):
        original = getattr(plr, name)

        def spy(scores, relevance, rank_weights, name=name, original=original, **options):
            calls.add((name, rank_weights.size, options.get("n_samples"), options["n_threads"]))
            return original(scores, relevance, rank_weights, **options)

        monkeypatch.setattr(plr, name, spy)
    picture, figures = tmp_path / "cost.png", tmp_path / "cost.json"
    status = main([
        *("bench", "--shapes", "yahoo", "--methods", "pl_rank_3", "pl_rank_exact", "--cutoffs", "2", "7"),
        *("--samples", "3", "20", "--queries", "4", "--seconds", "0"),
        *("--picture", str(picture), "--json", str(figures)),
    ])  # fmt: skip
    assert status == 0
    assert calls == {
        *(("pl_rank_3", cutoff, n_samples, 1) for cutoff in (2, 7) for n_samples in (3, 20)),
        *(("pl_rank_exact", cutoff, None, 1) for cutoff in (2, 7)),
    }
    printed = capsys.readouterr().out
    assert "yahoo, seconds per epoch" in printed
    assert printed.count("NumPy PL-Rank-3") == 2  # a row for each N
    cells = json.loads(figures.read_text())["cells"]
    assert len(cells) == 6
    assert all(1e-3 < cell["seconds"] < 1e5 and cell["numpy_seconds"] > 0 for cell in cells)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments", [["--cutoffs", "0"], ["--shapes", "none"], ["--methods", "sum"], ["--samples", "x"]]
)
def test_bad_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", *arguments])
    assert stop.value.code == 2
    assert arguments[0] in capsys.readouterr().err
