"""What the choice of groups returns: plain values, to be printed or written into a model."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import onnx_ir as ir

from relayout.ops.kind import Kind


@dataclass(frozen=True, slots=True)
class Limits:
    """What a group may not exceed."""

    level: int = 1
    """0 leaves every operator alone."""
    max_depth: int = 256
    """The most operators in one group; TVM counts absorbed constants and tuples as well."""
    max_args: int = 0
    """The most arguments of the kernel of two or more operators; 0 is no limit."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the kernels of a target can do beyond those of TVM; without any, TVM's groups stay."""

    results: bool = True
    """Write several results."""
    rows: bool = True
    """Work on before and after a reduction, and keep rows at hand."""
    prologues: bool = True
    """Compute what a product or a window reads while it is read."""
    moves: bool = True
    """Write elements in another shape or order than they are made in."""
    siblings: bool = True
    """Multiply one tensor by several constants."""
    repeats: bool = True
    """Do cheap work again where it is read."""

    @property
    def any(self) -> bool:
        return self != NONE


NONE = Abilities(
    results=False, rows=False, prologues=False, moves=False, siblings=False, repeats=False
)


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that run as one kernel; a group of one operator leaves it alone.

    Each operator of the graph belongs to one group, and may be repeated in others; Constants and
    what runs before any kernel belong to none.
    """

    nodes: tuple[ir.Node, ...]
    """All that runs in the kernel, in topological order."""
    kind: Kind
    anchor: ir.Node | None = None
    """The complex operator, if there is one."""
    duplicates: tuple[ir.Node, ...] = ()
    """Those of the nodes that belong to other groups and are only repeated in this one."""
    constants: tuple[ir.Value, ...] = ()
    """Constants that live inside: absorbed scalars, and what only parametrises an operator."""
    helpers: tuple[ir.Node, ...] = ()
    """What runs ahead of all kernels, but is named between the nodes, so that the function of the
    group has it too: the arithmetic from the shape of one node's result to a parameter of another.
    """


@dataclass(frozen=True, slots=True)
class MergeRefusal:
    """Why a value is handed over through memory: a code, and its reason in words."""

    producer: ir.Node
    consumer: ir.Node | None
    """None if no single reader is to blame."""
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Partition:
    """The groups of one graph, in an order in which they can run."""

    graph: ir.Graph
    groups: tuple[Group, ...]
    refusals: tuple[MergeRefusal, ...] = ()
    ahead: Set[ir.Node] = frozenset()
    """What runs before any kernel and belongs to no group."""
    wrap_all: bool = False
    """Whether groups of one operator are written as functions too."""
