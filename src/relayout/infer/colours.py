"""The layout of every tensor of a model as given, inferred from its operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, rank_of, view_of
from relayout.graph.region import KERNEL_DOMAIN, subgraphs_of
from relayout.infer.coloured_node import ColouredNode, Pair
from relayout.infer.looks import Direction, Look, assumed
from relayout.infer.transmission import Transmission, majority, transmit
from relayout.layout.layout import NCHW, Colour
from relayout.layout.permutation import Permutation
from relayout.ops.known_layouts import plain, preferred


def infer_colours(
    views: Iterable[NodeView], look: Look = Look.BEFORE, walk: Direction = Direction.FORWARDS
) -> Transmission[ir.Value, Colour]:
    """Colour every operand and result of nodes in topological order."""
    operators = [ColouredNode.by(view) for view in views]
    return transmit(operators, _sources(operators), _LookPalette(operators, look, walk))


def views_of(model: ir.Model) -> Iterator[NodeView]:
    """Every node of a model, those of its bodies before the node itself."""
    yield from _nested(model.graph, model.graph.opset_imports)
    for function in model.functions.values():
        if function.domain != KERNEL_DOMAIN:
            yield from _nested(function.graph, function.opset_imports)


def _nested(graph: ir.Graph, opsets: Mapping[str, int]) -> Iterator[NodeView]:
    """The file format bounds how deep bodies are nested."""
    for node in graph:
        for body in subgraphs_of(node):
            yield from _nested(body, opsets)
        yield view_of(node, opsets)


def _sources(operators: Sequence[ColouredNode]) -> list[ir.Value]:
    made = {value for operator in operators for value in operator.view.node.outputs}
    read = dict.fromkeys(value for operator in operators for value in operator.operands)
    return [value for value in read if value not in made]


class _LookPalette:
    def __init__(self, operators: Sequence[ColouredNode], look: Look, walk: Direction) -> None:
        self.preferred: dict[ir.Value, Colour] = {}
        self.bound: set[ir.Value] = set()
        """Values from which a path leads to an operator that is not agnostic."""
        for operator in reversed(operators):
            colour = preferred(operator.view)
            if colour is not None:
                self.preferred[operator.operands[0]] = colour
            results = operator.view.node.outputs
            if not operator.passes or any(value in self.bound for value in results):
                self.bound.update(operator.operands)
        self.is_backwards = walk is Direction.BACKWARDS
        self.assumed = assumed(operators, look, walk)
        """Colours of what Reshapes write; walking backwards, of what they read."""

    def results(self, operator: ColouredNode) -> Sequence[ir.Value]:
        return operator.view.node.outputs

    def known(self, operator: ColouredNode) -> Sequence[Pair]:
        return operator.known

    def elect(self, votes: Sequence[Colour]) -> Colour:
        """Colours that name axes go before those that do not."""
        return majority([colour for colour in votes if colour.layout is not None] or votes)

    def before(self, operator: ColouredNode, colours: dict[ir.Value, Colour]) -> Iterator[Pair]:
        if operator.relabels and self.is_backwards:
            found = (value for value in operator.operands if value in self.assumed)
            yield from ((value, self.assumed[value]) for value in found)
        result = colours.get(operator.view.node.outputs[0]) if operator.passes else None
        if result is None:
            return
        made = operator.view.node.outputs[0]
        if operator.order is not None:
            yield (
                operator.operands[0],
                _transposed(result, operator.order.inverse(), made, operator.operands[0]),
            )
            return
        for value in operator.alike:
            yield value, _kept(result, made, value)

    def default(self, value: ir.Value) -> Colour:
        if value in self.preferred:
            return self.preferred[value]
        is_given = constant_of(value) is None and not value.is_initializer()
        if is_given and rank_of(value) == NCHW.rank and value not in self.bound:
            return Colour.named(NCHW)
        return plain(value)

    def after(self, operator: ColouredNode, colours: dict[ir.Value, Colour]) -> Iterator[Pair]:
        if operator.order is not None:
            source, result = operator.operands[0], operator.view.node.outputs[0]
            yield result, _transposed(colours[source], operator.order, source, result)
            return
        read = [value for value in operator.operands if value in operator.alike]
        for value in operator.view.node.outputs:
            if read and value in operator.alike:
                elected = self.elect([colours[each] for each in read])
                source = next(each for each in read if colours[each] == elected)
                yield value, _kept(elected, source, value)
            else:
                yield value, self.assumed.get(value) or plain(value)

    def wanted(self, operator: ColouredNode, colours: dict[ir.Value, Colour]) -> Iterator[Pair]:
        """Only where both name axes: to name the axes of a tensor moves no data."""
        results = set(operator.view.node.outputs)
        if operator.known:
            pairs = [pair for pair in operator.known if pair[0] not in results]
        elif operator.alike:
            result = colours[operator.view.node.outputs[0]]
            pairs = [(value, result) for value in operator.alike if value not in results]
        else:
            pairs = []
        yield from (p for p in pairs if p[1].layout and colours[p[0]].layout)


def _kept(colour: Colour, source: ir.Value, value: ir.Value) -> Colour:
    """The colour of a value with the axes of one of this colour.

    A class that goes by the shape goes by that of the value; one that was assumed is kept.
    """
    return plain(value) if colour == plain(source) else colour


def _transposed(colour: Colour, order: Permutation, source: ir.Value, value: ir.Value) -> Colour:
    """The colour of a value that is the transpose of one with this colour."""
    if colour.layout is None:
        return _kept(colour, source, value)
    if colour.layout.rank != order.rank:
        return plain(value)
    return Colour.named(colour.layout.stored(order))
