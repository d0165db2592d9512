"""Binary copies of parsed LETOR text, from which features are mapped into memory.

One archive (`plrank_fast._shared.archive`) holds the result of one call of `load_letor`. It is used if its digest shows
that it is whole, and hashes of the texts that it belongs to the present ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from plrank_fast._shared.archive import interpreting, read_archive, write_archive
from plrank_fast.data.ranking_data import RankingData

SUFFIX = ".letor-cache"
ARRAYS = ("features", "labels", "offsets", "query_ids")


def cached(
    paths: Sequence[str], options: Mapping[str, Any], folder: str | os.PathLike[str] | None, parse: Callable[[], Any]
) -> RankingData:
    """Return the data of ``paths`` from their cache, or parse them and write it.

    ``options`` are everything else that the result depends on, as JSON. Caches are kept in ``folder``, by default
    beside the first text. Arrays from a cache are mapped copy-on-write: changing them changes no file. A warning says
    that a cache is damaged, or cannot be read or written.
    """
    for path in paths:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(f"cache must be False for a path that is not a regular file, got {path}")
    home = Path(folder) if folder is not None else Path(paths[0]).parent
    # Relative names allow texts and cache to be moved together.
    key = {"texts": [os.path.relpath(path, home) for path in paths], "options": dict(options)}
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]
    cache = home / f"{Path(paths[0]).name}.{digest}{SUFFIX}"
    identity = {**key, "hashes": [_hash(path) for path in paths]}
    try:
        if (held := _opened(cache, identity)) is not None:
            return held
    except (FileNotFoundError, NotADirectoryError):
        pass
    except ValueError as error:
        warnings.warn(f"{error}; it is written anew", stacklevel=3)
    except OSError as error:
        warnings.warn(f"cache {cache} cannot be read, so the text is: {error}", stacklevel=3)
    data: RankingData = parse()
    try:
        home.mkdir(parents=True, exist_ok=True)
        if [_hash(path) for path in paths] == identity["hashes"]:  # else a text was changed while it was read
            header, arrays = {"identity": identity, "name": data.name}, {name: getattr(data, name) for name in ARRAYS}
            mode = stat.S_IMODE(os.stat(paths[0]).st_mode) & 0o666 | stat.S_IRUSR | stat.S_IWUSR
            write_archive(cache, "cache", header, arrays, mode=mode)
    except OSError as error:
        warnings.warn(f"cache {cache} cannot be written, so the text is parsed each time: {error}", stacklevel=3)
    return data


def _opened(cache: Path, identity: Mapping[str, Any]) -> RankingData | None:
    """Read a cache, or return None if it belongs to other texts or options."""
    header, arrays = read_archive(cache, "cache", mapped=True)
    with interpreting(cache, "cache"):
        if header["identity"] != identity:
            return None
        features, labels, offsets, query_ids = (arrays[name] for name in ARRAYS)
        return RankingData(features, labels, offsets, query_ids, header["name"])


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
