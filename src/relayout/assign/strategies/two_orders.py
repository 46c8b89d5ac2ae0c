"""Components of two labels, solved exactly by one minimum cut."""

from __future__ import annotations

from typing import NamedTuple

from relayout.assign.bound import cost_of
from relayout.assign.component import Component, Decided
from relayout.assign.problem import price_between
from relayout.assign.strategies.cut import NODE_OF_LABEL, CutNetwork, LabelCopy
from relayout.assign.strategies.gauge import Gauge


class _TwoLabelCase(NamedTuple):
    component: Component
    gauge: Gauge
    nodes: list[int]
    """The node of each member."""


def solve_two_orders(component: Component, gauge: Gauge) -> Decided:
    """The best choice; of those that cost the same, the one with most members at label 0."""
    network = CutNetwork()
    case = _TwoLabelCase(component, gauge, _nodes(network, component, gauge))
    for index, orders in enumerate(gauge.orders):
        if orders is not None:
            _add_value(network, case, index, orders)
    at_zero, proof = network.cut()
    pairs = zip(gauge.options, case.nodes, strict=True)
    chosen = tuple(zero if at_zero[node] else one for (zero, one), node in pairs)
    cost = cost_of(component, chosen)
    return Decided(component, chosen, cost, cost, "flow", proof)


def _nodes(network: CutNetwork, component: Component, gauge: Gauge) -> list[int]:
    """The node of each member; one without a choice is at label 0, which is all it has."""
    nodes = []
    for member, (zero, one) in zip(component.members, gauge.options, strict=True):
        if zero == one:
            nodes.append(NODE_OF_LABEL[0])
        else:
            dearer = member.options[one].price - member.options[zero].price
            nodes.append(network.choice(dearer))
    return nodes


def _add_value(
    network: CutNetwork, case: _TwoLabelCase, index: int, orders: tuple[int, int]
) -> None:
    copy_price = case.component.values[index].copy_price
    producer = _producer_node(case, index, orders)
    for label in (0, 1):
        stored, wanted = orders[1 - label], orders[label]
        price = price_between(copy_price, stored, wanted)
        if price and producer != NODE_OF_LABEL[label]:
            copy = LabelCopy(index, label, wanted, price)
            network.add(copy, producer, _wanting(case, copy))


def _producer_node(case: _TwoLabelCase, index: int, orders: tuple[int, int]) -> int:
    """The node whose label is that of the order in which the value is stored."""
    producer = case.component.values[index].producer
    options = case.component.members[producer].options
    zero, one = case.gauge.options[producer]
    written = dict(options[zero].writes)[index]
    if zero != one and written != dict(options[one].writes)[index]:
        return case.nodes[producer]
    return NODE_OF_LABEL[orders.index(written)]


def _wanting(case: _TwoLabelCase, copy: LabelCopy) -> list[tuple[int, int]]:
    """Nodes and readers that want a copy; one that always wants it makes the others moot."""
    wanting = []
    port = copy.value, copy.order
    for reader in case.component.values[copy.value].readers:
        options = case.component.members[reader].options
        zero, one = case.gauge.options[reader]
        wants = port in options[zero].reads
        wants_too = wants if zero == one else port in options[one].reads
        if wants and wants_too:
            return [(NODE_OF_LABEL[copy.label], reader)]
        if wants or wants_too:
            wanting.append((case.nodes[reader], reader))
    return wanting
