"""The C interface: whatever is passed, a status that fits, and nothing written that should not be.

A call is made right and then up to three of its arguments are made wrong. Each fault brings the statuses that it may be
answered with; a call with faults must return one of them and leave outputs and stream as they were, a call without must
return ``PLRANK_OK`` and leave the same outputs again from other memory. Arrays and workspaces end where unmapped memory
begins, so that a read or a write behind them ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import plrank_fast as plr
from fuzz_case import BrokenPromiseError, Target
from plrank_fast import embedding

FUNCTIONS = {name.removeprefix("plrank_"): embedding.ctypes_function(name) for name in embedding.signatures()}
CODES = {name.removeprefix("PLRANK_"): value for name, value in embedding.constants().items()}
STATUS_NAMES = {value: name for name, value in CODES.items() if name == "OK" or value < 0}
CALLS = [name for name in FUNCTIONS if f"{name}_workspace" in FUNCTIONS]
INT64 = [0, 1, -1, 2, 2**31 - 1, 2**31, 2**32, 2**59, 2**59 + 1, 2**60, 2**62, 2**63 - 1, -(2**31), -(2**63)]
NOT_FINITE = (np.nan, np.inf, -np.inf)
SEVERAL = {"n_items": 40, "cutoff": 12, "n_samples": 70}  # the largest usual sizes
PROT_NONE, PAGE = 0, mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)


def parameters() -> dict[str, list[str]]:
    """Names of the parameters of each function, as the header has them."""
    table = re.sub(r"/\*.*?\*/", "", embedding.declarations(), flags=re.DOTALL)
    members = re.findall(r"[\w ]+\*? ?\(\*(\w+)\)\(([^)]*)\);", table)
    return {name: [re.findall(r"\w+", each)[-1] for each in listed.split(",")] for name, listed in members}


PARAMETERS = parameters()


class Memory:
    """Memory whose last byte is followed by a page that nobody may touch."""

    def __init__(self, n_pages: int) -> None:
        self._map = mmap.mmap(-1, (n_pages + 1) * PAGE)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._end = self._start + n_pages * PAGE
        self.n_bytes = n_pages * PAGE
        if LIBC.mprotect(ctypes.c_void_p(self._end), ctypes.c_size_t(PAGE), PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")

    def end_of(self, n_bytes: int, fill: int) -> tuple[int, np.ndarray]:
        """The address of the last ``n_bytes``, and all of the memory, filled with ``fill``."""
        everything = np.frombuffer((ctypes.c_uint8 * self.n_bytes).from_address(self._start), np.uint8)
        everything[:] = fill
        return self._end - n_bytes, everything


class CInterfaceFuzz(Target):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._memories: dict[str, Memory] = {}

    def attack(self, rng: random.Random) -> None:
        if rng.random() < 0.2:
            self._attack_sizes(rng)
        else:
            self._attack_call(rng)

    def _attack_sizes(self, rng: random.Random) -> None:
        """Sizes of workspaces are statuses or do not fall as an argument grows."""
        name = rng.choice(CALLS) + "_workspace"
        sizes = [
            rng.choice((*INT64, rng.randrange(2**63), rng.randrange(2**31), rng.randrange(100)))
            for _ in PARAMETERS[name]
        ]
        larger = [size + rng.choice((0, 0, 1, rng.randrange(2**31))) for size in sizes]
        larger = [size if size < 2**63 else 2**63 - 1 for size in larger]
        first, second = FUNCTIONS[name](*sizes), FUNCTIONS[name](*larger)
        self.tally["sizes"] += 1
        for arguments, size in ((sizes, first), (larger, second)):
            if (size < 0 and size not in STATUS_NAMES) or (min(arguments) < 0 and size >= 0):
                raise BrokenPromiseError(f"{name}{tuple(arguments)} is {size}")
        if first >= 0 and 0 <= second < first:
            raise BrokenPromiseError(f"{name}{tuple(sizes)} is {first}, {name}{tuple(larger)} is {second}")

    def _attack_call(self, rng: random.Random) -> None:
        name = rng.choice(CALLS)
        call = Call(rng, name)
        faults: set[str] = set()
        for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3))):
            faults |= call.damage(rng)
        self.tally["wrong" if faults else "right"] += 1
        outcomes = [self._run(call, fill) for fill in ((0xA5, 0x5A) if not faults else (0xA5,))]
        allowed = {CODES[fault] for fault in faults} or {CODES["OK"]}
        status, outputs = outcomes[0]
        if status not in allowed:
            named = sorted(STATUS_NAMES[each] for each in allowed)
            raise BrokenPromiseError(f"{name} returns {STATUS_NAMES.get(status, status)}, not {named}\n{call}")
        self.tally[STATUS_NAMES[status]] += 1
        if not faults and outcomes[1] != (status, outputs):
            raise BrokenPromiseError(f"{name} gives other outputs in other memory\n{call}")

    def _memory(self, what: str, n_bytes: int) -> Memory:
        """Memory for a parameter, kept from call to call."""
        known = self._memories.get(what)
        if known is None or known.n_bytes < n_bytes + 64:
            known = self._memories[what] = Memory(2 * (n_bytes + 64) // PAGE + 1)
        return known

    def _run(self, call: Call, fill: int) -> tuple[int, dict[str, bytes]]:
        """Status and outputs of a call; raise for what was written outside of outputs and workspace, or too early."""
        passed: list[Any] = []
        watched: list[tuple[str, np.ndarray, np.ndarray, int]] = []
        for name in PARAMETERS[call.name]:
            value = call.arguments[name]
            if name in call.arrays:
                content = call.arrays[name]
                address, everything = self._memory(name, content.nbytes).end_of(content.nbytes, fill)
                if name not in call.outputs:
                    everything[len(everything) - content.nbytes :] = np.frombuffer(content.tobytes(), np.uint8)
                watched.append((name, everything, everything.copy(), content.nbytes))
                passed.append(address if value is not None else None)
            elif name == "workspace":
                usable = max(0, min(call.usable_workspace, call.arguments["workspace_size"]))
                address, everything = self._memory(name, usable).end_of(usable, fill)
                watched.append((name, everything, everything.copy(), usable))
                passed.append(address if value is not None else None)
            else:
                passed.append(value)
        status = FUNCTIONS[call.name](*passed)
        outputs = {}
        for name, now, before, n_bytes in watched:
            inside = len(now) - n_bytes
            written = (call.outputs | {"stream", "workspace"}) if status == 0 else {"workspace"}
            if not np.array_equal(now[:inside], before[:inside]):
                raise BrokenPromiseError(f"{call.name} writes before {name}\n{call}")
            if name not in written and not np.array_equal(now, before):
                raise BrokenPromiseError(
                    f"{call.name} returns {STATUS_NAMES.get(status)} and has changed {name}\n{call}"
                )
            if name in call.outputs | {"stream"} and call.arguments[name] is not None:
                outputs[name] = now[inside:].tobytes()
        return status, outputs


class Call:
    """A call that is right, until `damage` makes it wrong."""

    outputs = frozenset(("ranking", "log_prob", "gradient", "hessian", "value", "probabilities"))

    def __init__(self, rng: random.Random, name: str) -> None:
        self.name = name
        numbers = np.random.default_rng(rng.randrange(2**32))
        n_items = rng.choice((0, 1, 2, 3, 8, rng.randrange(SEVERAL["n_items"])))
        cutoff = rng.choice((0, 1, 2, n_items, n_items + 3, rng.randrange(SEVERAL["cutoff"])))
        n_samples = rng.choice((1, 2, 3, 16, 17, rng.randrange(1, SEVERAL["n_samples"])))
        length = rng.choice((min(cutoff, n_items), cutoff, cutoff + 2)) if "of_rankings" in name else cutoff
        length = max(length, min(cutoff, n_items))
        spread = rng.choice((0.0, 1.0, 1.0, 50.0, 1e5, 1e300))
        self.length = length
        values: dict[str, Any] = {
            "n_items": n_items,
            "cutoff": cutoff,
            "n_samples": n_samples,
            "n_rankings": n_samples,
            "length": length,
            "sampler": rng.randrange(5),
            "noise": rng.randrange(2),
            "rtol": rng.choice((1e-10, 1e-6, 1e-3, 0.999)),
            "sigma": rng.choice((1.0, 1e-3, 5.0, 1e-60, 1e60)),
        }
        self.arrays: dict[str, np.ndarray] = {
            "stream": _stream(rng),
            "scores": numbers.normal(size=n_items) * spread,
            "relevance": numbers.normal(size=n_items),
            "rank_weights": numbers.normal(size=cutoff),
            "ranking": np.zeros(min(cutoff, n_items), np.int32),
            "rankings": np.zeros((n_samples, min(cutoff, n_items)), np.int32),
            "log_prob": np.zeros(n_samples),
            "gradient": np.zeros(n_items),
            "hessian": np.zeros(n_items),
            "value": np.zeros(1),
            "probabilities": np.zeros((n_items, cutoff)),
        }
        if "n_rankings" in PARAMETERS[name]:
            rows = [np.resize(np.append(numbers.permutation(n_items), [-5] * length), length) for _ in range(n_samples)]
            self.arrays["rankings"] = np.array(rows, np.int32).reshape(n_samples, length)
        else:
            self.outputs = self.outputs | {"rankings"}
        self.arguments = {each: values.get(each, 0) for each in PARAMETERS[name]}
        self.arrays = {each: array for each, array in self.arrays.items() if each in self.arguments}
        if "hessian" in self.arguments and rng.random() < 0.4:
            self.arguments["hessian"] = None
        if name == "pl_rank_exact" and rng.random() < 0.5:
            self.arguments.update(rng.choice(({"value": None}, {"gradient": None, "hessian": None})))
        size = [self.arguments[each] for each in PARAMETERS[f"{name}_workspace"]]
        self.needed = FUNCTIONS[f"{name}_workspace"](*size)
        self.arguments["workspace_size"] = self.usable_workspace = self.needed + rng.choice((0, 0, 0, 1, 1000))

    def damage(self, rng: random.Random) -> set[str]:
        """Make an argument wrong; the names of the statuses that it may be answered with, none if it is right still."""
        damages: dict[str, Callable[[random.Random], set[str]]] = {
            "stream": self._damage_stream,
            "rankings": self._damage_rankings,
            "workspace": self._damage_workspace,
            **dict.fromkeys(("scores", "relevance", "rank_weights"), self._damage_numbers),
            **dict.fromkeys(("n_items", "cutoff", "n_samples", "n_rankings", "length"), self._damage_size),
            **dict.fromkeys(("sampler", "noise", "rtol", "sigma"), self._damage_choice),
            **dict.fromkeys(
                ("ranking", "log_prob", "gradient", "probabilities", "value", "hessian"), self._damage_output
            ),
        }
        self._name = rng.choice([name for name in self.arguments if name in damages])
        return damages[self._name](rng)

    def _damage_stream(self, rng: random.Random) -> set[str]:
        if rng.random() < 0.3:
            self.arguments["stream"] = None
            return {"NULL_POINTER"}
        changed = self.arrays["stream"].copy()
        changed[rng.randrange(8)] ^= 1 << rng.randrange(8)  # of the mark
        self.arrays["stream"] = changed
        return {"BAD_STREAM"}

    def _damage_numbers(self, rng: random.Random) -> set[str]:
        array = self.arrays[self._name]
        if not array.size:
            self.arguments[self._name] = None
            return set()
        if rng.random() < 0.3:
            self.arguments[self._name] = None
            return {"NULL_POINTER"}
        array = self.arrays[self._name] = array.copy()
        array[rng.randrange(array.size)] = rng.choice(NOT_FINITE)
        fault = "SCORES_NOT_FINITE" if self._name == "scores" else f"BAD_{self._name.upper()}"
        return {fault, *self._null(self._name)}

    def _null(self, name: str) -> set[str]:
        return {"NULL_POINTER"} if self.arguments[name] is None else set()

    def _damage_size(self, rng: random.Random) -> set[str]:
        """A size that no memory has. Large ones that are right of themselves meet a workspace that is too small."""
        name = self._name
        fault = {"n_items": "BAD_N_ITEMS", "cutoff": "BAD_CUTOFF", "length": "BAD_RANKINGS"}.get(name, "BAD_N_SAMPLES")
        value = rng.choice([-1, -2, -(2**31), -(2**63), 2**59 + 1, 2**62, 2**63 - 1])
        self.arguments[name] = value
        several = {"NULL_POINTER"}  # where a size made a pointer matter that was to nothing before
        if fault == "BAD_N_SAMPLES" or name == "n_items":
            return {fault} | several
        if name == "length":
            return {fault, "BAD_N_SAMPLES"} | several
        return {fault, "BAD_RANKINGS"} | several if "length" in self.arguments else {fault} | several

    def _damage_choice(self, rng: random.Random) -> set[str]:
        name = self._name
        self.arguments[name] = rng.choice(
            {
                "sampler": (-1, 5, 2**31 - 1, -(2**31)),
                "noise": (-1, 2, 2**31 - 1, -(2**31)),
                "rtol": (0.0, -1.0, 9.9e-11, 1.0, np.nan, np.inf, -np.inf, 1e-320),
                "sigma": (0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, 1e-61, 1e61),
            }[name]
        )
        return {f"BAD_{name.upper()}"}

    def _damage_output(self, rng: random.Random) -> set[str]:
        name = self._name
        needs = {"value": self.name == "dcg", "hessian": False, "gradient": self.name != "pl_rank_exact"}.get(
            name, True
        )
        self.arguments[name] = None
        if name == "hessian" or not needs:
            if self.name == "pl_rank_exact" and self.arrays["gradient"].size:
                lacking = self.arguments["gradient"] is None and (
                    self.arguments["value"] is None or self.arguments["hessian"] is not None
                )
                return {"NULL_POINTER"} if lacking else set()
            return set()
        return {"NULL_POINTER"} if self.arrays[name].size else set()

    def _damage_rankings(self, rng: random.Random) -> set[str]:
        array = self.arrays["rankings"]
        used = min(self.length, self.arguments["n_items"] if "cutoff" not in self.arguments else min(
            self.arguments["cutoff"], self.arguments["n_items"]))  # fmt: skip
        if "rankings" in self.outputs or used <= 0 or rng.random() < 0.2:
            self.arguments["rankings"] = None
            return {"NULL_POINTER"} if array.size and self.arrays["scores"].size and used != 0 else set()
        array = self.arrays["rankings"] = array.copy()
        row, rank = rng.randrange(len(array)), rng.randrange(used)
        others = [array[row, other] for other in range(used) if other != rank]
        array[row, rank] = rng.choice([-1, len(self.arrays["scores"]), 2**31 - 1, -(2**31), *others])
        return {"BAD_RANKINGS"}

    def _damage_workspace(self, rng: random.Random) -> set[str]:
        if self.needed <= 0:
            self.arguments["workspace"] = None
            return set()
        if rng.random() < 0.3:
            self.arguments["workspace"] = None
            return {"NULL_POINTER"}
        self.arguments["workspace_size"] = rng.choice((0, 1, self.needed - 1, -1, -(2**63), rng.randrange(self.needed)))
        return {"WORKSPACE_TOO_SMALL"}

    def __str__(self) -> str:
        shown = {
            name: self.arrays[name] if name in self.arrays and value is not None else value
            for name, value in self.arguments.items()
        }
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def _stream(rng: random.Random) -> np.ndarray:
    """A stream that stands at a query and a block."""
    content = np.zeros(CODES["STREAM_SIZE"], np.uint8)
    key = plr.stream_key(rng.randrange(2**32))
    FUNCTIONS["stream_init"](content.ctypes.data, content.size, int(key[0]), int(key[1]), rng.choice((0, 1, 2**40)))
    FUNCTIONS["stream_seek"](content.ctypes.data, rng.choice((0, 1, 2**59)), rng.choice((0, 1, 2**32)))
    return content
