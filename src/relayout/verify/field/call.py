"""One node as operators see it: attributes resolved, operands as values of the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from relayout.verify.field.hashing import key_of
from relayout.verify.field.products import matrix_product
from relayout.verify.field.residues import encoded
from relayout.verify.field.values import (
    FieldSequence,
    FieldTensor,
    FieldValue,
    SteeredError,
    UnknownError,
    residue_tensor,
)

if TYPE_CHECKING:
    from relayout.verify.field.context import FieldContext
    from relayout.verify.field.residues import Residues
    from relayout.verify.inputs import Array

RunBody = Callable[[onnx.GraphProto, Sequence[FieldValue]], list[FieldValue]]
RunFunction = Callable[[onnx.FunctionProto, "FieldCall"], list[FieldValue]]


@dataclass(frozen=True, slots=True)
class FieldCall:
    """`version` is that of the operator's domain.

    `run_body` runs a graph among the attributes, `run_function` a body that defines the operator.
    """

    op_type: str
    domain: str
    version: int
    attributes: Mapping[str, Any]
    operands: tuple[FieldValue, ...]
    results: int
    context: FieldContext
    run_body: RunBody
    run_function: RunFunction

    @property
    def name(self) -> str:
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    # operands

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def tensor(self, index: int) -> FieldTensor:
        operand = self.operands[index] if index < len(self.operands) else None
        if not isinstance(operand, FieldTensor):
            raise UnknownError(f"operand {index} is not a tensor")
        return operand

    def sequence(self, index: int) -> FieldSequence:
        operand = self.operands[index]
        if not isinstance(operand, FieldSequence):
            raise UnknownError(f"operand {index} is not a sequence")
        return operand

    def residues(self, index: int) -> Residues:
        return self.tensor(index).residues()

    def tensors(self) -> list[FieldTensor]:
        return [operand for operand in self.operands if isinstance(operand, FieldTensor)]

    def true(self, index: int) -> Array:
        """Numbers that steer the operator."""
        tensor = self.tensor(index)
        if not tensor.is_true:
            raise SteeredError(f"operand {index} steers it and is computed from floats")
        return tensor.data

    def integers(self, index: int) -> list[int]:
        return [int(number) for number in self.true(index).ravel()]

    def axes(self, index: int = 1) -> list[int] | None:
        """Axes by their attribute or operand, as the version has them; None if not given."""
        if "axes" in self.attributes:
            return list(self.attributes["axes"])
        return self.integers(index) if self.has(index) else None

    # attributes

    def integer(self, name: str, default: int) -> int:
        return int(self.attributes.get(name, default))

    def number(self, name: str, default: float) -> float:
        return float(self.attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        return str(self.attributes.get(name, default))

    def listed(self, name: str, default: Sequence[int]) -> list[int]:
        return [int(number) for number in self.attributes.get(name, default)]

    def encoded(self, name: str, default: float) -> int:
        """A float attribute as a residue; attributes are float32."""
        return int(encoded(np.array(self.number(name, default), np.float32)))

    def key(self, name: str = "", *parts: object) -> int:
        """The key of a function of this run by name, or of this operator with its attributes."""
        if name:
            return key_of(self.context.seed, name, *parts)
        stated = sorted((key, _stated(value)) for key, value in self.attributes.items())
        return key_of(self.context.seed, self.domain, self.op_type, stated, *parts)

    def node(self) -> onnx.NodeProto:
        """The call as a message with names of its own."""
        inputs = [f"in{i}" if self.has(i) else "" for i in range(len(self.operands))]
        outputs = [f"out{i}" for i in range(self.results)]
        node = onnx.helper.make_node(self.op_type, inputs, outputs, domain=self.domain)
        for name, value in self.attributes.items():
            node.attribute.append(onnx.helper.make_attribute(name, value))
        return node

    # results

    def like(self, residues: Residues, index: int = 0) -> FieldTensor:
        """Residues of the type of an operand."""
        return residue_tensor(residues, self.tensor(index).element)

    def product(self, left: Residues, right: Residues) -> Residues:
        """A product of matrices, counted."""
        rows, columns = left.shape[-2:], right.shape[-1]
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        self.context.check((*batch, rows[0], columns))
        self.context.multiply(int(np.prod([*batch, *rows, columns], dtype=np.int64)))
        return matrix_product(left, right)

    def of(self, op_type: str, *operands: FieldValue, **attributes: Any) -> FieldCall:
        """A call of another standard operator, which this one is defined by."""
        return replace(
            self, op_type=op_type, domain="", operands=operands, attributes=attributes, results=1
        )


Computed = FieldValue | tuple[FieldValue, ...]
FieldKernel = Callable[[FieldCall], Computed]


def _stated(value: Any) -> object:
    """An attribute as something whose text states it whole."""
    if isinstance(value, onnx.TensorProto | onnx.GraphProto | onnx.SparseTensorProto):
        return value.SerializeToString(deterministic=True)
    return value


def at_one_type(tensors: Sequence[FieldTensor]) -> tuple[list[Array], FieldTensor]:
    """The elements of tensors that come together in one, and a tensor of its kind."""
    if all(tensor.is_true for tensor in tensors):
        return [tensor.data for tensor in tensors], tensors[0]
    arrays: list[Array] = [tensor.residues() for tensor in tensors]
    return arrays, residue_tensor(arrays[0], tensors[0].element)
