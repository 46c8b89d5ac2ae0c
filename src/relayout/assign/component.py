"""A part of a layout problem that can be decided alone, and the shape of a proof about it.

Data only: the solver writes it, the checker reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from relayout.assign.problem import CopyPrice

ValueOrder: TypeAlias = tuple[int, int]
"""A value, by its position in the component, and an order of it."""


class Option(NamedTuple):
    """Variants of an operator that look alike from inside a component, at the least price."""

    variant: int
    price: int
    reads: tuple[ValueOrder, ...]
    writes: tuple[ValueOrder, ...]


class Member(NamedTuple):
    """An operator as a component sees it: only the ports at values of the component.

    An operator is at home in one component, where its prices count. Elsewhere it touches values
    in one order whatever its variant, and has one option at price 0.
    """

    operator: int
    name: str
    home: bool
    options: tuple[Option, ...]


class ComponentValue(NamedTuple):
    """A value of a component; producer and readers are positions among the members."""

    value: int
    name: str
    orders: tuple[str, ...]
    copy_price: CopyPrice
    producer: int
    readers: tuple[int, ...]


class Component(NamedTuple):
    """Members and values that share no choice with the rest of the problem."""

    members: tuple[Member, ...]
    values: tuple[ComponentValue, ...]


Offer: TypeAlias = tuple[int, int, int]
"""(reader, order, amount): what a reader adds to its price for wanting an order."""
Share: TypeAlias = tuple[int, int, int, int]
"""(stored order, reader, order, amount): the part of a copy's price that one reader carries."""


class Leaf(NamedTuple):
    """Multipliers that prove a lower bound, per value; amounts count in units of 1 / scale.

    Where a value has no shares of its own, each reader carries what it offers.
    """

    scale: int
    offers: Mapping[int, tuple[Offer, ...]]
    shares: Mapping[int, tuple[Share, ...]]


class Branch(NamedTuple):
    """Cases over the options of one member; a bound holds if it holds in each case."""

    member: int
    cases: tuple[tuple[tuple[int, ...], Proof], ...]


class Persistency(NamedTuple):
    """One label, and members that keep it in some best choice.

    The ports make up the label: an option of a member is at all of its ports with the label or at
    none. The proof shows that these members are a best answer to "this label or any other".
    """

    ports: tuple[ValueOrder, ...]
    members: tuple[int, ...]
    proof: Proof


class Persistent(NamedTuple):
    """Members fixed step by step, and the components into which the rest falls."""

    steps: tuple[Persistency, ...]
    parts: tuple[Decided, ...]


class Decided(NamedTuple):
    """A component with the option chosen for each member, its cost, and a proved lower bound."""

    component: Component
    chosen: tuple[int, ...]
    cost: int
    bound: int
    kind: str
    proof: Proof


Proof: TypeAlias = Leaf | Branch | Persistent
