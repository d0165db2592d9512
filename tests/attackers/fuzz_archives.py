"""Models and checkpoints of ``train``: damaged ones are refused by name, and none loads as another than it says.

Bytes are damaged; the payload is damaged and given the right digest; header and arrays are changed and written again.
Refused means a ValueError that names the file (or the data or the files of the run, where these are what is wrong). A
model that loads must hold the very arrays of the file, and score documents with finite numbers.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from damage import Target, damaged_bytes, damaged_json
from plrank_fast._shared.archive import ALIGNMENT, VERSION, read_archive
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.model import load_model
from plrank_fast.training.sources import Source
from plrank_fast.training.trainer import CHECKPOINT, TrainingRun
from search import ViolationError

MODEL = "model.plrank"
FILES = {"model": MODEL, "checkpoint": CHECKPOINT}
SOURCE = Source(profile="yahoo", queries=8, features=6)
CONFIG = TrainingConfig(hidden=(4, 3), method="pl_rank_cmc", samples=1, cutoff=5)
DOCUMENTS = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
MOST_GENERATED = 100  # queries and features of a source, and ranks, that a run may have
# The data may be wrong rather than the file that names them.
REFUSALS = ("train data are not", "vali data are not", "test data are not")


class ArchiveFuzz(Target):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        run = TrainingRun(CONFIG, SOURCE, SOURCE.load(normalize=True), folder, epochs=2, checkpoint_seconds=1e9)
        run.train()
        run.epochs = 3
        run.train()
        run.best_model().save(folder / MODEL)
        self.sound = {name: (folder / name).read_bytes() for name in (CHECKPOINT, MODEL)}

    def attack(self, rng: random.Random) -> None:
        kind = rng.choice(("model", "checkpoint"))
        name = FILES[kind]
        other = self.sound[CHECKPOINT if kind == "model" else MODEL]
        way = rng.choice(("bytes", "payload", "header", "header", "arrays", "parts"))
        self.tally[f"{kind}, {way}"] += 1
        sound = self.sound[name]
        for each, content in self.sound.items():
            (self.folder / each).write_bytes(content)
        path = self.folder / name
        if way == "bytes":
            damaged = damaged_bytes(rng, sound, other)
        elif way == "payload":
            damaged = _with_digest(kind, damaged_bytes(rng, _payload(sound), _payload(other)))
        else:
            damaged = _rewritten(rng, kind, self.folder, way)
        path.write_bytes(damaged)
        try:
            wrong = self._load_model(path, damaged) if kind == "model" else self._resume()
            self.tally["loaded"] += 1
        except (ValueError, OSError) as error:
            self.tally["refused"] += 1
            wrong = self._wrong_refusal(error, kind, path)
        if not wrong and way == "bytes" and damaged != sound:
            try:
                read_archive(path, kind)
            except ValueError:
                pass
            else:
                wrong = "a damaged file was read"
        if wrong:
            raise ViolationError(f"{wrong}\n{kind}, {way}: {damaged!r}")

    def _load_model(self, path: Path, content: bytes) -> str | None:
        model = load_model(path)
        documents = np.resize(DOCUMENTS, (20, model.n_features))
        scores = model.predict(documents, offsets=[0, 20])
        if scores.shape != (20,) or not np.isfinite(scores).all():
            return f"scores {scores}"
        return None

    def _resume(self) -> str | None:
        try:
            header, arrays = read_archive(self.folder / CHECKPOINT, "checkpoint")
        except ValueError:
            header, arrays = {}, {}
        if _too_large(header, "source", ("queries", "features")) or _too_large(header, "config", ("cutoff",)):
            self.tally["too large"] += 1
            return None
        run = TrainingRun.resume(self.folder)
        states = {"network": run.network.weights(), "best": run.best_weights, "optimizer": run._optimizer.state()}
        resumed = {f"{group}/{name}": array for group, members in states.items() for name, array in members.items()}
        of_run, of_file = (
            {name: (array.dtype, array.shape, array.tobytes()) for name, array in each.items()}
            for each in (resumed, arrays)
        )
        return None if of_run == of_file else "the run does not hold the arrays of the checkpoint"

    def _wrong_refusal(self, error: Exception, kind: str, path: Path) -> str | None:
        if isinstance(error, FileNotFoundError) and kind == "checkpoint":
            return None  # a data file that a changed source names
        starts = (f"{kind} {path}", *(REFUSALS if kind != "model" else ()))
        if isinstance(error, ValueError) and str(error).startswith(starts):
            return None
        return f"refused as {error!r}"


def _too_large(header: Any, entry: str, names: tuple[str, ...]) -> bool:
    """Return whether a header asks for more than is to be generated; it would be right to begin with it."""
    values = header.get(entry) if isinstance(header, dict) else None
    numbers = [values.get(name) for name in names] if isinstance(values, dict) else []
    return any(isinstance(number, (int, float)) and number > MOST_GENERATED for number in numbers)


def _payload(content: bytes) -> bytes:
    return content.partition(b"\n")[2]


def _with_digest(kind: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(payload).hexdigest()
    return f"plrank-fast {kind} {VERSION} {digest}\n".encode() + payload


def _rewritten(rng: random.Random, kind: str, folder: Path, part: str) -> bytes:
    """An archive with another header, other arrays, or with parts of another archive."""
    contents = {each: read_archive(folder / name, each) for each, name in FILES.items()}
    header, arrays = contents.pop(kind)
    ((other_header, other_arrays),) = contents.values()
    if part == "header":
        header = damaged_json(rng, header)
    elif part == "parts":
        if rng.random() < 0.5:
            header = other_header
        else:
            arrays.update(other_arrays) if rng.random() < 0.5 else (arrays := other_arrays)
    else:
        for _ in range(rng.choice((1, 1, 2))):
            _damage_array(rng, arrays)
    described = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    text = json.dumps({"header": header, "arrays": described}).encode()
    body = b"".join(array.tobytes() + bytes(-array.nbytes % ALIGNMENT) for array in arrays.values())
    return _with_digest(kind, text + b"\n" + body)


def _damage_array(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(arrays))
    array = copy.deepcopy(arrays[name])
    kind = rng.randrange(8)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[rng.choice(sorted(arrays)) + rng.choice(("", "x", "/0"))] = arrays.pop(name)
    elif kind == 2:
        arrays[
            rng.choice(("extra", "network/9.weight", "optimizer/99/step", "optimizer/x/step", "optimizer/0/y", "best/"))
        ] = array
    elif kind == 3:
        dtype = rng.choice(("<f8", ">f4", "<f2", "<i8", "|u1", "|b1", "<c8", "<U3", "<M8[s]", "<u2", "|S2"))
        arrays[name] = array.astype("<i8").astype(dtype) if dtype == "<M8[s]" else array.astype(dtype)
    elif kind == 4:
        arrays[name] = np.resize(
            array, rng.choice(((), (0,), (1,), (2, 2), (1, *array.shape), array.shape[::-1], (5,) * 4))
        )
    elif kind == 5 and array.size:
        array.flat[rng.randrange(array.size)] = rng.choice((np.nan, np.inf, -np.inf, 3e38))
        arrays[name] = array
    elif kind == 6:
        second = rng.choice(sorted(arrays))
        arrays[name], arrays[second] = arrays[second], arrays[name]
    else:
        arrays[name] = np.asfortranarray(array)
