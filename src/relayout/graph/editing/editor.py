"""The editor of a graph.

Every method keeps the graph valid: uses, order, names, types and shapes stay true. A value that is
stored in another order is a new value with a new name, so a name never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from relayout.graph.editing.permuted import permuted_shape
from relayout.graph.editing.restate import Restatement
from relayout.graph.editing.writer import NodeWriter, origin_of
from relayout.graph.names import Names
from relayout.graph.read import is_standard
from relayout.graph.region import KERNEL_DOMAIN, Region, bodies_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AS_GIVEN, AttributeValue, Changes, Transport


def is_our_own(node: ir.Node) -> bool:
    """Whether a node is of the standard domain, or a kernel that is defined by it."""
    return is_standard(node) or node.domain == KERNEL_DOMAIN


class Editor(NodeWriter):
    """Edits one region of a model."""

    def __init__(
        self,
        region: Region,
        names: Names,
        computes_only: Callable[[ir.Node], bool] = is_our_own,
    ) -> None:
        super().__init__(region, names)
        self.computes_only = computes_only
        """Whether a node does nothing but compute, so that it may go where nothing reads it."""

    def restated(
        self, node: ir.Node, transport: Transport, operands: Sequence[ir.Value | None]
    ) -> list[ir.Value]:
        """New nodes, mostly one, that do in other orders what `node` does; their results.

        `operands` are the operands of `node`, each already in its order of `transport.inputs`. The
        node that gives the result gets the name of `node` once that is gone.
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
            metadata_props={**node.metadata_props, **origin_of([node])},
        )
        _graph_of(node).insert_before(node, replacement)
        self.names.promise(node, replacement)
        return restatement.results_read(results)

    def adapted(
        self,
        node: ir.Node,
        operands: Sequence[ir.Value | None],
        shapes: Sequence[ir.Shape | None],
        changes: Changes = AS_GIVEN,
    ) -> list[ir.Value]:
        """New nodes that do to other operands what `node` does; their results, of these shapes."""
        transport = Transport((None,) * len(operands), (None,) * len(shapes), changes)
        results = self.restated(node, transport, operands)
        for value, shape in zip(results, shapes, strict=True):
            value.shape = shape
        return results

    def read(self, node: ir.Node, index: int, value: ir.Value | None) -> None:
        """Let operand `index` of `node` be `value`, also where the node had fewer operands."""
        node.resize_inputs(max(index + 1, len(node.inputs)))
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

    def absorb_into_input(self, value: ir.Value, transpose: ir.Node, order: Permutation) -> None:
        """Let an input of the graph be what its only consumer, a Transpose, made of it."""
        value.shape = permuted_shape(value.shape, order)
        transpose.outputs[0].replace_all_uses_with(value)
        self.discard(transpose)

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
            self._hand_on_name(dead)
            removed += 1
            for value in operands:
                producer = value.producer()
                if producer is not None:
                    waiting.append(producer)
                else:
                    _remove_dead_initializer(value)
        return removed

    def may_be_renamed(self, value: ir.Value) -> bool:
        """Whether a value of this graph has a name that is not visible outside."""
        return (
            value.producer() is not None
            and value.graph is self.region.graph
            and not value.is_graph_output()
        )

    def _hand_on_name(self, gone: ir.Node) -> None:
        heir = self.names.heir(gone)
        if heir is not None and gone.name:
            heir.name = gone.name

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


def _graph_of(node: ir.Node) -> ir.Graph:
    if node.graph is None:
        raise ValueError(f"node {node.name!r} belongs to no graph")
    return node.graph


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
