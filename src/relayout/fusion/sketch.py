"""A graph as the choice of kernels sees it: numbered operators, their producers and consumers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import onnx_ir as ir

from relayout.fusion.border import can_be_inside
from relayout.fusion.translate import Translation, is_held_scalar
from relayout.graph.read import NodeView, Shape
from relayout.graph.region import captured_by, subgraphs_of
from relayout.ops.iteration import Iteration, is_view, iteration_of, work_per_element
from relayout.ops.kernels import Role
from relayout.ops.measure import bytes_of

Count: TypeAlias = tuple[int, tuple[str, ...]]
"""A number of elements: a number times lengths that have names."""

OUTSIDE = -1


def count_of(shape: Shape | None) -> Count | None:
    """The number of elements; None if a length is not even named."""
    if shape is None:
        return None
    number, symbols = 1, []
    for length in shape:
        if isinstance(length, int):
            number *= length
        elif length is None:
            return None
        else:
            symbols.append(length)
    return number, tuple(sorted(symbols))


@dataclass(slots=True)
class SketchResult:
    """A value that an operator makes."""

    value: ir.Value
    size: int
    """In bytes."""
    leaves: bool
    """Whether the graph, or a body of control flow, reads it."""
    asked: bool = False
    """Whether something that runs ahead of all kernels names it, for its shape."""
    readers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SketchOperator:
    number: int
    view: NodeView
    role: Role
    iteration: Iteration
    shape: Shape | None
    count: Count | None
    producers: list[int]
    """For each operand the operator that makes it, or OUTSIDE."""
    results: list[SketchResult]
    work: int
    """Simple operations for each element."""
    is_view: bool
    followers: list[int] = field(default_factory=list)
    """Operators that wait, through what runs ahead, for a shape that this one makes."""
    followed: list[int] = field(default_factory=list)
    """Those that it waits for in this way."""

    @property
    def node(self) -> ir.Node:
        return self.view.node

    def operand_shape(self, place: int) -> Shape | None:
        return self.view.shape(place)


class Sketch:
    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self.operators: list[SketchOperator] = []
        self._makers: dict[ir.Value, tuple[int, int]] = {}
        for node in translation.calls:
            self._add(node)
        self._mark_leaving()
        self._mark_following()

    def maker_of(self, value: ir.Value) -> int:
        """The operator that makes a value, or OUTSIDE."""
        return self._makers.get(value, (OUTSIDE, 0))[0]

    @cached_property
    def stops(self) -> list[int]:
        """The operators whose results are read in other kernels only."""
        stops = self.translation.settled.stops
        return [each.number for each in self.operators if each.node in stops]

    @cached_property
    def number_of(self) -> dict[ir.Node, int]:
        return {operator.node: operator.number for operator in self.operators}

    def outside_operands(self, members: Iterable[int], inside: set[int]) -> dict[ir.Value, int]:
        """What a set of operators reads from memory, with the size of each."""
        found: dict[ir.Value, int] = {}
        for number in members:
            operator = self.operators[number]
            for value, producer in zip(operator.node.inputs, operator.producers, strict=True):
                if value is None or producer in inside or value in found:
                    continue
                if producer != OUTSIDE or not self._is_held(value, operator):
                    found[value] = self.size_of(value)
                elif not can_be_inside(value):
                    found[value] = 0
        return found

    def held_constants(self, members: Sequence[int]) -> tuple[ir.Value, ...]:
        """The constants that live inside the kernel of some operators."""
        return tuple(
            dict.fromkeys(
                value
                for number in members
                for value in self.operators[number].node.inputs
                if value is not None and self._is_held(value, self.operators[number])
            )
        )

    def _is_held(self, value: ir.Value, operator: SketchOperator) -> bool:
        if value in self._held:
            return True
        places = self.translation.fusings[operator.node].parameters
        return any(operator.node.inputs[place] is value for place in places)

    @cached_property
    def _held(self) -> set[ir.Value]:
        """Scalars that a kernel carries, however many kernels do."""
        region = self.translation.region
        return {value for value in self.translation.values if is_held_scalar(value, region)}

    def size_of(self, value: ir.Value | None) -> int:
        if value is None:
            return 0
        if value not in self._sizes:
            self._sizes[value] = bytes_of(value, {})
        return self._sizes[value]

    @cached_property
    def _sizes(self) -> dict[ir.Value, int]:
        return {}

    def _add(self, node: ir.Node) -> None:
        number = len(self.operators)
        view = self.translation.region.view(node)
        iteration = iteration_of(view, self.translation.fusings[node])
        results = [
            SketchResult(value, bytes_of(value, {}), value.is_graph_output(), self._is_asked(value))
            for value in node.outputs
            if value.name and (value.uses() or value.is_graph_output())
        ]
        producers = [self._read(value, number) for value in node.inputs]
        shapes = {self.translation.values[result.value].shape for result in results}
        shape = shapes.pop() if len(shapes) == 1 else None
        work = work_per_element(node)
        count = count_of(shape)
        self.operators.append(
            SketchOperator(
                number,
                view,
                iteration.role,
                iteration,
                shape,
                count,
                producers,
                results,
                work,
                is_view(node),
            )
        )
        for place, result in enumerate(results):
            self._makers[result.value] = (number, place)

    def _is_asked(self, value: ir.Value) -> bool:
        ahead = self.translation.settled.ahead
        return bool(ahead) and any(reader in ahead for reader, _place in value.uses())

    def _read(self, value: ir.Value | None, reader: int) -> int:
        if value is None or value not in self._makers:
            return OUTSIDE
        maker, place = self._makers[value]
        readers = self.operators[maker].results[place].readers
        if not readers or readers[-1] != reader:
            readers.append(reader)
        return maker

    def _mark_following(self) -> None:
        """Who waits for whom through what runs ahead."""
        sources: dict[ir.Value, set[int]] = {}
        ahead = self.translation.settled.ahead
        for node in self.translation.region.graph if ahead else ():
            given = [value for value in node.inputs if value is not None]
            waits = {number for value in given for number in sources.get(value, ())}
            if node in ahead:
                waits |= {self.maker_of(value) for value in given if value in self._makers}
                sources.update((value, waits) for value in node.outputs)
            elif node in self.number_of:
                reader = self.operators[self.number_of[node]]
                reader.followed.extend(sorted(waits))
                for number in reader.followed:
                    self.operators[number].followers.append(reader.number)

    def _mark_leaving(self) -> None:
        """What a body of control flow captures is read from memory."""
        for operator in self.operators:
            if not any(True for _body in subgraphs_of(operator.node)):
                continue
            for value in captured_by(operator.node):
                if value in self._makers:
                    maker, place = self._makers[value]
                    result = self.operators[maker].results[place]
                    result.leaves = True
                    result.readers.append(operator.number)
