"""Training on several processes: the gradients of one, whatever their number, and what is left when one of them dies.

Processes cost seconds to start, so `torchrun` starts two of them once, and all tests look at what they did.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from plrank_fast.__main__ import main
from plrank_fast._shared.archive import read_archive
from plrank_fast.data import RankingData
from plrank_fast.training.checkpoint import CHECKPOINT
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.loss import Loss
from plrank_fast.training.network import ScoringNetwork
from plrank_fast.training.ranks import ALONE, Ranks
from plrank_fast.training.sources import Source
from plrank_fast.training.trainer import TrainingRun

ROOT = Path(__file__).resolve().parents[2]
N_RANKS = 2
LENGTHS = (5, 3, 40, 0, 2, 7, 4, 1, 9, 6, 30, 3, 8, 2, 5)  # in batches of seven: the last has one query for two ranks
METHODS = [  # exact, sampled, a loss with ties at random, one without, and the objective that has streams of its own
    *(("exact", "dataset"), ("pl_rank_3", "dataset"), ("list_mle", "dataset"), ("lambda_rank", "query")),
    ("cmc", "disparity"),
]
DEATH = (4, 1)  # epoch and batch in which a rank is killed
TRAIN = ["train", "--profile", "yahoo", "--queries", "40", "--features", "6", "--batch-queries", "16"]
TRAIN += ["--optimizer", "sgd", "--learning-rate", "0.3"]


def gradients(ranks, folder):
    """Gradients by the weights in every step of an epoch, for each method; the network is in float64."""
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    data = RankingData(
        rng.normal(size=(offsets[-1], 6)).astype(np.float32), rng.integers(0, 3, offsets[-1]).astype(float), offsets,
        np.arange(len(LENGTHS)), "uneven",
    )  # fmt: skip
    found = {}
    for method, objective in METHODS:
        config = TrainingConfig(
            method=method, objective=objective, samples=8, batch_queries=7, optimizer="sgd", learning_rate=0.01
        )
        run = TrainingRun(config, Source(profile="yahoo"), {"train": data, "vali": data}, folder, epochs=1, ranks=ranks)
        run.network._layers.double()
        for batch in run.batches.of_epoch(0):
            run.network.step(run.loss.ascent(run.network.forward(batch.features), batch), ranks)
            parts = [weights.grad.numpy().ravel() for weights in run.network._layers.parameters()]
            found[f"{method} {objective} {batch.number}"] = np.concatenate(parts)
    return found


def be_rank(folder):
    """Act as one rank: write gradients, then go on with the run in the folder, until one is killed."""
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    # with a store of its own: the launcher's serves one group, and that is to be the command's
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=N_RANKS)
    np.savez(folder / f"gradients{rank}.npz", **gradients(Ranks(rank, N_RANKS), folder))
    torch.distributed.destroy_process_group()
    ascent = Loss.ascent

    def fatal_ascent(loss, scores, batch):
        if rank == 1 and (batch.epoch, batch.number) == DEATH:
            os.kill(os.getpid(), signal.SIGKILL)
        return ascent(loss, scores, batch)

    Loss.ascent = fatal_ascent
    return main(["train", "--resume", str(folder), "--epochs", "6", "--checkpoint-seconds", "0"])


@pytest.fixture(scope="module", autouse=True)
def torch_threads():
    """A training run sets the process's threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """Folder of a run of two epochs in one process, which two then went on with; and the processes' output."""
    folder = tmp_path_factory.mktemp("ranks")
    main([*TRAIN, "--output", str(folder), "--epochs", "2", "--quiet"])
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(N_RANKS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*launcher, __file__, str(folder)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate()
    finally:
        process.terminate()  # of a launcher that is killed the processes would go on
        process.wait()
    return folder, subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_gradients_of_several_ranks(launched, tmp_path):
    """Gradients equal one process's, to rounding, for every kind of method and with uneven or empty shares.

    Mutants: the mean over the ranks for the sum; the first query not passed on to estimators, to losses,
    to the disparity; the last query of each share left out; the share of the first rank for both.
    """
    folder, done = launched
    expected = gradients(ALONE, tmp_path)
    for rank in range(N_RANKS):
        assert (folder / f"gradients{rank}.npz").exists(), done.stderr
        with np.load(folder / f"gradients{rank}.npz") as found:
            assert set(found) == set(expected)
            wrong = {name: np.abs(found[name] - expected[name]).max() for name in found}
        assert not {name: error for name, error in wrong.items() if not error <= 1e-12 * np.abs(expected[name]).max()}


def test_one_rank_writes_and_a_dead_one_ends_the_run(launched):
    """Mutant: every rank prints."""
    folder, done = launched
    assert done.returncode != 0
    assert done.stdout.count("method: exact") == 1, done.stdout
    assert "(rank 0 of 2): error: " in done.stderr
    assert "another rank" in done.stderr
    assert f"to go on from the last checkpoint: python -m plrank_fast train --resume {folder}" in done.stderr
    progress = read_archive(folder / CHECKPOINT, "checkpoint")[0]["progress"]
    assert progress["epoch"] == DEATH[0]


def test_resumed_by_another_number_of_ranks(launched, tmp_path):
    """One process, then two, then one again: what one would have come to, to the rounding of float32.

    Mutant: gradients of two ranks averaged.
    """
    folder, _ = launched
    assert main(["train", "--resume", str(folder), "--epochs", "6", "--quiet"]) == 0
    assert main([*TRAIN, "--output", str(tmp_path), "--epochs", "6", "--quiet"]) == 0
    (header, arrays), (expected, weights) = (
        read_archive(path / CHECKPOINT, "checkpoint") for path in (folder, tmp_path)
    )
    assert header["progress"]["epoch"] == expected["progress"]["epoch"] == 6
    assert (folder / "results.json").exists()
    for name, array in weights.items():
        np.testing.assert_allclose(arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
    untrained = ScoringNetwork(6, TrainingConfig()).weights()
    assert any(np.abs(weights[f"network/{name}"] - array).max() > 0.01 for name, array in untrained.items())


if __name__ == "__main__":
    sys.exit(be_rank(Path(sys.argv[1])))
