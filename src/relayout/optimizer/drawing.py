"""Graphs as records to be drawn: what reports show of a model, without the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import onnx_ir as ir

from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.graph.read import constant_of, is_op, perm_of, shape_of
from relayout.graph.region import subgraphs_of
from relayout.graph.source_line import source_line
from relayout.infer.colours import infer_colours, views_of
from relayout.layout.layout import Colour, LayoutClass
from relayout.layout.move_class import move_class
from relayout.ops.measure import bytes_of, bytes_of_move
from relayout.ops.registry import facts_of
from relayout.optimizer.describe import known_length, shape_text
from relayout.report.explanation import Explanation, causes, sides
from relayout.report.html.drawn import (
    INPUT,
    OUTPUT,
    DrawnGraph,
    DrawnNode,
    DrawnTranspose,
    DrawnValue,
)
from relayout.verify.proof.proof import Meaning, ReadModel, meanings

LONGEST_TEXT = 160
"""Attributes are cut after as many characters."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a graph besides the graph."""

    dims: Mapping[str, int] = field(default_factory=dict)
    meant: Mapping[str, Meaning] = field(default_factory=dict)
    """By name of a value, what it holds."""
    whys: Mapping[str, Explanation] = field(default_factory=dict)
    """By name of a Transpose, why it is there."""
    removed_by: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    """By name of a node, the kernel it is part of."""
    every: bool = False
    """Whether nodes that compute only shapes and constants are among the nodes too."""


def meanings_of(before: LoadedModel, after: LoadedModel) -> tuple[dict[str, Meaning], ...]:
    """What the values of two models hold, alike in both."""
    return meanings(_readable(before, before.source), _readable(after, to_proto(after)))


def _readable(loaded: LoadedModel, message: onnx.ModelProto) -> ReadModel:
    return ReadModel.held_by(message, Path() if loaded.path is None else loaded.path.parent)


def node_title(node: ir.Node) -> str:
    """What a node is called, or else what it writes."""
    return node.name or next((str(value.name) for value in node.outputs if value.name), "")


def drawn_graph(model: ir.Model, told: Told) -> DrawnGraph:
    """The main graph with the bodies in it; constants are not drawn."""
    drawing = _Gathering(model, told)
    drawing.gather()
    nodes, traffic = tuple(drawing.nodes), dict(drawing.traffic)
    return DrawnGraph(nodes, tuple(drawing.values), traffic, drawing.left_out)


class _Gathering:
    def __init__(self, model: ir.Model, told: Told) -> None:
        self.graph, self.told = model.graph, told
        self.colours = infer_colours(list(views_of(model))).colours
        self.nodes: list[DrawnNode] = []
        self.values: list[DrawnValue] = []
        self.places: dict[ir.Value, int] = {}
        self.traffic: Counter[str] = Counter()
        self.left_out = 0

    def gather(self) -> None:
        for value in self.graph.inputs:
            if constant_of(value) is None:
                self._add(DrawnNode(INPUT, str(value.name), (), (self._place(value),)))
        fixed, beside = _computed_beside(self.graph)
        for node in _nested(self.graph):
            if node in beside and not self.told.every:
                self.left_out += 1
            else:
                self._add_node(node, is_fixed=node in fixed)
        for value in self.graph.outputs:
            self._add(DrawnNode(OUTPUT, str(value.name), (self._place(value),)))

    def _add(self, node: DrawnNode) -> None:
        self.nodes.append(node)

    def _add_node(self, node: ir.Node, *, is_fixed: bool) -> None:
        results = [value for value in node.outputs if value.name]
        if all(constant_of(value) is not None for value in results):
            self.left_out += 1
            return
        given = [value for body in subgraphs_of(node) for value in body.outputs]
        read = [value for value in (*node.inputs, *given) if value is not None]
        read = [value for value in dict.fromkeys(read) if constant_of(value) is None]
        name = node_title(node)
        op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        drawn = DrawnNode(
            op=op,
            name=name,
            reads=tuple(map(self._place, read)),
            writes=tuple(map(self._place, results)),
            attributes=_attributes(node),
            line=source_line(node) or "",
            group=self.told.groups.get(name, ""),
            is_fixed=is_fixed,
            transpose=self._transpose(node, name),
        )
        self._add(drawn)
        dims = self.told.dims
        self.traffic[op] += sum(bytes_of(value, dims) for value in (*read, *results))

    def _transpose(self, node: ir.Node, name: str) -> DrawnTranspose | None:
        if not is_op(node, "Transpose") or _is_of_constant(node):
            return None
        order, shape = perm_of(node), shape_of(node.inputs[0])
        fits = order is not None and shape is not None and len(shape) == order.rank
        why = self.told.whys.get(name)
        return DrawnTranspose(
            perm=None if order is None else order.axes,
            move=move_class(order.axes, shape).value if fits and order and shape else "",
            bytes_moved=bytes_of_move(node, self.told.dims),
            why=() if why is None else tuple(_why(why, sides)),
            causes=() if why is None else tuple(_why(why, causes)),
            removed_by=self.told.removed_by.get(name, ""),
        )

    def _place(self, value: ir.Value) -> int:
        if value not in self.places:
            self.places[value] = len(self.values)
            self.values.append(self._value(value))
        return self.places[value]

    def _value(self, value: ir.Value) -> DrawnValue:
        name, colour = str(value.name), self.colours.get(value)
        content, exact = self.told.meant.get(name, (None, None))
        shape = shape_text(shape_of(value), known_length)
        layout = "" if colour is None else str(colour)
        return DrawnValue(name, shape, layout, _kind(colour), content, exact)


