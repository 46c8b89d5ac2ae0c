"""What `explain` reports about one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from relayout.report.prompt import ShortRecord
from relayout.report.text import bytes_text


@dataclass(frozen=True, slots=True)
class ExplainedTensor:
    """A tensor that a node reads or writes."""

    name: str
    shape: str
    layout: str


@dataclass(frozen=True, slots=True, repr=False)
class ExplainedNode(ShortRecord):
    """A node, its tensors, and, of a Transpose, why it is there."""

    name: str
    op_type: str
    attributes: str
    line: str | None
    reads: tuple[ExplainedTensor, ...]
    writes: tuple[ExplainedTensor, ...]
    perm: tuple[int, ...] | None = None
    move: str = ""
    """How a Transpose moves data."""
    bytes_moved: int = 0
    why: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explained_text(records: Sequence[ExplainedNode]) -> Iterator[RenderableType]:
    for record in records:
        yield f"[bold]{escape(record.op_type)}[/bold] {escape(record.name)}"
        if record.line:
            yield f"  from {escape(record.line)}"
        if record.attributes:
            yield f"  {escape(record.attributes)}"
        yield from (f"  reads {escape(_tensor(each))}" for each in record.reads)
        yield from (f"  writes {escape(_tensor(each))}" for each in record.writes)
        if record.perm is not None:
            yield f"  moves {bytes_text(record.bytes_moved)}: {record.move or 'rank unknown'}"
        yield from (f"  {escape(each)}" for each in record.why)


def _tensor(tensor: ExplainedTensor) -> str:
    return f"{tensor.name}: {tensor.shape} {tensor.layout}".rstrip()
