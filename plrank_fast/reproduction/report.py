"""One self-contained HTML page with findings, pictures, tables, and the conditions of the measurements."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plrank_fast.reproduction import published
from plrank_fast.reproduction.cells import Figures
from plrank_fast.reproduction.findings import Finding
from plrank_fast.reproduction.tables import Table
from plrank_fast.training.config import describe_preset

CAPTIONS = {
    "figure_1": (
        "Cost of the gradients of an epoch against the cutoff K",
        "Median of the rounds; the band runs from the least to the greatest. Dashed: N = 1000. Above this library, "
        "below NumPy on the same machine and, thin and dotted, the minutes that the paper prints ("
        + published.HARDWARE
        + "; they "
        "include the network's passes). Both rows of a column have one scale.",
    ),
    "figure_1_list_length": (
        "Cost against the length of the list",
        "One query, one cutoff. NumPy's estimators touch every document for each ranking; here PL-Rank-3 does not.",
    ),
    "figure_2": (
        "Test NDCG@K of the deterministic ranking against training seconds",
        "Normalised by data set. Means of the seeds, each with data of its own, and one standard error either way, "
        "without what all methods of a seed share. The statements above use 95 % intervals of differences by seed.",
    ),
    "figure_2_expected": (
        "Expected test NDCG@K against training seconds",
        "The methods optimise it: the mean over the rankings of the policy.",
    ),
    "settings": (
        "The published code's settings beside ours",
        f"Solid and dashed: the default preset; with dots: sigir22, {describe_preset('sigir22')}. "
        "Where the lines with dots lie together, a difference between papers is one of settings and not of estimators.",
    ),
    "disparity": (
        "Remaining disparity of exposure (the experiment of SIGIR 2021)",
        "Mean over the test queries of the squared disparity of expected exposure, as a share of that of the "
        "untrained network.",
    ),
}
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
    tables: Mapping[str, Table],
    about: Mapping[str, Any],
    progress: Sequence[Figures],
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
    for name, (title, caption) in CAPTIONS.items():
        if name in pictures:
            data = base64.b64encode(pictures[name]).decode()
            parts.append(
                f"<h2>{html.escape(title)}</h2>\n<figure><img alt='{html.escape(title, quote=True)}' "
                f"src='data:image/png;base64,{data}'>\n<figcaption>{html.escape(caption)}</figcaption></figure>"
            )
    if "table_2" in tables:
        parts += ["<h2>Table 2: minutes per epoch</h2>", _table_2(tables["table_2"])]
    done = [
        (part["title"], part["rounds"], f"{part['cells']} of {part['of']}", f"{part['seconds']:.0f}")
        for part in progress
    ]
    parts += ["<h2>Conditions</h2>", _table(("part", "whole rounds", "cells", "seconds"), done)]
    parts += [_table(("", ""), about.items()), "</body>\n</html>\n"]
    return "\n".join(parts)


def _table(headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [
        "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>"
        for tag, row in (("th", headings), *(("td", row) for row in rows))
    ]
    return "<div class='scroll'><table>\n" + "\n".join(lines) + "\n</table></div>"


def _table_2(table: Table) -> str:
    """Lay out Table 2, methods down and cutoffs across: ours, and below it NumPy's and the paper's."""
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    cells = {(row["set"], row["method"], row["K"]): _minutes(row) for row in rows}
    cutoffs = sorted({row["K"] for row in rows})  # type: ignore[type-var]
    lines = [
        (shape, method, *(cells.get((shape, method, cutoff), "") for cutoff in cutoffs))
        for shape, method in dict.fromkeys((row["set"], row["method"]) for row in rows)
    ]
    note = (
        "Whole epochs of the full set on one thread, gradients and network passes; measured on a sample of queries "
        "with the set's list lengths and scaled to all its documents. Below: NumPy on this machine (timed on one query "
        f"of mean length and scaled likewise), and what the paper prints ({published.HARDWARE})."
    )
    shown = _table(("set", "method", *(f"K = {cutoff}" for cutoff in cutoffs)), lines)
    return f"{shown}<p class='soft'>{html.escape(note)}</p>"


def _minutes(row: Mapping[str, Any]) -> str:
    others = {"NumPy": row["numpy_minutes"], "paper": row["paper_minutes"]}
    return "\n".join(
        [f"{row['minutes']:.3g}", *(f"{name} {value:.3g}" for name, value in others.items() if value is not None)]
    )
