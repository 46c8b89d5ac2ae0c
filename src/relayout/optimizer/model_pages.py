"""Pages of the commands that make no other model of the one they are given, or are given two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.graph.io.sources import ModelSource
from relayout.optimizer.drawing import Told, drawn_graph, meanings_of
from relayout.optimizer.pages import VERSION, graph_charts, model_name
from relayout.optimizer.prepare import opened
from relayout.report.comparison import ComparisonRecord
from relayout.report.html.page import Card, Chart, Page, PageTable
from relayout.report.records import ModelRecord
from relayout.report.text import assumed_notes, bytes_text

if TYPE_CHECKING:
    from relayout.optimizer.fuse import FuseResult
    from relayout.verify.equivalence import Equivalence


def model_page(source: ModelSource, record: ModelRecord, dims: Mapping[str, int]) -> Page:
    """What `inspect` reports, with the graph."""
    loaded = opened(source)
    whys = {each.name: each.why for each in record.transposes}
    graph = drawn_graph(loaded.ir, Told(dims, whys=whys))
    figures = record.figures
    count = figures.transposes
    return Page(
        title=model_name(record.path),
        subtitle=f"relayout inspect; {record.producer or 'unknown producer'}",
        headline="1 Transpose" if count == 1 else f"{count} Transposes",
        cards=(
            Card("Transposes", str(figures.transposes)),
            Card("bytes moved", bytes_text(figures.bytes_moved)),
            Card("nodes", str(figures.nodes)),
        ),
        before=graph,
        charts=graph_charts(graph, None),
        notes=(*record.notices, *assumed_notes(record.assumed)),
        version=VERSION,
    )


def pair_page(before: Path, after: Path, found: Equivalence) -> Page:
    """What `verify` reports, with both graphs."""
    first, second = opened(before), opened(after)
    meant, made = meanings_of(first, second)
    graphs = drawn_graph(first.ir, Told(meant=meant)), drawn_graph(second.ir, Told(meant=made))
    rows = tuple((one.name, one.finding, one.reason) for one in found.outputs)
    return Page(
        title=f"{before.name} and {after.name}",
        subtitle="relayout verify",
        headline="they compute the same" if found.equal else "not shown to compute the same",
        tone="good" if found.equal else "bad",
        cards=tuple(
            Card(label, *map(str, reversed(pair)))
            for label, pair in (
                ("Transposes", [sum(n.transpose is not None for n in g.nodes) for g in graphs]),
                ("nodes", [g.left_out + sum(not n.is_port for n in g.nodes) for g in graphs]),
            )
        ),
        before=graphs[0],
        after=graphs[1],
        tables=(PageTable("Outputs", ("output", "finding", "by"), rows, found.verdict.summary()),),
        charts=graph_charts(*graphs),
        version=VERSION,
    )


def comparison_page(source: ModelSource, record: ComparisonRecord) -> Page:
    """What `compare` reports, with the model as given."""
    graph = drawn_graph(opened(source).ir, Told())
    rows = tuple(
        (
            each.name,
            str(each.left.transposes),
            bytes_text(each.left.bytes_moved),
            str(each.left.nodes),
            f"{each.seconds:.2f} s",
            each.numbers,
        )
        for each in record.strategies
    )
    headings = ("strategy", "Transposes", "bytes moved", "nodes", "decided in", "numbers")
    moved = tuple((each.name, each.left.bytes_moved, None) for each in record.strategies)
    counts = tuple((each.name, each.left.transposes, None) for each in record.strategies)
    least = min(each.cost for each in record.strategies)
    best = [each.name for each in record.strategies if each.cost == least]
    return Page(
        title=model_name(record.source),
        subtitle=f"relayout compare, target {record.target}",
        headline=f"least cost: {_listed(best)}",
        cards=(
            Card("Transposes as given", str(record.given.transposes)),
            Card("bytes moved as given", bytes_text(record.given.bytes_moved)),
        ),
        before=graph,
        tables=(PageTable("Strategies", headings, rows),),
        charts=(
            Chart("Transposes left", "count", counts),
            Chart("Bytes that Transposes move", "bytes", moved),
        ),
        version=VERSION,
    )


def _listed(names: Sequence[str]) -> str:
    """Strategies that are equally good; the exact one comes last of all."""
    return names[-1] if len(names) == 1 else f"{names[-1]} and {len(names) - 1} more"


def fusion_page(result: FuseResult) -> Page:
    """What `fuse` reports, with the kernel that each node is part of."""
    record = result.record()
    groups = {node: group.name for group in record.groups for node in group.nodes}
    flat = result.grouping.flat
    graph = None if flat.frozen is not None else drawn_graph(flat.ir, Told(groups=groups))
    ways = record.figures.items()
    rows = tuple(
        (each.name, each.kind, str(len(each.nodes)), ", ".join(each.operators))
        for each in record.groups
    )
    return Page(
        title=model_name(record.source),
        subtitle=f"relayout fuse, mode {record.mode}",
        headline=record.verdict.split("; ")[0],
        tone="good" if record.verified else "",
        cards=tuple(
            Card(f"kernels, {way}", str(each.kernels), note=f"{bytes_text(each.bytes_moved)} moved")
            for way, each in ways
        ),
        before=graph,
        tables=(PageTable("Kernels", ("kernel", "kind", "nodes", "operators"), rows),),
        charts=(
            Chart("Kernels", "count", tuple((way, each.kernels, None) for way, each in ways)),
            Chart("Bytes", "bytes", tuple((way, each.bytes_moved, None) for way, each in ways)),
        ),
        notes=(*record.notices, *assumed_notes(record.assumed)),
        version=VERSION,
    )


def timing_page(path: Path, times: Sequence[tuple[str, float, float, float]]) -> Page:
    """What `bench` reports: a name, the median, the least and the most milliseconds of each."""
    rows = tuple(
        (name, f"{m:.3f} ms", f"{low:.3f} ms", f"{high:.3f} ms") for name, m, low, high in times
    )
    return Page(
        title=path.name,
        subtitle="relayout bench",
        headline=f"{times[0][0]}: {times[0][1]:.3f} ms",
        cards=tuple(Card(name, f"{median:.3f} ms") for name, median, _, _ in times),
        before=drawn_graph(opened(path).ir, Told()),
        tables=(PageTable("Times", ("way", "median", "least", "most"), rows),),
        charts=(
            Chart("Time of a run", "seconds", tuple((n, m / 1000, None) for n, m, _, _ in times)),
        ),
        version=VERSION,
    )
