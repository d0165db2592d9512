"""The dashboard's page needs no network, and takes no script but the one that is meant."""

import hashlib
import re
import runpy
from pathlib import Path

import pytest

DASHBOARD_FOLDER = Path(__file__).parents[2] / "asv_benchmarks"
DASHBOARD = runpy.run_path(str(DASHBOARD_FOLDER / "dashboard.py"))
PAGE = """<html><head><script src="https://a.example/jquery-3.3.1.min.js" integrity="x" crossorigin="anonymous">
</script><link rel="stylesheet" href="https://b.example/npm/bootstrap@3.1.1/dist/css/bootstrap.min.css" integrity="x">
<script src="asv.js"></script></head><body><a href="https://asv.example/">asv</a></body></html>"""


def published(page, folder, monkeypatch, contents=b"script"):
    digest = hashlib.sha256(b"script").hexdigest()
    scripts = {name: (package, path, digest) for name, (package, path, _) in DASHBOARD["SCRIPTS"].items()}
    monkeypatch.setitem(DASHBOARD["with_local_scripts"].__globals__, "SCRIPTS", scripts)
    files = {path: contents for _, path, _ in scripts.values()}
    return DASHBOARD["with_local_scripts"](page, folder, lambda package: files)


def test_scripts_stand_beside_the_page(tmp_path, monkeypatch):
    """Mutants: style sheets left where they were; the server's hash kept, which the browser would hold the copy to."""
    page = published(PAGE, tmp_path, monkeypatch)
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == [
        "vendor/jquery-3.3.1.js", "vendor/bootstrap.css", "asv.js", "https://asv.example/"
    ]  # fmt: skip
    assert "integrity" not in page
    assert "crossorigin" not in page
    assert {path.name for path in (tmp_path / "vendor").iterdir()} == {"jquery-3.3.1.js", "bootstrap.css"}


def test_other_contents_are_refused(tmp_path, monkeypatch):
    """Mutant: no comparison of hashes."""
    with pytest.raises(SystemExit, match="SHA-256"):
        published(PAGE, tmp_path, monkeypatch, contents=b"another script")
    assert not list((tmp_path / "vendor").iterdir())
