"""Offsets of batches: right ones give the loop over the queries, wrong ones an error that names them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import plrank_fast as plr
from damage import ODD_VALUES
from fuzz_case import BrokenPromiseError, Target

THETA = plr.dcg_weights(4)
# each takes scores, relevance and offsets; without offsets it works on one query
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pl_rank_exact": lambda scores, relevance, **o: plr.pl_rank_exact(scores, relevance, THETA, **o),
    "pl_rank_3": lambda scores, relevance, **o: plr.pl_rank_3(scores, relevance, THETA, n_samples=3, rng=1, **o),
    "pl_rank_cmc": lambda scores, relevance, **o: plr.pl_rank_cmc(scores, relevance, THETA, n_samples=2, rng=1, **o),
    "policy_gradient": lambda scores, relevance, **o: plr.policy_gradient(
        scores, relevance, THETA, n_samples=2, rng=1, **o
    ),
    "stochastic_rank": lambda scores, relevance, **o: plr.stochastic_rank(
        scores, relevance, THETA, n_samples=2, rng=1, **o
    ),
    "sample_rankings": lambda scores, relevance, **o: plr.sample_rankings(scores, 2, 4, rng=1, **o),
    "exposure": lambda scores, relevance, **o: plr.exposure(scores, THETA, **o),
    "expected_metric": lambda scores, relevance, **o: plr.expected_metric(scores, relevance, THETA, **o),
    "dcg": lambda scores, relevance, **o: plr.dcg(scores, relevance, THETA, **o),
    "ndcg": lambda scores, relevance, **o: plr.ndcg(scores, relevance, cutoff=4, **o),
    "err": lambda scores, relevance, **o: plr.err(scores, relevance, **o),
    "lambda_rank": lambda scores, relevance, **o: plr.losses.lambda_rank(scores, relevance, cutoff=4, **o),
    "list_mle": lambda scores, relevance, **o: plr.losses.list_mle(scores, relevance, **o),
    "disparity": lambda scores, relevance, n_threads, **o: plr.fairness.disparity(scores, relevance, **o),
}
DTYPES = (
    np.int64,
    np.int32,
    np.int16,
    np.uint64,
    np.uint8,
    np.float64,
    np.float32,
    np.bool_,
    np.complex128,
    object,
    str,
)


class OffsetsFuzz(Target):
    def attack(self, rng: random.Random) -> None:
        numbers = np.random.default_rng(rng.randrange(2**32))
        lengths = [rng.choice((0, 1, 2, 5, rng.randrange(30))) for _ in range(rng.randrange(8))]
        offsets: Any = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n_docs = int(offsets[-1])
        scores, relevance = numbers.normal(size=n_docs), numbers.integers(0, 4, size=n_docs).astype(float)
        passed = _damaged(rng, offsets)
        right = _is_right(passed, n_docs)
        name = rng.choice(list(FUNCTIONS))
        shown = f"{name} of {n_docs} documents, offsets {passed!r}"
        try:
            result = FUNCTIONS[name](scores, relevance, offsets=passed, n_threads=rng.choice((1, 2)))
        except (ValueError, TypeError) as error:
            self.tally["refused"] += 1
            if right:
                raise BrokenPromiseError(f"refused: {error}\n{shown}") from error
            if "offsets" not in str(error):
                raise BrokenPromiseError(f"refused without naming the offsets: {error!r}\n{shown}") from error
            return
        self.tally["taken"] += 1
        if not right:
            raise BrokenPromiseError(f"taken\n{shown}")
        again = FUNCTIONS[name](scores, relevance, offsets=_plain(passed), n_threads=1)
        for part, other in zip(_parts(result), _parts(again), strict=True):
            if not np.array_equal(part, other, equal_nan=True):
                raise BrokenPromiseError(f"another result than from plain offsets\n{shown}")


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _plain(passed: Any) -> np.ndarray:
    return np.array([int(each) for each in np.asarray(passed).ravel()], np.int64)


def _is_right(passed: Any, n_docs: int) -> bool:
    """Whether offsets are whole numbers in one row that begin with 0, do not fall and end with the documents."""
    try:
        array = np.asarray(passed)
    except (ValueError, OverflowError):
        return False
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0:
        return False
    values = [int(each) for each in array]
    return values[0] == 0 and values[-1] == n_docs and all(a <= b for a, b in itertools.pairwise(values))


def _damaged(rng: random.Random, offsets: np.ndarray) -> Any:
    kind = rng.randrange(9)
    place = rng.randrange(len(offsets))
    if kind == 0:
        return offsets
    if kind == 1:
        offsets[place] = rng.choice((-1, -(2**63), 2**63 - 1, 2**31, offsets[place] - 1, offsets[place] + 1, 0))
        return offsets
    if kind == 2:
        return np.delete(offsets, place)
    if kind == 3:
        return np.insert(offsets, place, rng.choice((offsets[place], 0, offsets[-1], -1)))
    if kind == 4:
        with np.errstate(all="ignore"):
            return offsets.astype(rng.choice(DTYPES))
    if kind == 5:
        return rng.choice(
            (
                np.repeat(offsets, 2)[::2],
                np.repeat(offsets, 3)[1::3],
                offsets[::-1],
                offsets.tolist(),
                tuple(offsets.tolist()),
            )
        )
    if kind == 6:
        return rng.choice(
            (offsets[None], offsets[:, None], np.int64(0), offsets[:0], offsets.astype(">i8"), [offsets.tolist()])
        )
    if kind == 7:
        listed = offsets.tolist()
        listed[place] = rng.choice(ODD_VALUES)
        return listed
    wrapped = offsets.astype(np.uint64)
    wrapped[place] = rng.choice((2**64 - 1, 2**63, 2**63 + int(offsets[place])))
    return wrapped
