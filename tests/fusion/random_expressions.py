"""Random graphs of expressions over all kinds, with extra outputs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from relayout.fusion.expressions import Expression, Tag
from relayout.fusion.forward_graph import Vertex, forward_graph
from relayout.fusion.groups import Limits
from relayout.fusion.phases import Phases
from relayout.fusion.post_dominators import post_dominators
from relayout.fusion.unions import Union
from relayout.ops.kind import Kind

KINDS = tuple(Kind)
DEPTHS = (2, 3, 5, 256)
PARAMETERS = ("x", "y")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph of calls; operands are names of parameters or numbers of earlier calls."""

    kinds: tuple[Kind, ...]
    operands: tuple[tuple[str | int, ...], ...]
    outputs: tuple[int, ...]
    max_depth: int


def drawn(seed: int) -> Drawn:
    chance = random.Random(seed)
    size = chance.randint(3, 18)
    kinds = tuple(chance.choice(KINDS) for _ in range(size))
    near = chance.choice((2, 4, 18))
    operands: list[tuple[str | int, ...]] = []
    for number in range(size):
        known: list[str | int] = [*PARAMETERS, *range(max(0, number - near), number)]
        count = chance.randint(1, min(3, len(known)))
        operands.append(tuple(chance.choice(known) for _ in range(count)))
    read = {operand for each in operands for operand in each}
    outputs = tuple(n for n in range(size) if n not in read or chance.random() < 0.1)
    return _renumbered(Drawn(kinds, tuple(operands), outputs, chance.choice(DEPTHS)))


def _renumbered(graph: Drawn) -> Drawn:
    """The same graph with calls in the order of our walk.

    Who comes first is served first, and TVM takes calls in the order in which they are written.
    """
    parameters, calls = expressions(graph)
    walk = forward_graph(parameters, [calls[number] for number in graph.outputs])
    order = [vertex.expression.source for vertex in walk if vertex.expression.tag is Tag.CALL]
    new: dict[str | int, str | int] = {name: name for name in PARAMETERS}
    new.update((old, number) for number, old in enumerate(order))
    return Drawn(
        tuple(graph.kinds[old] for old in order),
        tuple(tuple(new[each] for each in graph.operands[old]) for old in order),
        tuple(order.index(old) for old in graph.outputs),
        graph.max_depth,
    )


def expressions(graph: Drawn) -> tuple[list[Expression], list[Expression]]:
    """Parameters and calls; no two have one shape, so that no edge is demoted."""
    parameters = [
        Expression(Tag.PARAMETER, shape=(2, place), name=name)
        for place, name in enumerate(PARAMETERS)
    ]
    known: dict[str | int, Expression] = dict(zip(PARAMETERS, parameters, strict=True))
    calls: list[Expression] = []
    for number, kind in enumerate(graph.kinds):
        args = tuple(known[operand] for operand in graph.operands[number])
        call = Expression(Tag.CALL, args, shape=(1, number), kind=kind, source=number)
        known[number] = call
        calls.append(call)
    return parameters, calls


def partitioned(graph: Drawn) -> tuple[Sequence[Vertex], Sequence[Union]]:
    parameters, calls = expressions(graph)
    order = forward_graph(parameters, [calls[number] for number in graph.outputs])
    phases = Phases(order, post_dominators(order), Limits(max_depth=graph.max_depth))
    return order, phases.run()


def groups_of(graph: Drawn) -> set[frozenset[int]]:
    """The calls of each group."""
    found: dict[Union, set[int]] = {}
    order, unions = partitioned(graph)
    for vertex, union in zip(order, unions, strict=True):
        if vertex.expression.tag is Tag.CALL:
            found.setdefault(union.find(), set()).add(vertex.expression.source)
    return {frozenset(group) for group in found.values()}
