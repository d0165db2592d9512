"""The command line: errors in one line, runs that are stopped and killed, missing packages."""

import contextlib
import errno
import importlib
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import plrank_fast as plr
from plrank_fast.__main__ import main
from plrank_fast._shared import files
from plrank_fast._shared.archive import read_archive
from plrank_fast.commands import train as train_command
from plrank_fast.training import loss as loss_module
from plrank_fast.training.sources import Source
from programs import run_python

SMALL = shlex.split("--method pl_rank_3 --profile yahoo --queries 40 --features 8 --batch-queries 8 --samples 5")


def done(*arguments):
    """Run a command in this process."""
    assert main([*map(str, arguments)]) == 0


@pytest.fixture
def error_of(capsys, monkeypatch):
    """`error_of(command, ...)` is the line with which a command refuses its arguments, from the option on."""

    def call(*arguments):
        capsys.readouterr()
        monkeypatch.setattr(train_command, "PATIENT_SECONDS", 3600.0)
        with pytest.raises(SystemExit) as exit_status:
            main([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert (exit_status.value.code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("python -m plrank_fast")
        return err.partition("error: ")[2]

    return call


@pytest.fixture
def letor(tmp_path):
    """A training file of 20 queries whose labels are told, with noise, by the second feature, in units of the query."""
    rng = np.random.default_rng(0)
    path = tmp_path / "train.txt"
    rows = [
        (label, qid, rng.random(), (label + rng.normal()) * 10.0**qid)
        for qid in range(20)
        for label in rng.integers(0, 3, 12)
    ]
    path.write_text("".join(f"{label} qid:{qid} 1:{a:.4f} 2:{b:.6g}\n" for label, qid, a, b in rows))
    return path


# --- mistakes


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("fly", "COMMAND"),
        ("train", "--train"),
        ("train --train x", "--vali"),
        ("train --profile bing", "--profile"),
        ("train --profile yahoo --queries 8 --cache x", "--cache"),
        ("train SMALL --hidden 2147483648", "--hidden"),
        ("train SMALL --epochs -1", "--epochs"),
        ("train SMALL --threads 0", "--threads"),
        ("train SMALL --checkpoint-seconds -1", "--checkpoint-seconds"),
        ("train SMALL --output ''", "--output"),
        ("train --resume nowhere", "--resume"),
        ("train --resume nowhere --output x", "--output"),
        ("evaluate", "MODEL"),
        ("evaluate nowhere x", "MODEL"),
        ("evaluate nowhere x --scores ''", "--scores"),
        ("evaluate nowhere x --cutoff 0", "--cutoff"),
        ("evaluate nowhere x --threads 0", "--threads"),
        ("bench --picture ''", "--picture"),
        ("bench --cutoffs 0", "--cutoffs must be at least 1, got 0"),
        ("bench --shapes none", "argument --shapes: invalid choice"),
        ("bench --queries 1.5", "argument --queries: invalid int value: '1.5'"),
        ("bench --seconds nan", "--seconds must be at least 0 and finite, got nan"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, named, error_of, tmp_path, monkeypatch):
    """Mutants: a check left out; argparse's usage printed before the line; exit status 1; NaN let through, which no
    comparison refuses."""
    monkeypatch.chdir(tmp_path)
    assert named in error_of(*shlex.split(arguments.replace("SMALL", shlex.join(SMALL))))
    assert os.listdir(tmp_path) == []


def test_the_nearest_option_is_blamed(tmp_path, error_of, monkeypatch):
    """Mutants: the first option of which the file is a part, however large a part of it the option is; the first word
    of every message taken for a parameter; the option of the first file; the line left out."""
    monkeypatch.chdir(tmp_path)
    Path("l.txt").write_text("1 qid:1 1:1\n")
    Path("train bad.txt").write_text("1 qid:8 1:1\n1 qid:9 1:nan\n")
    Path("cutoff.txt").write_text("1 qid:1 2147483647:1\n" * 1000)
    data = ["--train", "l.txt", "--vali", "l.txt"]
    for arguments, named in (
        ([*data, "train bad.txt"], "argument --vali: train bad.txt, line 2: expected 'index:value', got '1:nan'"),
        (["--train", "l.txt", "--vali", "l.txt/x"], "argument --vali: l.txt/x: "),
        ([*data, "--output", "l.txt"], "--output l.txt "),
        ([*SMALL, "--output", "l.txt/x"], "argument --output: l.txt/x: "),
        (["--train", "cutoff.txt", "--vali", "cutoff.txt"], "cutoff.txt, line 1: feature 2147483647 "),
    ):
        assert error_of("train", *arguments).startswith(named)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_no_command_writes_over_its_inputs(letor, tmp_path, error_of, link):
    """Mutants: names compared and not files; hard links not seen; the model, or all files but the first, not looked at;
    looked at when the work is done."""
    model, other = tmp_path / "model.plrank", tmp_path / "other"
    model.write_bytes(b"no model")
    for overwritten in (letor, model):
        before = overwritten.read_bytes()
        link(other, overwritten)
        assert error_of("evaluate", model, "x", letor, "--scores", other).startswith("--scores would write over ")
        assert overwritten.read_bytes() == before
        other.unlink()


def test_network_that_cannot_fit(letor, error_of, monkeypatch):
    """Mutants: the copies of a checkpoint not counted, the features not named; no check."""
    monkeypatch.setattr("plrank_fast._shared.memory.available_bytes", lambda: 32 * (2 * 50 + 50 + 51) - 1)
    told = error_of("train", "--train", letor, "--vali", letor, "--hidden", "50")
    assert told.startswith("--hidden 50 and 2 features mean a network that needs ")


def test_earlier_run_is_not_overwritten(tmp_path, error_of):
    """Mutants: overwritten; --overwrite without effect; settings that contradict a resumed run taken or ignored."""
    output = ["--output", tmp_path, "--quiet"]
    done("train", *SMALL, "--epochs", "1", *output)
    before = (tmp_path / "checkpoint.plrank").read_bytes()
    for arguments, named in [
        ([*SMALL, *output], "--output"),
        (["--resume", tmp_path, "--learning-rate", "0.5"], "--learning-rate contradicts"),
        (["--resume", tmp_path, "--queries", "41"], "--queries contradicts"),
    ]:
        assert error_of("train", *arguments).startswith(named)
    assert (tmp_path / "checkpoint.plrank").read_bytes() == before
    done("train", "--resume", tmp_path, "--quiet", *SMALL)
    done("train", *SMALL, "--epochs", "2", "--overwrite", *output)
    assert json.loads((tmp_path / "results.json").read_text())["epochs"] == 2


# --- runs


def test_qids_of_any_text_and_their_cache(letor, tmp_path, capsys, error_of, monkeypatch):
    """Mutants: either option not handed to the reader by train, by evaluate or by a resume; the caches of the two kinds
    of qids not told apart."""
    named, run = tmp_path / "named.txt", tmp_path / "run"
    named.write_text(letor.read_text().replace("qid:", "qid:q"))
    train = ["train", "--train", named, "--vali", named, "--output", run, "--cache", run, "--epochs", "1", "--quiet"]
    evaluate = ["evaluate", run, "--cache", run]
    assert "--string-qids to a command" in error_of(*train)
    done(*train, "--string-qids")
    with monkeypatch.context() as patch:
        patch.delattr("plrank_fast.data.letor._Rows.read")
        done("train", "--resume", run, "--epochs", "2", "--cache", run, "--quiet")
        capsys.readouterr()
        done(*evaluate, named, "--string-qids")
    table = capsys.readouterr().out
    done(*evaluate, letor)
    assert capsys.readouterr().out.replace("train.txt", "named.txt") == table
    error_of(*evaluate, named)


def test_train_and_evaluate(letor, tmp_path, capsys, error_of, monkeypatch):
    """Mutants: validation evaluated in place of test; table and results file disagree; scores in another order;
    features of the file not normalised as in training; ``--metric`` or its cutoff without effect; a user who waits for
    data not told so; a line with feature 10^9 given a matrix of so many columns before it is refused."""
    load = Source.load
    monkeypatch.setattr(Source, "load", lambda self, **how: time.sleep(0.1) or load(self, **how))
    monkeypatch.setattr(train_command, "PATIENT_SECONDS", 0.0)
    run, scores_file, test = tmp_path / "run", tmp_path / "scores.txt", tmp_path / "test.txt"
    test.write_text("".join(letor.read_text().splitlines(keepends=True)[:120]))
    files = ["--train", letor, "--vali", letor, "--test", test]
    done("train", *files, *shlex.split("--epochs 20 --learning-rate 0.05 --cutoff 5 --output"), run)
    out, err = capsys.readouterr()
    assert out.startswith("loading the data")
    assert "100%" in err  # the progress bar
    assert "NDCG@5" in err
    results = json.loads((run / "results.json").read_text())
    for split in ("vali", "test"):
        for state in ("untrained", "trained"):
            for metric in ("ndcg_query", "expected_ndcg_query"):
                assert f"{results['metrics'][split][state][metric]:.4f}" in out
    assert results["stopped"] == "epochs"
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert str(run / "learning_curve.png") in out

    model = run / "model.plrank"
    done("evaluate", model, test, "--scores", scores_file)
    out = capsys.readouterr().out
    assert ", 120 documents" in out
    for metric in ("ndcg_query", "expected_ndcg_query"):
        assert f"{results['metrics']['test']['trained'][metric]:.4f}" in out
    scores = np.array(scores_file.read_text().split(), dtype=float)
    labels = np.array([line.split()[0] for line in test.read_text().splitlines()], dtype=float)
    done("evaluate", model, test, *shlex.split("--metric mrr --cutoff 2"))
    out = capsys.readouterr().out
    offsets = plr.offsets_from_qid([line.split()[1] for line in test.read_text().splitlines()])
    assert f"{plr.mrr(scores, labels, 2, offsets=offsets).mean():.4f}" in out
    relevant, weights = (labels > 0) * 1.0, [1.0, 0.5]
    expected = plr.expected_metric(scores, relevant, weights, stop_probability=relevant, offsets=offsets).mean()
    assert f"{expected:.4f}" in out

    test.write_text("".join(f"{label} qid:{label // 4} 1:1 2:1\n" for label in (0, 1, 2, 3)))
    for ties, words in (("index", "in the order of the file"), ("average", "the mean over all their orders")):
        done("evaluate", model, test, "--ties", ties)
        out = capsys.readouterr().out
        value = plr.ndcg(np.zeros(4), plr.gains(range(4)), cutoff=5, ties=ties)[0]
        assert out.splitlines()[2].split()[-2] == f"{value:.4f}"  # before the expectation, which is the mean too
        assert f"equal scores: {words}\n" in out
    error = error_of("evaluate", model, test, "--ties", "average", "--metric", "mrr")
    assert error.endswith("--ties must be 'index' with metric='mrr', got 'average'\n")

    other, trained_with = tmp_path / "other.txt", "features, and the model was trained with 2"
    other.write_text("1 qid:1 1:1\n")
    assert f"FILE other.txt has 1 {trained_with}: a file of its data that" in error_of("evaluate", model, other)
    other.write_text("1 qid:1 1:1\n1 qid:1 3:1\n")
    error = error_of("evaluate", model, other)
    assert error.endswith("line 2: feature index '3' is beyond the 2 features that the model was trained with\n")
    files = ["--train", other, "--vali", other, "--cache", run]
    done("train", *files, "--epochs", "0", "--quiet", "--output", tmp_path / "untrained")
    assert "no epoch has ended, so the model is the untrained network" in capsys.readouterr().out
    assert error_of("evaluate", model, other, "--cache", run).endswith(f"has 3 {trained_with}\n")
    assert error_of("evaluate", model, __file__).startswith("argument FILE")


class Killed(BaseException):
    """An end of the process, after which nothing is written."""


@pytest.mark.parametrize("fault", ["full disk", "killed", "interrupted"])
def test_a_fault_at_each_file_that_a_run_writes(letor, tmp_path, error_of, monkeypatch, fault):
    """Checkpoints, model, results, picture: a run that ends there is resumed to the weights, optimizer and history of
    an undisturbed one. A file is replaced in one step, so a kill while it is written leaves what a kill before does.

    Mutants: moments of Adam not restored, or rounded; a full disk that is not told with the name of the folder.
    """
    given = ["train", "--train", letor, "--vali", letor, "--checkpoint-seconds", "0", "--epochs", "3", "--quiet"]
    given += shlex.split("--method pl_rank_3 --samples 2 --hidden 3 --batch-queries 8 --learning-rate 3")
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **options: file.write(b"picture"))
    write, numbers = files._replacing, itertools.count()

    def replacing(target, mode):
        if next(numbers) == fault_at:
            if fault != "interrupted":
                raise Killed if fault == "killed" else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            signal.raise_signal(signal.SIGINT)
        return write(target, mode)

    def outcome(folder):
        header, arrays = read_archive(folder / "checkpoint.plrank", "checkpoint")
        state = {name: array.tobytes() for name, array in arrays.items()}
        return state, header["progress"]["history"], (folder / "model.plrank").read_bytes()

    monkeypatch.setattr(files, "_replacing", replacing)
    fault_at = None
    done(*given, "--output", tmp_path / "whole")
    expected, count = outcome(tmp_path / "whole"), next(numbers)
    assert count == 8
    assert plr.load_model(tmp_path / "whole").epoch < 3  # so that the weights of the best epoch must outlast others
    for fault_at in range(count):
        folder, numbers = tmp_path / f"{fault_at}", itertools.count()
        if fault == "full disk":
            assert error_of(*given, "--output", folder).startswith(f"argument --output: {folder}")
        else:
            with contextlib.suppress(Killed):
                assert main([*map(str, given), "--output", str(folder)]) in (0, 130)
        assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]
        numbers = itertools.count(count)
        resume = ["train", "--resume", folder, "--quiet", "--threads", "2"]
        done(*(resume if (folder / "checkpoint.plrank").exists() else [*given, "--output", folder]))
        assert outcome(folder) == expected, fault_at


@pytest.mark.parametrize("times", [1, 2])
def test_interrupts_within_a_batch(times, tmp_path, capsys, monkeypatch):
    """The first waits for the end of the batch: table, results, picture, exit status 130. A second aborts. A shell
    ignores SIGINT for what it starts in the background, and so does the run.

    Mutants: KeyboardInterrupt let through; the epoch under way counted as whole; exit status 0; the first handler left
    installed, or installed where the signal is ignored; loading told against --quiet.
    """
    plain, batches = loss_module.gradient, []
    monkeypatch.setattr(train_command, "PATIENT_SECONDS", 0.0)

    def interrupted(*arguments, **options):
        batches.append(0)
        for _ in range(times if len(batches) == 7 else 0):  # in the second epoch
            batches[-1] += 1
            signal.raise_signal(signal.SIGINT)
        return plain(*arguments, **options)

    monkeypatch.setattr(loss_module, "gradient", interrupted)
    train = ["train", *SMALL, "--epochs", "3", "--quiet", "--output", str(tmp_path)]
    assert main(train) == 130
    assert batches == [*[0] * 6, times]
    out, err = capsys.readouterr()
    if times == 2:
        assert (out, err) == ("", "aborted\n")
    else:
        assert "best epoch" in out
        assert f"--resume {tmp_path}\n" in out
        assert (tmp_path / "learning_curve.png").exists()
        results = json.loads((tmp_path / "results.json").read_text())
        assert (results["stopped"], results["epochs"]) == ("interrupted", 1)
    batches.clear()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done(*train, "--overwrite")
    finally:
        signal.signal(signal.SIGINT, before)
    assert json.loads((tmp_path / "results.json").read_text())["epochs"] == 3


HOLDER = """
import sys
from plrank_fast._shared.files import locked_folder
with locked_folder(sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_second_run_in_a_folder_is_refused(tmp_path, error_of, monkeypatch):
    """By new runs and by resumes, before data are loaded, with the option to blame; and no longer once the first is
    gone, however it went. Mutants: no lock; taken only when training begins; a file that outlives a kill for a lock."""
    output = ["--output", tmp_path, "--quiet"]
    done("train", *SMALL, "--epochs", "1", *output)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    program, pipes = [sys.executable, "-c", HOLDER, tmp_path], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, **pipes) as holder, monkeypatch.context() as patch:
        assert holder.stdout.readline() == b"ready\n"
        patch.delattr(Source, "load")
        for arguments, option in [
            (["--train", "nowhere", "--vali", "nowhere", "--overwrite", *output], "--output"),
            (["--resume", tmp_path, "--epochs", "2"], "--resume"),
        ]:
            expected = f"argument {option}: {tmp_path}: another run is at work in this folder\n"
            assert error_of("train", *arguments) == expected
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        holder.kill()
    done("train", "--resume", tmp_path, "--epochs", "2", "--quiet")


# --- what the user sees


@pytest.mark.parametrize(("argv", "name"), [("plrank-fast", "plrank-fast"), ("__main__.py", "python -m plrank_fast")])
def test_program_is_named_as_it_was_called(argv, name, capsys, monkeypatch):
    """With no arguments it helps; the script that pip makes calls the entry point of the metadata. Mutants: an entry
    point that does not exist; an error, or no word; the program's path for its name."""
    metadata = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    module, function = re.search(r"\[project.scripts\]\nplrank-fast = \"([\w.]+):(\w+)\"", metadata).groups()
    called = getattr(importlib.import_module(module), function)
    monkeypatch.setattr(sys, "argv", [f"/somewhere/{argv}"])
    assert called() == 0
    out, err = capsys.readouterr()
    assert (out.startswith(f"usage: {name} "), err) == (True, "")
    for command in ("train", "evaluate", "bench", "--version"):
        assert command in out
    for arguments, status, told in (
        (["train", "--epochs", "-1"], 2, ("", f"{name} train: error: --train files or a profile must be given\n")),
        (["--version"], 0, (f"plrank-fast {plr.__version__}\n", "")),
    ):
        with pytest.raises(SystemExit) as stop:
            called(arguments)
        assert (stop.value.code, capsys.readouterr()) == (status, told)


def test_help_names_what_the_command_line_has(capsys):
    """Mutant: a function of the source in the description of a setting."""
    text, others = "", {"plrank_fast", "trec_eval"}
    for command in ("train", "evaluate", "bench"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text += capsys.readouterr().out
    chosen = {name for names in re.findall(r"\{(.*?)\}", text) for name in names.split(",")}
    options = {name.replace("-", "_") for name in re.findall(r"--([\w-]+)", text)}
    assert {*re.findall(r"(?<![\w.])[a-z]+_\w+(?![.\w])", text)} <= chosen | options | others


# --- packages


def test_prediction_and_commands_start_light(tmp_path):
    """Mutants: an import of torch, matplotlib or tqdm at the top of a module, or on the way to a prediction."""
    done("train", *SMALL, "--epochs", "0", "--quiet", "--output", tmp_path)
    program = f"""
import sys, plrank_fast.__main__, plrank_fast as plr
print(plr.load_model({str(tmp_path)!r}).predict([[0.5] * 8], offsets=[0, 1]).shape)
print({{"torch", "matplotlib", "tqdm"}} & set(sys.modules))
"""
    assert run_python(program).split() == ["(1,)", "set()"]


TRAIN, BENCH = ["train", *SMALL], ["bench", "--picture", "a.png"]


@pytest.mark.parametrize(
    ("command", "module", "first"),
    [
        *((TRAIN, module, "torch") for module in ("torch", "tqdm", "matplotlib.figure")),
        *((BENCH, module, "matplotlib") for module in ("tqdm.auto", "matplotlib.figure")),
    ],
)
def test_missing_package_is_named_with_its_extra(command, module, first, error_of, tmp_path, monkeypatch):
    """Mutants: a traceback; the wrong extra; told only after the training or the measurement; asv in the extra."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    error = error_of(*command)
    assert f"{module.partition('.')[0]} is needed here (" in error
    assert f'pip install "{first}>=' in error
    assert os.listdir(tmp_path) == []
    metadata = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert set(re.findall(r'"([a-z]+)', re.search(r"^bench = (\[.*?\])", metadata, re.M)[1])) == {"matplotlib", "tqdm"}
