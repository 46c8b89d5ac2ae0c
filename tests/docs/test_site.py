"""The site is built without a warning, from pages that link to one another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site import build, lay_out, pages, with_links


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    lay_out(folder)
    return folder


def test_the_site_is_built_without_a_warning(laid_out: Path, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    build(laid_out, tmp_path)
    made = {str(page.relative_to(tmp_path)) for page in tmp_path.rglob("*.html")}
    for place in pages().values():
        if place.endswith(".md"):
            page = Path(place).with_suffix("")
            is_index = page.name in ("index", "README")
            assert str((page.parent if is_index else page) / "index.html") in made
    loaded = re.compile(r"<(?:script|img|link)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"")
    for page in sorted(tmp_path.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        external = [each for each in loaded.findall(text) if "canonical" not in each]
        assert external == [], "nothing is loaded from other servers"


@pytest.mark.parametrize("text", ["[lost](nowhere.md)", "[lost](theory.md#nothing-of-this-name)"])
def test_a_link_that_leads_nowhere_is_an_error(text: str, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    lay_out(tmp_path / "pages")
    page = tmp_path / "pages" / "glossary.md"
    page.write_text(f"{page.read_text(encoding='utf-8')}\n{text}\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        build(tmp_path / "pages", tmp_path / "site")


def test_links_lead_to_where_the_site_has_a_page() -> None:
    places = {"README.md": "index.md", "docs/a/b.md": "a/b.md", "docs/d/README.md": "d/README.md"}
    text = "[x](docs/a/b.md#h) [y](src/code.py) [z](https://example.org) [d](docs/d)"
    assert with_links(text, "README.md", places) == (
        "[x](a/b.md#h) y [z](https://example.org) [d](d/README.md)"
    )
    assert with_links("![p](../../README.md)", "docs/a/b.md", places) == "![p](../index.md)"
