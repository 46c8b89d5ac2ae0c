"""Graphs to be drawn, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

INPUT, OUTPUT = "input", "output"
"""What stands in place of an operator for the inputs and outputs of a graph."""


@dataclass(frozen=True, slots=True)
class DrawnValue:
    """A tensor that one node gives to others."""

    name: str
    shape: str = "?"
    layout: str = ""
    """The names of its axes, or its class where they have none."""
    kind: str = "tensor"
    """Which line it is drawn with: first (NCHW and alike), last (NHWC), weight, tensor."""
    content: int | None = None
    """The same number for all tensors that hold the same numbers, in whichever order."""
    exact: int | None = None
    """The same number for all tensors that hold the same numbers in the same order."""


@dataclass(frozen=True, slots=True)
class DrawnTranspose:
    """What is told of a Transpose."""

    perm: tuple[int, ...] | None
    move: str
    """The class of its perm: how runtimes can carry it out."""
    bytes_moved: int
    why: tuple[str, ...] = ()
    """Why it is there."""
    causes: tuple[str, ...] = ()
    """The same without names, alike for Transposes that are there for the same reasons."""
    removed_by: str = ""
    """Which step removed it."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    op: str
    name: str
    reads: tuple[int, ...] = ()
    """Places of the values it reads, without constants."""
    writes: tuple[int, ...] = ()
    attributes: str = ""
    line: str = ""
    """The source line it was exported from."""
    group: str = ""
    """The kernel that it is part of."""
    is_fixed: bool = False
    """Whether it computes the same in every run."""
    transpose: DrawnTranspose | None = None

    @property
    def is_port(self) -> bool:
        return self.op in (INPUT, OUTPUT)


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """A graph with nodes in an order that can run."""

    nodes: tuple[DrawnNode, ...] = ()
    values: tuple[DrawnValue, ...] = ()
    traffic: Mapping[str, int] = field(default_factory=dict)
    """Bytes that operators read and write, by operator."""
    left_out: int = 0
    """How many nodes that are constants, or only compute shapes and constants, are not shown."""

    @property
    def writers(self) -> dict[int, int]:
        """By place of a value, the place of the node that writes it."""
        return {value: place for place, node in enumerate(self.nodes) for value in node.writes}
