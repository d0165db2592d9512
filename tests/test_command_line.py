"""The command line: errors in one line, runs that are stopped and killed, missing packages."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from plrank_fast.__main__ import main
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.loop import TrainingRun
from plrank_fast.training.saved_model import save_model
from plrank_fast.training.sources import Source

SMALL = [
    "--method",
    "pl_rank_3",
    "--profile",
    "yahoo",
    "--queries",
    "40",
    "--features",
    "8",
    "--batch-queries",
    "8",
    "--samples",
    "5",
]


def python(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def finished(process, timeout=120):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


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
        ([], "COMMAND"),
        (["fly"], "COMMAND"),
        (["train"], "--train"),
        (["train", "--train", "x"], "--vali"),
        (["train", "--train", "nowhere.txt", "--vali", "nowhere.txt"], "--train: nowhere.txt"),
        (["train", "--profile", "bing"], "--profile"),
        (["train", "--profile", "yahoo", "--train", "x"], "--train"),
        (["train", *SMALL, "--queries", "0"], "--queries"),
        (["train", *SMALL, "--features", "0"], "--features"),
        (["train", *SMALL, "--data-seed", "-1"], "--data-seed"),
        (["train", *SMALL, "--method", "best"], "--method"),
        (["train", *SMALL, "--cutoff", "0"], "--cutoff"),
        (["train", *SMALL, "--cutoff", "ten"], "--cutoff"),
        (["train", *SMALL, "--samples", "0"], "--samples"),
        (["train", *SMALL, "--samples", "many"], "--samples"),
        (["train", *SMALL, "--objective", "mean"], "--objective"),
        (["train", *SMALL, "--epochs", "-1"], "--epochs"),
        (["train", *SMALL, "--minutes", "nan"], "--minutes"),
        (["train", *SMALL, "--seed", "-1"], "--seed"),
        (["train", *SMALL, "--threads", "0"], "--threads"),
        (["train", *SMALL, "--model-threads", "0"], "--model-threads"),
        (["train", *SMALL, "--learning-rate", "0"], "--learning-rate"),
        (["train", *SMALL, "--batch-queries", "0"], "--batch-queries"),
        (["train", *SMALL, "--hidden", "0"], "--hidden"),
        (["train", *SMALL, "--optimizer", "lbfgs"], "--optimizer"),
        (["train", *SMALL, "--output", "/dev/null/x"], "--output"),
        (["train", "--resume", "nowhere"], "--resume"),
        (["train", "--resume", "nowhere", "--output", "x"], "--output"),
        (["train", "--resume", "nowhere", "--overwrite"], "--overwrite"),
        (["evaluate"], "MODEL"),
        (["evaluate", "nowhere", "x"], "MODEL"),
        (["evaluate", "nowhere", "x", "--cutoff", "0"], "--cutoff"),
        (["evaluate", "nowhere", "x", "--threads", "0"], "--threads"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, named, capsys, tmp_path, monkeypatch):
    """Mutants: a check left out; argparse's usage printed before the line; exit status 1."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_status:
        main(arguments)
    assert exit_status.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("python -m plrank_fast")
    assert named in err.partition("error: ")[2]
    assert os.listdir(tmp_path) == []


def test_bad_file_is_named_with_its_line(letor, capsys, tmp_path):
    """Mutants: the option of the first file blamed; a path that begins with an option's name rewritten."""
    bad = tmp_path / "train bad.txt"
    bad.write_text("1 qid:1 1:1\n1 qid:2 1:nan\n")
    with pytest.raises(SystemExit):
        main(["train", "--train", str(letor), "--vali", str(letor), str(bad), "--output", str(tmp_path / "run")])
    assert f"argument --vali: {bad}, line 2: expected numbers, got '1:nan'" in capsys.readouterr().err


def test_only_parameters_become_options(tmp_path, capsys, monkeypatch):
    """Mutant: the first word of every message taken for a parameter."""
    monkeypatch.chdir(tmp_path)
    Path("cutoff.txt").write_text("1 qid:1 2147483647:1\n" * 1000)
    with pytest.raises(SystemExit):
        main(["train", "--train", "cutoff.txt", "--vali", "cutoff.txt"])
    assert "error: cutoff.txt: 1000 x 2147483647 features need" in capsys.readouterr().err


