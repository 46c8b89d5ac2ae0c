"""Ways through the control flow of two models that their inputs may never take.

An If is given its condition, a Loop its number of rounds, in both models alike: each branch is
taken once, and loops are gone through 0, 1 and 2 times. What the given model refuses is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from relayout.verify.quantisers import bodies_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROUNDS = (0, 1, 2)
DEEPEST = 3
"""Branches in branches beyond this depth are taken as those around them are."""
MOST_ALONE = 8
"""The Ifs that are forced one by one where all of them cannot be."""


@dataclass(frozen=True)
class Way:
    """Which branches are taken, by the first result of their If, and how often Loops go round."""

    label: str
    branches: Mapping[str, bool] = field(default_factory=dict)
    rounds: int | None = None
    loops: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SharedFlow:
    """The Ifs that both models have, each with the branches that it lies in, and the Loops."""

    ifs: Mapping[str, Mapping[str, bool]]
    loops: frozenset[str]

    @classmethod
    def of(cls, before: onnx.ModelProto, after: onnx.ModelProto) -> SharedFlow:
        made = {name for _, name, _ in _flow(after.graph, {})}
        common = [found for found in _flow(before.graph, {}) if found[1] in made]
        return cls(
            {name: inside for kind, name, inside in common if kind == "If"},
            frozenset(name for kind, name, _ in common if kind == "Loop"),
        )

    def ways(self) -> list[Way]:
        """Each branch of each If, whatever branches it lies in; Loops of few rounds."""
        depths = [len(inside) for inside in self.ifs.values()]
        deepest = min(max(depths, default=-1) + 1, DEEPEST)
        choices = product((True, False), repeat=deepest) if self.ifs else ()
        branches = [
            Way(
                ", in it ".join(_branch(bit) for bit in bits),
                {name: bits[min(len(ins), deepest - 1)] for name, ins in self.ifs.items()},
            )
            for bits in choices
        ]
        rounds = [Way(_rounds(count), {}, count, self.loops) for count in ROUNDS if self.loops]
        return branches + rounds

    def alone(self, way: Way) -> list[Way]:
        """A way in parts: one If at a time, with the branches that it lies in."""
        if len(way.branches) <= 1 or not way.branches.keys() >= self.ifs.keys():
            return []
        taken = list(way.branches.items())[:MOST_ALONE]
        return [
            Way(f"{_branch(bit)} of '{name}'", {**self.ifs[name], name: bit}) for name, bit in taken
        ]


def force(model: onnx.ModelProto, way: Way) -> onnx.ModelProto:
    """The given model, made to go a way."""
    _force(model.graph, way)
    return model


def _branch(bit: bool) -> str:
    return "then_branch" if bit else "else_branch"


def _rounds(count: int) -> str:
    return f"{count} round{'s' * (count != 1)}"


def _flow(
    graph: onnx.GraphProto, inside: Mapping[str, bool]
) -> Iterator[tuple[str, str, Mapping[str, bool]]]:
    """The Ifs and Loops of a graph and its bodies, with the branches that they lie in."""
    for node in graph.node:
        is_flow = node.domain in ("", "ai.onnx") and node.op_type in ("If", "Loop")
        if is_flow:
            yield node.op_type, node.output[0], inside
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            is_if = is_flow and node.op_type == "If"
            more = {node.output[0]: attribute.name == "then_branch"} if is_if else {}
            yield from _flow(attribute.g, {**inside, **more})


def _force(graph: onnx.GraphProto, way: Way) -> None:
    for node in list(graph.node):
        for body in bodies_of(node):
            _force(body, way)
        if not node.output or node.op_type not in ("If", "Loop"):
            continue
        name = node.output[0]
        if node.op_type == "If" and name in way.branches:
            node.input[0] = _constant(graph, name, np.array(way.branches[name]))
        elif node.op_type == "Loop" and name in way.loops and way.rounds is not None:
            node.input[0] = _constant(graph, name, np.array(way.rounds, np.int64))


def _constant(graph: onnx.GraphProto, name: str, value: np.ndarray[Any, Any]) -> str:
    forced = f"{name}/forced"
    tensor = numpy_helper.from_array(value)
    graph.node.insert(0, helper.make_node("Constant", [], [forced], value=tensor))
    return forced
