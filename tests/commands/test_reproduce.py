"""The experiments of the paper: cells kept one by one, a killed run continued, statements that follow from figures."""

import json
import re
import signal

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from plrank_fast.benchmarks.epoch_cost import CUTOFFS
from reproduce import main
from reproduction import experiment, learning, published, report, summary
from reproduction.findings import FAILS, HOLDS, IN_PART, OPEN, all_findings, judged
from reproduction.results import ResultsFile

TINY = ["--minutes", "5", "--shapes", "mslr", "--cutoffs", "2", "5", "--quiet"]


@pytest.fixture
def tiny(monkeypatch):
    """Runs of a few steps on a few queries; the cells that are measured, as they are."""
    monkeypatch.setattr(experiment, "MOST_ROUNDS", 2)
    monkeypatch.setattr(learning, "LONGEST_RUN", 0.004)
    monkeypatch.setattr(learning, "LEAST_QUERIES", 2)
    monkeypatch.setattr("reproduction.cost.SECONDS", 0.0)
    monkeypatch.setattr("reproduction.cost.LENGTHS", (5, 20))
    monkeypatch.setattr("reproduction.cost.QUERIES", {"mslr": 2})
    render, drawn = report.png_of, []

    def first_only(figure):  # every figure is made; to draw one takes a second
        drawn.append(figure)
        return render(figure) if len(drawn) == 1 else b"\x89PNG"

    monkeypatch.setattr(report, "png_of", first_only)
    measured = []
    original = ResultsFile.add

    def spy(self, part, number, cell, result, seconds):
        measured.append(json.dumps([part, number, cell], sort_keys=True))
        original(self, part, number, cell, result, seconds)

    monkeypatch.setattr(ResultsFile, "add", spy)
    return measured


def test_from_nothing_to_a_report_and_on_after_a_kill(tmp_path, tiny, monkeypatch, capsys):
    """A kill loses the cell that was being measured, and no cell is measured twice.

    Mutants: the results written at the end of a part; the number of the round left out of a cell's key; pictures not
    inside the page, or a small one blown up to its width; the report without what the first process measured; a line
    that is cut off taken for the end.
    """
    folder = tmp_path / "out"
    arguments = [*TINY, "--output", str(folder)]
    add = ResultsFile.add

    def killed(self, *cell):
        if len(tiny) == 20:
            (folder / "results.jsonl.tmp").write_text("half a li")  # as a kill may leave it
            raise SystemExit("killed")
        add(self, *cell)

    with monkeypatch.context() as patch:
        patch.setattr(ResultsFile, "add", killed)
        with pytest.raises(SystemExit):
            main(arguments)
    assert len((folder / "results.jsonl").read_text().splitlines()) == 21
    assert not (folder / "report.html").exists()
    assert main(arguments) == 0
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    keys = [json.dumps([line["part"], line["round"], line["cell"]], sort_keys=True) for line in lines[1:]]
    assert keys == tiny
    assert len(set(keys)) == len(keys)
    rounds = {part: {line["round"] for line in lines[1:] if line["part"] == part} for part in experiment.SHARES}
    assert all(numbers == {0, 1} for numbers in rounds.values())

    page = (folder / "report.html").read_text()
    pictures = [*folder.glob("*.png")]
    assert len(pictures) == page.count("src='data:image/png;base64,") == 6
    assert len(re.findall(r"<img [^>]*width='\d+'", page)) == 6  # at its own size, in a page that may be narrow
    assert "img { max-width: 100%; height: auto; }" in page
    assert not re.search(r"(src|href)=['\"](?!data:)", page)  # self-contained
    for words in ("AMD EPYC 7H12", "<td>minutes</td><td>5.0</td>", "simd", "nearly flat in K, in NumPy"):
        assert words in page
    table = page.partition("<h2>Table 2")[2]
    (row,) = re.findall("<td>PL-Rank-3, N = 1000</td>(.*?)</tr>", table, re.DOTALL)
    assert [row.count(name) for name in ("<td>", "NumPy ", "paper ", "paper 4.77")] == [2, 2, 1, 1]
    network = min(line["result"]["network_seconds"] for line in lines[1:] if "network" in line["cell"])
    assert all(float(minutes) > 0.99 * network / 60 > 0 for minutes in re.findall(r"<td>([\d.e-]+)\n", row))

    capsys.readouterr()
    monkeypatch.setattr(report, "write_report", lambda *_: None)
    assert main(arguments) == 0  # nothing is left to do but the report
    assert len(tiny) == len(keys)
    with pytest.raises(SystemExit):
        main([*arguments, "--minutes", "3"])
    assert "error: --minutes 3.0 contradicts the run in " in capsys.readouterr().err
    (folder / "results.jsonl").write_text((folder / "results.jsonl").read_text()[:-9])
    with pytest.raises(SystemExit):
        main(arguments)
    assert re.search(r"results .* damaged\n$", capsys.readouterr().err)


