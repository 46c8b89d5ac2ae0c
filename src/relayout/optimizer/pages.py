"""Reports as pages: gathers what the commands found out, graphs included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.graph.io.version import __version__
from relayout.optimizer.drawing import Told, drawn_graph, meanings_of
from relayout.report.html.drawn import DrawnGraph
from relayout.report.html.page import Card, Chart, Page, PageTable
from relayout.report.records import Figures, MeasuredRecord, RunRecord
from relayout.report.text import assumed_notes, bytes_text, offer_line, plural, standing, time_text

if TYPE_CHECKING:
    from relayout.optimizer.result import Result

VERSION = f"relayout {__version__}. This file is complete: it makes no request to any server."
LARGEST = 10
"""How many bars a chart has at most."""


def run_page(result: Result) -> Page:
    """What `optimize` reports, with the graphs before and after."""
    record = result.record()
    before, after = _both(result, record)
    return Page(
        title=model_name(record.source),
        subtitle=f"relayout optimize, target {record.target}, {record.minimized}",
        headline=_headline(record),
        tone="good" if record.verified else "",
        cards=_run_cards(record),
        before=before,
        after=after,
        tables=_attempts(record),
        charts=(*graph_charts(before, after), *_passes(record)),
        notes=(*record.notices, *assumed_notes(record.assumed)),
        offers=tuple(map(offer_line, record.offers)),
        version=VERSION,
    )


def _both(result: Result, record: RunRecord) -> tuple[DrawnGraph | None, DrawnGraph | None]:
    if not result.chooses:
        return None, None
    dims, given = result.choose.terms.dims, result.rounds[0].given
    whys = {each.name: each.why for each in record.left}
    informed = result.informed or given
    if not result.changed:
        return drawn_graph(informed.ir, Told(dims, whys=whys)), None
    meant, made = meanings_of(given, result.loaded)
    before = drawn_graph(informed.ir, Told(dims, meant, removed_by=result.removed_by))
    return before, drawn_graph(result.loaded.ir, Told(dims, made, whys))


def _headline(record: RunRecord) -> str:
    if not record.changed:
        return standing(record)
    return record.verdict.split("; ")[0]


def _run_cards(record: RunRecord) -> tuple[Card, ...]:
    before, after = record.before, record.after
    least = f"{record.minimized} for the variants offered"
    cards = [
        *_figure_cards(before, after),
        Card("nodes", str(after.nodes), str(before.nodes)),
        Card("verified", *_verdict(record), tone="good" if record.verified else "bad"),
        Card("certificate", "proved" if record.optimal else "not proved", note=least),
    ]
    if any(record.lacking):
        cards.insert(2, Card("nodes without a kernel", *map(str, reversed(record.lacking))))
    if record.measured is not None:
        cards[2:2] = _measured(record.measured)
    if record.attempts:
        took = sum(each.seconds for each in record.attempts)
        cards.append(
            Card("optimised in", f"{took:.2f} s", note=plural(len(record.attempts), "attempt"))
        )
    return tuple(cards)


def _verdict(record: RunRecord) -> tuple[str, str, str]:
    """The verdict in a word or two, and the rest of it."""
    first, _, rest = record.verdict.partition("; ")
    word, _, how = first.partition(": ")
    return word, "", "; ".join(filter(None, (how, rest)))


def _figure_cards(before: Figures, after: Figures) -> Iterator[Card]:
    yield _fewer("Transposes", before.transposes, after.transposes, str)
    yield _fewer("bytes moved", before.bytes_moved, after.bytes_moved, bytes_text)
    if before.nanoseconds:
        yield _fewer("predicted for moves", before.nanoseconds, after.nanoseconds, time_text)


def _fewer(label: str, before: int, after: int, text: Callable[[int], str]) -> Card:
    return Card(label, text(after), text(before), tone="good" if after < before else "")


def _measured(record: MeasuredRecord) -> tuple[Card, ...]:
    """How long the model takes that is delivered, and the given one."""
    times = {model.name: model for model in record.models}
    kept, given = times.get(record.kept), record.models[0]
    if kept is None or kept.refusal or given.refusal:
        return ()
    took = f"{kept.milliseconds:.2f} ms"
    was = f"{given.milliseconds:.2f} ms" if kept is not given else ""
    runtime = f"{record.runtime} {record.version}, one thread"
    return (Card("measured time", took, was, runtime, tone="good" if was else ""),)


def _attempts(record: RunRecord) -> tuple[PageTable, ...]:
    rows = tuple(
        (
            each.attempt,
            str(each.transposes),
            bytes_text(each.bytes_moved),
            f"{each.seconds:.2f} s",
            each.verdict,
        )
        for each in record.attempts
    )
    headings = ("attempt", "Transposes", "bytes moved", "took", "kept or dropped")
    return (PageTable("Attempts", headings, rows),) if rows else ()


def _passes(record: RunRecord) -> tuple[Chart, ...]:
    slowest = sorted(record.seconds.items(), key=lambda item: (-item[1], item[0]))[:LARGEST]
    applied = sorted(record.applied.items(), key=lambda item: (-item[1], item[0]))[:LARGEST]
    charts = (
        Chart("Rewrites applied", "count", tuple((name, n, None) for name, n in applied)),
        Chart(
            "Time of passes, in what was kept",
            "seconds",
            tuple((name, s, None) for name, s in slowest),
        ),
    )
    return tuple(chart for chart in charts if chart.bars)


def graph_charts(before: DrawnGraph | None, after: DrawnGraph | None) -> tuple[Chart, ...]:
    if before is None:
        return ()
    charts = (
        Chart(
            "Bytes that Transposes move, by class", "bytes", _bars(_moved(before), _moved(after))
        ),
        Chart(
            "Bytes that operators read and write",
            "bytes",
            _bars(before.traffic, None if after is None else after.traffic),
        ),
    )
    return tuple(chart for chart in charts if chart.bars)


def _moved(graph: DrawnGraph | None) -> dict[str, int] | None:
    if graph is None:
        return None
    found: dict[str, int] = {}
    for move in filter(None, (node.transpose for node in graph.nodes)):
        found[move.move or "rank unknown"] = found.get(move.move, 0) + move.bytes_moved
    return found


def _bars(
    before: Mapping[str, int] | None, after: Mapping[str, int] | None
) -> tuple[tuple[str, float, float | None], ...]:
    was, now = before or {}, after or {}
    names = sorted({*was, *now}, key=lambda name: (-max(was.get(name, 0), now.get(name, 0)), name))
    return tuple(
        (name, was.get(name, 0), None if after is None else now.get(name, 0))
        for name in names[:LARGEST]
    )


def model_name(source: str) -> str:
    return Path(source).name if source else "a model"
