"""Writes a part of a model down in the orders that were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from relayout.assign.copies import Copies, StoredTensor
from relayout.assign.drafts import NodeDraft, TieDraft
from relayout.assign.formulate import Formulation
from relayout.graph.editing.bodies import give_back, release, take_in
from relayout.graph.editing.editor import Editor
from relayout.graph.names import Names
from relayout.graph.read import NodeView
from relayout.graph.region import subgraphs_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.layout.transport import AS_GIVEN, Changes, Transport
from relayout.ops.bodies import has_ties
from relayout.ops.control import Border, Side, body_borders, scan_axes
from relayout.ops.quantised_groups import breaks_quantised_group
from relayout.ops.registry import computes_only

RESTATE = "restate node"
STATE_AS_EINSUM = "state product as Einsum"
LEAVE_BYTES = "state quantised product for floats"


class Writer:
    """Rewrites a graph node by node, and the bodies in it where they stand."""

    def __init__(self, formulation: Formulation, choice: Sequence[int], names: Names) -> None:
        self.formulation, self.choice = formulation, choice
        self.part = formulation.part
        regions = self.part.regions.items()
        self.editors = {graph: Editor(region, names, computes_only) for graph, region in regions}
        self.copies = Copies(formulation, choice, self.editors)
        self.nodes: dict[ir.Node, tuple[NodeDraft, Transport]] = {}
        self.ties: dict[ir.Node, list[tuple[TieDraft, Transport]]] = {}
        for number, draft in enumerate(formulation.drafts):
            transport = formulation.transport(number, choice[number])
            if isinstance(draft, NodeDraft):
                self.nodes[draft.node] = (draft, transport)
            elif isinstance(draft, TieDraft):
                self.ties.setdefault(draft.node, []).append((draft, transport))
        self.restated: Counter[str] = Counter()

    def write(self) -> None:
        root = self.part.root.graph
        given = list(self.part.nodes())
        self._take_in_sources(next(iter(root), None))
        self._graph(root)
        self._outputs(root)
        for node in reversed(given):
            self.editors[root].discard(node)

    def _take_in_sources(self, before: ir.Node | None) -> None:
        """Let an input that is free be stored in another order at once."""
        editor = self.editors[self.part.root.graph]
        for value, operator in self.formulation.sources.items():
            order = self.formulation.given_order(value, self.choice[operator])
            if isinstance(order, Permutation) and not order.is_identity:
                moved = editor.transposed(value, order, before=before)
                self.copies.stored[value] = StoredTensor(moved, order)

    def _graph(self, graph: ir.Graph) -> None:
        for node in list(graph):
            if has_ties(node):
                self._with_bodies(node)
            elif node in self.nodes:
                self._node(*self.nodes[node])

    def _node(self, draft: NodeDraft, transport: Transport) -> None:
        if _is_unchanged(transport):
            self._keep(draft)
            return
        self._restate(draft.node, transport, self._operands(draft.node, transport.inputs))

    def _operands(
        self, node: ir.Node, orders: Sequence[StoredOrder | None]
    ) -> list[ir.Value | None]:
        graph = self.part.parent_graph(node)
        return [
            None if value is None else self.copies.read(value, order, graph, node)
            for value, order in zip(node.inputs, orders, strict=True)
        ]

    def _restate(
        self, node: ir.Node, transport: Transport, operands: Sequence[ir.Value | None]
    ) -> None:
        editor = self.editors[self.part.parent_graph(node)]
        results = editor.restated(node, transport, operands)
        self.restated[STATE_AS_EINSUM if transport.changes.op_type == "Einsum" else RESTATE] += 1
        self.restated[LEAVE_BYTES] += breaks_quantised_group(node, transport.changes)
        for old, new, order in zip(node.outputs, results, transport.outputs, strict=True):
            if not old.name:
                continue
            if order is None:
                editor.take_over(old, new)
            self.copies.store(old, new, order)

    def _keep(self, draft: NodeDraft) -> None:
        """Let a node that runs as it did read its operands in the order it always had."""
        node, graph = draft.node, self.part.parent_graph(draft.node)
        editor = self.editors[graph]
        for index in draft.ways.reads:
            value = node.inputs[index]
            if value is not None:
                editor.read(node, index, self.copies.read(value, None, graph, node))
        for value in draft.ways.captured:
            editor.recapture(node, value, self.copies.read(value, None, graph, node))

    def _with_bodies(self, node: ir.Node) -> None:
        """Write the bodies of a node, then the node, whose borders are in the tied orders."""
        ties = self.ties.get(node, [])
        orders = _orders(ties)
        for body in subgraphs_of(node):
            self._body(body, orders)
        inputs = _at(Side.OPERAND, len(node.inputs), orders)
        results = _at(Side.RESULT, len(node.outputs), orders)
        operands = self._operands(node, inputs)
        changes = Changes(attributes=_moved_axes(self.part.region(node).view(node), ties))
        editor = self.editors[self.part.parent_graph(node)]
        if changes != AS_GIVEN or any(results):
            self._restate(node, Transport(inputs, results, changes), operands)
            release(editor, node)
            return
        for index, value in enumerate(operands):
            editor.read(node, index, value)

    def _body(self, body: ir.Graph, orders: Mapping[Border, Permutation]) -> None:
        editor = self.editors[body]
        for border in body_borders(body, Side.INPUT):
            if border in orders:
                new = take_in(editor, border.index, orders[border])
                self.copies.store(border.value, new, orders[border])
        self._graph(body)
        for border in body_borders(body, Side.OUTPUT):
            new = self.copies.read(border.value, orders.get(border), body, None)
            if new is not border.value:
                give_back(editor, border.index, new)

    def _outputs(self, graph: ir.Graph) -> None:
        """Give every output of the graph its value in the order it is declared in."""
        for value in dict.fromkeys(graph.outputs):
            new = self.copies.read(value, None, graph, None)
            if new is not value:
                self.editors[graph].substitute(value, new, origin=None)


def _orders(ties: Sequence[tuple[TieDraft, Transport]]) -> dict[Border, Permutation]:
    """The values at the borders of a node's bodies that are not in the given order."""
    return {
        border: order
        for draft, transport in ties
        for borders, chosen in (
            (draft.tie.reads, transport.inputs),
            (draft.tie.writes, transport.outputs),
        )
        for border, order in zip(borders, chosen, strict=True)
        if isinstance(order, Permutation)
    }


