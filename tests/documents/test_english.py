"""Docstrings, comments and descriptions of parameters open with a subject or a verb; lines fit into 120 columns."""

import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENERS = r"(?:What|Of|As|The same|Likewise|Which|Whose)\b"
SENTENCE = re.compile(rf'(?:"""|/\* |# ){OPENERS}.*')
DESCRIPTION = re.compile(rf"^( *)[\w*, ]+(?: : .*)?\n\1    {OPENERS}.*", re.MULTILINE)  # of a parameter or a result


def fragments(text):
    """Openers in a source file, without the lines of a comment that continue the line above."""
    is_comment = re.compile(r" *# ").match
    lines = [line for above, line in pairwise(["", *text.splitlines()]) if not (is_comment(above) and is_comment(line))]
    return [found[0] for pattern in (SENTENCE, DESCRIPTION) for found in pattern.finditer("\n".join(lines))]


def test_openers_are_found():
    """And no other text. Mutants: descriptions of parameters not looked at; lines that continue a comment counted."""
    opening = (
        '    """What is left of a run."""', "# Of all items\n", "x = 1  # As usual", "/* The same for a long list. */",
        "    rng : Generator\n        As in ``pl_rank_3``.", "    scores, offsets\n        Which the caller gives.",
        "ndarray\n    Of the shape of scores.",
    )  # fmt: skip
    assert [len(fragments(text)) for text in opening] == [1] * len(opening)
    assert not fragments('# Items are sorted.\n# As they come ...\n"""Return what is left.\n\n    Of these ..."""')


def test_no_text_opens_with_a_fragment():
    """Mutants: a docstring or a test that opens with "What"; a parameter that is described "As in" another function."""
    paths = [path for folder in ("plrank_fast", "tests") for path in (ROOT / folder).rglob("*.*")]
    paths = [path for path in paths if path.suffix in (".py", ".pyi", ".pyx", ".pxd", ".c", ".h")]
    generated = {path.with_suffix(".c") for path in paths if path.suffix == ".pyx"} | {Path(__file__)}
    found = {path.relative_to(ROOT): fragments(path.read_text()) for path in paths if path not in generated}
    assert len(found) > 250
    assert not {str(name): openers for name, openers in found.items() if openers}


def test_lines_fit_into_120_columns():
    """Ruff looks at Python; tables, formulas and links are not wrapped; the site's generated pages are not looked at.

    Mutant: a longer line in a kernel's comment.
    """
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("reference/*.rst")]
    paths += [path for kind in ("h", "pyx", "pxd") for path in (ROOT / "plrank_fast").rglob(f"*.{kind}")]
    paths += (ROOT / "plrank_fast" / "kernels").rglob("*.c")
    lines = [(path.name, line) for path in paths for line in path.read_text().splitlines()]
    assert len(lines) > 20_000
    assert not [line for line in lines if len(line[1]) > 120 and not re.match(r"\||\$\$|.*http", line[1])]
