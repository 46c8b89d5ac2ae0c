"""What was measured, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.records import MeasuredModel, MeasuredRecord


def measured_text(record: MeasuredRecord) -> Iterator[RenderableType]:
    """A row for each candidate, and which was kept."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("candidate", overflow="fold")
    clocks = ["1 thread"] if record.threads == 1 else ["1 thread", f"{record.threads} threads"]
    for clock in clocks:
        table.add_column(clock, justify="right")
        table.add_column("times as fast (95 %)", justify="right")
    for model in record.models:
        table.add_row(escape(model.name), *_cells(model, record.threads))
    yield table
    yield escape(f"measured in {record.runtime} {record.version}: kept {record.kept}")


def _cells(model: MeasuredModel, threads: int) -> Iterator[str]:
    if model.refusal:
        yield f"does not run: {model.refusal}"
        return
    yield from (f"{model.milliseconds:.3f} ms", _ratio_text(model.times_as_fast))
    if threads > 1 and model.clock_milliseconds:
        yield from (f"{model.clock_milliseconds:.3f} ms", _ratio_text(model.clock_times_as_fast))


def _ratio_text(ratio: Sequence[float]) -> str:
    if not ratio:
        return ""
    median, low, high = ratio
    return f"{median:.3f} ({low:.3f} to {high:.3f})"
