"""The figures of speed in README.md and docs, each with its measurement: ``bench --claims``.

A test compares this table with the documents. A figure is a ratio, or microseconds where the document says so, of calls
timed in turn within one run; the fastest of each counts.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, TypeAlias

import numpy as np

import plrank_fast as plr
from plrank_fast._shared.extras import import_extra
from plrank_fast.benchmarks.epoch_cost import CUTOFFS, Call, Method, Workload, fastest_in_turn, seconds_per_epoch
from plrank_fast.validation import FloatArray

PROCESSOR, WALL = time.process_time, time.perf_counter
EXACT = Method("exact", 0)
LIGHTGBM_LENGTHS = (24, 120, 316)
# It ends with the process that started it.
BUSY_PROGRAM = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(10_000))"

Measurement: TypeAlias = Callable[[float], tuple[float, ...]]  # takes the seconds of each timing


@dataclass(frozen=True)
class Claim:
    """The figures of one passage of a document, its literal ``text``, and the function that measures them again."""

    text: str
    figures: tuple[float, ...]
    measure: Measurement
    document: str = "docs/benchmarks.md"
    unit: str = "times as long"


def query(n_docs: int) -> tuple[FloatArray, FloatArray]:
    """Make scores of unit variance and gains of one list."""
    rng = np.random.default_rng(n_docs)
    return rng.standard_normal(n_docs), plr.gains(rng.integers(0, 5, n_docs))


def table_row(method: str) -> Measurement:
    """Measure the speed-up over NumPy's PL-Rank-3 with 1000 samples, for every cutoff."""

    def measure(seconds: float) -> tuple[float, ...]:
        workload, methods = Workload.of_profile("mslr", 96), (Method.of(method, 1000), Method("pl_rank_3", 1000))
        timed = [seconds_per_epoch(methods[0], workload, cutoff, seconds, methods[1]) for cutoff in CUTOFFS]
        return tuple(numpy_seconds / ours for ours, numpy_seconds in timed)

    return measure


def ratios(
    calls: Callable[..., tuple[Call, Call]],
    *sizes: tuple[int, ...],
    summary: tuple[Callable[[list[float]], float], ...],
    **how: Any,
) -> Measurement:
    """Time the first of two calls over the second at each size, and summarise the ratios.

    Calls on one thread are timed by the processor's clock, calls on more by the wall clock.
    """

    def measure(seconds: float) -> tuple[float, ...]:
        timed = [fastest_in_turn(*calls(*size), seconds=seconds, **{"clock": PROCESSOR, **how}) for size in sizes]
        shares = [first / second for first, second in timed]
        return tuple(each(shares) for each in summary)

    return measure


def two_threads_and_one(workload: Workload, cutoff: int) -> tuple[Call, Call]:
    """Return ``pl_rank_exact`` of a batch on two threads, and on one."""
    call = EXACT.call(workload, cutoff)
    return functools.partial(call, n_threads=2), call


def beside_numpy(
    method: Callable[..., object], of_numpy: Callable[[FloatArray], object], **options: Any
) -> Callable[[int, int], tuple[Call, Call]]:
    """Return a function that makes two calls: a sampled gradient, and a function of NumPy of the scores."""

    def calls(n_docs: int, cutoff: int) -> tuple[Call, Call]:
        scores, relevance = query(n_docs)
        ours = functools.partial(method, scores, relevance, plr.dcg_weights(cutoff), **options)
        return ours, functools.partial(of_numpy, scores)

    return calls


def over_plain_gradient(**extra: Any) -> Measurement:
    """Time ``pl_rank_exact`` with more options over the gradient alone: the least and the most of three lengths."""

    def calls(n_docs: int, cutoff: int) -> tuple[Call, Call]:
        plain = EXACT.call(Workload.of_length(n_docs, 16), cutoff)  # queries enough for the arithmetic to dominate
        return functools.partial(plain, **extra), plain

    return ratios(calls, (24, 10), (120, 10), (316, 10), summary=(min, max))


