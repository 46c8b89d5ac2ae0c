"""The page of a sweep: a row for each model, with links to its result and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from relayout.sweep.table import SweepRow

INDEX = "index.html"

_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { padding: 0.2em 0.8em; text-align: left; border-bottom: 1px solid #ddd; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.other td { background: #fff0ee; }
"""
_HEADINGS = ("model", "status", "Transposes", "bytes moved", "seconds", "", "what was found")


def index_page(swept: Sequence[SweepRow]) -> str:
    """The page as text; it makes no request."""
    counts = Counter(row["status"] for row in swept)
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    heads = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
    rows = "\n".join(map(_row, swept))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>relayout sweep</title>'
        f"<style>{_STYLE}</style>\n<h1>{len(swept)} models</h1><p>{escape(told)}</p>\n"
        f"<table><tr>{heads}</tr>\n{rows}\n</table></html>\n"
    )


def _row(row: SweepRow) -> str:
    links = " ".join(
        f'<a href="{escape(quote(row[kind]))}">{word}</a>'
        for kind, word in (("report", "report"), ("output", "result"))
        if row[kind]
    )
    cells = [
        f"<td>{escape(row['name'])}</td><td>{escape(row['status'])}</td>",
        _change(row["transposes_before"], row["transposes_after"]),
        _change(row["bytes_moved_before"], row["bytes_moved_after"]),
        f'<td class="number">{row["seconds"]:.1f}</td><td>{links}</td>',
        f"<td>{escape(row['error'] or row['verdict'] or '')}</td>",
    ]
    kind = "" if row["status"] == "done" else ' class="other"'
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _change(before: int | None, after: int | None) -> str:
    shown = "" if before is None or after is None else f"{before:,} → {after:,}"
    return f'<td class="number">{shown}</td>'
