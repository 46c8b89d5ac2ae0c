"""A table of prices: how long a runtime takes on a class of devices to move data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError
from relayout.layout.move_class import MoveClass
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation

FORMAT = 1
PICOSECONDS = 1000
"""In a nanosecond: prices per byte are stated in picoseconds, so that all numbers are whole."""

MOVES = {
    MoveClass.ROWS: "rows",
    MoveClass.MATRIX: "axis",
    MoveClass.AXIS: "axis",
    MoveClass.SCATTER: "scatter",
}
"""What moves are called in tables; matrices are transposed as fast as an axis is moved."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a kernel takes for what it goes through, by how much of a cache that fills."""

    item: int
    """Picoseconds for each item: a run that stays together, or an element that moves alone."""
    bytes: tuple[tuple[int, int], ...]
    """Picoseconds for each byte read or written, by the most bytes for which that holds.

    The last row holds for all that is larger."""

    def nanoseconds(self, items: int, size: int) -> int:
        """The time for so many items and bytes."""
        per_byte = next((rate for most, rate in self.bytes if size <= most), self.bytes[-1][1])
        return (items * self.item + size * per_byte) // PICOSECONDS

    @classmethod
    def of_json(cls, record: Any) -> Rate:
        return cls(int(record["item"]), tuple((int(m), int(r)) for m, r in record["bytes"]))

    def to_json(self) -> Any:
        return {"item": self.item, "bytes": [list(row) for row in self.bytes]}


