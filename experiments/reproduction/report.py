"""The report: one self-contained HTML page with findings, pictures, Table 2 and the conditions of the measurements."""

from __future__ import annotations

import base64
import html
import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import plrank_fast as plr
from plrank_fast import __version__
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import write_atomically
from plrank_fast._shared.pictures import png_of
from plrank_fast.benchmarks.epoch_cost import CUTOFFS
from reproduction.figures import FIGURES
from reproduction.findings import all_findings
from reproduction.published import HARDWARE, published_minutes
from reproduction.results import Figures, Part, ResultsFile
from reproduction.summary import costs, network_seconds

REPORT = "report.html"
STYLE = """
body { margin: 0 auto; max-width: 74rem; padding: 1.5rem; color: #1b1f24; font: 16px/1.55 system-ui, sans-serif; }
p { max-width: 46rem; }
.soft, figcaption { color: #5b6570; font-size: 0.9rem; }
figure { margin: 0; }
img { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; border: 1px solid #dfe3e8; padding: 0.5rem; font-size: 0.86rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.25rem 0.7rem; text-align: left; vertical-align: top; white-space: pre-line; }
td { border-top: 1px solid #dfe3e8; }
"""
HEAD = f"""<!doctype html>
<html lang='en'>
<head>
<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>
<title>PL-Rank, reproduced</title>
<style>{STYLE}</style>
</head>
<body>
<h1>PL-Rank, reproduced</h1>
<p class='soft'>The experiments of Oosterhuis, <i>Learning-to-Rank at the Speed of Sampling</i> (SIGIR 2022), with an
exact gradient and a conditional Monte Carlo estimate beside the paper's methods. Every statement below is computed from
the figures of this run.</p>
<h2>Statements</h2>"""
NOTE = f"""<p class='soft'>Whole epochs of the full set on one thread, gradients and network passes; measured on a
sample of queries with the set's list lengths and scaled to all its documents. Below: NumPy on this machine (timed on
one query of mean length and scaled likewise), and what the paper prints ({HARDWARE}).</p>"""


def write_report(folder: Path, settings: Figures, parts: list[Part], results: ResultsFile) -> None:
    """Write the page, and its pictures as files too, from the cells measured so far."""
    page = [HEAD, _table(("verdict", "statement", "figures"), all_findings(results.cells))]
    measured = {cell["part"] for cell in results.cells if "method" in cell["cell"]}
    for name, picture in FIGURES.items():
        if picture.arguments[0] in measured:
            drawing = picture.draw(results.cells, *picture.arguments)
            content, width = png_of(drawing), round(96 * drawing.get_size_inches()[0])
            write_atomically(folder / f"{name}.png", content)
            title, data = html.escape(picture.title), base64.b64encode(content).decode()
            page.append(f"<h2>{title}</h2>\n<figure><img alt='{title}' width='{width}'")
            page.append(f"src='data:image/png;base64,{data}'>")
            page.append(f"<figcaption>{html.escape(picture.caption)}</figcaption></figure>")
    if "cost" in measured:
        page += ["<h2>Table 2: minutes per epoch</h2>", table_2(results.cells), NOTE]
    progress = []
    for part in parts:
        done, of = len(results.of(part.name)), len(part.cells)
        planned = of * max(1, -(-done // of))
        progress.append((part.title, done // of, f"{done} of {planned}", f"{results.seconds(part.name):.0f}"))
    page += ["<h2>Conditions</h2>", _table(("part", "whole rounds", "cells", "seconds"), progress)]
    page += [_table(("", ""), {**about_this_machine(), **settings}.items()), "</body>\n</html>\n"]
    write_atomically(folder / REPORT, "\n".join(page).encode(errors="backslashreplace"))


def table_2(cells: Sequence[Figures]) -> str:
    """Lay out Table 2, methods down and cutoffs across: minutes of ours, and below them NumPy's and the paper's."""
    network, measured = network_seconds(cells), costs(cells, "cost")
    cutoffs = sorted({cutoff for row in measured.values() for cutoff in row.columns})
    rows = []
    for (shape, method), row in measured.items():
        paper = dict(zip(CUTOFFS, published_minutes(method, shape), strict=False))
        shown = dict.fromkeys(cutoffs, "")
        for i, cutoff in enumerate(row.columns):
            of_sources = (("", row.seconds), ("NumPy ", row.numpy_seconds))
            minutes = {
                name: (float(np.median(seconds[:, i])) + network.get(shape, 0.0)) / 60
                for name, seconds in of_sources
                if seconds is not None
            }
            minutes |= {"paper ": paper[cutoff]} if cutoff in paper else {}
            shown[cutoff] = "\n".join(f"{name}{value:.3g}" for name, value in minutes.items())
        rows.append((shape, method.title, *shown.values()))
    return _table(("set", "method", *(f"K = {cutoff}" for cutoff in cutoffs)), rows)


def _table(headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [
        "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>"
        for tag, row in (("th", headings), *(("td", row) for row in rows))
    ]
    return "<div class='scroll'><table>\n" + "\n".join(lines) + "\n</table></div>"


def about_this_machine() -> dict[str, Any]:
    """Return versions, processor and build."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search("model name\\s*: (.*)", cpuinfo.read_text() if cpuinfo.exists() else "")
    processor = model[1] if model else platform.processor() or "unknown processor"
    return {
        "plrank-fast": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": import_extra("torch", "train").__version__,
        "matplotlib": import_extra("matplotlib", "train").__version__,
        "machine": f"{processor}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        "build": ", ".join(f"{name} {value}" for name, value in plr.build_info().items()),
    }
