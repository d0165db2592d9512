"""Models of ``train``: damaged ones are refused by name, and none loads as another than it says.

Bytes are damaged; the payload is damaged and given the right digest; header and arrays are changed and written again.
Refused means a ValueError that names the file. A model that loads must score documents with finite numbers.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from pathlib import Path

import numpy as np

from damage import Target, damaged_bytes, damaged_json
from plrank_fast._shared.archive import ALIGNMENT, VERSION, read_archive
from plrank_fast.data import generate
from plrank_fast.training.model import load_model
from plrank_fast.training.train import train
from search import ViolationError

DOCUMENTS = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)


class ArchiveFuzz(Target):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "model"
        options = {"method": "pl_rank_cmc", "samples": 1, "cutoff": 5, "epochs": 3, "quiet": True}
        self.sound = []
        for hidden in ((4, 3), (5,)):
            train(generate("yahoo", 8, n_features=6), hidden=hidden, **options).save(self.path)
            self.sound.append(self.path.read_bytes())

    def attack(self, rng: random.Random) -> None:
        way = rng.choice(("bytes", "payload", "header", "header", "arrays", "parts"))
        self.tally[way] += 1
        sound, other = self.sound
        if way == "bytes":
            damaged = damaged_bytes(rng, sound, other)
        elif way == "payload":
            damaged = _with_digest(damaged_bytes(rng, *(each.partition(b"\n")[2] for each in self.sound)))
        else:
            damaged = self._rewritten(rng, way)
        self.path.write_bytes(damaged)
        wrong = None
        try:
            model = load_model(self.path)
        except ValueError as error:
            self.tally["refused"] += 1
            wrong = None if str(error).startswith(f"model {self.path}") else f"refused as {error!r}"
        else:
            self.tally["loaded"] += 1
            scores = model.predict(np.resize(DOCUMENTS, (20, model.n_features)), offsets=[0, 20])
            if scores.shape != (20,) or not np.isfinite(scores).all():
                wrong = f"scores {scores}"
            elif way == "bytes" and damaged not in self.sound:
                wrong = "a damaged file was read"
        if wrong:
            raise ViolationError(f"{wrong}\n{way}: {damaged!r}")

    def _rewritten(self, rng: random.Random, part: str) -> bytes:
        """An archive with another header, other arrays, or with parts of another model."""
        contents = []
        for content in self.sound:
            self.path.write_bytes(content)
            contents.append(read_archive(self.path, "model"))
        (header, arrays), (other_header, other_arrays) = contents
        if part == "header":
            header = damaged_json(rng, header)
        elif part == "parts" and rng.random() < 0.5:
            header = other_header
        elif part == "parts":
            arrays = other_arrays if rng.random() < 0.5 else {**arrays, **other_arrays}
        else:
            for _ in range(rng.choice((1, 1, 2))):
                _damage_array(rng, arrays)
        described = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
        text = json.dumps({"header": header, "arrays": described}).encode()
        body = b"".join(array.tobytes() + bytes(-array.nbytes % ALIGNMENT) for array in arrays.values())
        return _with_digest(text + b"\n" + body)


def _with_digest(payload: bytes) -> bytes:
    return f"plrank-fast model {VERSION} {hashlib.sha256(payload).hexdigest()}\n".encode() + payload


def _damage_array(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(arrays))
    array = copy.deepcopy(arrays[name])
    kind = rng.randrange(8)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[rng.choice(sorted(arrays)) + rng.choice(("", "x", "/0"))] = arrays.pop(name)
    elif kind == 2:
        arrays[rng.choice(("extra", "9.weight", ""))] = array
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
