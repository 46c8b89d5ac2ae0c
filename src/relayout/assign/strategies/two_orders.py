"""Components of two labels, solved exactly by one minimum cut.

A value stored at label 0 that some reader wants at label 1 costs one copy however many readers
there are: an arc from the producer to a hub has the price of the copy, and the hub leads on to
each such reader. The other direction is the mirror image. The flow through the arcs at the
readers is how the price of a copy is shared among them, which is the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from relayout.assign.bound import cost_of
from relayout.assign.component import Component, Decided, Leaf, Offer
from relayout.assign.problem import price_between
from relayout.assign.strategies.gauge import Gauge
from relayout.assign.strategies.maximum_flow import SINK, SOURCE, Arc, solve_flow


class _FlowShare(NamedTuple):
    """The part of an arc's flow that pays for one reader's demand, up to the price of the copy."""

    component: int
    value: int
    reader: int
    order: int
    price: int


@dataclass(slots=True)
class _FlowNetwork:
    size: int = 2
    capacities: dict[Arc, int] = field(default_factory=dict)
    parts: dict[Arc, list[_FlowShare]] = field(default_factory=dict)

    def node(self) -> int:
        self.size += 1
        return self.size - 1

    def arc(self, tail: int, head: int, capacity: int) -> None:
        if capacity > 0:
            self.capacities[tail, head] = self.capacities.get((tail, head), 0) + capacity

    def demand(self, tail: int, head: int, part: _FlowShare) -> None:
        self.arc(tail, head, part.price)
        self.parts.setdefault((tail, head), []).append(part)


def solve_two_orders(cases: Sequence[tuple[Component, Gauge]]) -> list[Decided]:
    """All these components at once: one cut of a network in several pieces."""
    network = _FlowNetwork()
    nodes = [_add(network, number, *case) for number, case in enumerate(cases)]
    offers: list[dict[int, list[Offer]]] = [{} for _ in cases]
    labels = _cut(network, offers)
    return [
        _decide(component, gauge, [labels[node] for node in nodes[number]], offers[number])
        for number, (component, gauge) in enumerate(cases)
    ]


def _cut(network: _FlowNetwork, offers: list[dict[int, list[Offer]]]) -> list[int]:
    """The label of each node; fills in what each reader offers."""
    if not network.capacities:
        return [0] * network.size
    flow = solve_flow(network.size, network.capacities)
    for arc, amount in flow.amounts.items():
        left = amount
        for part in network.parts.get(arc, ()):
            paid = min(left, part.price)
            left -= paid
            if paid:
                value_offers = offers[part.component].setdefault(part.value, [])
                value_offers.append((part.reader, part.order, paid))
    return [0 if here else 1 for here in flow.source_side]


def _decide(
    component: Component, gauge: Gauge, labels: list[int], offers: dict[int, list[Offer]]
) -> Decided:
    pairs = zip(gauge.options, labels, strict=True)
    chosen = tuple(options[label] for options, label in pairs)
    cost = cost_of(component, chosen)
    leaf = Leaf(1, {value: tuple(each) for value, each in offers.items()}, {})
    return Decided(component, chosen, cost, cost, "flow", leaf)


def _add(network: _FlowNetwork, number: int, component: Component, gauge: Gauge) -> list[int]:
    """Add a component to the network; gives the node of each member.

    A member without a choice is the source: its label 0 is all it has.
    """
    nodes = []
    for member, (zero, one) in zip(component.members, gauge.options, strict=True):
        if zero == one:
            nodes.append(SOURCE)
            continue
        node = network.node()
        dearer = member.options[one].price - member.options[zero].price
        network.arc(SOURCE, node, dearer)
        network.arc(node, SINK, -dearer)
        nodes.append(node)
    for index, orders in enumerate(gauge.orders):
        if orders is not None:
            _add_value(network, _NetworkPiece(number, component, gauge, nodes), index, orders)
    return nodes


class _NetworkPiece(NamedTuple):
    number: int
    component: Component
    gauge: Gauge
    nodes: list[int]


def _add_value(
    network: _FlowNetwork, piece: _NetworkPiece, index: int, orders: tuple[int, int]
) -> None:
    value = piece.component.values[index]
    producer = _producer_node(piece, index, orders)
    for label in (0, 1):
        stored, wanted = orders[1 - label], orders[label]
        price = price_between(value.copy_price, stored, wanted)
        always_there = producer == (SOURCE, SINK)[label]
        if not price or always_there:
            continue
        wanting = _wanting(piece, index, label, wanted)
        hub = producer
        if len(wanting) > 1:
            hub = network.node()
            network.arc(*_towards(label, producer, hub), price)
        for node, reader in wanting:
            part = _FlowShare(piece.number, index, reader, wanted, price)
            network.demand(*_towards(label, hub, node), part)


def _towards(label: int, start: int, end: int) -> tuple[int, int]:
    """Arcs lead from producer to reader where label 1 is wanted, and back where label 0 is."""
    return (start, end) if label else (end, start)


def _producer_node(piece: _NetworkPiece, index: int, orders: tuple[int, int]) -> int:
    """The node whose side is the label at which the value is stored."""
    producer = piece.component.values[index].producer
    options = piece.component.members[producer].options
    zero, one = piece.gauge.options[producer]
    written = dict(options[zero].writes)[index]
    if zero != one and written != dict(options[one].writes)[index]:
        return piece.nodes[producer]
    return SOURCE if written == orders[0] else SINK


def _wanting(piece: _NetworkPiece, index: int, label: int, order: int) -> list[tuple[int, int]]:
    """Nodes and readers that want an order; one that always wants it makes the others moot."""
    wanting = []
    port = index, order
    for reader in piece.component.values[index].readers:
        options = piece.component.members[reader].options
        zero, one = piece.gauge.options[reader]
        wants = port in options[zero].reads
        wants_too = wants if zero == one else port in options[one].reads
        if wants and wants_too:
            return [((SOURCE, SINK)[label], reader)]
        if wants or wants_too:
            wanting.append((piece.nodes[reader], reader))
    return wanting
