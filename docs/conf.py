"""Sphinx configuration of the documentation site; ``make docs`` builds it into build/docs.

The pages are the Markdown files of this folder, which a forge shows as well: links between them are relative. The
reference is generated from docstrings and the gallery by running its scripts; what both write into ``generated`` and
``auto_gallery`` is not committed.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.resources import files
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

project = "plrank-fast"
copyright = "plrank-fast maintainers"
release = re.search(r'^version = "(.+)"', (FOLDER.parent / "pyproject.toml").read_text(), re.MULTILINE)[1]
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery", "_templates", "**/README.*"]
templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # a copied block holds the commands without prompts and results
copybutton_prompt_is_regexp = True
highlight_language = "none"  # formulas of docstrings; blocks of code name their language

# numpydoc renders the docstrings; a table of members with a page for each would repeat what a class's page says.
numpydoc_show_class_members = False
autodoc_typehints = "none"  # types stand in the docstrings, with shapes
autodoc_member_order = "bysource"
autodoc_mock_imports = ["sentence_transformers", "trl"]  # with hundreds of megabytes of their own

myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # which browsers typeset by themselves, without scripts or a network ...
FONT_OF_FORMULAS = files("ziamath.fonts") / "STIXTwoMath-Regular.ttf"  # ... given a font that has symbols of all sizes

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "backreferences_dir": "reference/generated/gallery",  # pictures of what calls a function, for its page
    "doc_module": ("plrank_fast",),
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 440),
    "capture_repr": (),
    "reset_modules": (),
}

html_search_scorer = str(FOLDER / "search_scorer.js")
html_theme = "pydata_sphinx_theme"
html_title = f"plrank-fast {release}"
html_static_path = ["_static", str(FONT_OF_FORMULAS)]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_align": "left",
    "navbar_persistent": [],
    "navbar_center": [],
    "navbar_end": ["search-field", "theme-switcher"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
# A published site has a folder for each version under this address, and beside them the versions.json of the newest.
SITE = os.environ.get("SITE_ADDRESS")
if SITE:
    html_baseurl = f"{SITE}/{release}/"
    html_theme_options["switcher"] = {"json_url": f"{SITE}/versions.json", "version_match": release}
    html_theme_options["check_switcher"] = False
    html_theme_options["navbar_start"] = ["navbar-logo", "version-switcher"]
html_sidebars = {"index": [], "**": ["globaltoc.html"]}


class WriteOutAddresses(SphinxTransform):
    """Make text of what reStructuredText takes for an address of mail, ``NDCG@10``."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        for link in list(self.document.findall(nodes.reference)):
            if link.get("refuri", "").startswith("mailto:"):
                link.replace_self(nodes.Text(link.astext()))


