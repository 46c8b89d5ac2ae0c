"""The indexed forward graph: every expression with its uses, numbered operands first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from relayout.fusion.expressions import Expression, Tag
from relayout.ops.kind import Kind


@dataclass(slots=True, eq=False)
class Vertex:
    """One expression with all uses of it."""

    expression: Expression
    index: int = -1
    kind: Kind = Kind.OPAQUE
    is_external: bool = False
    """Whether it is read by something that is not a vertex: then it never fuses forwards."""
    uses: list[tuple[Vertex, Kind]] = field(default_factory=list)
    """Each reader, with the kind of the edge that leads there."""


def forward_graph(
    parameters: Sequence[Expression],
    results: Sequence[Expression],
    first: Iterable[Expression] = (),
) -> list[Vertex]:
    """The vertices in the order of a walk that numbers operands before what reads them.

    The walk starts at each result; what is to come `first` is numbered before any of them.
    """
    builder = _GraphWalk()
    for root in (*parameters, *results):
        builder.use(root, None, Kind.OPAQUE)
    for root in (*parameters, *first, *results):
        builder.visit(root)
    return builder.order


class _GraphWalk:
    def __init__(self) -> None:
        self.order: list[Vertex] = []
        self._vertices: dict[Expression, Vertex] = {}
        self._entered: set[Expression] = set()

    def use(self, expression: Expression, reader: Vertex | None, kind: Kind) -> None:
        """One use, by a vertex or by something outside the graph."""
        vertex = self._vertex(expression)
        if reader is None:
            vertex.is_external = True
        else:
            vertex.uses.append((reader, kind))

    def _vertex(self, expression: Expression) -> Vertex:
        vertex = self._vertices.get(expression)
        if vertex is None:
            vertex = self._vertices[expression] = Vertex(expression)
        return vertex

    def visit(self, root: Expression) -> None:
        """Numbers an expression after its operands; graphs are deep, so nothing recurs."""
        if root in self._entered:
            return
        stack = [(root, self._enter(root))]
        while stack:
            expression, rest = stack[-1]
            operand = next((each for each in rest if each not in self._entered), None)
            if operand is not None:
                stack.append((operand, self._enter(operand)))
                continue
            stack.pop()
            vertex = self._vertices[expression]
            vertex.index = len(self.order)
            self.order.append(vertex)

    def _enter(self, expression: Expression) -> Iterator[Expression]:
        """Records the uses that an expression makes, before any of its operands is numbered."""
        self._entered.add(expression)
        vertex = self._vertex(expression)
        vertex.kind = _kind_of(expression)
        for operand in expression.args:
            edge = _edge(expression, vertex.kind, operand)
            self.use(operand, None if edge is None else vertex, edge or Kind.ELEMENTWISE)
        return iter(expression.args)


def _kind_of(expression: Expression) -> Kind:
    if expression.tag in {Tag.CALL, Tag.CONSTANT}:
        return expression.kind
    if expression.tag is Tag.TUPLE:
        return Kind.TUPLE
    if expression.tag is Tag.FIELD and expression.args[0].only_tensors:
        return Kind.INJECTIVE
    return Kind.OPAQUE


def _edge(expression: Expression, kind: Kind, operand: Expression) -> Kind | None:
    """The kind of the edge from an operand; None if it is read from outside the graph.

    A broadcast of an operand that has the shape of the result is elementwise in that operand.
    """
    if expression.tag is Tag.CALL:
        is_demoted = kind is Kind.BROADCAST and operand.has_shape_of(expression)
        return Kind.ELEMENTWISE if is_demoted else kind
    if expression.tag is Tag.TUPLE and operand.is_tensor:
        return Kind.INJECTIVE
    if expression.tag is Tag.FIELD and operand.only_tensors:
        return Kind.INJECTIVE
    return None
