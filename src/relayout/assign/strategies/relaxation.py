"""The linear relaxation of a component, and the multipliers its dual gives.

A member may take its options in fractions. Where the price of a copy depends on the wanted order
alone, `copied(value, order) >= reader wants it - producer stores it` for each reader. Otherwise
each reader moves the fractions of the producer to its own, and a copy is as large as the
largest such movement of any reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from relayout.assign.component import Component, ComponentValue, Leaf, Offer, Share
from relayout.assign.problem import price_between
from relayout.assign.questions import Allowed
from relayout.assign.strategies.programme import UNITS, Dual, Exact, Programme

Key = TypeVar("Key")

OptionFractions: TypeAlias = list[float]
"""How much of each of its options a member takes."""


class _Table(NamedTuple):
    """Who touches a value: the columns of each stored order, and of each reader and order."""

    stored: dict[int, list[int]]
    wanted: dict[int, dict[int, list[int]]]
    combinations: dict[int, dict[tuple[int, ...], None]]
    """The sets of orders each reader may want together."""


class Relaxation:
    """The linear programme of one component, to be solved for any set of open options."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.programme = Programme()
        self.columns = [self._columns([o.price for o in m.options]) for m in component.members]
        for columns in self.columns:
            self.programme.equal(columns, (), 1)
        self.shared: dict[int, list[tuple[int, int, int]]] = {}
        """By value: (row, reader, order) of the rows that state how large a copy is."""
        self.offers: dict[int, list[tuple[int, int, int]]] = {}
        """By value, where prices depend on the pair: (row, reader, order)."""
        self.shares: dict[int, list[tuple[int, int, int, int]]] = {}
        """By value, where prices depend on the pair: (row, stored order, reader, order)."""
        for index, value in enumerate(component.values):
            table = self._table(index, value)
            add = self._add_shared if _ignores_stored_order(value, table) else self._add_movements
            add(index, value, table)

    def _columns(self, prices: Sequence[int]) -> list[int]:
        return [self.programme.column(price) for price in prices]

    def _table(self, index: int, value: ComponentValue) -> _Table:
        table = _Table({}, {}, {})
        members = self.component.members
        producer = zip(members[value.producer].options, self.columns[value.producer], strict=True)
        for option, column in producer:
            table.stored.setdefault(dict(option.writes)[index], []).append(column)
        for reader in value.readers:
            wanted = table.wanted.setdefault(reader, {})
            combinations = table.combinations.setdefault(reader, {})
            for option, column in zip(members[reader].options, self.columns[reader], strict=True):
                orders = tuple([order for read, order in option.reads if read == index])
                combinations[orders] = None
                for order in orders:
                    wanted.setdefault(order, []).append(column)
        return table

    def _add_shared(self, index: int, value: ComponentValue, table: _Table) -> None:
        """One size of copy per wanted order, whatever order is stored."""
        rows = self.shared.setdefault(index, [])
        sizes: dict[int, int | None] = {}
        for reader, wanted in table.wanted.items():
            for order, columns in wanted.items():
                if order not in sizes:
                    price = max([_price(value, stored, order) for stored in table.stored])
                    sizes[order] = self.programme.column(price) if price else None
                size = sizes[order]
                if size is not None:
                    without = [*table.stored.get(order, ()), size]
                    rows.append((self.programme.at_most(columns, without), reader, order))

    def _add_movements(self, index: int, value: ComponentValue, table: _Table) -> None:
        """One size of copy per pair of orders, and what each reader moves from order to order."""
        offers = self.offers.setdefault(index, [])
        shares = self.shares.setdefault(index, [])
        sizes: dict[tuple[int, int], int] = {}
        for reader, wanted in table.wanted.items():
            moves = {
                (stored, orders): self._columns([0])[0]
                for stored in table.stored
                for orders in table.combinations[reader]
            }
            for stored, columns in table.stored.items():
                self.programme.equal([c for (s, _), c in moves.items() if s == stored], columns)
            for order, columns in wanted.items():
                arrived = [c for (_, orders), c in moves.items() if order in orders]
                offers.append((self.programme.equal(arrived, columns), reader, order))
            for stored, order in ((s, o) for s in table.stored for o in wanted if s != o):
                if (stored, order) not in sizes:
                    (sizes[stored, order],) = self._columns([_price(value, stored, order)])
                moved = [c for (s, orders), c in moves.items() if s == stored and order in orders]
                row = self.programme.at_most(moved, [sizes[stored, order]])
                shares.append((row, stored, reader, order))

    def improve(
        self, dual: Dual, allowed: Allowed, gap: int, seconds: float
    ) -> tuple[list[OptionFractions], Dual] | None:
        """The fractions of each member's options, these being open, and a better dual answer."""
        pairs = zip(self.columns, allowed, strict=True)
        upper = np.full(len(self.programme.costs), np.inf)
        upper[list(chain.from_iterable(self.columns))] = 0.0
        upper[[columns[option] for columns, options in pairs for option in options]] = 1.0
        answer = self.programme.improve(dual, upper, gap, seconds)
        if answer is None:
            return None
        found, better = answer
        self._fit(better.at_most)
        fractions = found.tolist()
        return [[fractions[column] for column in columns] for columns in self.columns], better

    def leaf(self, dual: Dual) -> Leaf:
        """The dual answer as a proof."""
        shares, offers = dual.at_most.tolist(), dual.equal.tolist()
        own_offers: dict[int, tuple[Offer, ...]] = {}
        own_shares: dict[int, tuple[Share, ...]] = {}
        for index, rows in self.shared.items():
            each = tuple((reader, order, shares[row]) for row, reader, order in rows if shares[row])
            if each:
                own_offers[index] = each
        for index, rows in self.offers.items():
            own_offers[index] = tuple((reader, order, offers[row]) for row, reader, order in rows)
            own_shares[index] = tuple((s, u, o, shares[row]) for row, s, u, o in self.shares[index])
        return Leaf(UNITS, own_offers, own_shares)

    def _fit(self, shares: Exact) -> None:
        """Cut shares down to the price of their copy where rounding went above."""
        for index, rows in self.shared.items():
            value, stored = self.component.values[index], self._stored(index)
            left: dict[int, int] = {}
            for row, _, order in rows:
                if shares[row]:
                    prices = [_price(value, made, order) for made in stored if made != order]
                    _take(shares, row, left, order, min(prices, default=0))
        for index, quads in self.shares.items():
            left_pairs: dict[tuple[int, int], int] = {}
            for row, made, _, order in quads:
                price = _price(self.component.values[index], made, order)
                _take(shares, row, left_pairs, (made, order), price)

    def _stored(self, index: int) -> list[int]:
        producer = self.component.members[self.component.values[index].producer]
        return [dict(option.writes)[index] for option in producer.options]


def _ignores_stored_order(value: ComponentValue, table: _Table) -> bool:
    """Whether the price of a copy is the same from wherever the value is stored."""
    if isinstance(value.copy_price, int):
        return True
    orders = {order for wanted in table.wanted.values() for order in wanted}
    prices = [{_price(value, s, o) for s in table.stored if s != o} for o in orders]
    return all(len(each) <= 1 for each in prices)


def _price(value: ComponentValue, stored: int, wanted: int) -> int:
    return 0 if stored == wanted else price_between(value.copy_price, stored, wanted)


def _take(shares: Exact, row: int, left: dict[Key, int], key: Key, price: int) -> None:
    """Let a row have its share of what is left of a price, and no more."""
    available = left.setdefault(key, UNITS * price)
    shares[row] = min(shares[row], available)
    left[key] = available - shares[row]
