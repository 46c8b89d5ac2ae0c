"""Fixing members that keep a label in some best choice, before anything is searched."""

from __future__ import annotations

from time import monotonic

from relayout.assign.bound import every_option
from relayout.assign.component import Component, Persistency, ValueOrder
from relayout.assign.questions import Allowed, UnsoundError, one_against_rest
from relayout.assign.strategies.gauge import Gauge
from relayout.assign.strategies.two_orders import solve_two_orders


def persistent(component: Component, deadline: float) -> tuple[list[Persistency], Allowed]:
    """Steps that fix members label by label, and the options they leave."""
    allowed = every_option(component)
    steps: list[Persistency] = []
    todo = _labels(component, allowed)
    while todo and monotonic() < deadline:
        label = todo.pop()
        try:
            question = one_against_rest(component, allowed, label)
        except UnsoundError:
            continue
        step = _step(question, allowed, label)
        if not step.members:
            continue
        steps.append(step)
        for member in step.members:
            allowed[member] = (question.members[member].options[0].variant,)
    return steps, allowed


def _step(question: Component, allowed: Allowed, label: tuple[ValueOrder, ...]) -> Persistency:
    """The most members that may keep a label, of those that have a choice."""
    choices = tuple((0, len(member.options) - 1) for member in question.members)
    orders = tuple((1, 0) for _ in question.values)
    (answer,) = solve_two_orders([(question, Gauge(choices, orders))])
    kept = tuple(
        index
        for index, member in enumerate(question.members)
        if member.home and answer.chosen[index] == 0 and len(allowed[index]) > 1
    )
    return Persistency(label, kept, answer.proof)


def _labels(component: Component, allowed: Allowed) -> list[tuple[ValueOrder, ...]]:
    """Sets of ports that belong together: those of one option, and of options that share one."""
    parents: dict[ValueOrder, ValueOrder] = {}
    for member, options in zip(component.members, allowed, strict=True):
        for option in options:
            ports = member.options[option].reads + member.options[option].writes
            for port in ports:
                parents.setdefault(port, port)
                parents[_find(parents, port)] = _find(parents, ports[0])
    labels: dict[ValueOrder, list[ValueOrder]] = {}
    for port in parents:
        labels.setdefault(_find(parents, port), []).append(port)
    return [tuple(ports) for ports in labels.values()]


def _find(parents: dict[ValueOrder, ValueOrder], port: ValueOrder) -> ValueOrder:
    while parents[port] != port:
        parents[port] = parents[parents[port]]
        port = parents[port]
    return port
