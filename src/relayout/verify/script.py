"""What two models decide and carry from round to round under the same names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from relayout.verify.decisions import decided, decides
from relayout.verify.quantisers import bodies_of
from relayout.verify.sites import FIRST_CARRIED, NodeSite, Turn, sites_of


@dataclass(frozen=True)
class SharedDecision:
    """A decision of both models: its node in the given one, and how many loops it is in."""

    node: onnx.NodeProto
    depth: int
    name: str

    @property
    def label(self) -> str:
        return f"decision/{self.name}"

    @property
    def own(self) -> str:
        """What a model would decide by itself."""
        return f"decision/{self.name}/own/all"

    @property
    def operands(self) -> list[str]:
        return [f"{self.label}/operand/{i}" for i, name in enumerate(self.node.input) if name]


@dataclass(frozen=True)
class Carried:
    """What a Loop of both models carries from round to round."""

    name: str
    index: int

    @property
    def label(self) -> str:
        return f"carried/{self.name}"

    @property
    def next(self) -> str:
        return f"carried/{self.name}/next"


@dataclass(frozen=True)
class CarriedPort:
    """Where a Loop of one model carries a value."""

    turns: tuple[Turn, ...]
    index: int


@dataclass(frozen=True)
class Script:
    """What both models are given of the run of the first one."""

    decisions: Sequence[SharedDecision]
    carried: Sequence[Carried]

    @classmethod
    def of(cls, before: onnx.ModelProto, after: onnx.ModelProto) -> Script:
        """All that both have under the same name, in the same kind of place."""
        sites, ports = decisions_of(after.graph), carried_of(after.graph)
        decisions = [
            SharedDecision(site.node, len(site.turns), name)
            for name, site in decisions_of(before.graph).items()
            if name in sites and _kind(sites[name]) == _kind(site)
        ]
        carried = [
            Carried(name, port.index)
            for name, port in carried_of(before.graph).items()
            if name in ports and ports[name].index == port.index
        ]
        return cls(decisions, carried)

    @property
    def fed(self) -> list[str]:
        return [*(one.label for one in self.decisions), *(one.label for one in self.carried)]


def _kind(site: NodeSite) -> tuple[str, ...]:
    return site.node.op_type, *(turn.node.op_type for turn in site.turns)


def decisions_of(graph: onnx.GraphProto) -> dict[str, NodeSite]:
    """The decisions of a graph and its loops, by the name of their result if no other has it."""
    found = [
        (site.node.output[decided(site.node)], site)
        for site in sites_of(graph)
        if decides(site.node) and len(site.node.output) > decided(site.node)
    ]
    names = Counter(name for name, _ in found)
    return {name: site for name, site in found if name and names[name] == 1}


def carried_of(graph: onnx.GraphProto) -> dict[str, CarriedPort]:
    """What Loops carry and change, by the name that bodies have for it if no other has it."""
    found: list[tuple[str, CarriedPort]] = []
    for site in sites_of(graph):
        if site.node.op_type != "Loop":
            continue
        (body,) = bodies_of(site.node)
        turns = (*site.turns, Turn(site.graph, site.node, body))
        for i, port in enumerate(body.input[FIRST_CARRIED:]):
            if body.output[1 + i].name != port.name:
                found.append((port.name, CarriedPort(turns, i)))
    names = Counter(name for name, _ in found)
    return {name: port for name, port in found if names[name] == 1}
