"""Graphs in ONNX text, and the groups that are made of them."""

from __future__ import annotations

import onnx_ir as ir

from relayout.fusion.groups import Limits, Partition
from relayout.fusion.partition import partition
from relayout.graph.region import Region, regions_of
from tests.rewrite.rewriting import parse, to_ir


def region_of(text: str, opset: int = 21) -> Region:
    """The main graph of a model; weights are written as values without data to speak of."""
    return next(regions_of(to_ir(parse(text, opset))))


def grouped(text: str, mode: str, limits: Limits | None = None, opset: int = 21) -> Partition:
    return partition(region_of(text, opset), mode, limits)


def names(nodes: tuple[ir.Node, ...]) -> str:
    """The results of some nodes, in order, as one word each."""
    return " ".join(node.outputs[0].name or "?" for node in nodes)


def groups(found: Partition) -> list[str]:
    """Each group as the results of its nodes; sorted, so that a table can be written down."""
    return sorted(names(group.nodes) for group in found.groups)
