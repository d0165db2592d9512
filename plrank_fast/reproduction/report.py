"""One self-contained HTML page with findings, pictures, tables, and the conditions of the measurements."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plrank_fast.reproduction import published
from plrank_fast.reproduction.figures import FIGURES
from plrank_fast.reproduction.findings import Finding
from plrank_fast.reproduction.results import Figures

STYLE = """
body { margin: 0 auto; max-width: 74rem; padding: 1.5rem; color: #1b1f24; font: 16px/1.55 system-ui, sans-serif; }
p { max-width: 46rem; }
.soft, figcaption { color: #5b6570; font-size: 0.9rem; }
figure { margin: 0; }
img { width: 100%; height: auto; }
.scroll { overflow-x: auto; border: 1px solid #dfe3e8; padding: 0.5rem; font-size: 0.86rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.25rem 0.7rem; text-align: left; vertical-align: top; white-space: pre-line; }
td { border-top: 1px solid #dfe3e8; }
"""


def html_report(
    findings: Sequence[Finding],
    pictures: Mapping[str, bytes],
    minutes_per_epoch: Sequence[Figures],
    progress: Iterable[Sequence[object]],
    about: Mapping[str, Any],
) -> str:
    """Write the page with all findings, pictures (PNG files) and Table 2; other tables are files beside it."""
    parts = [
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>PL-Rank, reproduced</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        "<h1>PL-Rank, reproduced</h1>",
        "<p class='soft'>The experiments of Oosterhuis, <i>Learning-to-Rank at the Speed of Sampling</i> (SIGIR 2022), "
        "with an exact gradient and a conditional Monte Carlo estimate beside the paper's methods. Every statement "
        "below is computed from the figures of this run.</p>",
        "<h2>Statements</h2>",
        _table(
            ("verdict", "statement", "figures"), [(each.verdict, each.statement, each.evidence) for each in findings]
        ),
    ]
    for name, picture in pictures.items():
        title, caption = FIGURES[name].title, FIGURES[name].caption
        data = base64.b64encode(picture).decode()
        parts.append(
            f"<h2>{html.escape(title)}</h2>\n<figure><img alt='{html.escape(title, quote=True)}' "
            f"src='data:image/png;base64,{data}'>\n<figcaption>{html.escape(caption)}</figcaption></figure>"
        )
    if minutes_per_epoch:
        parts += ["<h2>Table 2: minutes per epoch</h2>", _table_2(minutes_per_epoch)]
    parts += ["<h2>Conditions</h2>", _table(("part", "whole rounds", "cells", "seconds"), progress)]
    parts += [_table(("", ""), about.items()), "</body>\n</html>\n"]
    return "\n".join(parts)


def _table(headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [
        "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>"
        for tag, row in (("th", headings), *(("td", row) for row in rows))
    ]
    return "<div class='scroll'><table>\n" + "\n".join(lines) + "\n</table></div>"


def _table_2(rows: Sequence[Figures]) -> str:
    """Lay out Table 2, methods down and cutoffs across: ours, and below it NumPy's and the paper's."""
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        minutes = {"": row["minutes"], "NumPy ": row["numpy_minutes"], "paper ": row["paper_minutes"]}
        lines = [f"{name}{value:.3g}" for name, value in minutes.items() if value is not None]
        cells.setdefault((row["set"], row["method"]), {})[row["K"]] = "\n".join(lines)
    cutoffs = sorted({row["K"] for row in rows})
    note = (
        "Whole epochs of the full set on one thread, gradients and network passes; measured on a sample of queries "
        "with the set's list lengths and scaled to all its documents. Below: NumPy on this machine (timed on one query "
        f"of mean length and scaled likewise), and what the paper prints ({published.HARDWARE})."
    )
    shown = _table(
        ("set", "method", *(f"K = {cutoff}" for cutoff in cutoffs)),
        [(*key, *(row.get(cutoff, "") for cutoff in cutoffs)) for key, row in cells.items()],
    )
    return f"{shown}<p class='soft'>{html.escape(note)}</p>"
