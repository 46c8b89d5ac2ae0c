"""What the choice of groups returns: plain values, to be printed or written into a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import onnx_ir as ir

from relayout.ops.kind import Kind

Mode: TypeAlias = Literal["relayout", "tvm"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a group may not exceed."""

    level: int = 1
    """0 leaves every operator alone."""
    max_depth: int = 256
    """The most operators, absorbed constants and tuples in one group."""
    max_args: int = 0
    """The most arguments of a kernel; 0 is no limit."""


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

    Each operator of the graph belongs to one group, and may be repeated in others; a Constant
    belongs to none.
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
    refusals: tuple[MergeRefusal, ...]
    mode: Mode
