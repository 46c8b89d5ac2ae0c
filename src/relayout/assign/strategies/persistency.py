"""Fixing members that keep a label in some best choice, before anything is searched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from time import monotonic
from typing import NamedTuple

from relayout.assign.bound import every_option
from relayout.assign.component import Component, Option, Persistency, ValueOrder
from relayout.assign.questions import Allowed
from relayout.assign.strategies.cut import NODE_OF_LABEL, CutNetwork, LabelCopy

_ORDERS = 1, 0
"""The order of every value inside a label, and outside it, as `one_against_rest` states it."""
_INSIDE, _OUTSIDE = NODE_OF_LABEL


class _PricedValue(NamedTuple):
    """A value with one price for all its copies, which is not nothing."""

    place: int
    price: int
    producer: int
    readers: tuple[int, ...]


def persistent(component: Component, deadline: float) -> tuple[list[Persistency], Allowed]:
    """Steps that fix members label by label, and the options they leave."""
    labelled = _LabelledComponent(component)
    steps: list[Persistency] = []
    for label in reversed(range(len(labelled.ports))):
        if monotonic() >= deadline:
            break
        step = labelled.step(label)
        if step is not None and step.members:
            steps.append(step)
    return steps, labelled.allowed


class _LabelledComponent:
    """A component with the options of each label, and those left by the steps taken."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.allowed = every_option(component)
        self.ports = _labels(component)
        numbers = {port: label for label, ports in enumerate(self.ports) for port in ports}
        self.options: list[list[tuple[int, int]]] = [[] for _ in self.ports]
        """By label: (member, option) of the options that have it at their ports."""
        for index, member in enumerate(component.members):
            for place, option in enumerate(member.options):
                port = _first_port(option)
                if port is not None:
                    self.options[numbers[port]].append((index, place))
        # No copy is asked of a value with prices by pair: no member at one can have a label.
        self.values = [
            _PricedValue(index, value.copy_price, value.producer, value.readers)
            for index, value in enumerate(component.values)
            if isinstance(value.copy_price, int) and value.copy_price
        ]

    def step(self, label: int) -> Persistency | None:
        """The most members that may keep a label, of those with a choice: fixes them.

        None where the question whether to have this label or any other cannot be asked.
        """
        inside = self._inside(label) if self._is_priced(label) else None
        if inside is None:
            return None
        network = CutNetwork()
        nodes = self._nodes(network, inside)
        _add_values(network, self.values, nodes)
        at_zero, proof = network.cut()
        kept = [m for m in inside if nodes[m] not in NODE_OF_LABEL and at_zero[nodes[m]]]
        for member in kept:
            self.allowed[member] = (inside[member],)
        return Persistency(self.ports[label], tuple(kept), proof)

    def _is_priced(self, label: int) -> bool:
        """Whether each value has the label in one order, and one price for all its copies."""
        values = [value for value, _ in self.ports[label]]
        if len(set(values)) != len(values):
            return False
        return all(isinstance(self.component.values[value].copy_price, int) for value in values)

    def _inside(self, label: int) -> dict[int, int] | None:
        """The option of each member that can have the label; None if one has two of them."""
        left = [pair for pair in self.options[label] if pair[1] in self.allowed[pair[0]]]
        inside = dict(left)
        return inside if len(inside) == len(left) else None

    def _nodes(self, network: CutNetwork, inside: dict[int, int]) -> list[int]:
        """The node of each member."""
        nodes = [_OUTSIDE] * len(self.allowed)
        for member, option in inside.items():
            has_choice = len(self.allowed[member]) > 1
            nodes[member] = network.choice(self._dearer(member, option)) if has_choice else _INSIDE
        return nodes

    def _dearer(self, member: int, inside: int) -> int:
        """What the cheapest other option costs more."""
        options = self.component.members[member].options
        others = [options[index].price for index in self.allowed[member] if index != inside]
        return min(others) - options[inside].price


def _add_values(network: CutNetwork, values: Sequence[_PricedValue], nodes: Sequence[int]) -> None:
    """The copies of each value; a reader that always wants a label makes the others moot."""
    for place, price, producer, readers in values:
        made = nodes[producer]
        open_: list[tuple[int, int]] = []
        settled: dict[int, int] = {}
        for reader in readers:
            node = nodes[reader]
            if node in NODE_OF_LABEL:
                settled.setdefault(node, reader)
            else:
                open_.append((node, reader))
        for label, always in enumerate(NODE_OF_LABEL):
            if made == always:
                continue
            wanting = [(always, settled[always])] if always in settled else open_
            if wanting:
                network.add(LabelCopy(place, label, _ORDERS[label], price), made, wanting)


def _first_port(option: Option) -> ValueOrder | None:
    """A port that stands for all of an option; None if it has none."""
    ports = option.reads or option.writes
    return ports[0] if ports else None


def _labels(component: Component) -> list[tuple[ValueOrder, ...]]:
    """Sets of ports that belong together: those of one option, and of options that share one."""
    firsts = [0, *accumulate(len(value.orders) for value in component.values)]
    parents = list(range(firsts[-1]))
    seen: dict[ValueOrder, int] = {}
    for member in component.members:
        for option in member.options:
            last = None
            for port in option.reads + option.writes:
                number = seen.setdefault(port, firsts[port[0]] + port[1])
                root = _find(parents, number)
                if last is not None:
                    parents[last] = root
                last = root
    labels: dict[int, list[ValueOrder]] = {}
    for port, number in seen.items():
        labels.setdefault(_find(parents, number), []).append(port)
    return [tuple(ports) for ports in labels.values()]


def _find(parents: list[int], number: int) -> int:
    while parents[number] != number:
        parents[number] = parents[parents[number]]
        number = parents[number]
    return number
