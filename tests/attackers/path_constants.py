"""Constants that choose a path by measured or estimated time, and both extremes of each.

Results must not depend on them beyond the error bounds, so that tests hold at either. ``matrix.py`` changes them in
copies of the sources: the library itself carries no switch. A line that is no longer there is an error.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Constant:
    """A line of a file as it stands, up to what is replaced, and two values to put there."""

    path: str  # in plrank_fast
    before: str
    value: str
    lowest: str
    highest: str
    after: str = ""

    def replaced(self, source: str, value: str) -> str:
        """The source with another value."""
        line = self.before + self.value + self.after
        if source.count(line) != 1:
            raise ValueError(f"{self.path} has {source.count(line)} times {line!r}")
        return source.replace(line, self.before + value + self.after)


_EXACT = "kernels/gradients/exact"
NEVER = "(<intp_t>1 << 60)"
CONSTANTS = (
    # rounds and threads
    Constant("_core/runtime/teams.pyx", "cdef int TEAMS = ", "0", "-1", "1", " "),
    Constant("_core/runtime/teams.pyx", "cdef double LEAST_WAKING = ", "1e3", "0.0", "1e18", " "),
    Constant("_core/runtime/teams.pyx", "cdef intp_t ITEMS_PER_RANGE = ", "4096", "1", NEVER),
    Constant("_core/runtime/batch.pyx", "cdef double WORTH_LEARNING = ", "4e3", "0.0", "1e18", " "),
    Constant("_core/runtime/threads.pyx", "cdef double ROUND_NS = ", "5e7", "1e3", "1e18"),
    Constant("_core/runtime/threads.pyx", "cdef double LEARNT_FACTOR = ", "1.0", "1e-6", "1e6"),
    Constant("_core/runtime/threads.pyx", "cdef size_t MOST_SPARE = ", "available_cpus() * (<size_t>32 << 20)", "0",
             "<size_t>1 << 60"),
    Constant("kernels/runtime/memory.h", "#define PLR_UNUSED ", "256", "1", "((size_t)1 << 60)"),
    Constant("_core/runtime/batch.pyx", "cdef double OVERHEAD_ITEMS = ", "25.0", "0.0", "1e3"),
    Constant("_core/runtime/batch.pyx", "cdef double LONG_ROUNDS = ", "0.04", "0.0", "1e18"),
    Constant("_core/runtime/batch.pyx", "    return max(<intp_t>1, min(<intp_t>16, ", "n_queries // (32 * n_threads)",
             "1", "16", "))"),
    Constant("kernels/runtime/cancellation.h", "#define WORK_BETWEEN_LOOKS ", "5e6", "1", "1e300"),
    # selection
    Constant("_core/random/selection.pyx", "cdef intp_t SHORT_SELECTION = ", "32", "16", "64"),
    Constant("_core/random/selection.pyx", "cdef intp_t WORTH_A_SAMPLE = ", "64", "0", NEVER, " "),
    Constant("kernels/sampling/groups/group_samplers.h", "#define PLR_FEW_ROWS ", "160", "0", "512", " /*"),
    Constant("kernels/sampling/groups/slot_table.c", "#define MOST_COMPARED ", "192", "64", "512", " /*"),
    # losses
    Constant("_core/losses/pairs.pyx", "cdef intp_t WORTH_LISTING = ", "4", "0", "100000", " "),
    Constant("kernels/losses/rank_losses.h", "#define PLR_SOFT_RANK_KEPT ((size_t)1 << ", "20", "0", "30"),
    # the exact gradient
    Constant(f"{_EXACT}/exponential_law.h", ".gap = ", "7.0", "2.0", "200.0"),
    Constant(f"{_EXACT}/arrival_polynomials.h", "#define FEWEST_SMALL ", "5", "1", "1000000", " "),
    Constant(f"{_EXACT}/arrival_polynomials.h", "#define BANDED_FROM ", "32", "1", "1000000", " "),
    Constant(f"{_EXACT}/arrival_polynomials.h", "#define QUARTETS_OF_SET ", "512", "1", "512", " "),
    Constant(f"{_EXACT}/exact_panel.h", "#define LARGEST_LOG_CONSTANT ", "550.0", "-1.0", "550.0", " "),
    Constant(f"{_EXACT}/list_blocks.h", "#define ITEMS_OF_BLOCK ", "8192", "512", "1099511627776"),
    Constant(f"{_EXACT}/panel_integrals.h", "#define QUARTETS_OF_BLOCK ", "64", "1", "1099511627776"),
    Constant(f"{_EXACT}/exact_panel.h", "#define MOST_SIDE_BY_SIDE ", "16", "1", "64", " /*"),
    Constant(f"{_EXACT}/moment_compression.h", "#define COMPRESSED_FROM ", "220", "1", "100000000", " "),
    # what a method is chosen by
    Constant("_methods/cost_model.py", "WORTH_OF_EXACTNESS = ", "8.0", "0.0", "1e18"),
    Constant("chunks.py", "QUERY_COST = ", "20", "0", "1_000_000", "  #"),
)  # fmt: skip

# The sampler with which "auto" is to draw, where that can serve the query.
RULE = Constant("_core/sampling/samplers.pyx", "    cdef int requested = ", "draw.sampler", "", "")
_OF_AUTO = "draw.sampler if draw.sampler != AUTO else "
_IF_FEW_REPEATS = " if few_repeats(sampler.n_items, sampler.cutoff) else INTROSELECT"
SAMPLERS = {
    "introselect": f"{_OF_AUTO}INTROSELECT",
    "network": f"{_OF_AUTO}NETWORK",
    "threshold": f"{_OF_AUTO}THRESHOLD",
    "table": f"{_OF_AUTO}TABLE{_IF_FEW_REPEATS}",
    "guide": f"{_OF_AUTO}GUIDE{_IF_FEW_REPEATS}",
}
