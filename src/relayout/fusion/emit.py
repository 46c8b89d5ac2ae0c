"""Writes groups of operators into a model: each becomes a call of a function of the model.

Given   Conv -> Add -> Relu in one group
Result  one node conv_add_relu_3 of the domain relayout.fused, and a function of that name

A function that a backend knows how to compile is one kernel; other runtimes run its body. Groups of
one operator stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import onnx
import onnx_ir as ir

from relayout.fusion.border import operands_of, results_of
from relayout.fusion.groups import Group, Partition
from relayout.graph.io.homes import Outline
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.outline import outlined
from relayout.graph.names import Names
from relayout.graph.read import constant_of
from relayout.graph.region import subgraphs_of
from relayout.ops.iteration import is_view

FUSED_DOMAIN = "relayout.fused"

KIND_KEY = "relayout.kind"
ANCHOR_KEY = "relayout.anchor"
VIEW_KEY = "relayout.view"
"""The metadata of a function: what its group is, around which operator it is built, and whether it
only gives a tensor another shape, so that it needs no kernel."""

OPERATORS_NAMED = 5
"""A name lists at most so many operators."""


def emit(loaded: LoadedModel, partitions: Sequence[Partition]) -> onnx.ModelProto:
    """The message of the model with a function for each group of two or more operators."""
    outlines: dict[ir.Graph, list[Outline]] = {}
    for partition, names in zip(partitions, names_of(loaded, partitions), strict=True):
        parts = zip(partition.groups, results_of(partition), names, strict=True)
        outlines[partition.graph] = [
            _outline(group, results, name) for group, results, name in parts if name is not None
        ]
    return outlined(loaded, outlines, FUSED_DOMAIN)


def names_of(loaded: LoadedModel, partitions: Sequence[Partition]) -> list[list[str | None]]:
    """For each group of each partition the name of its function; None if it has none.

    Groups are numbered through all graphs of a model, in the order of the partitions.
    """
    if not partitions:
        return []
    names = Names.of(loaded.ir)
    names.taken.update(name for domain, name, _ in loaded.ir.functions if domain == FUSED_DOMAIN)
    numbers = count()
    return [
        [_name(group, next(numbers), names) for group in partition.groups]
        for partition in partitions
    ]


def _name(group: Group, number: int, names: Names) -> str | None:
    return names.fresh(f"{label(group)}_{number}") if is_emitted(group) else None


def is_emitted(group: Group) -> bool:
    """Whether a group becomes a function: one operator alone is a kernel as it is."""
    return len(group.nodes) > 1 and len(group.nodes) > len(group.duplicates)


def label(group: Group) -> str:
    """The operators of a group in one word, in the order in which they run."""
    words = [node.op_type.lower() for node in group.nodes]
    more = len(words) - OPERATORS_NAMED
    shown = words if more <= 1 else [*words[:OPERATORS_NAMED], f"and_{more}_more"]
    return "_".join(shown)


def _outline(group: Group, results: tuple[ir.Value, ...], name: str) -> Outline:
    if any(any(subgraphs_of(node)) for node in group.nodes):
        raise ValueError(f"{name}: a node with bodies of its own runs alone")
    inside = tuple(value for value in group.constants if _can_be_inside(value))
    outside = tuple(value for value in group.constants if value not in inside)
    notes = {KIND_KEY: group.kind.name.lower()}
    if group.anchor is not None:
        notes[ANCHOR_KEY] = group.anchor.name or group.anchor.op_type
    if all(is_view(node) for node in group.nodes):
        notes[VIEW_KEY] = "1"
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
