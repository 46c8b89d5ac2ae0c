"""The page: one file with its script, its style and its data, compressed where they are large."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from textwrap import shorten
from typing import Any

from relayout.report.html.drawn import DrawnGraph
from relayout.report.html.picture import picture

FRAME = "width: 100%; height: 1000px; border: 0"
PLAIN_BYTES = 200_000
"""Less data than this is not compressed, so that any browser can read it."""


@dataclass(frozen=True, slots=True)
class Card:
    """A figure, and what it was before."""

    label: str
    value: str
    before: str = ""
    note: str = ""
    tone: str = ""
    """good, bad or nothing."""


@dataclass(frozen=True, slots=True)
class PageTable:
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars, of which each shows a figure before and after, or one figure."""

    title: str
    unit: str
    """bytes, seconds or count."""
    bars: tuple[tuple[str, float, float | None], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """All that a page shows; `html()` is its text, and notebooks show it as it is."""

    title: str
    subtitle: str
    headline: str
    """What came out, in one sentence."""
    tone: str = ""
    cards: tuple[Card, ...] = ()
    before: DrawnGraph | None = None
    after: DrawnGraph | None = None
    """None where one graph is shown alone."""
    tables: tuple[PageTable, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    """What was tried and would remove more."""
    version: str = ""

    def __repr__(self) -> str:
        return f"<Page {shorten(self.title, 100, placeholder=' ...')}>"

    def data(self) -> dict[str, Any]:
        """What the script of the page reads."""
        shown = ("title", "subtitle", "headline", "tone", "notes", "offers", "version")
        return {
            **{name: getattr(self, name) for name in shown},
            "cards": [asdict(card) for card in self.cards],
            "tables": [asdict(table) for table in self.tables],
            "charts": [asdict(chart) for chart in self.charts],
            "graph": None if self.before is None else picture(self.before, self.after),
        }

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which may run its script and nothing else."""
        content = escape(self.html())
        return f'<iframe sandbox="allow-scripts" style="{FRAME}" srcdoc="{content}"></iframe>'

    def html(self) -> str:
        """The page as text: the same for the same records."""
        return (
            _asset("page.html")
            .replace("/*STYLE*/", _asset("page.css"))
            .replace("/*SCRIPT*/", "".join(map(_asset, SCRIPTS)))
            .replace("<!--TITLE-->", escape(self.title))
            .replace("<!--DATA-->", _embedded(self.data()))
        )


SCRIPTS = ("graph.js", "view.js", "page.js")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> str:
    """Data in an element that no browser runs, and that nothing in it can end."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= PLAIN_BYTES:
        safe = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
        return f'<script type="application/json" id="data">{safe}</script>'
    packed = b64encode(zlib.compress(raw, 9)).decode("ascii")
    return f'<script type="application/octet-stream" id="data">{packed}</script>'
