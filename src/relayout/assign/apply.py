"""Writes a graph down in the orders that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.assign.formulate import Draft, Formulation
from relayout.assign.frames import Frame
from relayout.graph.edit import Editor
from relayout.graph.read import constant_of, is_op, perm_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Transport


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it lies in the new graph: `value` is the tensor transposed by `order`."""

    value: ir.Value
    order: Permutation | None


@dataclass(slots=True)
class Writer:
    """Rewrites one graph node by node; each copy is made once, before its first reader."""

    formulation: Formulation
    editor: Editor
    stored: dict[ir.Value, Stored] = field(default_factory=dict)
    copies: dict[tuple[ir.Value, Permutation], ir.Value] = field(default_factory=dict)
    restated: int = 0

    def write(self, choice: Sequence[int]) -> None:
        graph = self.editor.region.graph
        given = list(graph)
        self._take_in_sources(choice, given[0] if given else None)
        for number, draft in enumerate(self.formulation.drafts):
            self._node(draft, self.formulation.transport(number, choice[number]))
        self._outputs(graph)
        for node in reversed(given):
            self.editor.discard(node)

    def _take_in_sources(self, choice: Sequence[int], before: ir.Node | None) -> None:
        """Let an input that is free be stored in another order at once."""
        for value, operator in self.formulation.sources.items():
            order = self.formulation.given_order(value, choice[operator])
            if order is not None and not order.is_identity:
                self.stored[value] = Stored(
                    self.editor.transposed(value, order, before=before), order
                )

    def _node(self, draft: Draft, transport: Transport) -> None:
        node = draft.ways.node
        if _is_unchanged(transport):
            self._keep(draft)
            return
        operands = [
            None if value is None else self._operand(value, order, node)
            for value, order in zip(node.inputs, transport.inputs, strict=True)
        ]
        results = self.editor.restated(node, transport, operands)
        self.restated += 1
        for old, new, order in zip(node.outputs, results, transport.outputs, strict=True):
            if not old.name:
                continue
            if order is None:
                self.editor.take_over(old, new)
            self.stored[old] = Stored(new, _full(order, self.formulation.frames.of(old)))

    def _keep(self, draft: Draft) -> None:
        """Let a node that runs as it did read its operands in the order it always had."""
        node = draft.ways.node
        for index in draft.ways.reads:
            value = node.inputs[index]
            if value is not None:
                self.editor.read(node, index, self._operand(value, None, node))
        for value in draft.ways.captured:
            self.editor.recapture(node, value, self._operand(value, None, node))

    def _operand(
        self, value: ir.Value, order: Permutation | None, before: ir.Node | None
    ) -> ir.Value:
        """A value in the order a reader wants, by a copy if it is not stored so."""
        if constant_of(value) is not None:
            return value if order is None else self.editor.transposed(value, order, before=before)
        frame = self.formulation.frames.of(value)
        wanted = frame.stored(order)
        lying = self._lying(frame)
        if wanted is None or lying.order is None or lying.order == wanted:
            return lying.value
        key = (frame.tensor, wanted)
        if key not in self.copies:
            move = lying.order.inverse().then(wanted)
            self.copies[key] = self._copy(value, lying.value, move, before)
        return self.copies[key]

    def _copy(
        self, value: ir.Value, source: ir.Value, move: Permutation, before: ir.Node | None
    ) -> ir.Value:
        """A Transpose: the one that was given if it is the same, so that it keeps its name."""
        given = value.producer()
        is_same = given is not None and is_op(given, "Transpose") and perm_of(given) == move
        if given is not None and is_same and given.inputs[0] is source:
            return value
        return self.editor.transposed(source, move, before=before)

    def _lying(self, frame: Frame) -> Stored:
        found = self.stored.get(frame.tensor)
        return Stored(frame.tensor, _full(None, frame)) if found is None else found

    def _outputs(self, graph: ir.Graph) -> None:
        """Give every output of the graph its value in the order it is declared in."""
        for value in dict.fromkeys(graph.outputs):
            new = self._operand(value, None, None)
            if new is not value:
                self.editor.substitute(value, new, origin=None)


def _is_unchanged(transport: Transport) -> bool:
    moved = any(order is not None for order in (*transport.inputs, *transport.outputs))
    return not moved and transport.changes == Changes()


def _full(order: Permutation | None, frame: Frame) -> Permutation | None:
    if order is not None or frame.view is None:
        return order
    return Permutation.identity(frame.view.rank)


def apply(formulation: Formulation, choice: Sequence[int], editor: Editor) -> int:
    """Rewrite the graph of a formulation by a choice of variants; how many nodes were restated."""
    writer = Writer(formulation, editor)
    writer.write(choice)
    return writer.restated