@dataclass(frozen=True, slots=True)
class FactorRate:
    """What a product takes longer because of the form of a factor."""

    element: int
    """Picoseconds for each element of the first factor."""
    thousand: int
    """Picoseconds for each thousand products of two numbers."""

    def nanoseconds(self, elements: int, products: int) -> int:
        """The time for a factor of so many elements and so many products of them."""
        return (elements * self.element + products * self.thousand // 1000) // PICOSECONDS

    @classmethod
    def of_json(cls, record: Any) -> FactorRate:
        return cls(int(record["element"]), int(record["thousand"]))

    def to_json(self) -> Any:
        return {"element": self.element, "thousand": self.thousand}


@dataclass(frozen=True, slots=True)
class ColumnRate:
    """What a product takes longer whose columns do not fill the registers that they are kept in."""

    together: int
    """How many columns are computed at once."""
    product: int
    """Picoseconds for each product of two numbers."""

    def nanoseconds(self, columns: int, products: int) -> int:
        """The time for columns that are computed in vain; a single one is computed by itself."""
        if columns <= 1:
            return 0
        vain = -columns % self.together
        return products * vain // columns * self.product // PICOSECONDS

    @classmethod
    def of_json(cls, record: Any) -> ColumnRate:
        return cls(int(record["together"]), int(record["product"]))

    def to_json(self) -> Any:
        return {"together": self.together, "product": self.product}


@dataclass(frozen=True, slots=True)
class RuntimePrices:
    """What moving data takes in a runtime on a class of devices, in whole numbers."""

    runtime: str
    device: str
    node: int
    """Nanoseconds to start a kernel."""
    moves: Mapping[str, Rate] = field(repr=False)
    """By class of a move, what a Transpose takes."""
    streaming: Rate = field(repr=False)
    """What an operator takes that goes through its operands once, in the order they lie in."""
    transposed_factor: FactorRate = field(repr=False)
    """What a product takes longer whose first factor is stored transposed."""
    constant_factor: FactorRate = field(repr=False)
    """What a product takes longer whose first factor, not the second, is a constant."""
    reduced_across: Rate = field(repr=False)
    """What a reduction takes longer, for each element, that keeps the innermost axis."""
    columns: ColumnRate = field(repr=False)
    """What a product takes longer because of how many columns it has."""
    minds_unit_axes: bool
    """Whether axes of length 1 that are moved keep a Transpose from a fast kernel."""

    def transpose(self, move: Move, item_bytes: float) -> int:
        """Nanoseconds of a Transpose."""
        if self.minds_unit_axes and move.is_hindered:
            return self.scattered(move, item_bytes)
        return _transpose(self.node, self._rate(move.kind), move, item_bytes)

    def scattered(self, move: Move, item_bytes: float) -> int:
        """Nanoseconds in which as much is moved element by element."""
        size = int(2 * move.elements * item_bytes)
        return self.node + self._rate(MoveClass.SCATTER).nanoseconds(move.elements, size)

    def drops_unit_axes(self, move: Move, item_bytes: float) -> bool:
        """Whether a Transpose takes less on a view without axes of length 1."""
        return self._without_unit_axes(move, item_bytes) < self.transpose(move, item_bytes)

    def _without_unit_axes(self, move: Move, item_bytes: float) -> int:
        return 2 * self.view() + self.transpose(move.bare, item_bytes)

    def view(self) -> int:
        """Nanoseconds of an operator that moves nothing."""
        return self.node

    def split(self, move: Move, item_bytes: float) -> Permutation | None:
        """The first of two moves, with two views between them, that take less; None if none do."""
        if move.kind is not MoveClass.SCATTER:
            return None
        steps = move.first_steps()
        prices = [self._in_two(move, step, item_bytes) for step in steps]
        least = min(prices, default=0)
        is_less = bool(prices) and least < self.transpose(move, item_bytes)
        return steps[prices.index(least)] if is_less else None

    def best_transpose(self, move: Move, item_bytes: float) -> int:
        """Nanoseconds of a Transpose that may be written in another way."""
        if self.drops_unit_axes(move, item_bytes):
            return self._without_unit_axes(move, item_bytes)
        step = self.split(move, item_bytes)
        if step is None:
            return self.transpose(move, item_bytes)
        return self._in_two(move, step, item_bytes)

    def _in_two(self, move: Move, step: Permutation, item_bytes: float) -> int:
        halves = move.halves(step)
        return 2 * self.view() + sum(self.transpose(half, item_bytes) for half in halves)

    def turned(self, size: int) -> int:
        """Nanoseconds in which a kernel brings so many bytes into the order that it reads."""
        return self._rate(MoveClass.AXIS).nanoseconds(0, size)

    def stream(self, size: int) -> int:
        """Nanoseconds to read and write so many bytes, without starting a kernel."""
        return self.streaming.nanoseconds(0, size)

    def runs(self, count: int) -> int:
        """Nanoseconds to begin so many runs of elements, however long they are."""
        return self.moves["rows"].nanoseconds(count, 0)

    def _rate(self, kind: MoveClass) -> Rate:
        name = MOVES.get(kind)
        return self.streaming if name is None else self.moves[name]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "runtime": self.runtime,
            "device": self.device,
            "node": self.node,
            "moves": {name: rate.to_json() for name, rate in self.moves.items()},
            "streaming": self.streaming.to_json(),
            "transposed factor": self.transposed_factor.to_json(),
            "constant factor": self.constant_factor.to_json(),
            "reduced across": self.reduced_across.to_json(),
            "columns": self.columns.to_json(),
            "minds unit axes": self.minds_unit_axes,
        }

    @classmethod
    def of_json(cls, record: Any) -> RuntimePrices:
        if record.get("format") != FORMAT:
            raise RelayoutError(f"this is no table of prices of format {FORMAT}")
        moves = {name: Rate.of_json(record["moves"][name]) for name in MOVES.values()}
        return cls(
            str(record["runtime"]),
            str(record["device"]),
            int(record["node"]),
            moves,
            Rate.of_json(record["streaming"]),
            FactorRate.of_json(record["transposed factor"]),
            FactorRate.of_json(record["constant factor"]),
            Rate.of_json(record["reduced across"]),
            ColumnRate.of_json(record["columns"]),
            bool(record["minds unit axes"]),
        )


@lru_cache(maxsize=65536)
def _transpose_items(move: Move) -> int:
    return move.elements // move.run if move.run else 0


def _transpose(node: int, rate: Rate, move: Move, item_bytes: float) -> int:
    size = int(2 * move.elements * item_bytes)
    return node + rate.nanoseconds(_transpose_items(move), size)


def read_prices(path: str | PathLike[str]) -> RuntimePrices:
    """The table in a file."""
    try:
        return RuntimePrices.of_json(json.loads(Path(path).read_text("utf-8")))
    except OSError as error:
        raise RelayoutError(f"prices cannot be read from {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RelayoutError(f"{path} is not a table of prices: {error!r}") from error


@cache
def shipped(name: str) -> RuntimePrices:
    """A table that comes with the package."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text("utf-8")
    return RuntimePrices.of_json(json.loads(text))
