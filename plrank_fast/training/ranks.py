"""Several processes that train one network: their shares of a batch, and their communication.

``torchrun``, or another launcher that sets RANK and WORLD_SIZE, starts the processes, called ranks. Each has all of the
data and goes through the same batches. It takes some consecutive queries of a batch, so that ``first_query`` gives them
the random streams that they have in one process. The ranks add up their gradients after the backward pass, and gather
their scores of held-out documents at the end of an epoch. A single process is a rank without communication.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._core.runtime.threads import available_cpus
from plrank_fast._shared.extras import import_extra
from plrank_fast.chunks import QueryChunk, query_chunks


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, from the view of one of them.

    The methods that communicate raise ConnectionError if another rank has ended or cannot be reached.
    """

    rank: int = 0  # number of this process
    count: int = 1
    on_machine: int = 1  # processes on this machine

    @property
    def first(self) -> bool:
        """Whether this rank prints and writes."""
        return self.rank == 0

    @property
    def n_threads(self) -> int:
        """Return the threads of the gradient: the processors of the machine, divided among its ranks."""
        return -1 if self.on_machine == 1 else max(1, available_cpus() // self.on_machine)

    def share(self, offsets: npt.NDArray[np.int64]) -> QueryChunk:
        """Cut a batch into parts of equal cost, and return this rank's; it is empty if there are too few queries."""
        chunks = query_chunks(offsets, self.count)
        if self.rank < len(chunks):
            return chunks[self.rank]
        n_docs, n_queries = int(offsets[-1]), len(offsets) - 1
        return QueryChunk(slice(n_docs, n_docs), slice(n_queries, n_queries), offsets[:1], n_queries)

    def add_up(self, tensors: Sequence[Any]) -> None:
        """Replace PyTorch's tensors, of the same shapes on all ranks, by their sums over the ranks."""
        if self.count == 1:
            return
        torch = import_extra("torch", "train")
        whole = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _noticing_losses():
            torch.distributed.all_reduce(whole)
        for tensor, part in zip(tensors, whole.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def highest(self, number: int) -> int:
        """Return the highest of the ranks' numbers, in an eighth of the time that `gathered` takes."""
        if self.count == 1:
            return number
        torch = import_extra("torch", "train")
        numbers = torch.tensor([number])
        with _noticing_losses():
            torch.distributed.all_reduce(numbers, op=torch.distributed.ReduceOp.MAX)
        return int(numbers)

    def gathered(self, value: Any) -> list[Any]:
        """Return the values of all ranks in their order, once all ranks have called this."""
        if self.count == 1:
            return [value]
        values = [None] * self.count
        with _noticing_losses():
            import_extra("torch.distributed", "train").all_gather_object(values, value)
        return values

    def require_equal(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError, on all ranks, if ``state``, a few plain values, is not equal on all of them."""
        first, *others = self.gathered(state)
        for rank, other in enumerate(others, 1):
            for name, value in first.items():
                if other[name] != value:
                    raise ValueError(
                        f"{name} must be the same on all ranks, got {value} on 0 and {other[name]} on {rank}"
                    )

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        """Let one rank of each machine run the block before the others, which can then use its cache."""
        ahead = self.rank % self.on_machine == 0
        if not ahead:
            self.gathered(None)
        yield
        if ahead:
            self.gathered(None)


ALONE = Ranks()


@contextmanager
def ranks_of_launcher() -> Iterator[Ranks]:
    """Join the processes that were started with this one, within the block; yield `ALONE` if there are no others.

    ConnectionError is raised if they cannot be reached, or if the launcher ends this one because another has failed.
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
def _noticing_losses() -> Iterator[None]:
    """Turn PyTorch's error for a rank that is gone into a ConnectionError."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition(". ")[0].splitlines()[0]  # gloo's advice comes after it
        raise ConnectionError(f"another rank has ended or cannot be reached ({reason})") from error


@contextmanager
def _heeding_launcher() -> Iterator[None]:
    """Turn SIGTERM into an error within the block, so that the process reports the reason for its end."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise ConnectionError("told to end (SIGTERM), as launchers do when another rank has failed")

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