def test_folder_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    """Root may write anywhere, so a folder in the checkpoint's place stands for the read-only one. Mutant: no save
    before the first epoch."""
    monkeypatch.delattr(TrainingRun, "_step")
    (tmp_path / "run" / "checkpoint.plrank.tmp").mkdir(parents=True)
    with pytest.raises(SystemExit):
        main(["train", *SMALL, "--quiet", "--output", str(tmp_path / "run")])
    assert "error: argument --output: " in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write into read-only folders")
def test_read_only_folder(tmp_path, capsys):
    """Mutant: as above."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o500)
    with pytest.raises(SystemExit):
        main(["train", *SMALL, "--quiet", "--output", str(folder)])
    assert f"error: argument --output: {folder}" in capsys.readouterr().err


def test_earlier_run_is_not_overwritten(tmp_path, capsys):
    """Mutants: overwritten; --overwrite without effect; settings that contradict a resumed run taken or ignored."""
    output = ["--output", str(tmp_path), "--quiet"]
    assert main(["train", *SMALL, "--epochs", "1", *output]) == 0
    before = (tmp_path / "checkpoint.plrank").read_bytes()
    for arguments, named in [
        ([*SMALL, *output], "--output"),
        (["--resume", str(tmp_path), "--learning-rate", "0.5"], "--learning-rate contradicts"),
        (["--resume", str(tmp_path), "--queries", "41"], "--queries contradicts"),
    ]:
        with pytest.raises(SystemExit):
            main(["train", *arguments])
        assert named in capsys.readouterr().err
    assert (tmp_path / "checkpoint.plrank").read_bytes() == before
    assert main(["train", "--resume", str(tmp_path), "--quiet", *SMALL]) == 0
    assert main(["train", *SMALL, "--epochs", "2", "--overwrite", *output]) == 0
    assert json.loads((tmp_path / "results.json").read_text())["epochs"] == 2


# --- runs


def test_train_and_evaluate(letor, tmp_path, capsys):
    """Mutants: validation evaluated in place of test; table and results file disagree; scores in another order;
    features of the file not normalised as in training."""
    run, metrics_file, scores_file = tmp_path / "run", tmp_path / "metrics.json", tmp_path / "scores.txt"
    test = tmp_path / "test.txt"
    test.write_text("".join(letor.read_text().splitlines(keepends=True)[:120]))
    files = ["--train", str(letor), "--vali", str(letor), "--test", str(test)]
    settings = ["--epochs", "20", "--optimizer", "adam", "--learning-rate", "0.05", "--cutoff", "5"]
    assert main(["train", *files, *settings, "--output", str(run)]) == 0
    out, err = capsys.readouterr()
    assert "100%" in err  # the progress bar
    assert "NDCG@5" in err
    results = json.loads((run / "results.json").read_text())
    for split in ("vali", "test"):
        for state in ("untrained", "trained"):
            for value in results["metrics"][split][state].values():
                assert f"{value:.4f}" in out
    assert results["metrics"]["vali"]["trained"]["ndcg_query"] > results["metrics"]["vali"]["untrained"]["ndcg_query"]
    assert results["stopped"] == "epochs"
    assert len(results["history"]) == 21
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert str(run / "learning_curve.png") in out

    model = str(run / "model.plrank")
    assert main(["evaluate", model, str(test), "--json", str(metrics_file), "--scores", str(scores_file)]) == 0
    content, out = json.loads(metrics_file.read_text()), capsys.readouterr().out
    assert content["documents"] == 120
    assert content["metrics"] == results["metrics"]["test"]["trained"]
    for value in content["metrics"].values():
        assert f"{value:.4f}" in out
    scores = np.array(scores_file.read_text().split(), dtype=float)
    labels = np.array([line.split()[0] for line in test.read_text().splitlines()], dtype=float)
    assert scores.shape == (120,)
    assert np.corrcoef(scores, labels)[0, 1] > 0.5

    with pytest.raises(SystemExit):
        main(["evaluate", model, __file__])
    assert "argument FILE" in capsys.readouterr().err


def uninterrupted(folder, epochs):
    """Bytes of the model that the runs below must arrive at, trained in one go on one thread."""
    source = Source(profile="yahoo", queries=40, features=8)
    config = TrainingConfig(method="pl_rank_3", batch_queries=8, samples=5)
    run = TrainingRun(config, source, source.load(normalize=True), folder, epochs=epochs, n_threads=1)
    run.train()
    save_model(folder / "whole", run)
    return (folder / "whole").read_bytes()


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_interrupt_keeps_what_was_reached(tmp_path):
    """Ctrl-C: table, results, picture, exit status 0, and a resume to the same bits on other threads.

    Mutants: KeyboardInterrupt let through; the epoch under way lost or counted as whole.
    """
    run = tmp_path / "run"
    process = python("-m", "plrank_fast", "train", *SMALL, "--epochs", "1000000", "--output", run)
    wait_for(run / "checkpoint.plrank", process)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    status, out, err = finished(process)
    assert status == 0, err
    assert "best epoch" in out
    assert f"--resume {run}" in out
    assert "Traceback" not in err
    assert (run / "learning_curve.png").exists()
    results = json.loads((run / "results.json").read_text())
    assert results["stopped"] == "interrupted"
    epochs = results["epochs"] + 2
    assert main(["train", "--resume", str(run), "--epochs", str(epochs), "--threads", "3", "--quiet"]) == 0
    assert (run / "model.plrank").read_bytes() == uninterrupted(tmp_path, epochs)


def test_second_interrupt_aborts(tmp_path):
    """Mutant: the first handler left installed. A library call that never returns stands for a long one."""
    program = f"""
