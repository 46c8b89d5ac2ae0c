"""Transposes dissolved: values that differ only by an order are one stored tensor."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from relayout.graph.read import Shape, is_op, perm_of, rank_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle, StoredOrder
from relayout.ops.measure import bytes_in, known_number

ORDERS_PER_TENSOR = 12
"""More candidate orders of one tensor than this are not looked at."""

SHUFFLES_PER_TENSOR = 32
"""Nor more shuffles than this."""

OrderKey: TypeAlias = tuple[int, ...] | Shuffle
"""What two orders have in common between which no data moves."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A value as a Transpose of the tensor that is stored."""

    tensor: ir.Value
    view: Permutation | None
    """None where the rank is unknown, so that only the given order exists."""

    def admits(self, order: StoredOrder | None) -> bool:
        """Whether the value can be wanted in `order` (None: as given).

        In a model that is not valid an operator may give another rank than is declared.
        """
        if order is None:
            return True
        if isinstance(order, Shuffle):
            return self._is_tensor and order.rank == self._rank
        return order.is_identity if self.view is None else order.rank == self.view.rank

    def stored(self, order: StoredOrder | None) -> StoredOrder | None:
        """The order of the tensor when the value is wanted in `order` (None: as given)."""
        if self.view is None or isinstance(order, Shuffle):
            return order
        return self.view if order is None else self.view.then(order)

    def seen(self, stored: StoredOrder) -> StoredOrder | None:
        """The order of the value when the tensor is in `stored`; None where it has none."""
        if isinstance(stored, Shuffle):
            return stored if self._is_tensor else None
        return None if self.view is None else self.view.inverse().then(stored)

    @property
    def _is_tensor(self) -> bool:
        """Whether the axes of the value are those of the tensor, in their order."""
        return self.view is not None and self.view.is_identity

    @property
    def _rank(self) -> int | None:
        return None if self.view is None else self.view.rank


@dataclass(slots=True)
class Frames:
    """Finds the stored tensor of every value of some graphs."""

    graphs: Container[ir.Graph]
    _known: dict[ir.Value, Frame] = field(default_factory=dict)

    def of(self, value: ir.Value) -> Frame:
        chain = []
        while value not in self._known:
            source = self._source(value)
            if source is None:
                rank = rank_of(value)
                view = None if rank is None else Permutation.identity(rank)
                self._known[value] = Frame(value, view)
                break
            chain.append((value, source[1]))
            value = source[0]
        frame = self._known[value]
        for reader, order in reversed(chain):
            view = order if frame.view is None else frame.view.then(order)
            frame = Frame(frame.tensor, view)
            self._known[reader] = frame
        return frame

    def _source(self, value: ir.Value) -> tuple[ir.Value, Permutation] | None:
        node = value.producer()
        if node is None or node.graph not in self.graphs or not is_op(node, "Transpose"):
            return None
        order, source = perm_of(node), node.inputs[0]
        if order is None or source is None or rank_of(source) != order.rank:
            return None
        return source, order


@dataclass(slots=True)
class Tensor:
    """A stored tensor and the orders it may be stored or wanted in; the first is the given one.

    Two orders that differ only in where axes of length 1 stand are the same: no data moves between
    them.
    """

    value: ir.Value
    rank: int | None
    orders: list[StoredOrder | None] = field(default_factory=list)
    _places: dict[OrderKey, int] = field(default_factory=dict)
    full: bool = False
    """Whether an order was left out because there were too many."""
    runs: int = 1
    """How often its graph counts as run."""
    lengths: Shape | None = None
    """What copies of it are priced by."""
    _unit_axes: frozenset[int] = frozenset()

    @classmethod
    def of(cls, value: ir.Value, rank: int | None, runs: int = 1) -> Tensor:
        shape = shape_of(value)
        unit_axes = frozenset(axis for axis, length in enumerate(shape or ()) if length == 1)
        tensor = cls(value, rank, runs=runs, lengths=shape, _unit_axes=unit_axes)
        given = None if rank is None else Permutation.identity(rank)
        tensor.orders.append(given)
        if given is not None:
            tensor._places[tensor._key(given)] = 0
        return tensor

    def see(self, view: Permutation | None, shape: Shape | None) -> None:
        """Take over numbers that are known of a value that is a Transpose of this tensor.

        A model may declare them for an output alone. Copies are priced by them, as Transposes are
        measured; no rule counts on them.
        """
        if view is None or shape is None or self.lengths is None or len(shape) != view.rank:
            return
        if all(isinstance(length, int) for length in self.lengths):
            return
        seen = dict(zip(view.axes, shape, strict=True))
        self.lengths = tuple(known_number(each, seen[a]) for a, each in enumerate(self.lengths))

    def place(self, order: StoredOrder | None) -> int | None:
        """Where an order stands among the candidates."""
        if order is None:
            return 0
        return self._places.get(self._key(order))

    def add(self, order: StoredOrder, *, is_given: bool) -> bool:
        """Make an order a candidate if there is room; whether it is one now.

        There is always room for an order in which the given model has the tensor.
        """
        key = self._key(order)
        if key in self._places:
            return True
        alike = sum(
            isinstance(other, Shuffle) == isinstance(order, Shuffle) for other in self.orders
        )
        most = SHUFFLES_PER_TENSOR if isinstance(order, Shuffle) else ORDERS_PER_TENSOR
        if alike >= most and not is_given:
            self.full = True
            return False
        self._places[key] = len(self.orders)
        self.orders.append(order)
        return True

    @property
    def shuffles(self) -> set[int]:
        """The places of the candidates that no Transpose leads to."""
        return {place for place, order in enumerate(self.orders) if isinstance(order, Shuffle)}

    @property
    def axis_orders(self) -> list[int]:
        """The places of the others."""
        shuffles = self.shuffles
        return [place for place in range(len(self.orders)) if place not in shuffles]

    def bytes_copied(self, dims: Mapping[str, int]) -> int:
        """What one copy reads and writes each time it runs."""
        if self.lengths is None or self.value.dtype is None:
            return 0
        return 2 * bytes_in(self.lengths, self.value.dtype, dims)

    def keep(self, places: Sequence[int]) -> None:
        """Have no more candidates than these."""
        self.orders = [self.orders[place] for place in places]
        self._places = {
            self._key(order): place for place, order in enumerate(self.orders) if order is not None
        }

    def _key(self, order: StoredOrder) -> OrderKey:
        if isinstance(order, Shuffle):
            return order
        if not self._unit_axes:
            return order.axes
        return tuple(axis for axis in order.axes if axis not in self._unit_axes)