def _nested(graph: ir.Graph) -> Iterator[ir.Node]:
    """Nodes in order, those of bodies before the node that they are bodies of."""
    for node in graph:
        for body in subgraphs_of(node):
            yield from _nested(body)
        yield node


def _computed_beside(graph: ir.Graph) -> tuple[set[ir.Node], set[ir.Node]]:
    """Nodes of a graph that compute the same in every run, and those that are not drawn.

    Not drawn is what computes only shapes and constants, unless it leads to or from a Transpose.
    """
    fixed: set[ir.Node] = set()
    beside: dict[ir.Node, None] = {}
    for node in graph:
        if facts_of(node).numbers.draws or any(True for _ in subgraphs_of(node)):
            continue
        makers = [_maker(value) for value in node.inputs if value is not None]
        if all(maker is None or maker in fixed for maker in makers):
            fixed.add(node)
        is_beside = all(maker is None or maker in beside for maker in makers)
        if is_beside or is_op(node, "Shape", "Size"):
            beside[node] = None
    drawn = {node for node in beside if is_op(node, "Transpose") and not _is_of_constant(node)}
    for node in beside:
        if not drawn.isdisjoint(value.producer() for value in node.inputs if value is not None):
            drawn.add(node)
    for node in reversed(beside):
        if not drawn.isdisjoint(use.node for value in node.outputs for use in value.uses()):
            drawn.add(node)
    return fixed, set(beside) - drawn


def _maker(value: ir.Value) -> ir.Node | ir.Value | None:
    """What computes a value: a node, the caller of the model, or nothing if it is a constant."""
    return None if constant_of(value) is not None else value.producer() or value


def _is_of_constant(transpose: ir.Node) -> bool:
    return constant_of(transpose.inputs[0]) is not None


def _kind(colour: Colour | None) -> str:
    if colour is None or colour.layout is None:
        return "tensor"
    if colour.layout_class is LayoutClass.WEIGHT:
        return "weight"
    place = colour.layout.axes.index("C")
    return {1: "first", colour.layout.rank - 1: "last"}.get(place, "tensor")


def _why(
    why: Explanation, told: Callable[[Explanation], Iterator[tuple[str, str]]]
) -> Iterator[str]:
    if why.note:
        yield why.note
    yield from (f"{label} {text}" for label, text in told(why))


def _attributes(node: ir.Node) -> str:
    parts = [_attribute(each) for each in node.attributes.values()]
    text = ", ".join(filter(None, parts))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _attribute(attribute: ir.Attr) -> str:
    if attribute.is_ref() or attribute.type in NOT_SHOWN:
        return ""
    value = attribute.value
    shown = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
    return f"{attribute.name} {shown}"


NOT_SHOWN = frozenset(
    {
        ir.AttributeType.GRAPH,
        ir.AttributeType.GRAPHS,
        ir.AttributeType.TENSOR,
        ir.AttributeType.TENSORS,
        ir.AttributeType.SPARSE_TENSOR,
        ir.AttributeType.SPARSE_TENSORS,
    }
)
