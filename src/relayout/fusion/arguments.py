"""How many arguments the kernel of a group would take, where a device limits their number.

A tensor with lengths known only at run time needs further arguments: these lengths and its
strides. A group whose operands have not been counted yet is decided when the walk reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence

from relayout.fusion.expressions import Expression, Tag
from relayout.fusion.forward_graph import Vertex
from relayout.fusion.unions import Union
from relayout.graph.read import Shape

_COUNTED = {Tag.PARAMETER, Tag.FIELD}


def dynamic_lengths(shape: Shape | None) -> int:
    return sum(not isinstance(length, int) for length in shape or ())


def for_operand(shape: Shape | None) -> int:
    """The tensor itself, its unknown lengths, and then its strides."""
    unknown = dynamic_lengths(shape)
    return 1 + (unknown + len(shape or ()) if unknown else 0)


def for_result(shape: Shape | None) -> int:
    """The tensor itself, and its unknown lengths."""
    return 1 + dynamic_lengths(shape)


def own_arguments(expression: Expression) -> int:
    """What an expression needs apart from what other groups compute."""
    if expression.tag in {Tag.CALL, Tag.TUPLE}:
        counted = (operand for operand in expression.args if operand.tag in _COUNTED)
        return sum(for_operand(operand.shape) for operand in counted)
    return for_operand(expression.shape) if expression.tag is Tag.PARAMETER else 0


class ArgumentLimit:
    def __init__(self, order: Sequence[Vertex], unions: Sequence[Union], most: int) -> None:
        self._unions = unions
        self._most = most
        self._vertices = {vertex.expression: vertex for vertex in order} if most else {}
        self._waiting: Vertex | None = None
        self._postponed: dict[Vertex, list[Vertex]] = {}

    def is_exceeded(self, vertex: Vertex) -> bool:
        """Whether one of a vertex's readers would have too many."""
        if self._most == 0 or self._left(vertex) == 0:
            return False
        needed = [self._count_now(reader) for reader, _kind in vertex.uses]
        return max(needed, default=0) > self._left(vertex)

    def fits(self, vertex: Vertex) -> bool:
        return self._count(vertex) <= self._left(vertex)

    @property
    def is_waiting(self) -> bool:
        return self._waiting is not None

    def postpone(self, source: Vertex) -> None:
        if self._waiting is not None:
            self._postponed.setdefault(self._waiting, []).append(source)

    def resume(self, vertex: Vertex) -> list[Vertex]:
        """What was put off until the walk came to this vertex."""
        if self._most == 0:
            return []
        self._waiting = None
        return self._postponed.pop(vertex, [])

    def _left(self, vertex: Vertex) -> int:
        """The room for operands, once the results of the readers are counted."""
        used = sum(
            for_result(reader.expression.shape if reader.expression.tag is Tag.CALL else None)
            for reader, _kind in vertex.uses
        )
        return max(0, self._most - used)

    def _count_now(self, vertex: Vertex) -> int:
        """The arguments as far as they are known; notes that the vertex waits if some are not."""
        counted, uncounted = self._operands(vertex)
        if uncounted:
            self._waiting = vertex
        return counted

    def _count(self, vertex: Vertex) -> int:
        """The arguments with those of operands that have none of their own, at any distance."""
        totals: dict[Vertex, int] = {}
        stack = [vertex]
        while stack:
            current = stack[-1]
            counted, uncounted = self._operands(current)
            missing = [operand for operand in uncounted if operand not in totals]
            stack.extend(missing)
            if not missing:
                totals[stack.pop()] = counted + sum(totals[operand] for operand in uncounted)
        return totals[vertex]

    def _operands(self, vertex: Vertex) -> tuple[int, list[Vertex]]:
        """The arguments of a vertex and of its operands' groups; operands that have none yet."""
        own = self._unions[vertex.index]
        counted, seen = own.args, {own.find()}
        uncounted: list[Vertex] = []
        for operand in self._tensors(vertex):
            union = self._unions[operand.index].find()
            if union in seen:
                continue
            seen.add(union)
            counted += union.args
            if union.args == 0:
                uncounted.append(operand)
        return counted, uncounted

    def _tensors(self, vertex: Vertex) -> list[Vertex]:
        if vertex.expression.tag not in {Tag.CALL, Tag.TUPLE}:
            return []
        operands = (each for each in vertex.expression.args if each.tag is not Tag.PARAMETER)
        return [self._vertices[operand] for operand in operands]
