"""Control flow, sequences and optionals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import onnx_ir as ir

from relayout.graph.read import NodeView, rank_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.ops.facts import OpFacts
from relayout.ops.kernels import OPAQUE
from relayout.ops.rule import barrier

SCANS_WITHOUT_BATCH = 9
"""The opset version from which Scan has no batch axis."""


class Side(Enum):
    """Where a value is at the border of a body."""

    OPERAND = "operand"
    RESULT = "result"
    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Border:
    """An operand or result of a node with bodies, or an input or output of one of the bodies."""

    side: Side
    index: int
    value: ir.Value
    graph: ir.Graph
    """Where the value is read or made: around the node, or the body."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Values at the border of a body that hold the same tensor, or slices of it.

    One order describes them all: that of the whole tensor.
    """

    reads: tuple[Border, ...]
    writes: tuple[Border, ...]
    axis: int | None = None
    """The axis that the tensor has outside and its slices inside lack; None if all are alike."""
    axes_attribute: str = ""
    """The list of the node that names the axis; where there is none the axis cannot move."""
    number: int = 0
    """The place of the axis in the list."""

    def order_at(self, border: Border, order: Permutation) -> Permutation:
        """The order of one value when the whole tensor is in `order`."""
        return order.drop(self._missing(border))

    def order_for(self, border: Border, seen: Permutation) -> Permutation | None:
        """An order of the whole tensor in which one value is in `seen`."""
        order = seen.insert(self._missing(border))
        return order if self._may_be(order) else None

    def _may_be(self, order: Permutation) -> bool:
        """Slices lie where they did, or along the first axis.

        Runtimes that have to slice along another one copy the tensor first.
        """
        if self.axis is None:
            return True
        position = order.position(self.axis)
        return position == self.axis or (position == 0 and bool(self.axes_attribute))

    @property
    def is_known(self) -> bool:
        """Whether the ranks are known and agree."""
        ranks = [self._whole_rank(border) for border in (*self.reads, *self.writes)]
        return None not in ranks and len(set(ranks)) == 1

    def _whole_rank(self, border: Border) -> int | None:
        rank = rank_of(border.value)
        return None if rank is None else rank + len(self._missing(border))

    def _missing(self, border: Border) -> set[int]:
        """The axis that a slice lacks."""
        is_slice = border.side in {Side.INPUT, Side.OUTPUT}
        return {self.axis} if is_slice and self.axis is not None else set()


def scan_axes(view: NodeView, attribute: str) -> list[int]:
    """One of the lists of axes of a Scan, which slices along the first axis if it is left out."""
    sliced = view.integer("num_scan_inputs", 0)
    states = view.arity - sliced
    count = sliced if attribute == "scan_input_axes" else view.results - states
    return list(view.ints(attribute) or [0] * count)


def borders(node: ir.Node, side: Side) -> list[Border]:
    """The operands or results of a node that are there."""
    values = node.inputs if side is Side.OPERAND else node.outputs
    graph = node.graph
    if graph is None:
        raise ValueError(f"node {node.name!r} belongs to no graph")
    return [
        Border(side, index, value, graph)
        for index, value in enumerate(values)
        if value is not None and value.name
    ]


def body_borders(body: ir.Graph, side: Side) -> list[Border]:
    """The inputs or outputs of a body."""
    values = body.inputs if side is Side.INPUT else body.outputs
    return [Border(side, index, value, body) for index, value in enumerate(values)]


def _if_ties(view: NodeView) -> Iterator[Tie]:
    then, other = _body(view, "then_branch"), _body(view, "else_branch")
    if then is None or other is None or not len(then.outputs) == len(other.outputs) == view.results:
        return
    outputs = [body_borders(body, Side.OUTPUT) for body in (then, other)]
    for result in borders(view.node, Side.RESULT):
        yield Tie(tuple(each[result.index] for each in outputs), (result,))


def _loop_ties(view: NodeView) -> Iterator[Tie]:
    """Before the carried values come the trip count and the condition, inside the condition."""
    body, carried = _body(view, "body"), view.arity - 2
    if body is None or len(body.inputs) != view.arity or len(body.outputs) != view.results + 1:
        return
    inputs, outputs = body_borders(body, Side.INPUT), body_borders(body, Side.OUTPUT)
    results = {border.index: border for border in borders(view.node, Side.RESULT)}
    yield from _carried(view, inputs[2:], outputs[1:][:carried], 2)
    for index in range(carried, view.results):
        if index in results:
            yield Tie((outputs[1 + index],), (results[index],), axis=0)


def _scan_ties(view: NodeView) -> Iterator[Tie]:
    body, sliced = _body(view, "body"), view.integer("num_scan_inputs", 0)
    states = view.arity - sliced
    if body is None or view.version < SCANS_WITHOUT_BATCH or not 0 <= states <= view.results:
        return
    if len(body.inputs) != view.arity or len(body.outputs) != view.results:
        return
    inputs, outputs = body_borders(body, Side.INPUT), body_borders(body, Side.OUTPUT)
    yield from _carried(view, inputs[:states], outputs[:states], 0)
    for border in borders(view.node, Side.OPERAND):
        if border.index >= states:
            inner = inputs[border.index]
            yield from _sliced(view, "scan_input_axes", border.index - states, border, inner)
    for border in borders(view.node, Side.RESULT):
        if border.index >= states:
            inner = outputs[border.index]
            yield from _sliced(view, "scan_output_axes", border.index - states, border, inner)


def _carried(
    view: NodeView, inputs: Sequence[Border], outputs: Sequence[Border], first: int
) -> Iterator[Tie]:
    """Values that go from one run of a body to the next; the operands begin at `first`."""
    operands = {border.index: border for border in borders(view.node, Side.OPERAND)}
    results = {border.index: border for border in borders(view.node, Side.RESULT)}
    for index, (taken, given) in enumerate(zip(inputs, outputs, strict=True)):
        last = [results[index]] if index in results else []
        if first + index in operands:
            yield Tie((operands[first + index], given), (taken, *last))


def _sliced(
    view: NodeView, attribute: str, number: int, outer: Border, inner: Border
) -> Iterator[Tie]:
    axes, rank = scan_axes(view, attribute), rank_of(outer.value)
    if rank is None or number >= len(axes) or not -rank <= axes[number] < rank:
        return
    if any(0 in (shape_of(border.value) or ()) for border in (outer, inner)):
        return  # ONNX Runtime divides by the length of what stays within the moved axis.
    is_result = outer.side is Side.RESULT
    reads, writes = ((inner,), (outer,)) if is_result else ((outer,), (inner,))
    yield Tie(reads, writes, axes[number] % rank, attribute, number)


def _body(view: NodeView, name: str) -> ir.Graph | None:
    attribute = view.node.attributes.get(name)
    if attribute is None or attribute.is_ref() or attribute.type != ir.AttributeType.GRAPH:
        return None
    return attribute.as_graph()


IN_BODIES = barrier(
    "the bodies of control flow read and give tensors in the order they are written in"
)

FACTS = (
    OpFacts(("If",), IN_BODIES, kernel=OPAQUE, ties=_if_ties),
    OpFacts(("Loop",), IN_BODIES, kernel=OPAQUE, ties=_loop_ties, repeats=True),
    OpFacts(("Scan",), IN_BODIES, kernel=OPAQUE, ties=_scan_ties, repeats=True),
    OpFacts(("SequenceMap",), IN_BODIES, kernel=OPAQUE),
    OpFacts(
        (
            *("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase"),
            *("SequenceInsert", "SequenceLength", "SplitToSequence", "ConcatFromSequence"),
        ),
        barrier("the tensors of a sequence share no order that is known here"),
        kernel=OPAQUE,
    ),
    OpFacts(
        ("Optional", "OptionalGetElement", "OptionalHasElement"),
        barrier("an optional may hold no tensor, or a sequence of them"),
        kernel=OPAQUE,
    ),
)
