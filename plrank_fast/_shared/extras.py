"""Import of optional packages at their first use, with errors that name the extra that is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_extra(module: str, extra: str) -> Any:
    """Import ``module``, which comes with the optional dependencies called ``extra``.

    If it is absent, the message of the ImportError says how to install the extra.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{package} is needed here ({error}): pip install {requirements(extra)}") from error


def requirements(extra: str) -> str:
    """Return the packages of an extra as pip's arguments, or its name if the project is not installed."""
    from importlib import metadata  # slow to import, and only errors need it

    try:
        listed = metadata.requires("plrank-fast") or []
    except metadata.PackageNotFoundError:
        return extra
    marker = f'extra == "{extra}"'
    return " ".join(f'"{line.partition(";")[0].strip()}"' for line in listed if marker in line)
