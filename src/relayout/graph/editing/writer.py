"""New nodes and constants of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.permuted import permuted_shape, permuted_tensor, tensor_of
from relayout.graph.names import Names
from relayout.graph.read import constant_of, is_op
from relayout.graph.region import Region
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Array, AttributeValue

ORIGIN_KEY = "relayout.origin"
"""The metadata of a new node that names the nodes it stands for."""

TO_BE_NAMED = "relayout.to be named"
"""The key under which a new Transpose notes that its name is given last."""

AXES_ARE_OPERANDS = 13
"""The opset version from which Squeeze and Unsqueeze take their axes as an operand."""

SIZES_ARE_OPERANDS = 13
"""The opset version from which Split takes the lengths of its parts as an operand."""

PARTS_ARE_COUNTED = 18
"""The opset version from which a Split into equal parts states how many there are."""


class NodeWriter:
    """Writes new nodes and constants into one region of a model."""

    def __init__(self, region: Region, names: Names) -> None:
        self.region = region
        self.names = names

    def add(
        self,
        op_type: str,
        operands: Sequence[ir.Value | None],
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        before: ir.Node | None,
        hint: str,
        like: ir.Value | None = None,
        shape: ir.Shape | None = None,
        domain: str = "",
        origin: Iterable[ir.Node] = (),
        succeeds: ir.Node | None = None,
    ) -> ir.Value:
        """The only result of a new node, which has the type of `like`.

        It stands before another node, or at the end of the graph (None). It gets the name of the
        node it succeeds once that is gone.
        """
        if domain:
            self.region.opsets.setdefault(domain, 1)
        result = self._value(hint, like, shape)
        node = ir.node(
            op_type,
            operands,
            {name: value for name, value in (attributes or {}).items() if value is not None},
            domain=domain,
            outputs=[result],
            name=self.names.fresh(f"{op_type}_{hint}"),
            metadata_props=origin_of(origin),
        )
        self._insert(node, before)
        if succeeds is not None:
            self.names.promise(succeeds, node)
        if is_op(node, "Transpose"):
            node.meta[TO_BE_NAMED] = True
        return result

    def split(
        self,
        whole: ir.Value,
        axis: int,
        shapes: Sequence[ir.Shape | None],
        lengths: Sequence[int] | None = None,
        *,
        before: ir.Node,
        hint: str,
    ) -> list[ir.Value]:
        """The parts of a value, of these shapes, by a Split in the form of the opset.

        They are of equal lengths along the axis if no lengths are given.
        """
        others = [self._value(hint, whole, shape) for shape in shapes[1:]]
        operands, attributes = [whole], dict[str, AttributeValue](axis=axis)
        if lengths is None and self.region.version >= PARTS_ARE_COUNTED:
            attributes["num_outputs"] = len(shapes)
        elif lengths is not None and self.region.version < SIZES_ARE_OPERANDS:
            attributes["split"] = lengths
        elif lengths is not None:
            sizes = np.asarray(lengths, np.int64)
            operands.append(self.constant(sizes, hint=f"{hint}_sizes", before=before))
        results = [self._value(hint, whole, shapes[0]), *others]
        node = ir.node(
            "Split",
            operands,
            attributes,
            outputs=results,
            name=self.names.fresh(f"Split_{hint}"),
            metadata_props=origin_of([before]),
        )
        self._insert(node, before)
        if is_op(before, "Split"):
            self.names.promise(before, node)
        return results

    def _value(self, hint: str, like: ir.Value | None, shape: ir.Shape | None) -> ir.Value:
        kind = None if like is None else like.type
        return ir.Value(name=self.names.fresh(hint), type=kind, shape=shape)

    def _insert(self, node: ir.Node, before: ir.Node | None) -> None:
        if before is None:
            self.region.graph.append(node)
        else:
            self.region.graph.insert_before(before, node)

    def constant(
        self, tensor: ir.TensorProtocol | Array, *, hint: str, before: ir.Node | None
    ) -> ir.Value:
        """A new constant: an initialiser, or a node where the region can hold none."""
        name = self.names.fresh(hint)
        data = (
            ir.Tensor(np.asarray(tensor, order="C"), name=name)
            if isinstance(tensor, np.ndarray)
            else tensor
        )
        if self.region.in_function:
            value = ir.Value(name=name, type=ir.TensorType(data.dtype), shape=_shape(data))
            node = ir.node(
                "Constant", [], {"value": data}, outputs=[value], name=f"Constant_{name}"
            )
            self._insert(node, before)
            return value
        data.name = name
        value = ir.Value(
            name=name, type=ir.TensorType(data.dtype), shape=_shape(data), const_value=data
        )
        self.region.graph.register_initializer(value)
        return value

    def transposed(
        self,
        value: ir.Value,
        order: Permutation,
        *,
        before: ir.Node | None,
        origin: Iterable[ir.Node] = (),
    ) -> ir.Value:
        """`value` stored in `order`: a new constant where it is one, else a Transpose."""
        if order.is_identity:
            return value
        hint = f"{value.name}_{order}"
        tensor = constant_of(value)
        if tensor is not None:
            return self.constant(permuted_tensor(tensor, order), hint=hint, before=before)
        return self.add(
            "Transpose",
            [value],
            {"perm": order.axes},
            before=before,
            hint=hint,
            like=value,
            shape=permuted_shape(value.shape, order),
            origin=origin,
        )

    def unsqueezed(self, value: ir.Value, positions: Sequence[int], *, before: ir.Node) -> ir.Value:
        """`value` with axes of length 1 at these positions of the result."""
        tensor = constant_of(value)
        if tensor is not None:
            array = np.expand_dims(tensor.numpy(), tuple(positions))
            data = tensor_of(array, tensor.dtype)
            return self.constant(data, hint=f"{value.name}_unsqueezed", before=before)
        shape = _with_unit_axes(value.shape, positions)
        return self._viewed("Unsqueeze", value, positions, shape, before)

    def squeezed(self, value: ir.Value, axes: Sequence[int], *, before: ir.Node) -> ir.Value:
        """`value` without these axes, which have length 1."""
        dims = None if value.shape is None else list(enumerate(value.shape))
        kept = None if dims is None else ir.Shape([dim for axis, dim in dims if axis not in axes])
        return self._viewed("Squeeze", value, axes, kept, before)

    def _viewed(
        self,
        op_type: str,
        value: ir.Value,
        axes: Sequence[int],
        shape: ir.Shape | None,
        before: ir.Node,
    ) -> ir.Value:
        """A node that names axes, in the form of the opset: as an attribute or as an operand."""
        hint = f"{value.name}_{op_type.lower()}d"
        operands, attributes = [value], {"axes": list(axes)}
        if self.region.version >= AXES_ARE_OPERANDS:
            array = np.asarray(axes, np.int64)
            operands.append(self.constant(array, hint=f"{hint}_axes", before=before))
            attributes = {}
        return self.add(
            op_type, operands, attributes, before=before, hint=hint, like=value, shape=shape
        )

    def gathered(
        self, value: ir.Value, positions: Sequence[int], *, before: ir.Node | None, axis: int = 0
    ) -> ir.Value:
        """The entries of `value` along an axis, read at these positions."""
        tensor = constant_of(value)
        hint = f"{value.name}_gathered"
        if tensor is not None:
            array = tensor.numpy().take(positions, axis)
            return self.constant(tensor_of(array, tensor.dtype), hint=hint, before=before)
        indices = self.constant(np.asarray(positions, np.int64), hint=f"{hint}_at", before=before)
        shape = None if value.shape is None else list(value.shape)
        if shape is not None:
            shape[axis] = len(positions)
        return self.add(
            "Gather",
            [value, indices],
            {"axis": axis},
            before=before,
            hint=hint,
            like=value,
            shape=None if shape is None else ir.Shape(shape),
        )


def origin_of(nodes: Iterable[ir.Node]) -> dict[str, str]:
    """The metadata of a node that stands for others."""
    names = [node.metadata_props.get(ORIGIN_KEY) or node.name or node.op_type for node in nodes]
    return {ORIGIN_KEY: ", ".join(names)} if names else {}


def _shape(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape(tensor.shape.numpy())


def _with_unit_axes(shape: ir.Shape | None, positions: Sequence[int]) -> ir.Shape | None:
    if shape is None:
        return None
    dims = list(shape)
    for position in sorted(positions):
        dims.insert(position, 1)
    return ir.Shape(dims)
