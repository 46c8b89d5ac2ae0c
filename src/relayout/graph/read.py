"""Questions about a node, answered alike for every opset and every way of writing a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from relayout.layout.blocks import Symbol
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Array, Changes, Refusal

Dim: TypeAlias = int | str | None
"""A length: known, named by a symbol, or unknown."""

Shape: TypeAlias = tuple[Dim, ...]

KnownValues: TypeAlias = Mapping[ir.Value, ir.TensorProtocol | None]
"""Values that are the same in every run, with what they hold; None where that is not evaluated."""

STANDARD_DOMAIN = ""


def shape_of(value: ir.Value | None) -> Shape | None:
    """The lengths of a value's axes; None when the rank is unknown or it is not a tensor."""
    if value is None or value.shape is None or not _may_be_tensor(value):
        return None
    return lengths_of(value.shape)


def lengths_of(shape: ir.Shape) -> Shape:
    return tuple([_dim(dim) if type(dim) is not int or dim < 0 else dim for dim in shape.dims])


NONZERO = "relayout.nonzero lengths"
"""The key under which a graph notes the lengths that cannot be 0 in any of its runs."""


def nonzero_lengths(node: ir.Node) -> frozenset[Symbol]:
    """The lengths that are known not to be 0 where a node runs."""
    graph = node.graph
    return frozenset() if graph is None else graph.meta.get(NONZERO, frozenset())


def _dim(dim: int | ir.SymbolicDim) -> Dim:
    """Some exporters write -1 for a length they do not know."""
    if isinstance(dim, int):
        return dim if dim >= 0 else None
    return dim.value


def _may_be_tensor(value: ir.Value) -> bool:
    """Sequences and optionals carry the shape of their elements, which is not theirs."""
    kind = value.type
    return kind is None or isinstance(kind, ir.TensorType)


def rank_of(value: ir.Value | None) -> int | None:
    if value is None or value.shape is None or not _may_be_tensor(value):
        return None
    return len(value.shape)


