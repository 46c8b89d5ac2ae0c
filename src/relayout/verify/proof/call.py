"""A node as the rules of operators see it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

from relayout.verify.proof.constants import constant
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue

WRITTEN_IN = 17
"""The version of the standard in which operators are written out."""

if TYPE_CHECKING:
    from relayout.verify.proof.graphs import LocalValues


@dataclass(frozen=True)
class NodeCall:
    """An operator with its operands, None where one is left out."""

    table: TermTable
    node: onnx.NodeProto
    operands: tuple[TermValue | None, ...]
    version: int
    scope: LocalValues
    considered: set[str] = field(default_factory=set, repr=False)
    """The attributes that a rule has asked for, taken over or left out on purpose."""

    def operand(self, number: int) -> TermValue:
        value = self.optional(number)
        if value is None:
            raise NotKnownError(f"{self.node.op_type} without operand {number}")
        return value

    def optional(self, number: int) -> TermValue | None:
        return self.operands[number] if number < len(self.operands) else None

    def present(self) -> list[TermValue]:
        return [value for value in self.operands if value is not None]

    def attribute(self, name: str, default: Any = None) -> Any:
        self.considered.add(name)
        for attribute in self.node.attribute:
            if attribute.name == name:
                return _attribute_value(attribute)
        return default

    def text(self, name: str, default: str = "") -> str:
        value = self.attribute(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def numbers(self, number: int, name: str = "") -> tuple[int, ...] | None:
        """Whole numbers given as an operand or, in older versions, as an attribute."""
        lengths = self.lengths(number, name)
        if lengths is None:
            return None
        if not all(isinstance(n, int) for n in lengths):
            raise NotKnownError(f"{self.node.op_type} with open numbers")
        return tuple(n for n in lengths if isinstance(n, int))

    def lengths(self, number: int, name: str = "") -> tuple[Length, ...] | None:
        value = self.optional(number)
        if value is None:
            given = self.attribute(name) if name else None
            return (given,) if isinstance(given, int) else None if given is None else tuple(given)
        if value.data is None:
            raise NotKnownError(f"{self.node.op_type} by numbers that only a run tells")
        return value.data.elements

    def key(self) -> tuple[Hashable, ...]:
        """The operator with the attributes that say more than their defaults."""
        return (self.node.domain, self.node.op_type, self.since, self.settings())

    def settings(self, *without: str) -> frozenset[Hashable]:
        """The attributes that say more than their defaults, but for some."""
        self.considered.update(attribute.name for attribute in self.node.attribute)
        return frozenset(
            (attribute.name, frozen(_attribute_value(attribute)))
            for attribute in self.node.attribute
            if attribute.name not in without and not self._is_usual(attribute)
        )

    def disregard(self, *names: str) -> None:
        """Leave out attributes that change nothing here."""
        self.considered.update(names)

    def check_considered(self) -> None:
        """Refuse a node with an attribute that its rule knows nothing of.

        Operators gain attributes with new versions, and a rule that ignores one would prove too
        much.
        """
        for attribute in self.node.attribute:
            if attribute.name not in self.considered and not self._is_usual(attribute):
                raise NotKnownError(f"{self.node.op_type} with {attribute.name}")

    def _is_usual(self, attribute: onnx.AttributeProto) -> bool:
        """Whether an attribute has its default."""
        schema = self._schema()
        known = None if schema is None else schema.attributes.get(attribute.name)
        if known is None:
            return False
        return frozen(_attribute_value(attribute)) == frozen(_attribute_value(known.default_value))

    @property
    def since(self) -> int:
        """The version from which on the operator means what it means here."""
        schema = self._schema()
        return self.version if schema is None else int(schema.since_version)

    def _schema(self) -> onnx.defs.OpSchema | None:
        if not onnx.defs.has(self.node.op_type, self.version, self.node.domain):
            return None
        return onnx.defs.get_schema(self.node.op_type, self.version, self.node.domain)

    def axis(self, name: str, default: int, rank: int) -> int:
        return self.place(int(self.attribute(name, default)), rank)

    def place(self, axis: int, rank: int) -> int:
        """An axis counted from the first one."""
        if not -rank <= axis < max(rank, 1):
            raise NotKnownError(f"{self.node.op_type} along an axis that is not there")
        return axis % max(rank, 1)

    def constant(self, array: Any) -> TermValue:
        return constant(self.table, array)

    def number(self, value: float, like: TermValue | None = None) -> TermValue:
        """A constant of one number, of the type of another constant or of floats."""
        array = None if like is None else self.table.arrays.get(like.term)
        return self.constant(np.array(value, np.float32 if array is None else array.dtype))

    def apply(self, op_type: str, *operands: TermValue | None, **attributes: Any) -> TermValue:
        """The first result of an operator of the standard, in which this one is written out."""
        names = ["" if value is None else f"x{i}" for i, value in enumerate(operands)]
        node = onnx.helper.make_node(op_type, names, ["y"], **attributes)
        return self.scope.body().results(node, operands, WRITTEN_IN)[0]


Rule = Callable[[NodeCall], list[TermValue]]


def frozen(value: Any) -> Hashable:
    if isinstance(value, onnx.TensorProto):
        array = numpy_helper.to_array(value)
        return str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, onnx.GraphProto):
        raise NotKnownError("an operator with a body")
    if isinstance(value, (list, tuple)):
        return tuple(frozen(one) for one in value)
    if isinstance(value, (onnx.TypeProto, onnx.SparseTensorProto)):
        return bytes(value.SerializeToString(deterministic=True))
    if isinstance(value, float):
        return value.hex()  # the bits: 0.0 and -0.0 differ
    known: Hashable = value
    return known


def _attribute_value(attribute: onnx.AttributeProto) -> Any:
    if attribute.type == onnx.AttributeProto.UNDEFINED:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    return tuple(value) if isinstance(value, list) else value
