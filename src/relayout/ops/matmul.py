"""Products of matrices whose factors and result may each be stored transposed.

The product of two factors, transposed, is the product of the transposed factors in the other
order. So the result of a product has a choice as well, and each combination of the three choices
needs the operator to read its factors in certain ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from relayout.graph.read import NodeView, Shape
from relayout.layout.permutation import Permutation
from relayout.layout.transport import AttributeValue, Changes, Refusal, Transport
from relayout.ops.broadcasting import aligned
from relayout.ops.rule import LeadRule, OpRule, PullRule, TransportRule


@dataclass(frozen=True, slots=True)
class FactorReading:
    """How an operator reads a factor: what it does to the operand before it multiplies."""

    transposed: bool = False
    """The matrices are stored transposed."""
    rows_first: bool = False
    """The second to last axis is stored in front of the batch."""

    def stored(self, rank: int) -> Permutation:
        """The order in which an operand that is read this way holds the factor."""
        return _stored(self, rank)

    def flipped(self) -> FactorReading:
        """The reading of the transposed factor."""
        return FactorReading(not self.transposed, self.rows_first)


@lru_cache(maxsize=256)
def _stored(reading: FactorReading, rank: int) -> Permutation:
    *batch, rows, columns = range(rank)
    if reading.transposed:
        rows, columns = columns, rows
    return Permutation((rows, *batch, columns) if reading.rows_first else (*batch, rows, columns))


PLAIN = FactorReading()
TRANSPOSED = FactorReading(transposed=True)

Readings: TypeAlias = tuple[FactorReading, FactorReading]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an operator states the way it reads its factors."""

    write: Callable[[NodeView, FactorReading, FactorReading], Changes | None]
    """The node that reads its first and second factor in these ways, if there is one."""
    given: Callable[[NodeView], Readings] = lambda _view: (PLAIN, PLAIN)
    available: Callable[[NodeView], tuple[FactorReading, ...]] = lambda _view: (PLAIN, TRANSPOSED)
    """The ways of reading that `write` may know."""
    exchange: tuple[int, ...] = (1, 0)
    """The operands, in the order they have when the factors change places."""
    can_exchange: Callable[[NodeView], bool] = lambda _view: True

    @property
    def slots(self) -> tuple[int, int]:
        """Which operands the factors are."""
        return 0, self.exchange[0]

    def exchanged(self, view: NodeView) -> tuple[int | None, ...] | None:
        """The operands with the factors in each other's places, if these can change places.

        What belongs to a factor goes with it, and where it is left out it is left out there.
        """
        if not self.can_exchange(view):
            return None
        moved = [index if index < view.arity else None for index in self.exchange]
        while moved[-1] is None:
            moved.pop()
        return (*moved, *range(len(self.exchange), view.arity))


