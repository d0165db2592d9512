"""Real data from a folder of LETOR files, with or without folds."""

from __future__ import annotations

from pathlib import Path

from plrank_fast.training.sources import Source

NAMES = {
    "train": ("train.txt", "train.txt.gz"),
    "vali": ("vali.txt", "valid.txt", "vali.txt.gz"),
    "test": ("test.txt", "test.txt.gz"),
}


def find_folds(folder: str) -> list[Source]:
    """Find ``train.txt``, ``vali.txt`` and ``test.txt`` in a folder, or in the folders within it."""
    places = [Path(folder), *sorted(path for path in Path(folder).glob("*") if path.is_dir())]
    folds = [place for place in places if all(_file(place, part) for part in NAMES)]
    if not folds:
        raise ValueError(
            f"data {folder} has no train.txt, vali.txt and test.txt, in itself or in folders such as Fold1"
        )
    files = [[(str(_file(fold, part)),) for part in NAMES] for fold in folds]
    return [Source(train, vali, test) for train, vali, test in files]


def _file(folder: Path, part: str) -> Path | None:
    return next((folder / name for name in NAMES[part] if (folder / name).is_file()), None)
