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


def ways(before: onnx.ModelProto, after: onnx.ModelProto) -> list[Way]:
    """The ways that both models can be forced to go."""
    given, made = dict(_flow(before.graph)), dict(_flow(after.graph))
    common = {name: flow for name, flow in given.items() if name in made}
    ifs = {name: depth for name, (kind, depth) in common.items() if kind == "If"}
    loops = frozenset(name for name, (kind, _) in common.items() if kind == "Loop")
    found = list(_branches(ifs)) if ifs else []
    return found + [Way(_rounds_text(count), {}, count, loops) for count in ROUNDS if loops]


def alone(way: Way) -> list[Way]:
    """A way in parts: one If at a time."""
    taken = list(way.branches.items())[:MOST_ALONE]
    return [Way(f"{way.label} at '{name}'", {name: value}) for name, value in taken]


def force(model: onnx.ModelProto, way: Way) -> onnx.ModelProto:
    """The given model, made to go a way."""
    _force(model.graph, way)
    return model


def _branches(ifs: Mapping[str, int]) -> Iterator[Way]:
    """Each branch of each If, whatever branches it lies in."""
    deepest = min(max(ifs.values()) + 1, DEEPEST)
    for bits in product((True, False), repeat=deepest):
        label = " then ".join("then_branch" if bit else "else_branch" for bit in bits)
        yield Way(
            label.replace(" then ", ", in it "),
            {name: bits[min(depth, deepest - 1)] for name, depth in ifs.items()},
        )


def _rounds_text(count: int) -> str:
    return f"{count} round{'s' * (count != 1)}"


def _flow(graph: onnx.GraphProto, depth: int = 0) -> Iterator[tuple[str, tuple[str, int]]]:
    """The Ifs and Loops of a graph and its bodies, with how many Ifs are around them."""
    for node in graph.node:
        if node.domain in ("", "ai.onnx") and node.op_type in ("If", "Loop"):
            yield node.output[0], (node.op_type, depth)
        for body in bodies_of(node):
            yield from _flow(body, depth + (node.op_type == "If"))


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
