"""Builds the documents as a site: `python -m docs.site [FOLDER]`.

Documents stand in the tree where people look for them, and link to one another and to code. For the
site they are laid side by side, and links to what is not on it become plain text.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from tempfile import TemporaryDirectory

from docs.layers import ROOT

CONFIG = ROOT / "mkdocs.yml"
SITE = ROOT / "build" / "site"

BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/plugin/README.md": "plugin.md",
    "benchmarks/resnet101/RESULTS.md": "results/resnet101.md",
    "benchmarks/networks/RESULTS_GPU.md": "results/networks_gpu.md",
}
"""Pages that stand elsewhere in the tree, and where they are on the site."""

PEERS = "benchmarks/RESULTS.md"
"""Written by `python -m benchmarks.peers`, so not there in every tree."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def pages() -> dict[str, str]:
    """By path in the tree, the path on the site, of all that the site holds."""
    inside = (file for file in (ROOT / "docs").rglob("*") if file.suffix in SUFFIXES)
    found = {str(file.relative_to(ROOT)): str(file.relative_to(ROOT / "docs")) for file in inside}
    peers = {PEERS: "results/peers.md"} if (ROOT / PEERS).exists() else {}
    return {**dict(sorted(found.items())), **BESIDE, **peers}


SUFFIXES = (".md", ".svg", ".png", ".json")


def lay_out(folder: Path) -> None:
    """Put all pages where the site has them."""
    places = pages()
    for source, place in places.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        if not source.endswith(".md"):
            shutil.copyfile(ROOT / source, file)
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        file.write_text(with_links(text, source, places), encoding="utf-8")


def with_links(text: str, source: str, places: Mapping[str, str]) -> str:
    """A page whose links lead to where the site has what they name."""

    def linked(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        path, mark, heading = target.partition("#")
        named = normpath(str(PurePosixPath(source).parent / path))
        place = places.get(named) or places.get(f"{named}/README.md")
        if place is None:
            return str(words)
        way = relpath(place, PurePosixPath(places[source]).parent)
        return f"{picture}[{words}]({way}{mark}{heading})"

    return LINK.sub(linked, text)


def build(folder: Path, site: Path) -> None:
    """Build the site of the pages in a folder; a warning is an error."""
    from mkdocs.commands.build import build as build_site  # noqa: PLC0415 - only this needs it
    from mkdocs.config import load_config  # noqa: PLC0415

    build_site(load_config(str(CONFIG), docs_dir=str(folder), site_dir=str(site), strict=True))


def main(site: Path) -> None:
    with TemporaryDirectory(prefix="relayout-docs-") as folder:
        lay_out(Path(folder))
        build(Path(folder), site)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else SITE)
