"""``make storage``: a seeded part of it, and errors put in that it must find."""

import inspect
import itertools
import os
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("fcntl")
pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from plrank_fast._shared import files
from plrank_fast.training.network import Optimizer
from plrank_fast.training.trainer import TrainingRun
from storage import CHECKPOINT, EPOCHS, FAULTS, Evaluate, Storage, Train, quick_commands, read_archive


@pytest.fixture
def storage(tmp_path):
    with quick_commands():
        yield Storage(0, 3, tmp_path)


def test_seeded(storage):
    """Faults at some operations of each command. Without mutants of its own: the tests below put errors in."""
    storage.run()
    assert storage.findings == []
    assert storage.tally == {"full disk": 15, "read-only": 5, "killed": 15, "interrupted": 6}


def test_an_operation_that_is_not_reached_is_no_finding(storage):
    """A busy machine measures less, and so writes less. Mutants: the fault looked for all the same; none tried then."""
    ends = []
    meet = Evaluate.meet
    with mock.patch.object(Evaluate, "meet", lambda self, fault, end: ends.append(end) or meet(self, fault, end)):
        storage.attempt("far", Evaluate, "killed", 10**6)
    assert storage.findings == []
    assert ends[0] == 10**6
    assert ends[-1] < 100


def test_the_best_epoch_is_not_the_last(storage):
    """Or the weights of the best epoch need not outlast anything."""
    best = {
        read_archive(folder / CHECKPOINT, "checkpoint")[0]["progress"]["best_epoch"]
        for folder in storage.whole.values()
    }
    assert min(best) < EPOCHS


@contextmanager
def written_in_place(target, mode):
    with open(target, "wb") as file:
        yield file


@contextmanager
def never_tidied(target, mode):
    with open(target.with_name("left.tmp"), "wb") as file:
        yield file
    os.replace(target.with_name("left.tmp"), target)


def without_a_name(path, mode=None):
    return files._replacing(path.resolve(), mode)


def rounded(state):
    """Moments of the optimizer to three digits."""
    return lambda optimizer: {
        name: array.astype(np.float16).astype(array.dtype) for name, array in state(optimizer).items()
    }


def by_steps_of_the_process(key):
    """Random streams that are numbered from the beginning of the process on, as those of a generator would be."""
    numbers = {}

    def wrong(run, *place):
        mine = numbers.setdefault(id(run), {})
        return key(run, place[0], mine.setdefault(place, len(mine)))

    return wrong


def resumed(change):
    """A resume after which something has been changed."""

    def wrong(resume):
        def call(cls, *arguments, **options):
            run = resume.__func__(cls, *arguments, **options)
            change(run)
            return run

        return classmethod(call)

    return wrong


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "found"),
    [
        (files, "_replacing", lambda _: written_in_place, "does not load"),
        (files, "_replacing", lambda _: never_tidied, "left behind"),
        (files, "replacing", lambda _: without_a_name, "does not name the file"),
        (Optimizer, "set_state", lambda _: lambda optimizer, state: None, "another weights and optimizer"),
        (Optimizer, "state", rounded, "another weights and optimizer"),
        (TrainingRun, "_key", by_steps_of_the_process, "another weights and optimizer"),
        (
            TrainingRun,
            "resume",
            resumed(lambda run: setattr(run.progress, "batch", 0)),
            "another weights and optimizer",
        ),
        (
            TrainingRun,
            "resume",
            resumed(lambda run: setattr(run, "best_weights", run.network.weights())),
            "another model",
        ),
    ],
)
def test_finds_an_error(owner, name, wrong, found, storage, monkeypatch, capsys):
    """Mutants of the library, in the attacked process: of what is written, and of what a resume takes up again."""
    monkeypatch.setattr(owner, name, wrong(inspect.getattr_static(owner, name)))
    for number, fault in itertools.product(range(10, 40), FAULTS):
        storage.attempt(fault, Train, fault, number)
        if any(found in finding for finding in storage.findings):
            break
    assert found in storage.findings[-1]
    assert "BROKEN" in capsys.readouterr().out
