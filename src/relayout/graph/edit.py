"""The only place that changes a graph.

Every method keeps the graph valid: uses, order, names, types and shapes stay true. A value that is
stored in another order is a new value with a new name, so a name never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from relayout.graph.names import Names
from relayout.graph.read import constant_of, is_standard
from relayout.graph.region import KERNEL_DOMAIN, Region, bodies_of
from relayout.graph.restate import Restatement
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Array, AttributeValue, Transport

ORIGIN_KEY = "relayout.origin"
"""The metadata of a new node that names the nodes it stands for."""

AXES_ARE_OPERANDS = 13
"""The opset version from which Squeeze and Unsqueeze take their axes as an operand."""


def is_our_own(node: ir.Node) -> bool:
    """Whether a node is of the standard domain, or a kernel that is defined by it."""
    return is_standard(node) or node.domain == KERNEL_DOMAIN


class Editor:
    """Edits one region of a model."""

    def __init__(
        self,
        region: Region,
        names: Names,
        computes_only: Callable[[ir.Node], bool] = is_our_own,
    ) -> None:
        self.region = region
        self.names = names
        self.computes_only = computes_only
        """Whether a node does nothing but compute, so that it may go where nothing reads it."""

    # new nodes and constants

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
        more_results: Sequence[ir.Value] = (),
    ) -> ir.Value:
        """The first result of a new node, mostly its only one, which has the type of `like`.

        It stands before another node, or at the end of the graph (None).
        """
        if domain:
            self.region.opsets.setdefault(domain, 1)
        result = ir.Value(
            name=self.names.fresh(hint), type=None if like is None else like.type, shape=shape
        )
        node = ir.node(
            op_type,
            operands,
            {name: value for name, value in (attributes or {}).items() if value is not None},
            domain=domain,
            outputs=[result, *more_results],
            name=self.names.fresh(f"{op_type}_{hint}"),
            metadata_props=_origin(origin),
        )
        self._insert(node, before)
        return result

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
        data = ir.tensor(tensor, name=name) if isinstance(tensor, np.ndarray) else tensor
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
            data = ir.tensor(array, dtype=tensor.dtype)
            return self.constant(data, hint=f"{value.name}_unsqueezed", before=before)
        shape = _with_units(value.shape, positions)
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

    def gathered(self, value: ir.Value, positions: Sequence[int], *, before: ir.Node) -> ir.Value:
        """The entries of `value` along axis 0, read at these positions."""
        tensor = constant_of(value)
        hint = f"{value.name}_gathered"
        if tensor is not None:
            array = tensor.numpy()[list(positions)]
            return self.constant(ir.tensor(array, dtype=tensor.dtype), hint=hint, before=before)
        indices = self.constant(np.asarray(positions, np.int64), hint=f"{hint}_at", before=before)
        shape = None if value.shape is None else ir.Shape([len(positions), *value.shape[1:]])
        return self.add(
            "Gather",
            [value, indices],
            {"axis": 0},
            before=before,
            hint=hint,
            like=value,
            shape=shape,
        )

    def restated(
        self, node: ir.Node, transport: Transport, operands: Sequence[ir.Value | None]
    ) -> list[ir.Value]:
        """New nodes, mostly one, that do in other orders what `node` does; their results.

        `operands` are the operands of `node`, each already stored as `transport.inputs` says.
        """
        changes = transport.changes
        restatement = Restatement(self, node, transport)
        prepared = restatement.operands(operands)
        if changes.steps:
            return [restatement.result_of_steps(prepared)]
        results = restatement.results()
        if changes.domain:
            self.region.opsets.setdefault(changes.domain, 1)
        replacement = ir.Node(
            node.domain if changes.domain is None else changes.domain,
            changes.op_type or node.op_type,
            prepared,
            _changed_attributes(node, changes.attributes),
            overload=node.overload,
            outputs=results,
            name=self.names.fresh(node.name or f"{node.op_type}_restated"),
            doc_string=node.doc_string,
            metadata_props={**node.metadata_props, **_origin([node])},
        )
        _graph_of(node).insert_before(node, replacement)
        return restatement.results_read(results)

    # existing nodes

    def read(self, node: ir.Node, index: int, value: ir.Value | None) -> None:
        """Let operand `index` of `node` be `value`."""
        node.replace_input_with(index, value)

    def recapture(self, node: ir.Node, old: ir.Value, new: ir.Value) -> None:
        """Let the bodies of `node` read `new` where they read `old`."""
        for reader in [inner for body in bodies_of(node) for inner in body]:
            for index, value in enumerate(reader.inputs):
                if value is old:
                    reader.replace_input_with(index, new)

    def take_over(self, old: ir.Value, new: ir.Value) -> None:
        """Let `new`, which holds the same, have the name of `old`, which is about to go.

        The name of an output moves when the output itself does.
        """
        if old.is_graph_output():
            return
        name = old.name
        old.name = self.names.fresh(f"{name}_replaced")
        new.name = name

    def substitute(self, old: ir.Value, new: ir.Value, *, origin: ir.Node | None) -> None:
        """Let everything that reads `old` read `new`, which holds the same.

        A graph output keeps its name: where `new` can be renamed it takes the name over, else an
        Identity carries it.
        """
        if old.is_graph_output() and self.may_be_renamed(new):
            self._rename_output(old, new)
        elif old.is_graph_output():
            self._keep_output_by_identity(old, new, origin)
        old.replace_all_uses_with(new)

    def set_attribute(self, node: ir.Node, name: str, value: AttributeValue) -> None:
        """Give an attribute another value; None removes it."""
        if value is None:
            node.attributes.pop(name, None)
        else:
            node.attributes[name] = _attribute(name, value)

    def discard(self, node: ir.Node) -> int:
        """Remove a node nothing reads, and whatever dies with it; how many nodes went.

        A node of a foreign domain stays unless it is known: it may do more than compute.
        """
        waiting, removed = [node], 0
        while waiting:
            dead = waiting.pop()
            if dead.graph is None or any(map(is_read, dead.outputs)):
                continue
            if not self.computes_only(dead):
                continue
            operands = _detached(dead)
            dead.graph.remove(dead, safe=True)
            removed += 1
            for value in operands:
                producer = value.producer()
                if producer is not None:
                    waiting.append(producer)
                else:
                    _remove_dead_initializer(value)
        return removed

    def may_be_renamed(self, value: ir.Value) -> bool:
        """Whether a value of this graph has a name that nobody outside knows."""
        return (
            value.producer() is not None
            and value.graph is self.region.graph
            and not value.is_graph_output()
        )

    def _rename_output(self, old: ir.Value, new: ir.Value) -> None:
        name = old.name
        old.name = self.names.fresh(f"{name}_replaced")
        outputs = old.graph.outputs if old.graph is not None else []
        for index, value in enumerate(outputs):
            if value is old:
                outputs[index] = new
        new.name = name
        new.type = new.type or old.type
        new.shape = new.shape if old.shape is None else old.shape

    def _keep_output_by_identity(
        self, old: ir.Value, new: ir.Value, origin: ir.Node | None
    ) -> None:
        name = old.name
        old.name = self.names.fresh(f"{name}_replaced")
        carrier = self.add(
            "Identity",
            [new],
            before=origin,
            hint=f"{name}_output",
            like=old,
            shape=old.shape,
            origin=[] if origin is None else [origin],
        )
        outputs = old.graph.outputs if old.graph is not None else []
        for index, value in enumerate(outputs):
            if value is old:
                outputs[index] = carrier
        carrier.name = name


def is_read(value: ir.Value) -> bool:
    """Whether a node or the interface of a graph reads a value."""
    return bool(value.uses()) or value.is_graph_output()


def permuted_shape(shape: ir.Shape | None, order: Permutation) -> ir.Shape | None:
    """The shape of a value stored in `order`; unknown if it was."""
    return None if shape is None else ir.Shape([shape[axis] for axis in order])


def permuted_tensor(tensor: ir.TensorProtocol, order: Permutation) -> ir.LazyTensor:
    """A constant stored in `order`; its data moves only when it is written or read."""

    def permute() -> ir.TensorProtocol:
        array = np.ascontiguousarray(tensor.numpy().transpose(order.axes))
        return ir.tensor(array, dtype=tensor.dtype, name=tensor.name)

    shape = ir.Shape([int(tensor.shape.numpy()[axis]) for axis in order])
    return ir.LazyTensor(permute, dtype=tensor.dtype, shape=shape, name=tensor.name)


def _graph_of(node: ir.Node) -> ir.Graph:
    if node.graph is None:
        raise ValueError(f"node {node.name!r} belongs to no graph")
    return node.graph


def _origin(nodes: Iterable[ir.Node]) -> dict[str, str]:
    names = [node.metadata_props.get(ORIGIN_KEY) or node.name or node.op_type for node in nodes]
    return {ORIGIN_KEY: ", ".join(names)} if names else {}


def _shape(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape(tensor.shape.numpy())


def _with_units(shape: ir.Shape | None, positions: Sequence[int]) -> ir.Shape | None:
    if shape is None:
        return None
    dims = list(shape)
    for position in sorted(positions):
        dims.insert(position, 1)
    return ir.Shape(dims)


def _attribute(name: str, value: AttributeValue) -> ir.Attr:
    """An attribute by the type of its value; lists of integers, which abound, without a search."""
    if isinstance(value, tuple) and value and all(isinstance(item, int) for item in value):
        return ir.AttrInt64s(name, value)
    return ir.convenience.convert_attribute(name, value)


def _changed_attributes(node: ir.Node, changes: Mapping[str, AttributeValue]) -> list[ir.Attr]:
    kept = [attribute for name, attribute in node.attributes.items() if name not in changes]
    given = {name: value for name, value in changes.items() if value is not None}
    return [*kept, *ir.convenience.convert_attributes(given)]


def _detached(node: ir.Node) -> list[ir.Value]:
    """Take a node and its bodies off everything they read; what that was."""
    found: dict[ir.Value, None] = {}
    for reader in (node, *(inner for body in bodies_of(node) for inner in body)):
        for index, value in enumerate(reader.inputs):
            if value is not None:
                found[value] = None
                reader.replace_input_with(index, None)
    return list(found)


def _remove_dead_initializer(value: ir.Value) -> None:
    if is_read(value) or value.is_graph_input() or not value.is_initializer():
        return
    if value.graph is not None and value.name is not None:
        del value.graph.initializers[value.name]
