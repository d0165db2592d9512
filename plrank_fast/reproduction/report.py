"""One self-contained HTML page with findings, pictures, tables, and the conditions of the measurements."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any

from plrank_fast.reproduction import published
from plrank_fast.reproduction.cells import Figures
from plrank_fast.reproduction.findings import FAILS, HOLDS, OPEN, Finding
from plrank_fast.reproduction.tables import Table
from plrank_fast.training.config import describe_preset

CAPTIONS = {
    "figure_1": (
        "What an epoch's gradients cost, against the cutoff K",
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
    "error_against_cost": (
        "What the seconds buy: error of a gradient against its cost",
        "A point for each cutoff, larger for larger K. Lower and further left is better. The error is relative to the "
        "norm of the exact gradient, on random scores of unit spread.",
    ),
    "figure_2": (
        "Test NDCG@K of the deterministic ranking against training seconds",
        "Normalised by data set. Means of the seeds, each with data of its own, and one standard error either way, "
        "without what all methods of a seed share. The statements above use 95 % intervals of differences by seed.",
    ),
    "figure_2_expected": (
        "The same in expected NDCG@K",
        "What the methods optimise: the mean over the policy's rankings.",
    ),
    "settings": (
        "The published code's settings beside ours",
        f"Solid: the default preset; dotted: sigir22, {describe_preset('sigir22')}. "
        "Where the dotted lines lie together, a difference between papers is one of settings and not of estimators.",
    ),
    "disparity": (
        "Disparity of exposure that is left (the experiment of SIGIR 2021)",
        "Mean over the test queries of the squared disparity of expected exposure, as a share of what the untrained "
        "network has.",
    ),
}
MARKS = {HOLDS: "yes", FAILS: "no", OPEN: "open"}
STYLE = """
body { margin: 0 auto; max-width: 74rem; padding: 1.5rem; color: #1b1f24; font: 16px/1.55 system-ui, sans-serif; }
p { max-width: 46rem; }
.soft, figcaption, td small { color: #5b6570; font-size: 0.9rem; }
figure { margin: 0; }
img { width: 100%; height: auto; }
.findings { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(21rem, 100%), 1fr)); gap: 0.8rem; }
.finding { border: 1px solid #dfe3e8; border-left: 5px solid #b8860b; padding: 0.7rem 0.9rem; }
.finding.yes { border-left-color: #2e7d4f; }
.finding.no { border-left-color: #b3372f; }
.finding b, .verdict { display: block; }
.finding p { margin: 0; font-size: 0.86rem; overflow-wrap: anywhere; }
.scroll, pre { overflow-x: auto; border: 1px solid #dfe3e8; padding: 0.5rem; font-size: 0.86rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.25rem 0.7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #dfe3e8; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
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
        "<h2>What holds</h2>",
        _findings(findings),
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
    parts += ["<h2>How this was made</h2>", _progress(progress), _about(about), "</body>\n</html>\n"]
    return "\n".join(parts)


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return "<p>Nothing has been measured yet that a statement could be judged by.</p>"
    cards = [
        f"<div class='finding {MARKS.get(finding.verdict, 'open')}'><b>{html.escape(finding.statement)}</b>"
        f"<span class='verdict'>{html.escape(finding.verdict)}</span><p>{html.escape(finding.evidence)}</p></div>"
        for finding in findings
    ]
    return "<div class='findings'>" + "\n".join(cards) + "</div>"


def _table_2(table: Table) -> str:
    """Lay out Table 2, methods down and cutoffs across: ours, and in small print NumPy's and the paper's."""
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    cutoffs = sorted({row["K"] for row in rows})  # type: ignore[type-var]
    lines = ["<tr><th>set</th><th>method</th>" + "".join(f"<th>K = {cutoff}</th>" for cutoff in cutoffs) + "</tr>"]
    for shape, method in dict.fromkeys((row["set"], row["method"]) for row in rows):
        cells = {row["K"]: row for row in rows if (row["set"], row["method"]) == (shape, method)}
        shown = "".join(f"<td>{_minutes(cells[cutoff]) if cutoff in cells else ''}</td>" for cutoff in cutoffs)
        lines.append(f"<tr><td>{html.escape(str(shape))}</td><td>{html.escape(str(method))}</td>{shown}</tr>")
    note = (
        "Whole epochs of the full set on one thread, gradients and network passes; measured on a sample of queries "
        "with the set's list lengths and scaled to all its documents. In small print: NumPy on this machine (timed on "
        f"one query of mean length and scaled likewise), and what the paper prints ({published.HARDWARE})."
    )
    return f"<div class='scroll'><table>{''.join(lines)}</table></div><p class='soft'>{html.escape(note)}</p>"


def _minutes(row: Mapping[str, Any]) -> str:
    extra = [f"NumPy {row['numpy_minutes']:.3g}"] if row["numpy_minutes"] is not None else []
    extra += [f"paper {row['paper_minutes']:.3g}"] if row["paper_minutes"] is not None else []
    return f"{row['minutes']:.3g}" + (f"<br><small>{', '.join(extra)}</small>" if extra else "")


def _progress(progress: Sequence[Figures]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(part['title'])}</td><td>{part['rounds']}</td><td>{part['cells']} of {part['of']}</td>"
        f"<td>{part['seconds']:.0f}</td></tr>"
        for part in progress
    )
    return (
        "<div class='scroll'><table><tr><th>part</th><th>whole rounds</th><th>cells</th><th>seconds</th></tr>"
        f"{rows}</table></div>"
    )


def _about(about: Mapping[str, Any]) -> str:
    lines = "\n".join(f"{name + ':':12} {value}" for name, value in about.items())
    return f"<pre>{html.escape(lines)}</pre>"
