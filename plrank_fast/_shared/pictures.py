"""Pictures by matplotlib without pyplot: they need no window system, and change no global state."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from plrank_fast._shared.extras import import_extra


def new_figure(size: tuple[float, float]) -> Any:
    """Make a figure, which a notebook shows without pyplot too."""
    matplotlib = import_extra("matplotlib.figure", "train", only="matplotlib")
    figure = matplotlib.Figure(figsize=size, layout="constrained")
    figure._repr_png_ = partial(png_of, figure, dpi=80)
    return figure


def new_panels(rows: int, columns: int, width: float, height: float, **shared: Any) -> tuple[Any, Any]:
    """Make a figure and its panels, an array of shape (rows, columns)."""
    figure = new_figure((max(width * columns, 6.0), height * rows + 0.6))
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def set_ticks(panel: Any, places: Sequence[float]) -> None:
    """Label these places of the horizontal axis, and draw a grid."""
    panel.set_xticks(list(places), labels=[f"{place:g}" for place in places])
    panel.minorticks_off()
    panel.grid(alpha=0.25)


def add_legend(figure: Any, panels: Any) -> None:
    """Draw one legend under all panels."""
    handles: dict[str, Any] = {}
    for panel in np.ravel(panels):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = max(2, int(figure.get_size_inches()[0] / 2.1))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize="small"
    )


def png_of(figure: Any, dpi: int = 150) -> bytes:
    """Return a figure as the contents of a PNG file; equal figures give equal bytes."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=dpi)
    return picture.getvalue()
