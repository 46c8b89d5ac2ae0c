"""Whether the variants offered need a Transpose of a tensor, whichever of them are chosen."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from relayout.assign.problem import LayoutProblem, Operator, Variant

PossibleOrders: TypeAlias = frozenset[int] | None
"""The orders that are possible; None: any."""


@dataclass(slots=True)
class Possible:
    """The orders that a value can have while no tensor between two demands is transposed.

    Each set is an upper estimate, so where two sets have nothing in common every choice among the
    variants offered needs a Transpose; other ways to write the operators are not considered. An
    operator that cannot do without a Transpose on its other side is a demand itself: it may run in
    any of its variants. One sweep from the inputs finds what can be stored, one from the outputs
    what can be read, however far away the demands are; around the carried values of a loop every
    order is taken as possible.
    """

    problem: LayoutProblem
    stored: dict[int, PossibleOrders] = field(default_factory=dict)
    """By value, the orders in which it can be stored."""
    taken: dict[tuple[int, int], PossibleOrders] = field(default_factory=dict)
    """By operator and operand, the orders in which it can be read."""
    readers: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, operator in enumerate(self.problem.operators):
            for port, value in enumerate(operator.operands):
                self.readers.setdefault(value, []).append((number, port))
        sequence = _sequence(self.problem.operators, self.readers)
        for number in sequence:
            self._write(self.problem.operators[number])
        for number in reversed(sequence):
            self._read(number, self.problem.operators[number])

    def needs_transpose(self, value: int, wanted: int) -> bool:
        """Whether a consumer of a value in an order can never read it as it is stored."""
        stored = self.stored.get(value)
        if stored is None:
            return False
        wanting = [
            self.taken.get((number, port))
            for number, port in self.readers.get(value, [])
            if self.problem.operators[number].variants[0].reads[port] == wanted
        ]
        return any(orders is not None and not orders & stored for orders in wanting)

    def _write(self, operator: Operator) -> None:
        given = [self.stored.get(value) for value in operator.operands]
        fitting = [v for v in operator.variants if _fits(zip(v.reads, given, strict=True))]
        for port, value in enumerate(operator.results):
            self.stored[value] = _at(port, [v.writes for v in fitting or operator.variants])

    def _read(self, number: int, operator: Operator) -> None:
        wanted = [
            [self.taken.get(reader) for reader in self.readers.get(value, [])]
            for value in operator.results
        ]
        fitting = [v for v in operator.variants if _can_be_read(v, wanted)]
        for port in range(len(operator.operands)):
            self.taken[number, port] = _at(port, [v.reads for v in fitting or operator.variants])


def _fits(pairs: Iterable[tuple[int, PossibleOrders]]) -> bool:
    return all(orders is None or order in orders for order, orders in pairs)


def _can_be_read(variant: Variant, wanted: list[list[PossibleOrders]]) -> bool:
    """Whether all consumers of what a variant writes can take it so."""
    pairs = zip(variant.writes, wanted, strict=True)
    return all(_fits((order, orders) for orders in sets) for order, sets in pairs)


def _at(port: int, ways: list[tuple[int, ...]]) -> frozenset[int]:
    return frozenset(orders[port] for orders in ways)


def _sequence(
    operators: tuple[Operator, ...], readers: dict[int, list[tuple[int, int]]]
) -> list[int]:
    """The operators, each after those whose results it reads; what goes in circles comes last."""
    made = {value for operator in operators for value in operator.results}
    missing = [sum(value in made for value in operator.operands) for operator in operators]
    ready = deque(number for number, count in enumerate(missing) if not count)
    sequence: dict[int, None] = {}
    while ready:
        number = ready.popleft()
        sequence[number] = None
        for value in operators[number].results:
            for reader, _ in readers.get(value, []):
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append(reader)
    return [*sequence, *(number for number in range(len(operators)) if number not in sequence)]
