"""Count the instructions of each kernel with valgrind's callgrind, which a busy machine does not disturb.

``make bench-instructions`` compares the counts with ``instructions.json`` and fails if a kernel has grown by more than
3 %. ``make bench-instructions INSTRUCTIONS_FLAGS=--update`` writes new counts, to be committed with the change that
justifies them. Kernels run at the AVX2 level, which valgrind supports, on one thread; the counts include the Python
call (``call overhead``). Two counts of the same build differ by less than 0.2 %; the Python part of a call takes some
hundreds of instructions more or less with other patches of Python, NumPy or the C library, which are not judged.
Another compiler or Python has other instructions: if the file names another one, nothing fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from benchmarks.workloads import batch

import plrank_fast as plr
from plrank_fast import losses

FIGURES = Path(__file__).with_name("instructions.json")
GROWTH = 0.03
PATCHES = 500  # instructions by which a call may differ with other patches of Python, NumPy and the C library
WARM_UP = 3  # calls before the counted one, in which Python specialises its bytecode


def workloads():
    """Return ``{name: call}``; each call takes some millions of instructions, always the same."""
    short, middle, long = batch([24] * 32), batch([120] * 8), batch([1000] * 2)
    many, peaked, huge = batch([120] * 100), batch([120] * 8, spread=8.0), batch([50_000])

    def gradient(method, data, cutoff, **options):
        scores, relevance, offsets = data
        weights = plr.dcg_weights(cutoff)
        return lambda: getattr(plr, method)(scores, relevance, weights, offsets=offsets, n_threads=1, **options)

    def sampled(method, data, cutoff, n_samples, **options):
        return gradient(method, data, cutoff, n_samples=n_samples, rng=1, **options)

    def sampling(sampler, data, cutoff, n_samples):
        scores, _, offsets = data
        return lambda: plr.sample_rankings(
            scores, n_samples, cutoff, offsets=offsets, rng=1, sampler=sampler, n_threads=1
        )

    def loss(name):
        scores, relevance, offsets = middle if name == "soft_rank" else many
        labels = np.log2(relevance + 1)
        ranks = {"cutoff": None} if name in ("lambda_rank", "lambda_loss", "soft_rank") else {}
        return lambda: getattr(losses, name)(scores, labels, offsets=offsets, n_threads=1, **ranks)

    def metric(name):
        scores, relevance, offsets = many
        return lambda: getattr(plr, name)(scores, relevance, plr.dcg_weights(10), offsets=offsets, n_threads=1)

    def lone(name, *arguments, **options):
        function = getattr(losses, name) if hasattr(losses, name) else getattr(plr, name)
        return lambda: function(*arguments, **options)

    folder = tempfile.TemporaryDirectory()  # as long as the workload that reads from it
    lines = ("".join(f" {i}:{row / i:.6f}" for i in range(1, 137)) for row in range(200))
    texts = (f"{row % 5} qid:{row // 20}{line}\n" for row, line in enumerate(lines))
    Path(folder.name, "train.txt").write_text("".join(texts))

    scores, relevance, _ = batch([8])
    rng, theta = np.random.default_rng(1), plr.dcg_weights(8)
    calls = {
        "call overhead": sampled("pl_rank_3", batch([2]), 1, 1),
        "one query, pl_rank_3": lone("pl_rank_3", scores, relevance, theta, n_samples=1, rng=rng),
        "one query, pl_rank_3 of a seed": lone("pl_rank_3", scores, relevance, theta, n_samples=1, rng=1),
        "one query, pl_rank_exact": lone("pl_rank_exact", scores, relevance, theta),
        "one query, sample_rankings": lone("sample_rankings", scores, 1, rng=rng),
        "one query, ndcg": lone("ndcg", scores, relevance, theta),
        "one query, softmax_cross_entropy": lone("softmax_cross_entropy", scores, relevance),
        "one query in a list": lone("pl_rank_3", scores.tolist(), relevance, theta, n_samples=1, rng=rng),
        "sample_rankings introselect": sampling("introselect", middle, 10, 100),
        "sample_rankings network D=24": sampling("network", short, 10, 100),
        "sample_rankings network D=120": sampling("network", middle, 100, 100),
        "sample_rankings threshold": sampling("threshold", long, 100, 100),
        "sample_rankings slot_table": sampling("slot_table", middle, 10, 300),
        "sample_rankings slot_table, huge list": sampling("slot_table", huge, 100, 50),
        "pl_rank_1": sampled("pl_rank_1", short, 10, 50),
        "pl_rank_2": sampled("pl_rank_2", short, 10, 50),
        "pl_rank_3 D=24": sampled("pl_rank_3", short, 10, 100),
        "pl_rank_3 D=120": sampled("pl_rank_3", middle, 100, 100),
        "pl_rank_3 D=1000": sampled("pl_rank_3", long, 10, 1000),
        "pl_rank_3 peaked": sampled("pl_rank_3", peaked, 10, 100),
        "pl_rank_3 peaked, K=100": sampled("pl_rank_3", peaked, 100, 100),
        "pl_rank_3 introselect": sampled("pl_rank_3", middle, 10, 50, sampler="introselect"),
        "pl_rank_cmc D=120": sampled("pl_rank_cmc", middle, 10, 16),
        "pl_rank_cmc D=1000, K=100": sampled("pl_rank_cmc", long, 100, 8),
        "pl_rank_cmc hessian": sampled("pl_rank_cmc", middle, 10, 16, hessian=True),
        "pl_rank_exact D=24": gradient("pl_rank_exact", short, 5),
        "pl_rank_exact D=120": gradient("pl_rank_exact", middle, 10),
        "pl_rank_exact D=120, K=2": gradient("pl_rank_exact", middle, 2),
        "pl_rank_exact D=120, K=100": gradient("pl_rank_exact", middle, 100),
        "pl_rank_exact hessian": gradient("pl_rank_exact", middle, 10, hessian=True),
        "rank_probabilities": lambda: plr.rank_probabilities(middle[0], 10, offsets=middle[2], n_threads=1),
        "stochastic_rank gumbel": sampled("stochastic_rank", middle, 10, 50),
        "stochastic_rank normal": sampled("stochastic_rank", middle, 10, 50, noise="normal"),
        "policy_gradient": sampled("policy_gradient", middle, 10, 50),
        "pl_rank_1 D=120": sampled("pl_rank_1", middle, 10, 50),
        "dcg": metric("dcg"),
        "ndcg": metric("ndcg"),
        "load_letor": lambda: plr.data.load_letor(Path(folder.name, "train.txt")),
        "mrr": lone("mrr", *many[:2], offsets=many[2], n_threads=1),
    }
    of_labels = [name for name in losses.__all__ if name != "exposure_matching"]  # that one calls the exact kernel
    return calls | {f"losses.{name}": loss(name) for name in of_labels}


def run_all():
    """Run every workload between two calls of ``getppid``, at which callgrind dumps its counts."""
    for call in workloads().values():
        for _ in range(WARM_UP):
            call()
        os.getppid()
        call()
        os.getppid()


def count():
    """Run this program under callgrind, and return ``{name: instructions}``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *("valgrind", "-q", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/out"),
            *(sys.executable, __file__, "--run"),
        ]
        environment = {"PLRANK_FAST_SIMD": "avx2", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        subprocess.run(command, env={**os.environ, **environment}, check=True)
        totals = {
            int(path.suffix[1:]): int(re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE)[1])
            for path in Path(folder).glob("out.*")
        }
    # numbered from 1: odd dumps end a warm-up, even ones a counted call
    return {name: totals[2 * i + 2] for i, name in enumerate(workloads())}


