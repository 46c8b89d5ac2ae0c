"""What an operator does in the loop of a kernel, and what may share the kernel with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from relayout.graph.read import NodeView
from relayout.ops.kind import Kind


class Role(StrEnum):
    """What an operator does in the loop of a kernel."""

    POINTWISE = "pointwise"
    """Computes an element from the elements of the same place."""
    VIEW = "view"
    """Gives another shape to elements that stay in their order."""
    MOVE = "move"
    """Puts every element in another place."""
    GATHER = "gather"
    """Reads some elements, perhaps several times, or of several tensors."""
    REDUCTION = "reduction"
    """One element for each row."""
    ROWWISE = "rowwise"
    """A row for each row."""
    PRODUCT = "product"
    """Sums of products, each operand read many times."""
    WINDOW = "window"
    """Combines the elements of windows."""
    COMPLEX = "complex"
    """Some other kernel, which elementwise operators may follow."""
    OPAQUE = "opaque"
    """Has a kernel of its own, or one whose form is known only when it runs."""


KindRule: TypeAlias = Callable[[NodeView], Kind]
RowsRule: TypeAlias = Callable[[NodeView, int], tuple[int, ...] | None]
"""The axes of operand 0, of this rank, along which a row lies; None where they are not known."""
MoveRule: TypeAlias = Callable[[NodeView], Hashable]
"""Names the places to which elements are moved; None where they are not known."""
WeightRule: TypeAlias = Callable[[NodeView], int | None]


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """How an operator takes part in kernels."""

    kind: Kind | KindRule
    parameters: tuple[int, ...] = ()
    """Operands that, where they are constant, only parametrise the operator."""
    shaping: tuple[int, ...] = ()
    """Operands whose values give the lengths of a result; parameters as well."""
    role: Role | None = None
    """Where it does not follow from the kind."""
    rows: RowsRule | None = None
    """Where it works row by row."""
    move: MoveRule | None = None
    """Where it only moves elements."""
    streamed: tuple[int, ...] = ()
    """Operands that may be computed while the kernel reads them."""
    has_parts: bool = False
    """Whether each of several results is a part of operand 0, so that a kernel can have them."""
    is_view: bool = False
    """Whether it only gives the elements it reads another shape, or the same one."""
    is_costly: bool = False
    """Whether an element takes the time of many simple operations."""
    is_exact: bool = False
    """Whether computing it again gives the same bits and costs no more than a read."""
    weight_results: WeightRule | None = None
    """The axis of operand 1 along which the results of a product lie, if it has one."""
    has_rows: bool = False
    """Whether the kernel of a product has whole rows of its result at hand."""
    pads: bool = False
    """Whether the kernel can put zeros around operand 0 by itself."""


OPAQUE = KernelFacts(Kind.OPAQUE)
COMPLEX = KernelFacts(Kind.COMPLEX)
INJECTIVE = KernelFacts(Kind.INJECTIVE)
BROADCAST = KernelFacts(Kind.BROADCAST)
ELEMENTWISE = KernelFacts(Kind.ELEMENTWISE)


def rowwise(rows: RowsRule) -> KernelFacts:
    """A row for each row."""
    return KernelFacts(Kind.COMPLEX, role=Role.ROWWISE, rows=rows)


def window(*streamed: int) -> KernelFacts:
    return KernelFacts(Kind.COMPLEX, role=Role.WINDOW, streamed=streamed)
