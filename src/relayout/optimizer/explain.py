"""One node of a model: what it reads and writes, and why it is there if it is a Transpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relayout.errors import RelayoutError, near
from relayout.graph.io.sources import ModelSource
from relayout.optimizer.describe import transpose_records
from relayout.optimizer.drawing import Told, drawn_graph
from relayout.optimizer.prepare import opened, prepare
from relayout.report.html.drawn import DrawnGraph, DrawnNode
from relayout.report.node import ExplainedNode, ExplainedTensor
from relayout.targets.target import ONNX

EXPLAIN_SECONDS = 2.0


def explain_node(
    source: ModelSource, name: str, *, dims: Mapping[str, int] | None = None
) -> tuple[ExplainedNode, ...]:
    """The nodes of this name, or those that write a tensor of this name."""
    model = prepare(opened(source), ONNX, dims or {}).informed.ir
    records = transpose_records(model, dims or {}, EXPLAIN_SECONDS)
    told = Told(dims or {}, whys={record.name: record.why for record in records}, every=True)
    graph = drawn_graph(model, told)
    found = [node for node in graph.nodes if not node.is_port and _is_called(graph, node, name)]
    if not found:
        hint = near(name, [node.name for node in graph.nodes if not node.is_port])
        raise RelayoutError(f"no node is called {name!r}, none writes a tensor of this name{hint}")
    return tuple(_explained(graph, node) for node in found)


def _is_called(graph: DrawnGraph, node: DrawnNode, name: str) -> bool:
    return name == node.name or any(graph.values[value].name == name for value in node.writes)


def _explained(graph: DrawnGraph, node: DrawnNode) -> ExplainedNode:
    moved, reads, writes = node.transpose, _tensors(graph, node.reads), _tensors(graph, node.writes)
    record = ExplainedNode(node.name, node.op, node.attributes, node.line or None, reads, writes)
    if moved is None:
        return record
    return replace(
        record,
        perm=moved.perm,
        move=moved.move,
        bytes_moved=moved.bytes_moved,
        why=moved.why,
    )


def _tensors(graph: DrawnGraph, places: tuple[int, ...]) -> tuple[ExplainedTensor, ...]:
    values = (graph.values[place] for place in places)
    return tuple(ExplainedTensor(each.name, each.shape, each.layout) for each in values)
