"""Sources of a run's data: LETOR files, or a generated profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plrank_fast._shared.memory import require_bytes
from plrank_fast.data import PROFILES, RankingData, concatenate, generate, normalize_queries
from plrank_fast.data.generated import SPLITS
from plrank_fast.data.letor import read_letor
from plrank_fast.data.letor_cache import cached
from plrank_fast.validation import ProfileName, choice, count, flag

Splits = dict[str, RankingData]  # "train", "vali" and perhaps "test", with the same feature columns


@dataclass(frozen=True)
class Source:
    """Files of each split (several files of one split are concatenated), or a profile to generate.

    Parameters
    ----------
    train : tuple of str
        LETOR training files, plain or gzipped. Either files or a profile must be given.
    vali : tuple of str
        LETOR validation files, whose expected NDCG chooses the best epoch.
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
    """

    train: tuple[str, ...] = ()
    vali: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    profile: ProfileName | None = None
    queries: int | None = None
    features: int | None = None
    data_seed: int = 0
    string_qids: bool = False

    def __post_init__(self) -> None:
        for name, least in (("queries", 1), ("features", 1), ("data_seed", 0)):
            if getattr(self, name) is not None:
                count(getattr(self, name), name, least)
        flag(self.string_qids, "string_qids")
        if self.profile is not None:
            choice(self.profile, "profile", tuple(PROFILES))
        for name in SPLITS[:2]:
            if self.profile is None and not getattr(self, name):
                raise ValueError(f"{name} files or a profile must be given")
        for name in ("queries", "features") if self.profile is None else (*SPLITS, "string_qids"):
            if getattr(self, name):
                raise ValueError(f"{name} cannot be combined with {'files' if self.profile is None else 'a profile'}")

    @property
    def paths(self) -> tuple[str, ...]:
        """Return all files."""
        return self.train + self.vali + self.test

    def load(self, *, normalize: bool, cache: str | None = None) -> Splits:
        """Read all splits, with `load_files`, or generate them; they may be normalised within each query."""
        splits: Splits = {}
        if self.profile is not None and cache is not None:
            raise ValueError(f"cache goes with files, not with a profile, which is generated; got {cache!r}")
        for name in SPLITS:
            if self.profile is not None:
                queries = max(1, splits["train"].n_queries // 4) if splits else self.queries
                part = generate(self.profile, queries, split=name, seed=self.data_seed, n_features=self.features)
                splits[name] = normalize_queries(part) if normalize else part
            elif paths := getattr(self, name):
                splits[name] = load_files(paths, normalize=normalize, string_qids=self.string_qids, cache=cache)
        n_features = max(part.n_features for part in splits.values())
        return {name: with_columns(part, n_features) for name, part in splits.items()}


def with_columns(data: RankingData, n_features: int) -> RankingData:
    """Append zero columns up to ``n_features``, as files need not contain the last features."""
    missing = n_features - data.n_features
    if not missing:
        return data
    needed = data.n_docs * n_features * data.features.itemsize
    require_bytes(needed, f"feature {n_features} means a matrix for {data.name} that, {data.n_docs} x {n_features},")
    return replace(data, features=np.pad(data.features, ((0, 0), (0, missing))))


def load_files(
    paths: Sequence[str],
    *,
    normalize: bool,
    string_qids: bool = False,
    cache: str | None = None,
    known_features: int | None = None,
) -> RankingData:
    """Read, concatenate and perhaps normalise LETOR files, in the type that training takes.

    A line that names more than the features known to a model is refused as it is read.

    The result is kept in the folder ``cache``. The next call maps it into memory: rows are read from the disk as they
    are used, and the data may be larger than the memory.
    """

    def read() -> RankingData:
        parts = [read_letor([path], None, np.float32, False, string_qids, known_features) for path in paths]
        widest = max(part.n_features for part in parts)
        data = concatenate([with_columns(part, widest) for part in parts])
        del parts
        return normalize_queries(data) if normalize else data

    if cache is None:
        return read()
    return cached(paths, {"normalized": normalize, "string_qids": string_qids, "for": "training"}, cache, read)