@dataclass(frozen=True, slots=True)
class Placement:
    """Orders of the factors and of the result for which a plain product is a plain product."""

    factors: tuple[Permutation, Permutation]
    result: Permutation
    unit_axes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The axes of length 1 that an operand needs to line up with the other."""


@dataclass(frozen=True, slots=True)
class Product:
    """A node that multiplies matrices, with the shapes of its factors as it reads them."""

    view: NodeView
    dialect: Dialect
    given: Readings
    shapes: tuple[Shape, Shape]

    @classmethod
    def of(cls, view: NodeView, dialect: Dialect) -> Product | Refusal:
        if view.result_rank(0) is None:
            return Refusal(f"the rank of {view.op_type}'s result is unknown")
        given = dialect.given(view)
        shapes = []
        for index, reading in zip(dialect.slots, given, strict=True):
            shape = view.shape(index)
            if shape is None:
                return Refusal(f"the rank of {view.op_type}'s operand {index} is unknown")
            if len(shape) < 2:
                return Refusal(f"{view.op_type} has an operand of fewer than two axes")
            shapes.append(reading.stored(len(shape)).inverse().reorder(shape))
        return cls(view, dialect, given, (shapes[0], shapes[1]))

    def placed(self, operand: int, order: Permutation) -> Placement | None:
        """Everything in its place for a factor in `order`, if the product can follow it.

        Batch axes move together. Beside a single matrix, the axes of a factor that are not summed
        over are a batch as well.
        """
        other = self.shapes[1 - operand]
        result = order.insert(range(len(other) - order.rank))
        summed = order.rank - 1 - operand
        fixed = (summed,) if _is_one_matrix(other) else (order.rank - 2, order.rank - 1)
        if not order.fixes(*fixed):
            return None
        alone = Permutation.identity(len(other)), ()
        beside, unit_axes = alone if _is_one_matrix(other) else aligned(len(other), result)
        factors = (beside, order) if operand else (order, beside)
        slot = self.dialect.slots[1 - operand]
        return Placement(factors, result, {slot: unit_axes} if unit_axes else {})

    def restated(self, place: Placement, read: Readings, *, exchanged: bool) -> Transport | None:
        """The node on factors read in these ways, for the result or for the transposed result."""
        left, right = read
        first, second = (right.flipped(), left.flipped()) if exchanged else (left, right)
        written = self.dialect.write(self.view, first, second)
        addend = self._addend() if exchanged else (None, {})
        places = self.dialect.exchanged(self.view) if exchanged else None
        if written is None or addend is None or (exchanged and places is None):
            return None
        order_of_addend, unit_axes = addend
        inputs: list[Permutation | None] = [None] * self.view.arity
        if order_of_addend is not None:
            inputs[2] = order_of_addend
        for factor, (slot, way) in enumerate(zip(self.dialect.slots, read, strict=True)):
            inputs[slot] = self._order(factor, place, way)
        result = _with_matrices_transposed(place.result) if exchanged else place.result
        changed = Changes(unsqueezes={**place.unit_axes, **unit_axes}, operand_order=places)
        return Transport(tuple(inputs), (_moved(result),), written | changed)

    def _order(self, operand: int, place: Placement, reading: FactorReading) -> Permutation | None:
        rank = len(self.shapes[operand])
        factor = self.given[operand].stored(rank).inverse()
        return _moved(factor.then(place.factors[operand]).then(reading.stored(rank)))

    def _addend(self) -> tuple[Permutation | None, Mapping[int, tuple[int, ...]]] | None:
        """How the third operand of a Gemm, which is broadcast, follows the transposed result."""
        if len(self.dialect.exchange) > 2 or not self.view.has(2):
            return None, {}
        rank = self.view.rank(2)
        if rank == 2:
            return Permutation.of(1, 0), {}
        unit_axes = {0: {}, 1: {2: (1,)}}
        return None if rank is None or rank not in unit_axes else (None, unit_axes[rank])

    def forms(self, operand: int, order: Permutation) -> Iterator[Transport]:
        """Every combination of the orders of factors and result that goes with one order."""
        rank = order.rank
        stored = self.given[operand].stored(rank).then(order)
        readings = self.dialect.available(self.view)
        for reading in readings:
            place = self.placed(operand, stored.then(reading.stored(rank).inverse()))
            if place is None:
                continue
            near = [way for way in readings if reading.rows_first or not way.rows_first]
            for left, right, exchanged in product(near, near, (False, True)):
                form = self.restated(place, (left, right), exchanged=exchanged)
                if form is not None:
                    yield form

    def following(self, operand: int, order: Permutation) -> Transport | Refusal:
        """The node with its result stored like one of its operands, read as it was."""
        reading = self.given[operand].stored(order.rank)
        wanted = reading.then(order).then(reading.inverse())
        for exchanged in (False, True):
            place = self.placed(operand, _with_matrices_transposed(wanted) if exchanged else wanted)
            read = (self.given[0].flipped(), self.given[1].flipped()) if exchanged else self.given
            form = None if place is None else self.restated(place, read, exchanged=exchanged)
            if form is not None:
                return form
        return Refusal(
            f"{self.view.op_type} multiplies along the last axes, which must stay in place"
        )

    def pulled(self, operand: int, result: Permutation) -> Permutation | Refusal:
        """The order of an operand that `following` takes to an order of the result."""
        rank = len(self.shapes[operand])
        added = range(len(self.shapes[1 - operand]) - rank)
        if result.rank != rank + len(added) or not result.fixes(*added):
            return Refusal(f"{self.view.op_type}'s operand {operand} lacks an axis that moves")
        reading = self.given[operand].stored(rank)
        return reading.inverse().then(result.drop(added)).then(reading)


def lead_of_product(view: NodeView) -> int:
    """The factor that has every batch axis, where the other is a single matrix."""
    left, right = view.shape(0), view.shape(1)
    if left is None or right is None or len(left) < 2:
        return 0
    return 1 if len(left) < len(right) and _is_one_matrix(left) else 0


def matrices_rule(
    dialect: Dialect,
    *,
    lead: LeadRule = lead_of_product,
    or_else: tuple[TransportRule, PullRule] | None = None,
) -> OpRule:
    """The rule of a product of matrices; `or_else` is asked where that refuses."""

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        found = Product.of(view, dialect)
        factor = dialect.slots.index(lead(view))
        answer = found if isinstance(found, Refusal) else found.following(factor, order)
        if or_else is None or isinstance(answer, Transport):
            return answer
        return or_else[0](view, order)

    def pull(view: NodeView, result: Permutation) -> Permutation | Refusal:
        found = Product.of(view, dialect)
        if not isinstance(found, Refusal):
            return found.pulled(dialect.slots.index(lead(view)), result)
        return found if or_else is None else or_else[1](view, result)

    def joint(view: NodeView, operand: int, order: Permutation) -> list[Transport]:
        found = Product.of(view, dialect)
        if isinstance(found, Refusal) or operand not in dialect.slots:
            return []
        return list(found.forms(dialect.slots.index(operand), order))

    return OpRule(transport, pull, lead, joint)


def written_flags(first: FactorReading, second: FactorReading) -> dict[str, AttributeValue]:
    """What the operators that have flags call the ways of reading; none means a plain one."""
    flags = {
        "transA": first.transposed,
        "transB": second.transposed,
        "transBatchA": first.rows_first,
        "transBatchB": second.rows_first,
    }
    return {name: 1 if flag else None for name, flag in flags.items()}


def readings_by_flags(view: NodeView) -> Readings:
    """The ways in which a node with flags reads its factors."""
    return (
        FactorReading(bool(view.integer("transA", 0)), bool(view.integer("transBatchA", 0))),
        FactorReading(bool(view.integer("transB", 0)), bool(view.integer("transBatchB", 0))),
    )


def _is_one_matrix(shape: Shape) -> bool:
    return all(length == 1 for length in shape[:-2])


def _with_matrices_transposed(order: Permutation) -> Permutation:
    return order.then(TRANSPOSED.stored(order.rank))


def _moved(order: Permutation) -> Permutation | None:
    return None if order.is_identity else order