share_of_exponentials: Measurement = ratios(
    beside_numpy(
        plr.pl_rank_3,
        lambda scores: np.random.default_rng(0).standard_exponential((1000, scores.size)),
        n_samples=1000, rng=0, n_threads=1,
    ),
    (120, 10), (316, 10), (1000, 10), summary=(max,),
)  # fmt: skip
two_threads: Measurement = ratios(
    lambda: two_threads_and_one(Workload.of_profile("mslr", 2000), 10), (), summary=(max,), clock=WALL
)
two_threads_on_batches: Measurement = ratios(
    lambda n_lists, n_docs: two_threads_and_one(Workload.of_length(n_docs, n_lists), 10),
    (32, 24), (32, 100), (128, 120), (1024, 120), summary=(min, max), clock=WALL,
)  # fmt: skip
two_threads_on_one_query: Measurement = ratios(
    lambda n_docs, cutoff: two_threads_and_one(Workload.of_length(n_docs, 1), cutoff),
    (1_000, 1_000), (10_000, 1_000), (100_000, 100), summary=(min, max), clock=WALL,
)  # fmt: skip
GENERATOR = np.random.default_rng(0)
one_ranking: Measurement = ratios(
    beside_numpy(plr.pl_rank_cmc, np.argsort, n_samples=1, rng=GENERATOR), (120, 10), summary=(max,), repeat=100
)
one_call: Measurement = ratios(
    beside_numpy(plr.pl_rank_3, np.argsort, n_samples=1, rng=GENERATOR), (24, 5), summary=(max,), repeat=50
)


def beside_a_busy_process(seconds: float) -> tuple[float, ...]:
    """Time ``pl_rank_exact`` on two threads over one beside a busy process: the least and the most of four batches.

    The batches take some 2, 5, 10 and 30 ms. The sums over calls are compared: the fastest calls are undisturbed ones.
    The time is long enough for several looks at whether threads start late.
    """
    shares = []
    with subprocess.Popen([sys.executable, "-c", BUSY_PROGRAM]) as busy:
        try:
            for milliseconds in (2, 5, 10, 30):
                scores, relevance = query(7_200 * milliseconds)
                offsets, weights = range(0, scores.size + 1, 120), plr.dcg_weights(10)
                taken, start = [0.0, 0.0], time.perf_counter()
                while taken[1] == 0.0 or time.perf_counter() < start + 10 * seconds:
                    for n_threads in (1, 2):
                        called = time.perf_counter()
                        plr.pl_rank_exact(scores, relevance, weights, offsets=offsets, n_threads=n_threads)
                        taken[n_threads - 1] += time.perf_counter() - called
                shares.append(taken[1] / taken[0])
        finally:
            busy.kill()
    return min(shares), max(shares)


def lightgbm_gradient(seconds: float) -> tuple[float, ...]:
    """Time ``pl_rank_exact`` at K = 10 over LightGBM's lambdarank gradient, truncated at 10, for every length.

    Then, again for every length, gradient and Hessian diagonal at 1e-3. LightGBM's is what a round of two-leaf trees on
    one feature takes with lambdarank, less what it takes with squared errors.
    """
    lightgbm = import_extra("lightgbm", "lightgbm")
    shares, coarse_shares, n_queries = [], [], 500
    for n_docs in LIGHTGBM_LENGTHS:
        workload = Workload.of_length(n_docs, n_queries)
        labels = np.log2(workload.relevance + 1)
        features = np.random.default_rng(n_docs).normal(size=(labels.size, 1)) + 0.3 * labels[:, np.newaxis]
        data = lightgbm.Dataset(features, labels, group=np.full(n_queries, n_docs)).construct()

        def rounds(objective: str, n_rounds: int) -> Callable[[], None]:
            options: dict[str, Any] = {"objective": objective, "lambdarank_truncation_level": 10, "num_leaves": 2}
            options |= {"verbosity": -1, "num_threads": 1}
            return lambda: lightgbm.train(options, data, num_boost_round=n_rounds)  # noqa: B023

        kinds = [(objective, n_rounds) for objective in ("lambdarank", "regression") for n_rounds in (25, 5)]
        ours_on_these = EXACT.call(workload, 10)
        coarsely = functools.partial(ours_on_these, rtol=1e-3, hessian=True)
        calls: list[Call] = [*(rounds(*kind) for kind in kinds), ours_on_these, coarsely]
        timed = fastest_in_turn(*calls, seconds=3 * seconds, clock=PROCESSOR)
        long, short, plain_long, plain_short, ours, coarse = timed
        lambdarank = ((long - short) - (plain_long - plain_short)) / 20
        shares.append(ours / lambdarank)
        coarse_shares.append(coarse / lambdarank)
    return tuple(shares + coarse_shares)


