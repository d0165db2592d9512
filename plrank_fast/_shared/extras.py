"""Import of optional packages at their first use, with errors that name the extra that is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_extra(module: str, extra: str, only: str = "") -> Any:
    """Import ``module``, which comes with the optional dependencies called ``extra``.

    If it is absent, the message of the ImportError says how to install the extra, or ``only`` that package of it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{package} is needed here ({error}): pip install {requirements(extra, only)}") from error


def requirements(extra: str, only: str = "") -> str:
    """Return the packages of an extra, or one of them, as pip's arguments; without the project installed, its name."""
    from importlib import metadata  # slow to import, and only errors need it

    try:
        listed = metadata.requires("plrank-fast") or []
    except metadata.PackageNotFoundError:
        return only or extra
    of_extra = [line for line in listed if f'extra == "{extra}"' in line and line.startswith(only)]
    return " ".join(f'"{line.partition(";")[0].strip()}"' for line in of_extra)
