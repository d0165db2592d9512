"""Sources of a run's data: LETOR files, or a generated profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from plrank_fast.data import RankingData, concatenate, generate, load_letor, normalize_queries
from plrank_fast.data.letor_cache import cached
from plrank_fast.validation import count, flag


@dataclass(frozen=True, eq=False)
class Splits:
    """Training, validation and (perhaps) test data with the same feature columns."""

    train: RankingData
    vali: RankingData
    test: RankingData | None

    def named(self) -> dict[str, RankingData]:
        """Return the parts that exist, by name."""
        parts = {"train": self.train, "vali": self.vali, "test": self.test}
        return {name: part for name, part in parts.items() if part is not None}

    def fingerprints(self) -> dict[str, str]:
        """Return hashes by which a resumed run recognises its data."""
        return {name: part.fingerprint() for name, part in self.named().items()}


@dataclass(frozen=True)
class Source:
    """Files of each split (several files of one split are concatenated), or a profile to generate.

    Parameters
    ----------
    train : tuple of str
        LETOR training files, plain or gzipped. Either files or a profile must be given.
    vali : tuple of str
        LETOR validation files; they choose the best epoch.
    test : tuple of str
        LETOR test files, optional.
    profile : str, optional
        Generate data with the shape of this set, a name of `plrank_fast.data.PROFILES`.
    queries : int, optional
        Training queries of the profile, by default as published; validation and test get a quarter of that each.
    features : int, optional
        Feature columns of the profile, by default as published.
    data_seed : int
        Seed of the generated data.
    string_qids : bool
        Whether any text may be a qid in the files.

    Raises
    ------
    TypeError, ValueError
        If an argument is missing, contradictory or of a wrong type; the message names it.
    """

    train: tuple[str, ...] = ()
    vali: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    profile: str | None = None
    queries: int | None = None
    features: int | None = None
    data_seed: int = 0
    string_qids: bool = False

    def __post_init__(self) -> None:
        files = {"train": self.train, "vali": self.vali, "test": self.test}
        for name, least in (("queries", 1), ("features", 1), ("data_seed", 0)):
            value = getattr(self, name)
            if value is not None:
                count(value, name, least)
        flag(self.string_qids, "string_qids")
        given = [name for name, paths in files.items() if paths]
        if self.profile is not None and given:
            raise ValueError(f"{given[0]} files and a profile cannot be combined")
        if self.profile is not None and self.string_qids:
            raise ValueError("string_qids goes with files, not with a profile")
        if self.profile is None:
            for name in ("train", "vali"):
                if not files[name]:
                    raise ValueError(f"{name} files or a profile must be given")
            for name in ("queries", "features"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} only goes with a profile, got {getattr(self, name)}")

    @property
    def paths(self) -> tuple[str, ...]:
        """Return all files."""
        return self.train + self.vali + self.test

    def load(self, *, normalize: bool, cache: str | None = None) -> Splits:
        """Read all splits, with `load_files`, or generate them; they may be normalised within each query."""
        if cache is not None and self.profile is not None:
            raise ValueError(f"cache goes with files, not with a profile, which is generated; got {cache!r}")
        if self.profile is None:
            return self._load_files(normalize, cache)
        splits = self._generate(self.profile)
        if not normalize:
            return splits
        parts = {name: normalize_queries(part) for name, part in splits.named().items()}
        return replace(splits, **parts)

    def _load_files(self, normalize: bool, cache: str | None) -> Splits:
        files = {"train": self.train, "vali": self.vali, "test": self.test}
        options: dict[str, Any] = {"normalize": normalize, "string_qids": self.string_qids, "cache": cache}
        splits = {name: load_files(paths, **options) for name, paths in files.items() if paths}
        n_features = max(split.n_features for split in splits.values())
        splits = {name: with_columns(split, n_features) for name, split in splits.items()}
        return Splits(splits["train"], splits["vali"], splits.get("test"))

    def _generate(self, profile: str) -> Splits:
        train = generate(profile, self.queries, seed=self.data_seed, n_features=self.features)
        vali, test = (
            generate(profile, max(1, train.n_queries // 4), seed=self.data_seed, split=split, n_features=self.features)
            for split in ("vali", "test")
        )
        return Splits(train, vali, test)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a file, which `from_json` reads."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Source:
        """Rebuild the source from `to_json`."""
        arguments: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**arguments)


def with_columns(data: RankingData, n_features: int) -> RankingData:
    """Append zero columns up to ``n_features``, as files need not contain the last features."""
    missing = n_features - data.n_features
    return replace(data, features=np.pad(data.features, ((0, 0), (0, missing)))) if missing else data


def load_files(
    paths: Sequence[str], *, normalize: bool, string_qids: bool = False, cache: str | None = None
) -> RankingData:
    """Read, concatenate and perhaps normalise LETOR files, in the type that training takes.

    The result is kept in the folder ``cache``. The next call maps it into memory: rows are read from the disk as they
    are used, and the data may be larger than the memory.
    """

    def read() -> RankingData:
        parts = [load_letor(path, dtype=np.float32, string_qids=string_qids) for path in paths]
        widest = max(part.n_features for part in parts)
        data = concatenate([with_columns(part, widest) for part in parts])
        return normalize_queries(data) if normalize else data

    if cache is None:
        return read()
    dtype = np.dtype(np.float32).str
    options = {"normalized": normalize, "dtype": dtype, "string_qids": string_qids, "for": "training"}
    return cached(paths, options, cache, read)
