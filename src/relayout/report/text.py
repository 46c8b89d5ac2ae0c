"""Records as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.records import (
    Figures,
    ModelRecord,
    PortRecord,
    RunRecord,
    TransposeRecord,
)

ROWS_SHOWN = 20
UNITS = ("B", "KB", "MB", "GB", "TB")


def bytes_text(count: int) -> str:
    """A size in the unit that keeps it below a thousand."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {UNITS[unit]}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def model_text(record: ModelRecord, *, every: bool = False) -> Iterator[RenderableType]:
    opsets = ", ".join(
        f"{domain or 'ai.onnx'} {version}" for domain, version in record.opsets.items()
    )
    yield f"[bold]{escape(record.path)}[/bold]"
    yield escape(
        f"{record.producer or 'unknown producer'}; opset {opsets}; IR {record.ir_version}; "
        f"{plural(record.figures.nodes, 'node')}"
    )
    yield _port_table("inputs", record.inputs)
    yield _port_table("outputs", record.outputs)
    common = sorted(record.operators.items(), key=lambda item: (-item[1], item[0]))[:12]
    yield "operators: " + escape(", ".join(f"{name} {count}" for name, count in common))
    if record.transposes:
        yield transpose_table(record.transposes, every=every)
    yield from (f"note: {escape(notice)}" for notice in record.notices)
    yield (
        f"[bold]{plural(record.figures.transposes, 'Transpose')}[/bold] on activations, "
        f"{bytes_text(record.figures.bytes_moved)} moved"
    )


def run_text(record: RunRecord, *, every: bool = False) -> Iterator[RenderableType]:
    yield figures_table(record.before, record.after)
    if record.applied:
        yield escape(", ".join(f"{name}: {count}" for name, count in record.applied.items()))
    if record.left and record.changed:
        yield transpose_table(record.left, every=every)
    yield from (f"note: {escape(notice)}" for notice in record.notices)
    yield escape(verdict_line(record))


def verdict_line(record: RunRecord) -> str:
    """The last line a user reads."""
    where = f"; wrote {record.output}" if record.output else ""
    if not record.changed:
        return f"nothing to improve: the model is as it was{where}"
    before, after = record.before.transposes, record.after.transposes
    return f"{before} -> {plural(after, 'Transpose')}; {record.verdict}{where}"


def figures_table(before: Figures, after: Figures) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    table.add_row("Transposes", str(before.transposes), str(after.transposes))
    table.add_row("bytes moved", bytes_text(before.bytes_moved), bytes_text(after.bytes_moved))
    table.add_row("nodes", str(before.nodes), str(after.nodes))
    return table


def transpose_table(records: Sequence[TransposeRecord], *, every: bool) -> Table:
    """The Transposes that move most, or all of them."""
    ordered = sorted(records, key=lambda record: -record.bytes_moved)
    shown = ordered if every else ordered[:ROWS_SHOWN]
    hidden = len(ordered) - len(shown)
    table = Table(
        box=box.SIMPLE_HEAD,
        title="Transposes that are there" if not hidden else f"the {ROWS_SHOWN} largest Transposes",
        title_justify="left",
        caption=f"{hidden} more: --all shows them" if hidden else None,
        caption_justify="left",
    )
    for heading in ("Transpose", "perm", "of", "from", "to", "why it is needed"):
        table.add_column(heading, overflow="fold")
    for record in shown:
        perm = "invalid" if record.perm is None else " ".join(map(str, record.perm))
        size = f"{record.shape} ({bytes_text(record.bytes_moved)})"
        cells = (record.name, perm, size, record.source, ", ".join(record.readers))
        table.add_row(*map(escape, cells), escape("; ".join(record.reasons)))
    return table


def _port_table(title: str, ports: Sequence[PortRecord]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("name", "type", "shape"):
        table.add_column(heading)
    for port in ports:
        table.add_row(escape(port.name), escape(port.dtype), escape(port.shape))
    return table