def constant_of(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor a value always holds, or None.

    An initialiser that is listed among the graph inputs is a default the caller may override, so
    it is not a constant.
    """
    if value is None or value.is_graph_input():
        return None
    if value.is_initializer():
        return value.const_value
    producer = value.producer()
    if producer is None or producer.op_type != "Constant" or not is_standard(producer):
        return None
    return _constant_node_tensor(producer)


def is_default(value: ir.Value | None) -> bool:
    """Whether a value is an input that holds a tensor of the model unless the caller gives one."""
    return value is not None and value.is_graph_input() and value.is_initializer()


def is_standard(node: ir.Node) -> bool:
    return node.domain in {STANDARD_DOMAIN, "ai.onnx"}


def is_op(node: ir.Node | None, *op_types: str) -> bool:
    """Whether a node is one of these operators of the standard domain."""
    return node is not None and node.op_type in op_types and is_standard(node)


def perm_of(node: ir.Node) -> Permutation | None:
    """The order a Transpose writes; None when it is not valid or its rank is unknown."""
    rank = rank_of(node.inputs[0]) if node.inputs else None
    attribute = node.attributes.data.get("perm")
    if attribute is None:
        return None if rank is None else Permutation.reversal(rank)
    if attribute.is_ref() or attribute.type != ir.AttributeType.INTS:
        return None
    order = _order(tuple(attribute.as_ints()))
    return order if order is None or rank is None or rank == order.rank else None


@lru_cache(maxsize=1024)
def _order(axes: tuple[int, ...]) -> Permutation | None:
    return Permutation(axes) if sorted(axes) == list(range(len(axes))) else None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the operator rules see it: facts only."""

    node: ir.Node
    version: int
    """The opset version of the node's domain."""
    known: KnownValues = field(default_factory=dict, compare=False, kw_only=True)
    """Values that nodes compute and that are the same in every run."""

    @property
    def op_type(self) -> str:
        return self.node.op_type

    @property
    def domain(self) -> str:
        return self.node.domain

    @property
    def arity(self) -> int:
        return len(self.node.inputs)

    @property
    def results(self) -> int:
        return len(self.node.outputs)

    def has(self, index: int) -> bool:
        """Whether operand `index` is given (optional operands may be left out)."""
        return index < self.arity and self.node.inputs[index] is not None

    def uses_result(self, index: int) -> bool:
        """Whether anything reads result `index`."""
        if index >= self.results:
            return False
        value = self.node.outputs[index]
        return bool(value.uses()) or value.is_graph_output()

    def shape(self, index: int) -> Shape | None:
        return shape_of(self.node.inputs[index]) if self.has(index) else None

    def rank(self, index: int) -> int | None:
        return rank_of(self.node.inputs[index]) if self.has(index) else None

    def dtype(self, index: int) -> ir.DataType | None:
        value = self.node.inputs[index] if self.has(index) else None
        return None if value is None else value.dtype

    def result_rank(self, index: int) -> int | None:
        return rank_of(self.node.outputs[index]) if index < self.results else None

    def constant(self, index: int) -> Array | None:
        """The value of operand `index` when it is known now."""
        value = self.node.inputs[index] if self.has(index) else None
        tensor = constant_of(value)
        if tensor is None and value is not None:
            tensor = self.known.get(value)
        return None if tensor is None else tensor.numpy()

    def is_one_number(self, index: int) -> bool:
        """Whether operand `index` has one element, or is left out."""
        shape = self.shape(index)
        return not self.has(index) or (shape is not None and all(each == 1 for each in shape))

    def is_constant(self, index: int) -> bool:
        """Whether the value of operand `index` is the same in every run."""
        value = self.node.inputs[index] if self.has(index) else None
        return value is not None and (constant_of(value) is not None or value in self.known)

    def integer(self, name: str, default: int) -> int:
        attribute = self._attribute(name, ir.AttributeType.INT)
        return default if attribute is None else attribute.as_int()

    def string(self, name: str, default: str) -> str:
        attribute = self._attribute(name, ir.AttributeType.STRING)
        return default if attribute is None else attribute.as_string()

    def ints(self, name: str) -> tuple[int, ...] | None:
        attribute = self._attribute(name, ir.AttributeType.INTS)
        return None if attribute is None else tuple(attribute.as_ints())

    def floats(self, name: str) -> tuple[float, ...] | None:
        attribute = self._attribute(name, ir.AttributeType.FLOATS)
        return None if attribute is None else tuple(attribute.as_floats())

    def _attribute(self, name: str, kind: ir.AttributeType) -> ir.Attr | None:
        attribute = self.node.attributes.data.get(name)
        if attribute is None or attribute.is_ref() or attribute.type != kind:
            return None
        return attribute

    @property
    def unknown_attribute(self) -> str | None:
        """An attribute that is bound by the caller of a function, or that cannot be read."""
        for name, attribute in self.node.attributes.data.items():
            if attribute.is_ref() or attribute.type == ir.AttributeType.UNDEFINED:
                return name
        return None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that is an attribute in some opset versions and an operand in others."""

    name: str
    index: int
    """The position of the operand, where it is one."""

    def read(self, view: NodeView) -> Array | Refusal | None:
        """Its value; None when it is left out; a refusal when it is known only at run time."""
        if self.name in view.node.attributes:
            return _attribute_array(view, self.name)
        if not view.has(self.index) or not self.is_operand(view):
            return None
        value = view.constant(self.index)
        return (
            Refusal(f"{view.op_type} gets its {self.name} at run time") if value is None else value
        )

    def read_ints(self, view: NodeView) -> tuple[int, ...] | Refusal | None:
        value = self.read(view)
        if value is None or isinstance(value, Refusal):
            return value
        return tuple(map(int, value.reshape(-1).tolist()))

    def write(
        self, view: NodeView, values: Sequence[int] | Array, like: int | None = None
    ) -> Changes:
        """The change that gives it these values, in the form of the node's opset.

        `like` names the operand whose element type a new operand shares.
        """
        if not self.is_operand(view):
            return Changes(attributes={self.name: [item.item() for item in np.asarray(values)]})
        old = view.constant(self.index if like is None else like)
        shape = old.shape if old is not None and old.size == len(values) else (len(values),)
        array = np.asarray(values, dtype=np.int64 if old is None else old.dtype).reshape(shape)
        return Changes(constants={self.index: array})

    def is_operand(self, view: NodeView) -> bool:
        """Whether the node's opset version makes it an operand."""
        schema = schema_of(view.op_type, view.version, view.domain)
        return schema is not None and self.name not in schema.attributes


NEWEST_VERSION = 2**31 - 1
"""onnx looks for no newer ones."""


@lru_cache(maxsize=4096)
def schema_of(op_type: str, version: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """The definition of an operator in an opset version, or None if onnx knows none."""
    if not 0 < version <= NEWEST_VERSION:
        return None
    try:
        return onnx.defs.get_schema(op_type, version, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return None


@lru_cache(maxsize=4096)
def is_transposable(kind: ir.DataType | None, version: int) -> bool:
    """Whether a Transpose of an opset takes elements of a type; newer types need newer opsets."""
    schema = schema_of("Transpose", version)
    if kind is None or schema is None:
        return True
    return f"tensor({kind.name.lower()})" in schema.type_constraints[0].allowed_type_strs


def view_of(node: ir.Node, opsets: Mapping[str, int], known: KnownValues | None = None) -> NodeView:
    return NodeView(node, version_of(opsets, node.domain), known=known or {})


def version_of(opsets: Mapping[str, int], domain: str) -> int:
    """The imported version of a domain; the two names of the standard domain are one."""
    if domain in {STANDARD_DOMAIN, "ai.onnx"}:
        return opsets.get(STANDARD_DOMAIN, opsets.get("ai.onnx", 0))
    return opsets.get(domain, 0)


def _attribute_array(view: NodeView, name: str) -> Array | Refusal:
    attribute = view.node.attributes[name]
    if attribute.is_ref():
        return Refusal(f"{view.op_type} gets its {name} from the caller of the function")
    if attribute.type in {ir.AttributeType.INT, ir.AttributeType.FLOAT}:
        return np.asarray([attribute.value])
    if attribute.type in {ir.AttributeType.INTS, ir.AttributeType.FLOATS}:
        return np.asarray(attribute.value)
    return Refusal(f"{view.op_type} has a {name} of a type it should not have")


def _constant_node_tensor(node: ir.Node) -> ir.TensorProtocol | None:
    attribute = next(iter(node.attributes.values()), None)
    if attribute is None or attribute.is_ref():
        return None
    return constant_attribute_tensor(attribute)


_CONSTANT_FORMS = {
    ir.AttributeType.INT: np.int64,
    ir.AttributeType.INTS: np.int64,
    ir.AttributeType.FLOAT: np.float32,
    ir.AttributeType.FLOATS: np.float32,
}


def constant_attribute_tensor(attribute: ir.Attr) -> ir.TensorProtocol | None:
    """The tensor that an attribute of a Constant node holds, in any of its forms."""
    if attribute.type == ir.AttributeType.TENSOR:
        tensor: ir.TensorProtocol = attribute.value  # `as_tensor` looks at every member of it
        return tensor
    dtype = _CONSTANT_FORMS.get(attribute.type)
    return None if dtype is None else ir.Tensor(np.asarray(attribute.value, dtype=dtype))
