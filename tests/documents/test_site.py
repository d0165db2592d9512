"""The documentation site: its scripts run, its blocks run, its lists are complete; ``make docs`` builds it.

Building it takes longer than a test may. What goes wrong without a warning of Sphinx is looked at here.
"""

import inspect
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest

import plrank_fast as plr

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN_BY_OTHER_TESTS = {"sh": "test_shell_blocks.py"}
DIRECTIVES = ("{include}", "{toctree}")


def reference_entries():
    """Names in the lists of the reference, each with the module that its list is of."""
    for page in sorted((DOCS / "reference").glob("*.rst")):
        module = "plrank_fast"
        for line in page.read_text().splitlines():
            if found := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
                module = found[1]
            elif "autosummary" not in line and (found := re.fullmatch(r"   (\w+)", line)) and page.stem != "index":
                yield module, found[1]


def test_every_public_function_has_a_page():
    """Mutants: ``pl_rank_cmc`` left out of a list; a function in two lists; one that is gone;
    a new function in ``losses.__all__``."""
    entries = list(reference_entries())
    assert len(set(entries)) == len(entries)
    public = {("plrank_fast", name) for name in plr.__all__ if not inspect.ismodule(getattr(plr, name))}
    for module in ("plrank_fast.losses", "plrank_fast.data", "plrank_fast.off_policy", "plrank_fast.compat.sigir22"):
        public |= {(module, name) for name in import_module(module).__all__}
    modules = {name for name in plr.__all__ if inspect.ismodule(getattr(plr, name))} | {"embedding"}
    # a page for the references, classes for boosting
    for name in modules - {"losses", "data", "off_policy", "reference", "boosting"}:
        module = f"plrank_fast.{name}"
        defined = vars(import_module(module)).values()
        own = [x for x in defined if inspect.isroutine(x) and x.__module__ == module and x.__name__[0] != "_"]
        public |= {(module, function.__name__) for function in own}
    public -= {("plrank_fast.embedding", name) for name in ("get_include", "stream_key")}  # of ``plrank_fast`` itself
    assert not public - set(entries)
    for module, name in set(entries) - public:  # classes, and adapters whose libraries may be missing
        place = ROOT.joinpath(*module.split("."))
        sources = place.glob("*.py") if place.is_dir() else [place.with_suffix(".py")]
        found = [re.search(rf"^ *(def|class) {name}\b", source.read_text(), re.MULTILINE) for source in sources]
        assert any(found), f"{module}.{name}"


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """Relative links of a page work on a forge, and the site follows the same files.

    Mutants: ``boosting.md`` renamed; a link with ``docs/`` before it inside ``docs``.
    """
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        generated = target.startswith("auto_gallery/")  # by ``make docs``
        assert generated or target.startswith("http") or (page.parent / target).exists(), target


def test_first_page_describes_every_other():
    """Mutants: a page in the menu alone; a page in neither."""
    text, _, menu = (DOCS / "index.md").read_text().partition("```{toctree}")
    described = set(re.findall(r"\]\((\w+)\.md\)", text))
    assert {page.stem for page in PAGES} - {"index"} == described
    assert set(re.findall(r"^\w+$", menu, re.MULTILINE)) <= described


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_block_is_left_out(page):
    """A block is a doctest, of a shell, of Python and run here or in a file of its own, or quoted from an example, or
    from the sources on the page that follows a call through them.

    Mutants: a block of another language; a line of a quoted block changed.
    """
    examples = "\n".join(path.read_text() for path in (ROOT / "examples").rglob("*.*") if path.suffix != ".so")
    examples += "\n".join(path.read_text() for path in (ROOT / "asv_benchmarks").rglob("*.py"))
    if page.name == "how_a_batch_runs.md":
        sources = [path for kind in ("pyx", "py") for path in (ROOT / "plrank_fast").rglob(f"*.{kind}")]
        examples = "...\n".join(map(Path.read_text, [*sources, *(ROOT / "plrank_fast" / "kernels").rglob("*.c")]))
    for language, code in FENCE.findall(page.read_text()):
        if language in RUN_BY_OTHER_TESTS or language.startswith(DIRECTIVES) or ">>> " in code:
            continue
        if language == "python" and page.name != "embedding.md":
            continue
        if language == "py" and "from ray." in code:  # which test_ray.py runs
            continue
        assert all(line.partition("  #")[0].strip() in examples for line in code.splitlines()), code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_formulas_are_typeset(page):
    """``make docs`` typesets them so. Mutants: a misspelt command; a brace left open; brackets of LaTeX."""
    latex2mathml = pytest.importorskip("docutils.utils.math.latex2mathml", reason="docutils is not installed")
    text = re.sub(r"`[^`]*`", "", FENCE.sub("", page.read_text()))
    assert not re.search(r"\\[\[(]", text)
    formulas = re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", text, re.DOTALL)
    assert formulas or page.name != "numerics.md"
    for displayed, inline in formulas:
        assert latex2mathml.tex2mathml(displayed or inline).startswith("<math")


