"""Several processes that train one network: whose part of a batch is which, and what they tell each other.

The processes, called ranks, are started by ``torchrun`` or by whatever else sets RANK and WORLD_SIZE. Each has all of
the data and goes through the same batches. Of a batch it takes some of the queries, whole ones next to each other, so
that ``first_query`` gives them the random streams that they have in one process. What every rank computes is added up:
gradients in the backward pass (``DistributedDataParallel`` over gloo), scores of held-out documents when an epoch ends.
One process by itself is a rank too, which has nobody to ask.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._core.runtime.threads import available_cpus
from plrank_fast._shared.extras import import_extra
from plrank_fast.chunks import QueryChunk, query_chunks
from plrank_fast.training.network import ScoringNetwork


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, as one of them sees them.

    Parameters
    ----------
    rank : int
        Which of them this one is, from 0.
    count : int
        How many there are.
    on_machine : int
        How many of them share this machine.
    """

    rank: int = 0
    count: int = 1
    on_machine: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that prints and writes."""
        return self.rank == 0

    @property
    def n_threads(self) -> int:
        """Threads of the gradient with which the ranks of a machine have as many as it has processors."""
        return -1 if self.on_machine == 1 else max(1, available_cpus() // self.on_machine)

    def share(self, offsets: npt.NDArray[np.int64]) -> QueryChunk:
        """Cut a batch into parts that take equally long, and return this rank's.

        Parameters
        ----------
        offsets : ndarray of int64, shape (n_queries + 1,)
            Of the batch.

        Returns
        -------
        QueryChunk
            Without queries where the batch has fewer than there are ranks.
        """
        chunks = query_chunks(offsets, self.count)
        if self.rank < len(chunks):
            return chunks[self.rank]
        n_docs, n_queries = int(offsets[-1]), len(offsets) - 1
        return QueryChunk(slice(n_docs, n_docs), slice(n_queries, n_queries), offsets[:1], n_queries)

    @contextmanager
    def adding_up(self, network: ScoringNetwork) -> Iterator[None]:
        """Within the block, a backward pass through ``network`` adds up the gradients that all ranks pass back.

        They must have the same weights, and each must pass back what `scaled` gives: `DistributedDataParallel` takes
        the mean over ranks.
        """
        if self.count == 1:
            yield
            return
        with self.noticing_losses():
            network.average_gradients(True)
        try:
            yield
        finally:
            network.average_gradients(False)

    def scaled(self, gradient: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Multiply a gradient by the number of ranks: the mean of these over ranks is the sum over all queries."""
        return gradient if self.count == 1 else gradient * self.count

    def joined(self, part: npt.NDArray[np.float64], docs: slice, n_docs: int) -> npt.NDArray[np.float64]:
        """Put together an array of all documents.

        Parameters
        ----------
        part : ndarray, shape (docs.stop - docs.start,)
            What this rank has of it.
        docs : slice
            Where that belongs; no document belongs to two ranks.
        n_docs : int
            Length of the whole.

        Returns
        -------
        ndarray of float64, shape (n_docs,)
            The same on all ranks.

        Raises
        ------
        ConnectionError
            If another rank has ended or cannot be reached.
        """
        if self.count == 1:
            return part
        whole = np.zeros(n_docs)
        whole[docs] = part
        torch = import_extra("torch", "train")
        with self.noticing_losses():
            torch.distributed.all_reduce(torch.from_numpy(whole))
        return whole

    def highest(self, number: int) -> int:
        """Return the highest of the ranks' numbers, after all of them have asked.

        Raises
        ------
        ConnectionError
            If another rank has ended or cannot be reached.
        """
        if self.count == 1:
            return number
        torch = import_extra("torch", "train")
        numbers = torch.tensor([number])
        with self.noticing_losses():
            torch.distributed.all_reduce(numbers, op=torch.distributed.ReduceOp.MAX)
        return int(numbers)

    def require_equal(self, state: Mapping[str, Any]) -> None:
        """Check that ``state``, which is small and plain, is the same on all ranks.

        Raises
        ------
        ValueError
            On all of them, naming the entry that differs and where.
        ConnectionError
            If another rank has ended or cannot be reached.
        """
        if self.count == 1:
            return
        texts: list[Any] = [None] * self.count
        with self.noticing_losses():
            import_extra("torch.distributed", "train").all_gather_object(texts, json.dumps(state))
        first, *others = (json.loads(text) for text in texts)
        for rank, other in enumerate(others, 1):
            for name, value in first.items():
                if other[name] != value:
                    raise ValueError(
                        f"{name} must be the same on all ranks, got {value} on 0 and {other[name]} on {rank}"
                    )

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        """Let one rank of each machine go through the block before its others: it leaves them what it has cached."""
        ahead = self.rank % self.on_machine == 0
        if not ahead:
            self.highest(0)
        yield
        if ahead:
            self.highest(0)

    @contextmanager
    def noticing_losses(self) -> Iterator[None]:
        """Turn what PyTorch raises in the block, when a rank is gone, into an error that says so.

        Raises
        ------
        ConnectionError
            If another rank has ended or cannot be reached.
        """
        try:
            yield
        except RuntimeError as error:
            if self.count == 1:
                raise
            reason = str(error).partition(". ")[0].splitlines()[0]  # gloo's advice comes after it
            raise ConnectionError(f"another rank has ended or cannot be reached ({reason})") from error


ALONE = Ranks()


@contextmanager
def ranks_of_launcher() -> Iterator[Ranks]:
    """Join the processes that were started together with this one, for the length of the block.

    Yields
    ------
    Ranks
        `ALONE` if there are no others.

    Raises
    ------
    ConnectionError
        If they cannot be reached; in the block, when the launcher tells this one to end because another has failed.
    ValueError
        If the environment does not say where they are.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1:
        yield ALONE
        return
    distributed = import_extra("torch.distributed", "train")
    with _heeding_launcher():
        try:
            distributed.init_process_group("gloo")
        except RuntimeError as error:
            raise ConnectionError(f"the other ranks cannot be reached: {error}") from error
        try:
            rank, count = distributed.get_rank(), distributed.get_world_size()
            yield Ranks(rank, count, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))
        finally:
            distributed.destroy_process_group()


@contextmanager
def _heeding_launcher() -> Iterator[None]:
    """Turn SIGTERM into an error within the block, so that the process says why it ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise ConnectionError("told to end (SIGTERM), as launchers do when another rank has failed")

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