def test_ctrl_c_leaves_a_report(tmp_path, tiny, monkeypatch, capsys):
    """Mutants: status 0; no report; the run ends by an exception."""
    measure = learning.measure

    def interrupting(cell, number):
        signal.raise_signal(signal.SIGINT)
        return measure(cell, number)

    monkeypatch.setattr(learning, "measure", interrupting)
    arguments = [*TINY, "--output", str(tmp_path), "--parts", "disparity"]
    assert main(arguments) == 130
    assert len(tiny) == 1
    assert "the same command continues" in capsys.readouterr().out
    assert re.search(r"\b1 of \d", (tmp_path / "report.html").read_text())  # a busy machine plans fewer rounds


def invented(part, number, cell):
    """A cell with what its measurement might give."""
    costs = dict.fromkeys(("seconds", "numpy_seconds", "error"), [0.1 + number] * len(cell.get("cutoffs", "12345")))
    curve = {name: [0.3, 0.4] for name in ("ndcg_dataset", "expected_ndcg_dataset", "disparity")}
    result = {"seconds": [0.0, 1.0], **curve} if "train_seconds" in cell else {"network_seconds": 1.0, **costs}
    return {"part": part.name, "round": number, "cell": cell, "result": result, "seconds": 1.0}


SETTINGS = {"minutes": 1.0, "parts": [*experiment.SHARES], "sets": ["yahoo", "mslr"], "data": None, "cutoffs": [5, 10]}


@pytest.mark.parametrize("minutes", [0.2, 1.0, 5.0])
def test_minutes_are_a_limit(tmp_path, monkeypatch, minutes):
    """All parts and the report end in time, whatever a cell takes; each part has its share, and its rounds are whole.

    Mutants: two rounds of each part, at least; a round that fits by half; the last cell begun when time is nearly over;
    time that a part leaves lost.
    """
    now, lasting = [0.0], {"cost": 1.3, "length": 0.1, "curves": 0.7, "settings": 0.7, "disparity": 0.7}
    monkeypatch.setattr(experiment.time, "perf_counter", lambda: now[0])
    parts = experiment.plan(SETTINGS)
    for part in parts:
        seconds = lasting[part.name]
        object.__setattr__(part, "measure", lambda *_, s=seconds: now.append(now.pop() + s))
    results = ResultsFile(tmp_path / "results.jsonl", SETTINGS)
    assert experiment.run_parts(minutes, parts, results, interrupted=lambda: False, observer=lambda *_: None)
    most = 60 * minutes - min(15, 15 * minutes)
    assert 0.8 * most < now[0] <= most
    for part in parts:
        done = len(results.of(part.name))
        assert done
        assert done < len(part.cells) or minutes < 5 or done % len(part.cells) == 0


