"""The choice of layouts as plain data: operators with variants, values with orders, prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relayout.layout.layout import Layout, LayoutClass

CopyPrice: TypeAlias = int | tuple[tuple[int, ...], ...]
"""One price for every copy of a value, or a price by (stored order, wanted order)."""

_SHOWN = 40
"""How many operators the printed problem lists."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run an operator: an order per operand, an order per result, and a price."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    price: int = 0
    key: int = 0
    """For the caller: identifies the restatement of this variant."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator with all its variants; variant 0 is the model as given.

    Graph inputs and constants are operators without operands, graph outputs without results.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor with the printable names of its candidate orders; an order is its index here."""

    name: str
    orders: tuple[str, ...]
    copy_price: CopyPrice = 1
    layout_class: LayoutClass | None = field(default=None, compare=False)
    """What kind of tensor it is, for strategies that go by kinds."""
    layout: Layout | None = field(default=None, compare=False)
    """The names of its axes in the given order, for reports."""

    @property
    def is_plain(self) -> bool:
        """Whether no convolutional operator speaks of it."""
        return self.layout_class in {LayoutClass.TENSOR, LayoutClass.NTENSOR}

    def price(self, stored: int, wanted: int) -> int:
        """What a copy from the stored order to the wanted one costs."""
        if stored == wanted:
            return 0
        return price_between(self.copy_price, stored, wanted)


def price_between(copy_price: CopyPrice, stored: int, wanted: int) -> int:
    """The price of a copy between two orders that differ."""
    return copy_price if isinstance(copy_price, int) else copy_price[stored][wanted]


@dataclass(frozen=True, slots=True)
class LayoutProblem:
    """Choose one variant per operator so that variants and copies together cost least.

    A value is stored in the order its producer writes. Each other order that some reader wants
    costs one copy from the stored order, shared by all readers that want it.
    """

    operators: tuple[Operator, ...]
    values: tuple[Value, ...]
    producers: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The operator that makes each value."""
    readers: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """The operators that read each value, each once."""

    def __post_init__(self) -> None:
        for value in self.values:
            _check_value(value)
        for operator in self.operators:
            _check_operator(operator, self.values)
        object.__setattr__(self, "producers", _producers(self))
        object.__setattr__(self, "readers", _readers(self))

    def __str__(self) -> str:
        lines = [f"{len(self.operators)} operators, {len(self.values)} values"]
        lines += [self._line(operator) for operator in self.operators[:_SHOWN]]
        hidden = len(self.operators) - _SHOWN
        return "\n".join([*lines, f"... and {hidden} more"] if hidden > 0 else lines)

    def _line(self, operator: Operator) -> str:
        variants = " | ".join(self._variant(operator, variant) for variant in operator.variants[:8])
        hidden = len(operator.variants) - 8
        return f"  {operator.name}: {variants}" + (f" | ... {hidden} more" if hidden > 0 else "")

    def _variant(self, operator: Operator, variant: Variant) -> str:
        reads = self._ports(operator.operands, variant.reads)
        writes = self._ports(operator.results, variant.writes)
        return f"({reads}) -> ({writes}) at {variant.price}"

    def _ports(self, values: Sequence[int], orders: Sequence[int]) -> str:
        pairs = zip((self.values[value] for value in values), orders, strict=True)
        return ", ".join(f"{value.name}:{value.orders[order]}" for value, order in pairs)


def as_given(problem: LayoutProblem) -> tuple[int, ...]:
    """The choice that changes nothing."""
    return (0,) * len(problem.operators)


def copies(problem: LayoutProblem, choice: Sequence[int]) -> list[tuple[int, int, int]]:
    """Each copy a choice needs, as (value, stored order, wanted order)."""
    stored = [0] * len(problem.values)
    wanted: list[dict[int, None]] = [{} for _ in problem.values]
    for operator, chosen in zip(problem.operators, choice, strict=True):
        variant = operator.variants[chosen]
        for value, order in zip(operator.results, variant.writes, strict=True):
            stored[value] = order
        for value, order in zip(operator.operands, variant.reads, strict=True):
            wanted[value][order] = None
    return [
        (value, stored[value], order)
        for value, orders in enumerate(wanted)
        for order in orders
        if order != stored[value]
    ]


def evaluate(problem: LayoutProblem, choice: Sequence[int]) -> int | None:
    """The exact cost of one variant per operator; None if the choice names no such variants."""
    if len(choice) != len(problem.operators):
        return None
    for operator, chosen in zip(problem.operators, choice, strict=True):
        if not 0 <= chosen < len(operator.variants):
            return None
    chosen_variants = zip(problem.operators, choice, strict=True)
    running = sum(operator.variants[chosen].price for operator, chosen in chosen_variants)
    moved = copies(problem, choice)
    return running + sum(problem.values[value].price(*move) for value, *move in moved)


def _check_value(value: Value) -> None:
    count = len(value.orders)
    if not count:
        raise ValueError(f"value {value.name} has no order")
    if isinstance(value.copy_price, int):
        if value.copy_price < 0:
            raise ValueError(f"value {value.name} has a negative copy price")
        return
    if [len(row) for row in value.copy_price] != [count] * count:
        raise ValueError(f"value {value.name} needs {count} rows of {count} copy prices")
    if any(price < 0 for row in value.copy_price for price in row):
        raise ValueError(f"value {value.name} has a negative copy price")


def _check_operator(operator: Operator, values: Sequence[Value]) -> None:
    ports = operator.operands + operator.results
    if not operator.variants:
        raise ValueError(f"operator {operator.name} has no variant")
    if any(not 0 <= value < len(values) for value in ports):
        raise ValueError(f"operator {operator.name} touches a value that does not exist")
    if not set(operator.operands).isdisjoint(operator.results):
        raise ValueError(f"operator {operator.name} reads its own result")
    counts = [len(values[value].orders) for value in ports]
    arity = len(operator.operands)
    for variant in operator.variants:
        if len(variant.reads) != arity or len(variant.writes) != len(operator.results):
            raise ValueError(f"operator {operator.name} has a variant of another arity")
        if variant.price < 0:
            raise ValueError(f"operator {operator.name} has a negative price")
        orders = variant.reads + variant.writes
        if any(not 0 <= order < count for order, count in zip(orders, counts, strict=True)):
            raise ValueError(f"operator {operator.name} has a variant in an unknown order")


def _producers(problem: LayoutProblem) -> tuple[int, ...]:
    producers = [-1] * len(problem.values)
    for index, operator in enumerate(problem.operators):
        for value in operator.results:
            if producers[value] >= 0:
                raise ValueError(f"value {problem.values[value].name} is made twice")
            producers[value] = index
    if -1 in producers:
        orphan = problem.values[producers.index(-1)]
        raise ValueError(f"value {orphan.name} is made by no operator")
    return tuple(producers)


def _readers(problem: LayoutProblem) -> tuple[tuple[int, ...], ...]:
    readers: list[dict[int, None]] = [{} for _ in problem.values]
    for index, operator in enumerate(problem.operators):
        for value in operator.operands:
            readers[value][index] = None
    return tuple(tuple(each) for each in readers)
