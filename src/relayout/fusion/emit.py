"""Writes groups of operators into a model: each becomes a call of a function of the model.

Given   Conv -> Add -> Relu in one group
Result  one node conv_add_relu_3 of the domain relayout.fused, and a function of that name

A function that a backend knows how to compile is one kernel; other runtimes run its body. Groups of
one operator stay as they are, unless functions are asked for all of them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count

import onnx
import onnx_ir as ir

from relayout.fusion.border import can_be_inside, inputs_of, results_of
from relayout.fusion.groups import Group, Partition
from relayout.graph.io.homes import Outline
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.outline import outlined
from relayout.graph.names import Names
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
    numbers, calls = count(), loaded.ir.functions
    return [
        [
            names.fresh(name) if is_emitted(group, partition, calls) else None
            for group in partition.groups
            for name in [f"{label(group)}_{next(numbers)}"]
        ]
        for partition in partitions
    ]


def is_emitted(group: Group, partition: Partition, calls: Container[object]) -> bool:
    """Whether a group becomes a function: one operator alone is a kernel as it is.

    Where all are asked for, what has bodies still stays, for these read what surrounds it, and so
    does a call of a function.
    """
    if len(group.nodes) > 1 or not partition.wrap_all:
        return len(group.nodes) > max(1, len(group.duplicates))
    (node,) = group.nodes
    return not any(subgraphs_of(node)) and node.op_identifier() not in calls


def label(group: Group) -> str:
    """The operators of a group in one word, in the order in which they run."""
    words = [node.op_type.lower() for node in group.nodes]
    more = len(words) - OPERATORS_NAMED
    shown = words if more <= 1 else [*words[:OPERATORS_NAMED], f"and_{more}_more"]
    return "_".join(shown)


def _outline(group: Group, results: tuple[ir.Value, ...], name: str) -> Outline:
    if any(any(subgraphs_of(node)) for node in group.nodes):
        raise ValueError(f"{name}: a node with bodies of its own runs alone")
    notes = {KIND_KEY: group.kind.name.lower()}
    if group.anchor is not None:
        notes[ANCHOR_KEY] = group.anchor.name or group.anchor.op_type
    if all(is_view(node) for node in group.nodes):
        notes[VIEW_KEY] = "1"
    return Outline(
        name=name,
        nodes=(*group.nodes, *group.helpers),
        copies=(*group.duplicates, *group.helpers),
        constants=tuple(filter(can_be_inside, group.constants)),
        inputs=inputs_of(group),
        outputs=results or tuple(group.nodes[-1].outputs[:1]),
        notes=notes,
    )