def link_to_pages(app, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Let links from a source lead to the page of an object that is documented under another name."""
    if pagename.startswith("_modules/"):
        known = {name for name, *_ in app.env.domains["py"].get_objects()}
        context["body"] = re.sub(
            r'#(plrank_fast[\w.]*)"', lambda link: link[0] if link[1] in known else '"', context["body"]
        )


PLACE_OF_OTHER_PAGES = "<!-- other pages -->"


def list_other_pages(app, name: str, source: list[str]) -> None:
    """Put pages that the menu does not name into its list, so that a new page is on the site at once."""
    if PLACE_OF_OTHER_PAGES in source[0]:
        named = set(re.findall(r"^(\w+)$", source[0], re.MULTILINE)) | {"index"}
        others = sorted({page.stem for page in FOLDER.glob("*.md")} - named)
        source[0] = source[0].replace(PLACE_OF_OTHER_PAGES, "\n".join(others))


def inline_formula(translator, node: nodes.math) -> None:
    """Write a formula of a line as MathML."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed_formula(translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own as MathML; one that is too wide scrolls."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


class TrimBlocks(SphinxTransform):
    """Drop the blank line with which a doctest in Markdown must end."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        for block in self.document.findall(nodes.literal_block):
            text = block.astext().rstrip()
            block.rawsource = text
            block[:] = [nodes.Text(text)]


GREEK = dict(zip(
    ("alpha", "beta", "delta", "epsilon", "eta", "mu", "phi", "Phi", "pi", "rho", "sigma", "theta", "sum", "prod"),
    "αβδεημφΦπρσθ∑∏", strict=True,
))  # fmt: skip
BRACES = r"{(?:[^{}]|{[^{}]*})*}"
SUBSCRIPT, SUPERSCRIPT = rf"_({BRACES}|[A-Za-z0-9]{{1,2}}(?!\w))", rf"\^({BRACES}|\([^()]*\)|-?\w+(?:\.\d+)?)"
SYMBOL = r"(?<!\w)([A-Za-z]+)"
FORMULA = re.compile(rf"{SYMBOL}{SUBSCRIPT}(?:{SUPERSCRIPT})?|(?:{SYMBOL}|(?<=[)\]|\d])){SUPERSCRIPT}")


def typeset(text: str) -> list[nodes.Node]:
    """Make subscripts, superscripts and Greek letters of w_j, theta_{K+1}, rho_{y_k}, s_t^2, e^-x, r^(top - m)."""
    parts, end = [], 0
    for found in FORMULA.finditer(text):
        symbol, below, above, symbol_alone, above_alone = found.groups()
        symbol = symbol or symbol_alone or ""
        parts.append(nodes.Text(text[end : found.start()] + GREEK.get(symbol, symbol)))
        for kind, inner in ((nodes.subscript, below), (nodes.superscript, above or above_alone)):
            if inner:
                parts.append(kind("", "", *typeset(inner[1:-1] if inner[0] in "{(" else inner)))
        end = found.end()
    return [*parts, nodes.Text(text[end:])]


class TypesetFormulas(SphinxTransform):
    """Typeset the formulas in the text of docstrings and pages, which are plain for editors, ``help`` and a forge."""

    default_priority = 500
    AS_THEY_ARE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.title, nodes.term)

    def apply(self, **kwargs: object) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if FORMULA.search(text) and not any(isinstance(text.parent, kind) for kind in self.AS_THEY_ARE):
                text.parent.replace(text, typeset(text.astext()))


class LinkPublicNames(SphinxTransform):
    """Make a link of every literal that is the name of something public: ``pl_rank_3``, ``losses.lambda_rank``.

    The pages stay plain Markdown, and the docstrings plain text, and the site is linked nevertheless.
    """

    default_priority = 500
    NAME = re.compile(r"(?:plr\.|plrank_fast\.)?([A-Za-z_][\w.]*)(?:\(\))?")

    def apply(self, **kwargs: object) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            match = self.NAME.fullmatch(literal.astext())
            inside = (nodes.reference, nodes.title, pending_xref)
            if not match or isinstance(literal.parent, inside) or "xref" in literal.get("classes", ()):
                continue
            meant = (f"{module}.{match[1]}" for module in self.modules())
            target = next((name for name in meant if name in public_names()), None)
            if target is None or self.env.docname.endswith(f"/{target}"):
                continue
            link = pending_xref(
                "", literal.deepcopy(), refdomain="py", reftype="obj", reftarget=target, refexplicit=True,
                refwarn=False, refdoc=self.env.docname,
            )  # fmt: skip
            literal.replace_self(link)

    def modules(self) -> list[str]:
        """Where a bare name is looked up: in the modules of a page of the reference, and in the package."""
        folder, _, page = self.env.docname.rpartition("/")
        if folder == "reference/generated":
            return [page.rpartition(".")[0], "plrank_fast"]
        text = (FOLDER / f"{self.env.docname}.rst").read_text() if folder == "reference" else ""
        return list(dict.fromkeys([*re.findall(r"^\.\. currentmodule:: ([\w.]+)", text, re.MULTILINE), "plrank_fast"]))


def public_names() -> set[str]:
    """Names that have a page in the reference: the entries of its lists, under the module that each list names."""
    if not hasattr(public_names, "known"):
        known, module = set(), "plrank_fast"
        for page in sorted((FOLDER / "reference").glob("*.rst")):
            for line in page.read_text().splitlines():
                if found := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
                    module = found[1]
                elif found := re.fullmatch(r"   (\w+)", line):
                    known.add(f"{module}.{found[1]}")
        public_names.known = known
    return public_names.known


def write_versions(app, error: Exception | None) -> None:
    """Write the list of the version switcher: the versions of the changelog."""
    if SITE and error is None:
        versions = re.findall(r"^## (\d[\d.]+)", (FOLDER.parent / "CHANGELOG.md").read_text(), re.MULTILINE)
        listed = [{"version": each, "url": f"{SITE}/{each}/", "preferred": each == versions[0]} for each in versions]
        Path(app.outdir, "versions.json").write_text(json.dumps(listed))


def setup(app) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", write_versions)
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("source-read", list_other_pages)
    app.connect("html-page-context", link_to_pages)
    app.add_transform(TrimBlocks)
    app.add_transform(TypesetFormulas)
    app.add_transform(WriteOutAddresses)
    app.add_transform(LinkPublicNames)
