"""TVM's two languages of graphs: what is a vertex, of which kind, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relayout.graph.read import NodeView
from relayout.ops.fusing import Fusing, fuses_as
from relayout.ops.relax_kinds import relax_fuses_as


@dataclass(frozen=True, slots=True)
class GraphDialect:
    """How TVM sees a graph."""

    fuses_as: Callable[[NodeView], Fusing]
    bundles: bool
    """Whether the operands of a Concat are bundled first, in a vertex of its own."""
    holds_scalars: bool
    """Whether a scalar constant is a vertex that a kernel can absorb."""
    in_file_order: bool
    """Whether operators are taken in the order of the file, rather than of a walk from the end."""


RELAY = GraphDialect(fuses_as, bundles=True, holds_scalars=True, in_file_order=False)
RELAX = GraphDialect(relax_fuses_as, bundles=False, holds_scalars=False, in_file_order=True)
