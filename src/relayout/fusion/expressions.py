"""Graphs as the choice of groups sees them: expressions over expressions, without ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from relayout.graph.read import Shape
from relayout.ops.kind import Kind


class Tag(StrEnum):
    """What an expression is."""

    PARAMETER = "parameter"
    CONSTANT = "constant"
    CALL = "call"
    TUPLE = "tuple"
    FIELD = "field"
    """One tensor of a tuple."""
    CONTROL = "control"
    """A node with bodies; whatever it reads is read from memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """Two expressions are one only if they are the same object."""

    tag: Tag
    args: tuple[Expression, ...] = ()
    shape: Shape | None = None
    """None if the rank is unknown or it is not a tensor."""
    kind: Kind = Kind.OPAQUE
    """Of a call: that of its operator. Of a constant: whether a kernel can hold it."""
    is_tensor: bool = True
    only_tensors: bool = True
    """Whether all fields of a tuple are tensors."""
    name: str = ""
    source: Any = None
    """What it stands for; this room's outer files know its type."""

    def has_shape_of(self, other: Expression) -> bool:
        """Whether both are tensors of one shape; an unknown length equals nothing."""
        if self.shape is None or not (self.is_tensor and other.is_tensor):
            return False
        return self.shape == other.shape and None not in self.shape