CLAIMS = (
    *(
        Claim(
            f"| `{function}`{title} | {' | '.join(map(str, figures))} |", figures, table_row(method),
            "README.md", "times faster than NumPy",
        )
        for method, function, title, figures in (
            ("pl_rank_3", "pl_rank_3", ", 1000 samples", (195, 120, 57, 36, 35)),
            ("cmc", "pl_rank_cmc", ", 1 sample", (2300, 2000, 1700, 1300, 1100)),
            ("exact", "pl_rank_exact", "", (450, 340, 190, 130, 96)),
        )
    ),
    Claim(
        "takes at most 0.1 times as long as NumPy takes to draw the exponentials for it", (0.1,),
        share_of_exponentials, unit="times as long, at most",
    ),
    Claim("Two threads take 0.56 times as long as one on 2000", (0.56,), two_threads),
    Claim(
        "0.53 to 0.71 times on batches of 32 lists of 24 documents to 1024 of 120", (0.53, 0.71),
        two_threads_on_batches,
    ),
    Claim(
        "and 0.56 to 0.77 times on a single query of 1000 to 100,000 documents", (0.56, 0.77),
        two_threads_on_one_query,
    ),
    Claim(
        "`pl_rank_exact` takes 2.1 times as long as LightGBM's lambdarank gradient on lists of 24 documents at K = 10 "
        "(0.88 times at 120, 0.42 times at 316), and gradient and Hessian diagonal at `rtol=1e-3` take 1.7 times as "
        "long (0.79 times at 120, 0.43 times at 316)",
        (2.1, 0.88, 0.42, 1.7, 0.79, 0.43), lightgbm_gradient,
    ),
    Claim(
        "`pl_rank_cmc` with one sample takes 1.8 times as long as `np.argsort` of the scores at 120", (1.8,),
        one_ranking,
    ),
    Claim(
        "a Python call of `pl_rank_3` with one sample takes 1.8 times as long as `np.argsort` of 24 scores", (1.8,),
        one_call,
    ),
    Claim(
        "The Hessian diagonal with the gradient takes 1.1 to 1.3 times as long as the exact gradient alone",
        (1.1, 1.3), over_plain_gradient(hessian=True),
    ),
    Claim(
        "batches of 2 to 30 ms took 0.8 to 1.1 times as long with two threads as with one", (0.8, 1.1),
        beside_a_busy_process, "docs/scaling.md",
    ),
    Claim(
        "1.6 to 3.5 times as much for lists of 24 to 316 documents", (1.6, 3.5), over_plain_gradient(noise="normal"),
        "docs/methods.md", "times as much",
    ),
)  # fmt: skip


def line_of(sentence: str, written: str, measured: str, unit: str) -> str:
    """Lay out the columns of a line; a long sentence is cut to its first words."""
    return f"{shorten(sentence, 60, placeholder=' ...'):<60}  {written:<27}  {measured:<40}  {unit}"


def report(seconds: float) -> Iterator[str]:
    """Yield a line per passage with the stated and the measured figures, or with the name of a missing library."""
    yield line_of("sentence", "written", "measured here", "unit")
    for claim in CLAIMS:
        try:
            measured = "  ".join(f"{figure:.3g}" for figure in claim.measure(seconds))
        except ImportError as missing:
            measured = f"- ({missing.name or missing})"
        written = "  ".join(f"{figure:g}" for figure in claim.figures)
        yield line_of(claim.text, written, measured, f"{claim.unit} ({claim.document})")