def plain_python(page):
    """Blocks of Python that are no doctests."""
    text = page.read_text()
    return [
        (text[: block.start()].count("\n") + 1, block[2])
        for block in FENCE.finditer(text)
        if block[1] == "python" and ">>> " not in block[2]
    ]


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of torch.onnx
def test_python_blocks_run(tmp_path, monkeypatch):
    """All of a page in the order in which it stands. Mutant: a block that raises."""
    monkeypatch.chdir(tmp_path)
    for page in PAGES:
        if page.name not in ("boosting.md", "embedding.md", "scaling.md"):  # run by files of their own
            names = {}
            for line, code in plain_python(page):
                exec(compile("\n" * line + code, page.name, "exec"), names)


@pytest.mark.parametrize("script", sorted((DOCS / "gallery").glob("*.py")), ids=lambda path: path.stem)
def test_gallery(script, monkeypatch, tmp_path):
    """The scripts run as they do when the site is built, and each leaves a picture.

    Mutants: a row of probabilities that is not summed; a figure that is not made.
    """
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(sys, "argv", [str(script)])
    pyplot.close("all")
    try:
        shorter = re.sub(r"^SECONDS = [\d.]+", "SECONDS = 0.001", script.read_text(), flags=re.MULTILINE)
        copy = tmp_path / script.name
        copy.write_text(shorter)
        runpy.run_path(str(copy))
        assert pyplot.get_fignums()
        pyplot.savefig(tmp_path / "picture.svg")
    finally:
        pyplot.close("all")


def test_formulas_of_plain_text_are_typeset(monkeypatch):
    """Mutants: names of arguments taken for formulas; a nested subscript cut at its first brace."""
    for library in ("sphinx", "docutils", "ziamath"):
        pytest.importorskip(library)
    monkeypatch.syspath_prepend(DOCS)
    typeset = import_module("conf").typeset

    def marked(text):
        return "".join(f"<{each.astext()}>" if each.children else each.astext() for each in typeset(text))

    assert marked("sum_k theta_k rho_{y_{ik}}, s_t^2") == "∑<k> θ<k> ρ<yik>, s<t><2>"
    assert marked("(1 - x)^2 <= e^-2 r^(top - m)") == "(1 - x)<2> <= e<-2> r<top - m>"
    for plain in ("shape (n_docs,)", "coef_, n_iter_", "max_label", "pl_rank_3"):
        assert marked(plain) == plain


def test_search_names_pages_of_use_first():
    """Mutants: a page that is gone; the training pages without a heading that a search finds."""
    (later,) = re.findall(r"\^\(([\w|]+)\)\$", (DOCS / "search_scorer.js").read_text())
    assert set(later.split("|")) <= {page.stem for page in PAGES}
    for page in ("training", "boosting"):
        assert re.search(r"^#+ Early stopping$", (DOCS / f"{page}.md").read_text(), re.MULTILINE)
