"""Whether a tensor must be turned whatever orders are chosen around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from relayout.assign.problem import LayoutProblem

FARTHEST = 6
"""How many operators away demands are looked for; beyond that everything is held possible."""


@dataclass(slots=True)
class Possible:
    """The orders that a value can have while no tensor between two demands is turned.

    Each set is an upper estimate, so where two sets have nothing in common a Transpose is needed
    in every choice of layouts. An operator that cannot do without a Transpose on its other side is
    a demand itself: it may run in any of its ways.
    """

    problem: LayoutProblem
    readers: list[list[tuple[int, int]]] = field(init=False)
    writers: dict[int, tuple[int, int]] = field(init=False)
    _stored: dict[tuple[int, int], frozenset[int] | None] = field(default_factory=dict)
    _taken: dict[tuple[int, int, int], frozenset[int] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.readers = [[] for _ in self.problem.values]
        self.writers = {}
        for number, operator in enumerate(self.problem.operators):
            for port, value in enumerate(operator.operands):
                self.readers[value].append((number, port))
            for port, value in enumerate(operator.results):
                self.writers[value] = (number, port)

    def is_inherent(self, value: int, wanted: int) -> bool:
        """Whether someone who now wants a value in an order can never have it as it is stored."""
        stored = self.stored(value, FARTHEST)
        if stored is None:
            return False
        wanting = [
            reader
            for reader in self.readers[value]
            if self.problem.operators[reader[0]].variants[0].reads[reader[1]] == wanted
        ]
        taken = [self.taken(*reader, FARTHEST) for reader in wanting]
        return any(orders is not None and not orders & stored for orders in taken)

    def stored(self, value: int, far: int) -> frozenset[int] | None:
        """The orders a value can be stored in; None: any."""
        if far == 0 or value not in self.writers:
            return None
        if (value, far) not in self._stored:
            self._stored[value, far] = self._written(value, far)
        return self._stored[value, far]

    def _written(self, value: int, far: int) -> frozenset[int]:
        number, port = self.writers[value]
        operator = self.problem.operators[number]
        given = [self.stored(operand, far - 1) for operand in operator.operands]
        fitting = [
            variant
            for variant in operator.variants
            if all(
                orders is None or order in orders
                for order, orders in zip(variant.reads, given, strict=True)
            )
        ]
        return frozenset(variant.writes[port] for variant in fitting or operator.variants)

    def taken(self, number: int, port: int, far: int) -> frozenset[int] | None:
        """The orders in which an operator can read one of its operands; None: any."""
        if far == 0:
            return None
        if (number, port, far) not in self._taken:
            self._taken[number, port, far] = self._read(number, port, far)
        return self._taken[number, port, far]

    def _read(self, number: int, port: int, far: int) -> frozenset[int]:
        operator = self.problem.operators[number]
        passed_on = [
            [self.taken(*reader, far - 1) for reader in self.readers[result]]
            for result in operator.results
        ]
        fitting = [
            variant
            for variant in operator.variants
            if all(
                orders is None or order in orders
                for order, sets in zip(variant.writes, passed_on, strict=True)
                for orders in sets
            )
        ]
        return frozenset(variant.reads[port] for variant in fitting or operator.variants)
