"""Records as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.alike import AlikeTransposes, grouped
from relayout.report.explanation import AVOIDABLE, Demand, Explanation, sides
from relayout.report.measured import measured_text
from relayout.report.records import (
    Assumed,
    AttemptRecord,
    Figures,
    ModelRecord,
    OfferRecord,
    PortRecord,
    RunRecord,
    TransposeRecord,
)

ROWS_SHOWN = 10
NAME_WIDTH = 30
UNITS = ("B", "KB", "MB", "GB", "TB")
TIMES = ("us", "ms", "s")


def bytes_text(count: int) -> str:
    """A size in the unit that keeps it below a thousand."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {UNITS[unit]}"


def time_text(nanoseconds: float) -> str:
    """A time in the unit that keeps it below a thousand."""
    size, unit = nanoseconds / 1000, 0
    while size >= 1000 and unit < len(TIMES) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.{min(2, unit + 1)}f} {TIMES[unit]}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shortened(name: str, width: int = NAME_WIDTH) -> str:
    """A name without its middle; most of what is kept is its end, where names differ."""
    if len(name) <= width:
        return name
    head = width // 3
    return f"{name[:head]}…{name[head + 1 - width :]}"


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
        yield from transpose_lines(record.transposes, "why they are there", every=every)
    yield from notes(record.notices, record.assumed)
    yield (
        f"[bold]{plural(record.figures.transposes, 'Transpose')}[/bold] on activations, "
        f"{bytes_text(record.figures.bytes_moved)} moved"
    )


def run_text(record: RunRecord, *, every: bool = False) -> Iterator[RenderableType]:
    yield figures_table(record.before, record.after, record.lacking)
    if record.applied:
        yield applied_table(record.applied)
    if record.left:
        yield from transpose_lines(record.left, "why they stay", every=every)
    if every:
        yield from map(attempt_line, record.attempts)
    yield from notes(record.notices, record.assumed)
    if record.measured is not None:
        yield from measured_text(record.measured)
    yield from map(offer_line, record.offers)
    yield escape(verdict_line(record))


def offer_line(record: OfferRecord) -> str:
    """What was tried besides, and would leave less."""
    count = plural(record.transposes, "Transpose")
    return f"{record.option} would leave {count}, {bytes_text(record.bytes_moved)} moved"


def attempt_line(record: AttemptRecord) -> str:
    """What was tried, what came of it, and why it was kept or dropped."""
    count, moved = plural(record.transposes, "Transpose"), bytes_text(record.bytes_moved)
    return f"attempt: {record.attempt}: {count}, {moved}, {record.seconds:.2f} s; {record.verdict}"


def verdict_line(record: RunRecord) -> str:
    """The last line a user reads."""
    least = f"; {record.minimized}, proved least for the variants offered"
    where = (least if record.optimal else "") + (
        f"; wrote {record.output}" if record.output else ""
    )
    if not record.changed:
        return f"{standing(record)}{where}"
    before, after = record.before.transposes, record.after.transposes
    lacking, still = record.lacking
    kernels = f"{lacking} -> {plural(still, 'node')} without a kernel, " if lacking else ""
    return f"{kernels}{before} -> {plural(after, 'Transpose')}; {record.verdict}{where}"


def standing(record: RunRecord) -> str:
    """Why the model is as it was."""
    nothing_better = "nothing better found: the model is as it was"
    return withheld_text(record.withheld) if record.withheld else nothing_better


def withheld_text(reason: str) -> str:
    return f"the model is as it was, since what was made of it {reason}"


def figures_table(before: Figures, after: Figures, lacking: tuple[int, int] = (0, 0)) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    table.add_row("Transposes", str(before.transposes), str(after.transposes))
    table.add_row("bytes moved", bytes_text(before.bytes_moved), bytes_text(after.bytes_moved))
    table.add_row("nodes", str(before.nodes), str(after.nodes))
    if before.nanoseconds:
        times = (time_text(each.nanoseconds) for each in (before, after))
        table.add_row("predicted for moves", *times)
    if any(lacking):
        table.add_row("without a kernel", *map(str, lacking))
    return table


def applied_table(applied: Mapping[str, int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("times", justify="right")
    table.add_column("rewrite")
    for name, count in sorted(applied.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(str(count), escape(name))
    return table


def transpose_lines(
    records: Sequence[TransposeRecord], question: str, *, every: bool
) -> Iterator[str]:
    """The Transposes that move most, or all of them, with the demands that conflict there.

    Those that are alike are told once. Names are whole, on lines of their own, to be pasted.
    """
    groups = (
        [AlikeTransposes((each,)) for each in _by_bytes(records)] if every else grouped(records)
    )
    shown = groups if every else groups[:ROWS_SHOWN]
    yield f"[bold]{question}[/bold]"
    for group in shown:
        yield from _group_lines(group)
    hidden = sum(len(group.records) for group in groups[len(shown) :])
    if hidden:
        yield f"{hidden} more Transposes, in groups that move no more: --all shows them"


def _by_bytes(records: Sequence[TransposeRecord]) -> list[TransposeRecord]:
    return sorted(records, key=lambda record: -record.bytes_moved)


def _group_lines(group: AlikeTransposes) -> Iterator[str]:
    record = group.first
    perm = "invalid" if record.perm is None else " ".join(map(str, record.perm))
    line = "" if record.line is None else f", {_line_text(record.line)}"
    what = f"perm {perm}, {record.shape} {bytes_text(record.bytes_moved)}{line}"
    yield f"  {escape(record.name)}"
    yield f"    {escape(what)}"
    if len(group.records) > 1:
        yield f"    and {escape(group.others)}: {bytes_text(group.bytes_moved)} in all"
    yield from (f"    {each}" for each in _why(record.why))


def _why(why: Explanation) -> Iterator[str]:
    if why.note:
        yield escape(why.note)
    if why.note == AVOIDABLE:
        return
    for label, text in sides(why, _demand_name):
        yield f"[bold]{label}[/bold] {escape(text)}"


def _demand_name(demand: Demand) -> str:
    line = "" if demand.line is None else f" ({_line_text(demand.line)})"
    return demand.name + line


def _line_text(line: str) -> str:
    return line.rpartition("/")[2]


def notes(notices: Sequence[str], assumed: Assumed) -> Iterator[str]:
    yield from (f"note: {escape(notice)}" for notice in (*notices, *assumed_notes(assumed)))


def assumed_notes(assumed: Assumed) -> Iterator[str]:
    """What unknown lengths count as, and how to set them."""
    if assumed.names:
        names = ", ".join(assumed.names[:3]) + (", ..." if len(assumed.names) > 3 else "")
        counts, them = ("counts", "it") if len(assumed.names) == 1 else ("count", "them")
        option = f"--dim {assumed.names[0]}=..."
        yield f"{names} {counts} as {assumed.length}; set {them} with {option}"
    if assumed.others:
        unknown = plural(assumed.others, "length")
        yield f"{unknown} known only at run time, counted as {assumed.length}"


def _port_table(title: str, ports: Sequence[PortRecord]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("name", "type", "shape"):
        table.add_column(heading)
    for port in ports:
        table.add_row(escape(port.name), escape(port.dtype), escape(port.shape))
    return table
