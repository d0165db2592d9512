"""The mini-batches of each epoch, with their random streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast.training.parts import Part
from plrank_fast.training.ranks import ALONE, Ranks

ORDER, SAMPLING = range(2)  # keys of the random streams


@dataclass(frozen=True)
class Batch:
    """The queries of a step, or this rank's share of them.

    ``number`` counts the steps of an epoch from 0, ``rows`` are the documents' in the part, ``first_query`` is the
    number of the first query in the whole step, and ``rng`` the key of the step's rankings.
    """

    epoch: int
    number: int
    rows: npt.NDArray[np.int64]
    features: npt.NDArray[np.floating[Any]]
    labels: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    first_query: int
    rng: np.random.SeedSequence


class Batches:
    """The batches of a part of a data set, ``queries`` in each, in an order that depends on the seed and the epoch."""

    def __init__(self, part: Part, queries: int, seed: int, ranks: Ranks = ALONE) -> None:
        self._part, self._queries, self._seed, self._ranks = part, queries, seed, ranks

    def __len__(self) -> int:
        return -(-self._part.documents.n_queries // self._queries)

    def of_epoch(self, epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch, of which the first is number 0."""
        data, order = self._part.documents, np.random.Generator(np.random.PCG64(self._key(ORDER, epoch)))
        queries = order.permutation(data.n_queries)
        for number in range(len(self)):
            rows, offsets = data.rows_of(queries[number * self._queries : (number + 1) * self._queries])
            share = self._ranks.share(offsets)
            rows = rows[share.docs]
            yield Batch(
                epoch, number, rows, self._part.features_of(rows, share.offsets), data.labels[rows], share.offsets,
                share.first_query, self._key(SAMPLING, epoch, number),
            )  # fmt: skip

    def _key(self, *key: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self._seed, spawn_key=key)
