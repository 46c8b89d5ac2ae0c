"""A node of an older opset while it is restated for a newer one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from relayout.errors import RelayoutError
from relayout.graph.messages.walk import described
from relayout.graph.read import Shape, constant_of, shape_of
from relayout.layout.transport import Array

Values = Mapping[str, ir.Value]
"""Values of a graph and its bodies by their names, with what is known of them."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What can be known of the graph around a node."""

    version: int
    """The opset version that the model is brought to."""
    values: Values
    read: AbstractSet[str]
    """The names that nodes read, or graphs give back."""
    fresh: Callable[[str], str]
    """Makes a name that nothing has yet."""
    written: dict[str, Array] = field(default_factory=dict)
    """Constants that other steps have written."""


@dataclass(slots=True)
class OldNode:
    """A node to be edited in place, and those that are put before and after it."""

    node: onnx.NodeProto
    around: Surroundings
    before: list[onnx.NodeProto] = field(default_factory=list)
    after: list[onnx.NodeProto] = field(default_factory=list)

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        return [*self.before, self.node, *self.after]

    def refuse(self, reason: str) -> NoReturn:
        version = self.around.version
        raise RelayoutError(
            f"{described(self.node)} cannot be brought to opset {version}: {reason}"
        )

    # attributes

    def has(self, name: str) -> bool:
        return any(attribute.name == name for attribute in self.node.attribute)

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; the caller's default where the node has none."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                if attribute.ref_attr_name:
                    self.refuse(f"its {name} is given by the caller of its function")
                value = helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def drop(self, *names: str) -> None:
        kept = [attribute for attribute in self.node.attribute if attribute.name not in names]
        del self.node.attribute[:]
        self.node.attribute.extend(kept)

    def set(self, name: str, value: Any) -> None:
        self.drop(name)
        self.node.attribute.append(helper.make_attribute(name, value))

    def set_if_left_out(self, name: str, value: Any) -> None:
        if not self.has(name):
            self.set(name, value)

    # operands and results

    def operand(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""

    def set_operand(self, index: int, name: str) -> None:
        self.node.input.extend([""] * (index + 1 - len(self.node.input)))
        self.node.input[index] = name

    def shape(self, index: int) -> Shape | None:
        written = self.around.written.get(self.operand(index))
        if written is not None:
            return written.shape
        return shape_of(self.around.values.get(self.operand(index)))

    def dtype(self, index: int) -> ir.DataType | None:
        value = self.around.values.get(self.operand(index))
        return None if value is None else value.dtype

    def constant(self, index: int) -> Array | None:
        written = self.around.written.get(self.operand(index))
        if written is not None:
            return written
        tensor = constant_of(self.around.values.get(self.operand(index)))
        return None if tensor is None else tensor.numpy()

    def is_read(self, index: int) -> bool:
        """Whether a result is used."""
        return index < len(self.node.output) and self.node.output[index] in self.around.read

    def name(self, what: str) -> str:
        return self.around.fresh(f"{self.node.output[0]}_{what}")

    # nodes beside it

    def write(self, what: str, values: Any, dtype: Any = np.int64) -> str:
        """A constant before the node; its name."""
        name, array = self.name(what), np.asarray(values, dtype)
        self.around.written[name] = array
        tensor = numpy_helper.from_array(array)
        self.before.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def compute(self, op_type: str, inputs: list[str], what: str, **attributes: Any) -> str:
        """The result of a node before this one."""
        name = self.name(what)
        self.before.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def finish(self, op_type: str, inputs: Callable[[str], list[str]], **attributes: Any) -> None:
        """Let a node after this one give its result, of what this one gives under another name."""
        result, name = self.node.output[0], self.name("inner")
        self.node.output[0] = name
        self.after.append(helper.make_node(op_type, inputs(name), [result], **attributes))

    def to_operand(self, name: str, index: int, dtype: Any = np.int64) -> None:
        """Make an operand of an attribute, if it is given."""
        value = self.attribute(name)
        self.drop(name)
        if value is not None:
            self.set_operand(index, self.write(name, value, dtype))
