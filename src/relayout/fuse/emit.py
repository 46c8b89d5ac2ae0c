"""Writes groups of operators into a model: each becomes a call of a function of the model.

Given   Conv -> Add -> Relu in one group
Result  one node conv_add_relu_3 of the domain relayout.fused, and a function of that name

A function that a backend knows how to compile is one kernel; other runtimes run its body. Groups of
one operator stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from relayout.fuse.border import operands_of, results_of
from relayout.fuse.groups import Group, Partition
from relayout.graph.homes import Outline
from relayout.graph.model import LoadedModel
from relayout.graph.names import Names
from relayout.graph.outline import outlined
from relayout.graph.read import constant_of

FUSED_DOMAIN = "relayout.fused"

KIND_KEY = "relayout.kind"
ANCHOR_KEY = "relayout.anchor"
"""The metadata of a function that says what its group is and around which operator it is built."""

OPERATORS_NAMED = 5
"""A name lists at most so many operators."""


def emit(loaded: LoadedModel, partitions: Sequence[Partition]) -> onnx.ModelProto:
    """The message of the model with a function for each group of two or more operators.

    Groups are numbered through all graphs of the model, in the order of the partitions.
    """
    names = Names.of(loaded.ir)
    names.taken.update(name for domain, name, _ in loaded.ir.functions if domain == FUSED_DOMAIN)
    outlines: dict[ir.Graph, list[Outline]] = {}
    number = 0
    for partition in partitions:
        found = outlines.setdefault(_graph_of(partition), [])
        for group, results in zip(partition.groups, results_of(partition), strict=True):
            if is_emitted(group):
                name = names.fresh(f"{label(group)}_{number}")
                found.append(_outline(group, results, name))
            number += 1
    return outlined(loaded, outlines, FUSED_DOMAIN)


def is_emitted(group: Group) -> bool:
    """Whether a group becomes a function: one operator alone is a kernel as it is."""
    return len(group.nodes) > 1 and len(group.nodes) > len(group.duplicates)


def label(group: Group) -> str:
    """The operators of a group in one word, in the order in which they run."""
    words = [node.op_type.lower() for node in group.nodes]
    more = len(words) - OPERATORS_NAMED
    shown = words if more <= 1 else [*words[:OPERATORS_NAMED], f"and_{more}_more"]
    return "_".join(shown)


def _graph_of(partition: Partition) -> ir.Graph:
    body = partition.graph
    return body.graph if isinstance(body, ir.Function) else body


def _outline(group: Group, results: tuple[ir.Value, ...], name: str) -> Outline:
    inside = tuple(value for value in group.constants if _can_be_inside(value))
    outside = tuple(value for value in group.constants if value not in inside)
    notes = {KIND_KEY: group.kind.name.lower()}
    if group.anchor is not None:
        notes[ANCHOR_KEY] = group.anchor.name or group.anchor.op_type
    return Outline(
        name=name,
        nodes=group.nodes,
        copies=group.duplicates,
        constants=inside,
        inputs=(*operands_of(group), *outside),
        outputs=results or tuple(group.nodes[-1].outputs[:1]),
        notes=notes,
    )


def _can_be_inside(value: ir.Value) -> bool:
    """Data in other files stays with the model: not every runtime finds it from a function."""
    return not isinstance(constant_of(value), ir.ExternalTensor)