def main():
    """Count and compare the instructions; with ``--update``, write the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the new counts")
    parser.add_argument("--run", action="store_true", help="only run the workloads (used under callgrind)")
    options = parser.parse_args()
    if options.run:
        return run_all()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: its callgrind is what counts the instructions")
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {"built with": None, "instructions": {}}
    built_with = f"{plr.build_info()['compiler']}, Python {sys.version_info.major}.{sys.version_info.minor}"
    counts = count()
    grown = []
    print(f"{'kernel':36} {'instructions':>14} {'change':>8}")
    for name, instructions in counts.items():
        before = kept["instructions"].get(name)
        change = f"{100 * (instructions / before - 1):+.1f} %" if before else "new"
        print(f"{name:36} {instructions:14,d} {change:>8}")
        if before is None or instructions > (1 + GROWTH) * before + PATCHES:
            grown.append(name)
    if options.update:
        FIGURES.write_text(json.dumps({"built with": built_with, "instructions": counts}, indent=2) + "\n")
    elif built_with != kept["built with"]:
        print(f"not judged: the figures are of {kept['built with']}, this is {built_with}")
    elif grown:
        raise SystemExit(f"grown by more than {GROWTH:.0%}, or new: {', '.join(grown)}; see --update")
    return None


if __name__ == "__main__":
    main()
