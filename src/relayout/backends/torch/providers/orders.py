"""The two orders in which torch stores tensors of four axes: channels second or last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import onnx_ir as ir

from relayout.backends.torch.program.program import EAGER
from relayout.backends.torch.program.scope import Scope

Order: TypeAlias = Literal["first", "last"]
FIRST: Order = "first"
LAST: Order = "last"


@runtime_checkable
class RegionKernel(Protocol):
    """What does several steps at once, and has orders of its own for what it reads and writes."""

    def reads_in(self, value: ir.Value) -> Order: ...

    def writes_in(self, value: ir.Value) -> Order: ...


Stored: TypeAlias = Mapping[ir.Value, Order]
"""The orders that values are known to have when they are read."""

CHANNELS_LAST = "memory_format=torch.channels_last"
FORMATS: Mapping[Order, str] = {FIRST: "", LAST: CHANNELS_LAST}


def in_order(value: ir.Value, order: Order, stored: Stored, scope: Scope) -> str:
    """The expression of a tensor in an order; a copy is made once for all that want it."""
    if stored.get(value) == order:
        return scope.tensor(value)
    return scope.copied(value, f"channels_{order}", f"contiguous({FORMATS[order]})")


@dataclass(frozen=True, slots=True)
class OrderCopy:
    """A copy of a tensor in the other order, to be timed."""

    value: ir.Value
    reads: Order
    writes: Order

    @property
    def name(self) -> str:
        return f"to {self.writes}"

    def write(self, _nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        scope.forms[self.value] = in_order(self.value, self.writes, {}, scope)


@dataclass(frozen=True, slots=True)
class EagerInOrder:
    """Nodes one by one, which read some tensors in another order than they are stored in."""

    copied: tuple[ir.Value, ...]
    reads: Order
    stored: Stored

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        forms = {value: scope.tensor(value) for value in self.copied}
        for value in self.copied:
            scope.forms[value] = in_order(value, self.reads, self.stored, scope)
        EAGER.write(nodes, scope)
        scope.forms.update(forms)
