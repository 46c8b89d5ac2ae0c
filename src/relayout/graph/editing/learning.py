"""What becomes known of values: types, ranks, lengths. A fact that is known is never given up."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import NONZERO, Dim, Shape, shape_of
from relayout.layout.blocks import INVENTED, Symbol, is_invented


def learn_type(value: ir.Value, found: ir.TypeProtocol | None) -> None:
    """Give a value a type if it has none."""
    value.type = value.type or found


def learn_rank(value: ir.Value, rank: int) -> None:
    """Give a value a number of axes if it has none."""
    if value.shape is None:
        value.shape = ir.Shape([None] * rank)


def sharpen(value: ir.Value, found: Shape) -> bool:
    """Take over lengths that are more exact than what is known; whether there were any."""
    old = shape_of(value)
    if old is None and value.shape is None:
        value.shape = ir.Shape(found)
        return True
    if old is None or len(old) != len(found):
        return False
    new = tuple(_sharper(a, b) for a, b in zip(old, found, strict=True))
    if new != old:
        value.shape = ir.Shape(new)
    return new != old


def _sharper(old: Dim, found: Dim) -> Dim:
    if isinstance(old, int) or found is None:
        return old
    return found if isinstance(found, int) or is_invented(old) else old


def name_lengths(value: ir.Value) -> None:
    """One name per unknown length."""
    shape = shape_of(value)
    if shape is None or None not in shape:
        return
    value.shape = ir.Shape(
        f"{INVENTED}{value.name}:{axis}" if length is None else length
        for axis, length in enumerate(shape)
    )


def note_nonzero(graph: ir.Graph, symbols: frozenset[Symbol]) -> None:
    """Note which lengths cannot be 0 in any run of a graph that comes to its end."""
    graph.meta[NONZERO] = symbols
