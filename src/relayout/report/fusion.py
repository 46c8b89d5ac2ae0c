"""What is reported about groups of operators, as records and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.prompt import ShortRecord
from relayout.report.records import Assumed
from relayout.report.text import ROWS_SHOWN, bytes_text, notes, plural, withheld_text


@dataclass(frozen=True, slots=True)
class Kernels:
    """What a way to group operators costs."""

    kernels: int
    bytes_read: int
    bytes_written: int

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One group that became a function."""

    name: str
    graph: str
    kind: str
    anchor: str | None
    operators: tuple[str, ...]
    nodes: tuple[str, ...]
    repeated: tuple[str, ...]
    """Those of the nodes that belong to other groups and are computed once more."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusalRecord:
    """Why two operators do not share a kernel."""

    producer: str
    consumer: str | None
    code: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class FusionRecord(ShortRecord):
    """What `fuse` reports."""

    source: str
    output: str | None
    mode: str
    changed: bool
    figures: dict[str, Kernels]
    """For each way to group: none, TVM's, and the chosen mode."""
    groups: tuple[GroupRecord, ...]
    refusals: tuple[RefusalRecord, ...]
    assumed: Assumed
    notices: tuple[str, ...]
    verdict: str
    verified: bool
    seconds: float
    """How long it took to choose the groups."""
    withheld: str = ""
    """Why the given model takes the place of what was made of it, if it does."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What `fuse --explain` reports about one node."""

    node: str
    graph: str
    group: GroupRecord | None
    """None if it is alone."""
    refusals: tuple[RefusalRecord, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fusion_text(record: FusionRecord, *, every: bool = False) -> Iterator[RenderableType]:
    if record.figures:
        yield _figures_table(record)
    if record.groups:
        yield _group_table(record.groups, every=every)
    if record.refusals:
        yield _refusal_table(record.refusals)
    yield from notes(record.notices, record.assumed)
    yield escape(_verdict_line(record))


def node_text(records: Sequence[NodeRecord]) -> Iterator[RenderableType]:
    for record in records:
        where = f" in {record.graph}" if record.graph else ""
        yield f"[bold]{escape(record.node)}[/bold]" + escape(where)
        yield escape(_place_text(record))
        for refusal in record.refusals:
            consumer = refusal.consumer or "its consumers"
            yield escape(f"{refusal.producer} -> {consumer}: {refusal.code}: {refusal.reason}")


def _place_text(record: NodeRecord) -> str:
    if record.group is None:
        return "runs alone"
    others = [name for name in record.group.nodes if name != record.node]
    return f"runs in {record.group.name}, with {', '.join(others)}"


def _figures_table(record: FusionRecord) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for way in record.figures:
        table.add_column(way, justify="right")
    figures = record.figures.values()
    table.add_row("kernels", *(str(each.kernels) for each in figures))
    table.add_row("bytes read", *(bytes_text(each.bytes_read) for each in figures))
    table.add_row("bytes written", *(bytes_text(each.bytes_written) for each in figures))
    return table


def _group_table(groups: Sequence[GroupRecord], *, every: bool) -> Table:
    """The groups with most operators, or all of them."""
    ordered = sorted(groups, key=lambda group: -len(group.operators))
    shown = ordered if every else ordered[:ROWS_SHOWN]
    hidden = len(ordered) - len(shown)
    table = Table(
        box=box.SIMPLE_HEAD,
        caption=f"{hidden} more, none of them larger: --all shows them" if hidden else None,
        caption_justify="left",
    )
    table.add_column("group", overflow="fold")
    for heading in ("operators", "inputs", "outputs"):
        table.add_column(heading, justify="right")
    table.add_column("kind")
    for group in shown:
        counts = (len(part) for part in (group.operators, group.inputs, group.outputs))
        table.add_row(escape(group.name), *map(str, counts), group.kind)
    return table


def _refusal_table(refusals: Sequence[RefusalRecord]) -> Table:
    """How often each reason kept operators apart, with an example."""
    times = Counter(refusal.code for refusal in refusals)
    first: dict[str, RefusalRecord] = {}
    for refusal in refusals:
        first.setdefault(refusal.code, refusal)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("times", justify="right")
    table.add_column("not fused")
    table.add_column("for example", overflow="fold")
    for code, number in sorted(times.items(), key=lambda item: (-item[1], item[0])):
        example = first[code]
        who = f"{example.producer} -> {example.consumer or 'its consumers'}"
        table.add_row(str(number), escape(code), escape(f"{who}: {example.reason}"))
    return table


def _verdict_line(record: FusionRecord) -> str:
    """The last line a user reads."""
    where = f"; wrote {record.output}" if record.output else ""
    if record.withheld:
        return f"{withheld_text(record.withheld)}{where}"
    if not record.figures:
        done = "the groups are taken apart" if record.changed else "there are no groups"
        return f"{done}; {record.verdict}{where}"
    if not record.changed:
        return f"nothing to change: the model is as it was{where}"
    before, after = record.figures["unfused"], record.figures[record.mode]
    return (
        f"{before.kernels} -> {plural(after.kernels, 'kernel')}, "
        f"{bytes_text(before.bytes_moved)} -> {bytes_text(after.bytes_moved)}; "
        f"{record.verdict}{where}"
    )