import signal, sys, time, plrank_fast.training.loop as loop
from plrank_fast.__main__ import main
def stuck(*arguments, **options):
    print("stuck", flush=True)
    signal.raise_signal(signal.SIGINT)
    print("still here", flush=True)
    signal.raise_signal(signal.SIGINT)
    print("never here", flush=True)
loop.gradient = stuck
sys.exit(main(["train", *{SMALL!r}, "--quiet", "--output", {str(tmp_path)!r}]))
"""
    status, out, err = finished(python("-c", program))
    assert (status, out) == (130, "stuck\nstill here\n")
    assert err == "aborted\n"


def test_kill_and_resume(tmp_path):
    """Killed twice at random: the model is that of the uninterrupted run, bit for bit.

    Mutant: checkpoint and weights written separately, so that a kill leaves them of different epochs.
    """
    run, epochs = tmp_path / "run", 200
    arguments = [*SMALL, "--output", run, "--epochs", epochs]
    rng = np.random.default_rng(8)
    for threads in (1, 2):
        process = python("-m", "plrank_fast", "train", *arguments, "--threads", threads, "--quiet")
        wait_for(run / "checkpoint.plrank", process)
        time.sleep(rng.uniform(0.0, 0.3) + (1.5 if threads > 1 else 0))
        process.kill()
        finished(process)
        arguments = ["--resume", run]
    assert main(["train", "--resume", str(run), "--quiet"]) == 0
    assert (run / "model.plrank").read_bytes() == uninterrupted(tmp_path, epochs)


# --- packages


def test_start_is_light():
    """Mutants: an import of torch, scikit-learn, matplotlib or tqdm at the top of a module."""
    program = "import sys, plrank_fast.__main__; print({'torch', 'sklearn', 'matplotlib', 'tqdm'} & set(sys.modules))"
    assert finished(python("-c", program))[:2] == (0, "set()\n")


@pytest.mark.parametrize("package", ["torch", "sklearn", "tqdm", "matplotlib"])
def test_missing_package_is_named_with_its_extra(package, tmp_path):
    """Mutants: a traceback; the wrong extra; told only after the training."""
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    program = f"""
import sys
sys.modules[{package!r}] = None
from plrank_fast.__main__ import main
main(["train", "--train", "a.txt", "--vali", "a.txt", "--epochs", "1"])
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    status, _, err = finished(python("-c", program, cwd=tmp_path, env=environment))
    assert status == 2
    assert err.count("\n") == 1
    assert f"{package} is needed here (" in err
    assert 'pip install "plrank-fast[train]"' in err
    assert os.listdir(tmp_path) == ["a.txt"]
