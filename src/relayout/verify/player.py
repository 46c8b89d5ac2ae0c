"""Models that show what they decide, and models that are given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx

from relayout.verify.conditioning import Conditioning, of_model
from relayout.verify.decisions import decided
from relayout.verify.runtimes import ONNX_RUNTIME, Run, derived, read
from relayout.verify.script import (
    Carried,
    CarriedPort,
    Script,
    SharedDecision,
    carried_of,
    decisions_of,
)
from relayout.verify.sites import NodeSite, feed, feed_carried, lift

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relayout.verify.cases import Case
    from relayout.verify.interface import Interface
    from relayout.verify.runtimes import Runnable

Record = dict[str, Any]
"""What a model decides and carries in a run, and what it reads for that, by label."""


def recorded(
    source: Runnable, interface: Interface, script: Script, cases: Sequence[Case]
) -> list[Record]:
    """The record of each case."""
    model = read(source)
    sites, ports = decisions_of(model.graph), carried_of(model.graph)
    for one in script.carried:
        lift(model.graph, ports[one.name].turns, one.name, one.label)
        _lift_next(model.graph, ports[one.name], one)
    for decision in script.decisions:
        site = sites[decision.name]
        lift(model.graph, site.turns, decision.name, decision.label)
        _lift_operands(model.graph, site, decision)
    run = ONNX_RUNTIME.load(derived(model, source), interface)
    names = [value.name for value in model.graph.output]
    return [dict(zip(names, run(case.feeds), strict=True)) for case in cases]


@dataclass(frozen=True)
class Player:
    """A model that is given its decisions, and shows what it decides on and would decide.

    Its first results are those of the model, then comes what its rounds end with.
    """

    source: Runnable
    interface: Interface
    names: tuple[str, ...]
    run: Run

    @classmethod
    def of(
        cls, source: Runnable, interface: Interface, script: Script, record: Mapping[str, Any]
    ) -> Player:
        model = read(source)
        sites, ports = decisions_of(model.graph), carried_of(model.graph)
        for one in script.carried:
            _lift_next(model.graph, ports[one.name], one)
            feed_carried(model.graph, ports[one.name].turns, one.index, one.label)
        for decision in script.decisions:
            site = sites[decision.name]
            element = onnx.helper.np_dtype_to_tensor_dtype(record[decision.label].dtype)
            _lift_operands(model.graph, site, decision)
            own = feed(model.graph, site, decided(site.node), decision.label, element)
            lift(model.graph, site.turns, own, decision.own)
        changed = derived(model, source)
        names = tuple(value.name for value in model.graph.output)
        return cls(changed, interface, names, ONNX_RUNTIME.load(changed, interface))

    def first(self, count: int) -> Run:
        return lambda feeds: self.run(feeds)[:count]

    def record(self, results: Sequence[Any]) -> Record:
        return dict(zip(self.names, results, strict=True))

    def conditioning(self, given: set[str], most: float) -> Conditioning:
        """How rounding changes its results, where some inputs alone are changed."""
        return of_model(self.run, self.source, self.interface, given, most)


def _lift_next(graph: onnx.GraphProto, port: CarriedPort, one: Carried) -> None:
    lift(graph, port.turns, port.turns[-1].body.output[1 + port.index].name, one.next)


def _lift_operands(graph: onnx.GraphProto, site: NodeSite, decision: SharedDecision) -> None:
    names = [name for name in site.node.input if name]
    for name, label in zip(names, decision.operands, strict=False):
        lift(graph, site.turns, name, label)
