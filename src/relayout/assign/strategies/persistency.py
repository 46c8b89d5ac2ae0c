"""Fixing members that keep a label in some best choice, before anything is searched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from time import monotonic

from relayout.assign.bound import every_option
from relayout.assign.component import Component, Option, Persistency, ValueOrder
from relayout.assign.questions import Allowed
from relayout.assign.strategies.cut import NODE_OF_LABEL, CutNetwork, LabelCopy

_ORDERS = 1, 0
"""The order of every value inside a label, and outside it, as `one_against_rest` states it."""
_INSIDE, _OUTSIDE = NODE_OF_LABEL
_NONE = -1
"""The label of an option without ports."""


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
    """A component with the label of each option, and the options left by the steps taken."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.allowed = every_option(component)
        self.ports = _labels(component)
        numbers = {port: label for label, ports in enumerate(self.ports) for port in ports}
        self.labels = [
            [_label(option, numbers) for option in member.options] for member in component.members
        ]

    def step(self, label: int) -> Persistency | None:
        """The most members that may keep a label, of those with a choice: fixes them.

        None where the question whether to have this label or any other cannot be asked.
        """
        network = CutNetwork()
        nodes = self._nodes(network, label) if self._is_priced(label) else None
        if nodes is None:
            return None
        _add_values(network, self.component, nodes)
        at_zero, proof = network.cut()
        kept = [m for m, node in enumerate(nodes) if node not in NODE_OF_LABEL and at_zero[node]]
        for member in kept:
            self.allowed[member] = (self._at(member, label)[0],)
        return Persistency(self.ports[label], tuple(kept), proof)

    def _is_priced(self, label: int) -> bool:
        """Whether each value has the label in one order, and one price for all its copies."""
        values = [value for value, _ in self.ports[label]]
        if len(set(values)) != len(values):
            return False
        return all(isinstance(self.component.values[value].copy_price, int) for value in values)

    def _at(self, member: int, label: int) -> list[int]:
        labels = self.labels[member]
        return [option for option in self.allowed[member] if labels[option] == label]

    def _nodes(self, network: CutNetwork, label: int) -> list[int] | None:
        """The node of each member; None if one of them has two options of the label."""
        nodes = []
        for index, open_ in enumerate(self.allowed):
            inside = self._at(index, label)
            if len(inside) > 1:
                return None
            if not inside:
                nodes.append(_OUTSIDE)
            elif len(open_) == 1:
                nodes.append(_INSIDE)
            else:
                nodes.append(network.choice(self._dearer(index, inside[0])))
        return nodes

    def _dearer(self, member: int, inside: int) -> int:
        """What the cheapest other option costs more."""
        options = self.component.members[member].options
        others = [options[index].price for index in self.allowed[member] if index != inside]
        return min(others) - options[inside].price


def _add_values(network: CutNetwork, component: Component, nodes: Sequence[int]) -> None:
    for index, value in enumerate(component.values):
        # No copy is asked of a value with prices by pair: no member at one can have the label.
        price = value.copy_price
        if not isinstance(price, int) or not price:
            continue
        producer = nodes[value.producer]
        for label, always in enumerate(NODE_OF_LABEL):
            wanting = _wanting(nodes, value.readers, always) if producer != always else ()
            if wanting:
                network.add(LabelCopy(index, label, _ORDERS[label], price), producer, wanting)


def _wanting(nodes: Sequence[int], readers: Sequence[int], always: int) -> list[tuple[int, int]]:
    """Nodes and readers that may want a label; one that always does makes the others moot."""
    wanting = []
    for reader in readers:
        node = nodes[reader]
        if node == always:
            return [(always, reader)]
        if node not in NODE_OF_LABEL:
            wanting.append((node, reader))
    return wanting


def _label(option: Option, numbers: dict[ValueOrder, int]) -> int:
    """The label of all its ports."""
    for port in option.reads or option.writes:
        return numbers[port]
    return _NONE


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
