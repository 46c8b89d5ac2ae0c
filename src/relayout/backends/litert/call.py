"""A node as lowerings see it: its operands as tensors of the file, and where builtins go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from relayout.backends.litert.builder import GraphBuilder
from relayout.backends.litert.flat_graph import FlatData, FlatShape, FlatTensor
from relayout.errors import RelayoutError
from relayout.graph.read import NodeView, shape_of
from relayout.layout.permutation import axis_among

COMPUTED_IN = {ir.DataType.FLOAT16: np.float32, ir.DataType.DOUBLE: np.float32}
"""What LiteRT has hardly a kernel for is computed in floats."""


def dtype_of(kind: ir.DataType | None) -> np.dtype[np.generic]:
    """The type in which a tensor of the model is computed."""
    if kind is None:
        raise RelayoutError("a tensor of the model has no known type")
    return np.dtype(COMPUTED_IN.get(kind) or kind.numpy())


@dataclass(frozen=True, slots=True)
class LiteCall:
    """One node; operands stand where the standard operator has them."""

    view: NodeView
    op_type: str
    """The standard operator."""
    operands: tuple[FlatTensor | None, ...]
    build: GraphBuilder

    def refusal(self, reason: str) -> RelayoutError:
        return RelayoutError(f"LiteRT cannot run {self.op_type} {self.where}: {reason}")

    @property
    def where(self) -> str:
        return f"({self.view.node.name or self.view.node.outputs[0].name})"

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def tensor(self, index: int) -> FlatTensor:
        found = self.operands[index] if index < len(self.operands) else None
        if found is None:
            raise self.refusal(f"operand {index} is not given")
        return found

    def known(self, index: int) -> FlatData | None:
        """What an operand always holds, if it is a constant."""
        return self.tensor(index).data if self.has(index) else None

    def constant(self, index: int, name: str) -> FlatData:
        found = self.known(index)
        if found is None:
            raise self.refusal(f"its {name} is not a constant")
        return found

    def numbers(self, name: str, index: int) -> tuple[int, ...] | None:
        """A parameter that is an attribute in some versions and an operand in others."""
        attribute = self.view.ints(name)
        if attribute is not None:
            return attribute
        if not self.has(index):
            return None
        return tuple(map(int, self.constant(index, name).reshape(-1)))

    def axis(self, default: int, rank: int | None = None) -> int:
        axis = self.view.integer("axis", default)
        return axis_among(axis, self.tensor(0).rank if rank is None else rank)

    def number(self, name: str, default: float) -> float:
        attribute = self.view.node.attributes.get(name)
        return default if attribute is None else float(attribute.value)

    @property
    def result(self) -> FlatShape | None:
        """The shape of the first result, where it is known from the model."""
        shape = shape_of(self.view.node.outputs[0])
        if shape is None or not all(isinstance(length, int) for length in shape):
            return None
        return tuple(length for length in shape if isinstance(length, int))

    def result_dtype(self, index: int = 0) -> np.dtype[np.generic]:
        return dtype_of(self.view.node.outputs[index].dtype)


LiteLowering: TypeAlias = Callable[[LiteCall], FlatTensor | Sequence[FlatTensor]]
"""Puts builtins that do what a node does; gives its results."""