def _at(
    side: Side, count: int, orders: Mapping[Border, Permutation]
) -> tuple[Permutation | None, ...]:
    found = {border.index: order for border, order in orders.items() if border.side is side}
    return tuple(found.get(index) for index in range(count))


def _moved_axes(view: NodeView, ties: Sequence[tuple[TieDraft, Transport]]) -> dict[str, list[int]]:
    """The lists of axes in which some slices lie along another axis than before."""
    moved: dict[str, list[int]] = {}
    for draft, transport in ties:
        tie, lead = draft.tie, draft.lead(transport)
        if tie.axis is None or lead is None or lead.position(tie.axis) == tie.axis:
            continue
        axes = moved.setdefault(tie.axes_attribute, scan_axes(view, tie.axes_attribute))
        axes[tie.number] = lead.position(tie.axis)
    return moved


def _is_unchanged(transport: Transport) -> bool:
    moved = any(order is not None for order in (*transport.inputs, *transport.outputs))
    return not moved and transport.changes == AS_GIVEN


def apply(formulation: Formulation, choice: Sequence[int], names: Names) -> Counter[str]:
    """Rewrite the part of a formulation by a choice of variants; how many nodes were restated."""
    writer = Writer(formulation, choice, names)
    writer.write()
    return +writer.restated
