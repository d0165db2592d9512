"""The binary cache of LETOR files: whatever happens to it or to the text, the data are those of the text.

A cache whose header has been rewritten with the right checksums may say other numbers, for nothing but the checksums
vouches for them; what it gives must still be data of the right types and shapes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import warnings
import zlib

import numpy as np

from damage import damaged_bytes, damaged_json
from fuzz_case import BrokenPromiseError, Target
from fuzz_letor import _number
from plrank_fast.data import RankingData, load_letor
from plrank_fast.data.letor_cache import MAGIC, PREFIX

WARNING = re.compile(r"cache .*\.letor-cache (is damaged and is written anew|cannot be read, so the text is): ")


class LetorCacheFuzz(Target):
    def attack(self, rng: random.Random) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        text, options = self.folder / "text.txt", {"dtype": rng.choice((np.float32, np.float64))}
        text.write_bytes(_text(rng))
        expected = load_letor(text, **options)
        load_letor(text, cache=True, **options)
        (cache,) = self.folder.glob("*.letor-cache")
        sound = cache.read_bytes()
        kind = rng.choice(("bytes", "bytes", "header", "header", "arrays", "text", "both"))
        self.tally[kind] += 1
        if kind in ("text", "both"):
            times = os.stat(text)
            changed = _text(rng)
            if rng.random() < 0.5:
                changed = (changed * 9)[: text.stat().st_size - 1] + b"\n"
            try:
                text.write_bytes(changed)
                expected = load_letor(text, **options)
            except ValueError:
                return
            if rng.random() < 0.3:
                os.utime(text, ns=(times.st_atime_ns, times.st_mtime_ns))
        forged = kind in ("header", "arrays")
        if kind in ("bytes", "both"):
            cache.write_bytes(damaged_bytes(rng, sound, sound[::-1]))
        elif forged:
            cache.write_bytes(_forged(rng, sound, kind))
        before = cache.read_bytes()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data = load_letor(text, cache=True, **options)
            copied = load_letor(text, cache=True, **options)
        wrong = _wrong(data, copied, expected, forged, before == sound)
        for warning in caught:
            self.tally["warnings"] += 1
            if not WARNING.match(str(warning.message)):
                wrong = f"warns {warning.message!r}"
        if wrong:
            raise BrokenPromiseError(f"{wrong}\n{kind}, {options}, text {text.read_bytes()!r}\ncache {before!r}")


def _text(rng: random.Random) -> bytes:
    lines = []
    for qid in range(rng.randrange(1, 5)):
        for _ in range(rng.randrange(1, 5)):
            features = " ".join(f"{column}:{_number(rng)}" for column in sorted(rng.sample(range(1, 9), 3)))
            lines.append(f"{rng.randrange(5)} qid:{qid} {features}\n")
    return "".join(lines).encode()


def _forged(rng: random.Random, sound: bytes, kind: str) -> bytes:
    """The cache with another header, or with other arrays, under the right checksums."""
    length, _ = PREFIX.unpack_from(sound, len(MAGIC))
    begin = len(MAGIC) + PREFIX.size
    header = json.loads(sound[begin : begin + length])
    body = bytearray(sound)
    if kind == "arrays":
        described = rng.choice(list(header["arrays"].values()))
        size = np.dtype(described["dtype"]).itemsize * int(np.prod(described["shape"]))
        part = slice(described["start"], described["start"] + size)
        body[part] = damaged_bytes(rng, bytes(body[part])).ljust(size, b"\xff")[:size]
        described["checksum"] = zlib.crc32(body[part])
    elif rng.random() < 0.7:
        name = rng.choice(list(header["arrays"]))
        header["arrays"][name] = damaged_json(rng, header["arrays"][name])
        if rng.random() < 0.5:
            header["arrays"][name] = _consistent(rng, body, header["arrays"][name])
    else:
        header = damaged_json(rng, header)
    text = json.dumps(header).encode()
    text = text.ljust(length) if len(text) <= length else text
    prefix = MAGIC + PREFIX.pack(len(text), zlib.crc32(text))
    return prefix + text + bytes(body[begin + len(text) :])


def _consistent(rng: random.Random, body: bytearray, described: object) -> object:
    """An array of another type, shape or place, with the checksum of what stands there."""
    if not isinstance(described, dict):
        return described
    described["dtype"] = rng.choice(
        ("<i8", ">f8", "<f4", "|u1", "<U4", "|V8", "<M8[s]", "|O", "<c16", "|b1", "<f8", "[]")
    )
    if rng.random() < 0.5:
        described["shape"] = rng.choice(
            ([1], [2, 2], [0], [], [2**40, 0], [2**63, 0], [-1, -1], [0, 2**80], [1.5], [True])
        )
    try:
        size = int(np.dtype(described["dtype"]).itemsize * np.prod(np.array(described["shape"], float)))
        described["checksum"] = zlib.crc32(body[described["start"] : described["start"] + size])
    except (TypeError, ValueError, KeyError, OverflowError, struct.error):
        pass
    return described


def _wrong(data: RankingData, copied: RankingData, expected: RankingData, forged: bool, untouched: bool) -> str | None:
    if data.fingerprint() == expected.fingerprint() == copied.fingerprint():
        return None
    if not forged or untouched:
        return "the data are not those of the text"
    for each in (data, copied):
        if each.features.dtype != expected.features.dtype or each.features.ndim != 2:
            return f"features of {each.features.dtype}, {each.features.ndim}-d"
        if each.labels.dtype != np.float64 or each.offsets.dtype != np.int64:
            return f"labels of {each.labels.dtype}, offsets of {each.offsets.dtype}"
        if each.query_ids.dtype != expected.query_ids.dtype:
            return f"qids of {each.query_ids.dtype}"
        if not isinstance(each.name, str):
            return f"name {each.name!r}"
        if each.features.shape[0] != each.labels.shape[0] or each.offsets[-1] != each.labels.shape[0]:
            return "shapes that do not go together"
        if each.features.flags.writeable is not True:
            return "features that cannot be changed"
    return None
