"""Figure 2: NDCG@K on the test data against training seconds; and the disparity of exposure (SIGIR 2021).

A cell is one training run with a method, a cutoff, a set, and the number of the round as seed. Training seconds are
those of the processor, on one thread, without evaluation on the test data. The test data are evaluated after times that
grow geometrically, by deterministic and expected NDCG, both normalised by data set, and by disparity if that is the
objective.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from plrank_fast.benchmarks.epoch_cost import Method
from plrank_fast.data import PROFILES, generate, normalize_queries
from plrank_fast.data.generated import SPLITS
from plrank_fast.training.config import DATASET, DISPARITY, TrainingConfig
from plrank_fast.training.sources import Source, Splits
from plrank_fast.validation import Split
from reproduction.published import ALL, BEYOND, cell_of, method_of
from reproduction.results import Figures, Part

LOOKS = 9  # evaluations on the test data: untrained, then at times that grow by a half each
DOCS_PER_SECOND = 12_000  # training data for each second of a run, so that epochs fit into it
LEAST_QUERIES = 16
DISPARITY_METHODS = (
    *(Method("exact", 0), Method("cmc", 1)),
    *(Method(name, 100) for name in ("pl_rank_3", "pl_rank_1", "policy_gradient")),
)
SETTINGS_METHODS = (Method("pl_rank_3", 100), Method("pl_rank_3", 1000), *BEYOND)
CUTOFF = 10  # parts with a single cutoff have it
# The title of each part, its methods, and what its runs differ in besides set, method and cutoff.
PARTS: dict[str, tuple[str, tuple[Method, ...], tuple[Figures, ...]]] = {
    "curves": ("Figure 2: NDCG against training seconds", ALL, ({},)),
    "settings": (
        "the published code's settings beside ours",
        SETTINGS_METHODS,
        ({"preset": "default"}, {"preset": "sigir22"}),
    ),
    "disparity": ("SIGIR 2021: disparity of exposure", DISPARITY_METHODS, ({"objective": DISPARITY},)),
}
WANTED_SEEDS = 3  # number of seeds for which runs must fit into the budget
SHORTEST_RUN, LONGEST_RUN = 0.2, 600.0  # seconds of training
OVERHEAD = 1.6  # a run takes longer by evaluation and by generating the data


def training_part(name: str, sets: list[str], cutoffs: list[int], budget: float) -> Part:
    """Plan one of `PARTS`, with training runs as long as ``budget`` seconds allow."""
    title, compared, variations = PARTS[name]
    cells: list[Figures] = [
        {"set": each, **cell_of(method), "cutoff": cutoff, **variation}
        for each in sets
        for cutoff in cutoffs
        for method in compared
        for variation in variations
    ]
    seconds = min(max(budget / len(cells) / WANTED_SEEDS / OVERHEAD, SHORTEST_RUN), LONGEST_RUN)
    cells = [{**cell, "train_seconds": round(seconds, 3)} for cell in cells]
    return Part(name, title, cells, measure)


def config_of(cell: Figures, seed: int) -> TrainingConfig:
    """Return the settings of a run."""
    method = method_of(cell)
    objective = {} if "preset" in cell else {"objective": cell.get("objective", DATASET)}  # the paper's NDCG
    return TrainingConfig.from_preset(
        cell.get("preset", "default"), method=method.estimator, samples=max(1, method.n_samples),
        cutoff=cell["cutoff"], seed=seed, empty=0.0, **objective,
    )  # fmt: skip


def measure(cell: Figures, number: int) -> Figures:
    """Train once, and return the curve on the test data."""
    from plrank_fast.training.trainer import TrainingRun

    config, limit = config_of(cell, number), cell["train_seconds"]
    splits = _splits(cell["set"], number, limit)
    metrics = ("ndcg_dataset", "expected_ndcg_dataset") + ((DISPARITY,) if config.objective == DISPARITY else ())
    curve: Figures = {name: [] for name in ("seconds", *metrics)}
    due = [0.0, *(limit * 1.5 ** (i - LOOKS + 2) for i in range(LOOKS - 1))]

    looked = 0.0  # seconds of evaluation on the test data
    begun = time.process_time()

    def trained() -> float:
        return time.process_time() - begun - looked

    def look(run: TrainingRun) -> None:
        nonlocal looked, due
        seconds = trained() if curve["seconds"] else 0.0
        if due and seconds >= due[0]:
            due = [later for later in due if later > seconds]
            figures = {**run.evaluate(run.splits["test"]), "seconds": seconds}
            for name, values in curve.items():
                values.append(figures[name])
            looked += trained() - seconds

    run = TrainingRun(config, None, splits, None, epochs=2**31, n_threads=1)
    look(run)
    begun, looked = time.process_time(), 0.0
    run.train(interrupted=lambda: trained() >= limit, observer=look)
    return curve


@lru_cache(maxsize=3)
def _splits(name: str, number: int, seconds: float) -> Splits:
    """Return the data of a run: generated with a ground truth for each seed, or a fold of real files.

    There are few validation queries, as no best epoch is chosen.
    """
    if name not in PROFILES:
        folds = find_folds(name)
        return folds[number % len(folds)].load(normalize=True)
    profile = PROFILES[name]
    queries = int(DOCS_PER_SECOND * seconds / profile.mean_length)
    queries = min(profile.n_queries, max(LEAST_QUERIES, queries))
    sizes: dict[Split, int] = {"train": queries, "vali": LEAST_QUERIES, "test": max(LEAST_QUERIES, queries)}
    shape: Any = name
    return {part: normalize_queries(generate(shape, n, seed=number, split=part)) for part, n in sizes.items()}


def find_folds(folder: str) -> list[Source]:
    """Find ``train.txt``, ``vali.txt`` and ``test.txt`` in a folder, or in the folders within it."""
    folds = []
    for place in (Path(folder), *sorted(path for path in Path(folder).glob("*") if path.is_dir())):
        files: dict[str, Any] = {name: (str(place / f"{name}.txt"),) for name in SPLITS}
        if all(Path(file).is_file() for (file,) in files.values()):
            folds.append(Source(**files))
    if not folds:
        raise ValueError(
            f"data {folder} has no train.txt, vali.txt and test.txt, in itself or in folders such as Fold1"
        )
    return folds