def test_report_of_the_first_cells(tmp_path, monkeypatch):
    """Wherever time ended. Mutant: a panel without curves, whose limits are those of none."""
    monkeypatch.setattr(report, "png_of", lambda figure: b"\x89PNG")
    parts = experiment.plan(SETTINGS)
    cells = [invented(part, number, cell) for part in parts for number in (0, 1) for cell in part.cells]
    results = ResultsFile(tmp_path / "results.jsonl", SETTINGS)
    for part in parts:
        of_part = [entry for entry in cells if entry["part"] == part.name]
        for end in (1, 3 * len(part.cells) // 4, len(part.cells) + 1):
            results.cells = of_part[:end]
            report.write_report(tmp_path, SETTINGS, parts, results)
            assert (
                f"{end} of {len(part.cells) * (1 + end // len(part.cells))}" in (tmp_path / "report.html").read_text()
            )


def cost_cell(method, samples, seconds, in_numpy=None, error=None, number=0):
    cell = {"set": "mslr", "method": method, "samples": samples, "cutoffs": list(CUTOFFS)}
    result = {"seconds": list(seconds), "numpy_seconds": in_numpy and list(in_numpy), "error": list(error or [0.1] * 5)}
    return {"part": "cost", "round": number, "cell": cell, "result": result, "seconds": 1.0}


def curve_cell(samples, cutoff, value, number):
    cell = {"set": "mslr", "method": "pl_rank_3", "samples": samples, "cutoff": cutoff, "train_seconds": 1.0}
    result = {"seconds": [0.0, 1.0], "ndcg_dataset": [0.3, value]}
    return {"part": "curves", "round": number, "cell": cell, "result": result, "seconds": 1.0}


def verdicts(cells):
    return {finding.statement: finding.verdict for finding in all_findings(cells)}


def test_statements_about_cost_follow_from_the_figures():
    """The figures of the paper bear out the paper; with PL-Rank-2 and PL-Rank-3 exchanged they do not.

    Mutants: the verdict written down; growth of another column; NumPy's figures for ours.
    """

    def measured(swap):
        names = ("pl_rank_3", "pl_rank_2")
        figures = {name: published.MINUTES["mslr", name, 1000] for name in names}
        ours, in_numpy = (
            dict(zip(names, names[:: -1 if swap == which else 1], strict=True)) for which in ("ours", "NumPy")
        )
        return [
            cost_cell(name, 1000, figures[ours[name]], [5 * x for x in figures[in_numpy[name]]], number=number)
            for name in names
            for number in (0, 1)
        ]

    flat, linear = "PL-Rank-3 is nearly flat in K", "PL-Rank-2 is linear in K"
    here, there = "in this library", "in NumPy"
    for swap in ("", "ours", "NumPy"):
        found = verdicts(measured(swap))
        for place, exchanged in ((here, swap == "ours"), (there, swap == "NumPy")):
            assert {found[f"{statement}, {place}"] for statement in (flat, linear)} == {FAILS if exchanged else HOLDS}
    found = {finding.statement: finding.evidence for finding in all_findings(measured(""))}
    assert found[f"{flat}, {here}"].endswith("(paper: 0.23): 0.225 (0.225 to 0.225)")
    assert found["PL-Rank-3 is faster here than in NumPy in every cell"].endswith(": 5 (5 to 5)")


@pytest.mark.parametrize(
    ("intervals", "verdict"),
    [
        *(([(2, 3)], HOLDS), ([(-2, -1)], FAILS), ([(-1, 1)], OPEN), ([(2, 3), (4, 5)], HOLDS)),
        *(([(2, 3), (-2, -1)], IN_PART), ([(-1, 1), (2, 3)], IN_PART), ([(-1, 1), (-2, -1)], OPEN)),
    ],
)
def test_verdict_of_several_cases(intervals, verdict):
    """Mutants: the verdict of the first case; of any."""
    estimates = {str(interval): summary.Estimate(0.0, *interval) for interval in intervals}
    assert next(judged("It is positive", "value", estimates, 0.0)).verdict == verdict
    assert not list(judged("It is positive", "value", {}, 0.0))


@pytest.mark.parametrize(
    ("many", "expected"), [([0.5, 0.51, 0.52], HOLDS), ([0.3, 0.31, 0.32], FAILS), ([0.35, 0.45, 0.42], OPEN)]
)
def test_statements_about_samples_follow_from_the_curves(many, expected):
    """Mutants: N = 100 and 1000 exchanged; the standard error for the interval, whose case is the third; the untrained
    network's values."""
    few = [0.4, 0.4, 0.41]
    cells = [
        curve_cell(samples, 50, value, number)
        for samples, values in ((100, few), (1000, many))
        for number, value in enumerate(values)
    ]
    assert verdicts(cells)["Large K wants more samples: N = 1000 ends above N = 100 (PL-Rank-3)"] == expected
    one_seed = [cell for cell in cells if cell["round"] == 0]
    assert set(verdicts(one_seed).values()) == {OPEN}


def test_intervals_are_those_of_student():
    """Against the quantiles of SciPy. Mutant: two standard errors for any number of seeds."""
    stats = pytest.importorskip("scipy.stats")
    for n in range(2, 16):
        assert summary.STUDENT[n - 2] == pytest.approx(stats.t.ppf(0.975, n - 1), abs=0.01)
    values = np.array([1.0, 2.0, 4.0])
    estimate, error = summary.over_seeds(values), 4.30 * values.std(ddof=1) / np.sqrt(3)
    assert [estimate.low, estimate.high] == pytest.approx([values.mean() - error, values.mean() + error])


def test_real_files_in_folds(tmp_path, tiny, capsys):
    """A seed's fold is its number's. Mutants: always the first fold; test data from the training file."""
    with pytest.raises(SystemExit):
        main([*TINY, "--output", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert "error: --data " in capsys.readouterr().err
    for fold in (1, 2):
        (tmp_path / f"Fold{fold}").mkdir()
        for part, n_docs in (("train", 5), ("vali", 3), ("test", 4)):
            lines = [f"{d % 3} qid:{q} 1:{d + fold} 2:{d * q}\n" for q in range(3) for d in range(n_docs + fold)]
            (tmp_path / f"Fold{fold}" / f"{part}.txt").write_text("".join(lines))
    learning._splits.cache_clear()
    folds = [learning._splits(str(tmp_path), number, 1.0) for number in range(3)]
    assert [splits["train"].n_docs for splits in folds] == [18, 21, 18]
    assert [splits["test"].n_docs for splits in folds] == [15, 18, 15]
    arguments = ["--output", str(tmp_path / "out"), "--data", str(tmp_path), "--parts", "disparity"]
    assert main([*TINY, *arguments]) == 0
    assert "disparity" in (tmp_path / "out" / "report.html").read_text()
