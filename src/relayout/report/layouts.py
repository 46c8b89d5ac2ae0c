"""What is reported about the layouts of a model's tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from relayout.report.prompt import ShortRecord
from relayout.report.text import plural, shortened

ROWS_SHOWN = 30


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One tensor and its layout."""

    name: str
    shape: str
    layout: str
    """The letters of its axes, or its class where they have no names."""
    layout_class: str
    """Feature, Weight, Tensor or NTensor."""
    told: str
    """How the layout was inferred: backwards from a consumer that fixes it, forwards from the
    operands of its producer, or by default."""
    constant: bool
    becomes: tuple[str, ...] | None = None
    """Its layouts after optimisation for a target: as it is stored, then as it is copied. Empty
    where the result has no such tensor, None where no target was asked about."""


@dataclass(frozen=True, slots=True)
class ConflictRecord:
    """A tensor of one layout that operators read as if it had another."""

    tensor: str
    layout: str
    wanted: str
    readers: int


@dataclass(frozen=True, slots=True, repr=False)
class LayoutsRecord(ShortRecord):
    """What `inspect --layouts` reports."""

    path: str
    tensors: tuple[TensorRecord, ...]
    conflicts: tuple[ConflictRecord, ...]
    target: str | None = None
    """What the tensors become is reported for this one."""

    def __getitem__(self, name: str) -> TensorRecord:
        """The tensor of a name; the outermost, where bodies have one of the same name."""
        found = next((tensor for tensor in self.tensors if tensor.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def layouts_text(record: LayoutsRecord, *, every: bool = False) -> Iterator[RenderableType]:
    yield _tensor_table(record, every=every)
    for each in record.conflicts:
        yield escape(
            f"conflict: {each.tensor} is {each.layout}, "
            f"and {plural(each.readers, 'operator')} read it as {each.wanted}"
        )
    classes = Counter(tensor.layout_class for tensor in record.tensors)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(classes.items()))
    yield f"[bold]{plural(len(record.tensors), 'tensor')}[/bold]: {counts or 'none'}"


def _tensor_table(record: LayoutsRecord, *, every: bool) -> Table:
    """Activations, or constants too if every tensor is asked for."""
    tensors = [tensor for tensor in record.tensors if every or not tensor.constant]
    shown = tensors if every else tensors[:ROWS_SHOWN]
    hidden = len(record.tensors) - len(shown)
    table = Table(
        box=box.SIMPLE_HEAD,
        caption=f"{hidden} more, constants among them: --all shows them" if hidden else None,
        caption_justify="left",
    )
    headings = ["tensor", "shape", "layout", "class", "inferred"]
    for heading in (*headings, *([f"for {record.target}"] if record.target else [])):
        table.add_column(heading, overflow="fold")
    for tensor in shown:
        name = tensor.name if every else shortened(tensor.name)
        layout = tensor.layout if tensor.layout != tensor.layout_class else "-"
        cells = [name, tensor.shape, layout, tensor.layout_class, tensor.told]
        table.add_row(*(escape(cell) for cell in (*cells, *_becomes(tensor))))
    return table


def _becomes(tensor: TensorRecord) -> list[str]:
    """Copies are listed after the layout that a tensor is stored in."""
    if tensor.becomes is None:
        return []
    return [", ".join(tensor.becomes) or "gone"]
