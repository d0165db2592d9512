"""Publish the asv results into a folder that needs no network: ``make dashboard``.

The pages that asv publishes load their scripts from public servers. This program fetches the scripts with npm, at the
versions that asv's pages name or the nearest ones, and checks the hash of each file. The published page then loads the
copies beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

# Last part of the address in asv's page, without ".min": package, file in it, SHA-256 of the file
SCRIPTS = {
    "jquery-3.3.1.js": (
        "jquery@3.3.1",
        "dist/jquery.min.js",
        "160a426ff2894252cd7cebbdd6d6b7da8fcd319c65b70468f10b6690c45d02ef",
    ),
    "jquery.flot.js": (
        "flot@0.8.3",
        "jquery.flot.js",
        "b7b931f273c38b1277b9c6c1f4e05c4ec09885a487bddaf3279e2d7e49a38e12",
    ),
    "jquery.flot.time.js": (
        "flot@0.8.3",
        "jquery.flot.time.js",
        "a582c832adc7138a6b05aaf61f16ebac274701f1be4afea77e739a1c34b9c41a",
    ),
    "jquery.flot.selection.js": (
        "flot@0.8.3",
        "jquery.flot.selection.js",
        "e6c85f6c1ebe4b4da29d8ae238c7c5060283f05f7ef054f6b91817d02c092918",
    ),
    "jquery.flot.categories.js": (
        "flot@0.8.3",
        "jquery.flot.categories.js",
        "6e81664b28ea795c734906f4aa15614640a75ac7fbd399a7fb9084040698351a",
    ),
    "jquery.flot.orderBars.js": (
        "flot-orderbars@1.0.0",
        "js/jquery.flot.orderBars.js",
        "39735b4f46f96ff4e082572401f47c55a2767b366fd1d1e821e44a8d830a12bf",
    ),
    "stupidtable.js": (
        "stupid-table-plugin@1.1.3",
        "stupidtable.js",
        "e7b47c782ecb04f4cbca0cda2eee474b05d48070d35844288fc750ca37248f39",
    ),
    "md5.js": (
        "blueimp-md5@2.19.0",
        "js/md5.min.js",
        "64d7ded388c562e4bde9e58ce205e5fa01b9734fcd434d496eb7b4fbfe9b927d",
    ),
    "bootstrap.js": (
        "bootstrap@3.1.1",
        "dist/js/bootstrap.min.js",
        "898d05a17f2cfc5120ddcdba47a885c378c0b466f30f0700e502757e24b403a1",
    ),
    "bootstrap.css": (
        "bootstrap@3.1.1",
        "dist/css/bootstrap.min.css",
        "e9503448692b738dd260fbd7f7cabf2e11f09b600fa97e6eb3a56eba5b1a7e9b",
    ),
}
RESULTS = Path(__file__).parents[1] / ".asv" / "results"
# The tag of a script or style sheet from another server: its address, and the attributes that check its hash.
REMOTE = re.compile(r'(<(?:script|link)\b[^>]*?(?:src|href)=")(https?://[^"]+)("[^>]*>)')
# The legend is above the plot, with several entries in a row, because inside it would hide lines.
LEGEND = """<style>
.legend > * { top: auto !important; bottom: calc(100% + 2px); }
.legend > div { display: none; }
.legend tbody { display: flex; flex-wrap: wrap; }
.legend tr { padding-right: 1.5em; }
</style>
</head>"""
ONLY_FOR_SERVERS = re.compile(r' (?:integrity|crossorigin|referrerpolicy)="[^"]*"')


def fetched(package: str) -> dict[str, bytes]:
    """Return the files of an npm package by name."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            sys.exit("npm is needed to fetch the dashboard's scripts")
        except subprocess.CalledProcessError as error:
            sys.exit(f"npm could not fetch {package}: {error.stderr.strip()}")
        (archive,) = Path(folder).iterdir()
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as files:
            return {
                member.name.partition("/")[2]: files.extractfile(member).read() for member in files if member.isfile()
            }


def with_local_scripts(page: str, folder: Path, fetch=fetched) -> str:
    """Return the page with its scripts taken from ``folder``/vendor, after writing them there."""
    packages: dict[str, dict[str, bytes]] = {}
    vendor = folder / "vendor"
    vendor.mkdir(exist_ok=True)

    def local(tag: re.Match[str]) -> str:
        name = tag[2].rpartition("/")[2].replace(".min.", ".")
        if name not in SCRIPTS:
            sys.exit(f"asv's page loads {tag[2]}, which {Path(__file__).name} does not know: add it to SCRIPTS")
        package, path, digest = SCRIPTS[name]
        if package not in packages:
            packages[package] = fetch(package)
        contents = packages[package][path]
        found = hashlib.sha256(contents).hexdigest()
        if found != digest:
            sys.exit(f"{path} of {package} has SHA-256 {found}, and not {digest}")
        (vendor / name).write_bytes(contents)
        return f"{tag[1]}vendor/{name}{ONLY_FOR_SERVERS.sub('', tag[3])}"

    return REMOTE.sub(local, page).replace("</head>", LEGEND)


def main(arguments: list[str] | None = None) -> None:
    """Publish the results and replace the addresses."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder to publish into; its content is deleted")
    folder = parser.parse_args(arguments).folder.resolve()
    if not any(RESULTS.glob("*/*-*.json")):
        sys.exit("there are no results yet: run `make bench` first (half an hour), or `make bench-quick` (minutes)")
    subprocess.run(["asv", "publish", "--html-dir", str(folder)], check=True, cwd=Path(__file__).parent)
    page = folder / "index.html"
    page.write_text(with_local_scripts(page.read_text(), folder))


if __name__ == "__main__":
    main()
