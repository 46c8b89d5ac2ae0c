"""The tensors of a part as they lie in the new graph, and the copies their readers need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.assign.formulate import Formulation
from relayout.assign.frames import Frame
from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, perm_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle, StoredOrder


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as it is stored in the new graph: `value` is the tensor transposed by `order`."""

    value: ir.Value
    order: StoredOrder | None


class Copies:
    """Makes each copy once, before its first reader.

    A copy stands in the innermost graph around all its readers, so that no branch runs it in vain,
    but outside of the loops that only read the tensor.
    """

    def __init__(
        self, formulation: Formulation, choice: Sequence[int], editors: Mapping[ir.Graph, Editor]
    ) -> None:
        self.formulation, self.part, self.editors = formulation, formulation.part, editors
        self.owners = {value: self.part.graph_of(value) for value in formulation.tensors}
        self.stored: dict[ir.Value, StoredTensor] = {}
        self.made: dict[tuple[ir.Value, StoredOrder], ir.Value] = {}
        self.constants: dict[tuple[ir.Value, StoredOrder, ir.Graph], ir.Value] = {}
        self.shared: dict[tuple[ir.Value, int | None], ir.Graph] = {}
        """The innermost graph around all readers of a tensor in an order."""
        for draft, operator, chosen in zip(
            formulation.drafts, formulation.problem.operators, choice, strict=False
        ):
            reads = operator.variants[chosen].reads
            for frame, place, graph in zip(draft.operands, reads, draft.graphs, strict=True):
                self._share(frame, place, graph)
        for value in self.part.root.graph.outputs:
            frame = formulation.frames.of(value)
            given = formulation.tensors[frame.tensor].place(frame.stored(None))
            self._share(frame, given, self.part.root.graph)

    def store(self, given: ir.Value, value: ir.Value, order: StoredOrder | None) -> None:
        """Remember how the tensor of a given value is stored."""
        self.stored[given] = StoredTensor(value, _full(order, self.formulation.frames.of(given)))

    def read(
        self, value: ir.Value, order: StoredOrder | None, graph: ir.Graph, before: ir.Node | None
    ) -> ir.Value:
        """A value in the order a reader wants, by a copy if it is not stored so.

        The reader is a node of `graph`, or its end (None).
        """
        if constant_of(value) is not None:
            return value if order is None else self._constant(value, order, graph, before)
        frame = self.formulation.frames.of(value)
        wanted, lying = frame.stored(order), self._lying(frame)
        if wanted is None or lying.order is None or lying.order == wanted:
            return lying.value
        key = (frame.tensor, wanted)
        if key not in self.made:
            home = self._home(frame.tensor, wanted, graph)
            place = self.part.node_in(home, graph, before)
            self.made[key] = self._copy(value, lying, wanted, self.editors[home], place)
        return self.made[key]

    def _constant(
        self, value: ir.Value, order: StoredOrder, graph: ir.Graph, before: ir.Node | None
    ) -> ir.Value:
        """A constant in another order, once for all readers in a graph."""
        key = (value, order, graph)
        if key not in self.constants:
            self.constants[key] = _in_order(self.editors[graph], value, order, before)
        return self.constants[key]

    def _share(self, frame: Frame, place: int | None, graph: ir.Graph) -> None:
        key = (frame.tensor, place)
        known = self.shared.get(key, graph)
        self.shared[key] = known if known is graph else self.part.common(known, graph)

    def _home(self, tensor: ir.Value, order: StoredOrder, reader: ir.Graph) -> ir.Graph:
        place = self.formulation.tensors[tensor].place(order)
        graph = self.shared.get((tensor, place), reader)
        return self.part.outside_loops(graph, self.owners[tensor])

    def _copy(
        self,
        value: ir.Value,
        lying: StoredTensor,
        wanted: StoredOrder,
        editor: Editor,
        before: ir.Node | None,
    ) -> ir.Value:
        """A Transpose: the one that was given if it is the same, so that it keeps its name.

        The exact choice copies no shuffle; where another strategy does, its entries are gathered.
        """
        source, order = lying.value, lying.order
        if isinstance(order, Shuffle):
            back = np.argsort(order.places).tolist()
            source = editor.gathered(source, back, before=before, axis=order.axis)
            order = Permutation.identity(order.rank)
        if order is None:
            raise ValueError(f"{value.name!r} has no known number of axes")
        if isinstance(wanted, Shuffle):
            plain = editor.transposed(source, order.inverse(), before=before)
            return _in_order(editor, plain, wanted, before)
        move = order.inverse().then(wanted)
        given = value.producer()
        is_same = given is not None and is_op(given, "Transpose") and perm_of(given) == move
        is_there = given is not None and given.graph is editor.region.graph
        if given is not None and is_same and is_there and given.inputs[0] is source:
            return value
        return editor.transposed(source, move, before=before)

    def _lying(self, frame: Frame) -> StoredTensor:
        found = self.stored.get(frame.tensor)
        return StoredTensor(frame.tensor, _full(None, frame)) if found is None else found


def _in_order(
    editor: Editor, value: ir.Value, order: StoredOrder, before: ir.Node | None
) -> ir.Value:
    if isinstance(order, Shuffle):
        return editor.gathered(value, order.places.tolist(), before=before, axis=order.axis)
    return editor.transposed(value, order, before=before)


def _full(order: StoredOrder | None, frame: Frame) -> StoredOrder | None:
    if order is not None or frame.view is None:
        return order
    return Permutation.identity(frame.view.rank)
