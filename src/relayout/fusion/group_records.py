"""Groups as records for reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from relayout.fusion.border import operands_of, results_of
from relayout.fusion.emit import names_of
from relayout.fusion.groups import Group, MergeRefusal, Partition
from relayout.fusion.naming import is_called
from relayout.graph.io.model import LoadedModel
from relayout.report.fusion import GroupRecord, NodeRecord, RefusalRecord


def group_records(loaded: LoadedModel, partitions: Sequence[Partition]) -> tuple[GroupRecord, ...]:
    """Every group that becomes a function."""
    return tuple(record for _, record in _recorded(loaded, partitions) if record is not None)


def refusal_records(partitions: Sequence[Partition]) -> tuple[RefusalRecord, ...]:
    return tuple(_refusal(refusal) for part in partitions for refusal in part.refusals)


def node_records(
    loaded: LoadedModel, partitions: Sequence[Partition], name: str
) -> tuple[NodeRecord, ...]:
    """The records of the nodes of this name, or those that write a value of this name."""
    records = _recorded(loaded, partitions)
    found = []
    for partition in partitions:
        for group in partition.groups:
            _, record = next(records)
            found += [
                _node(node, partition, record)
                for node in group.nodes
                if node not in group.duplicates and is_called(node, name)
            ]
    return tuple(found)


def _recorded(
    loaded: LoadedModel, partitions: Sequence[Partition]
) -> Iterator[tuple[Group, GroupRecord | None]]:
    """Each group of each partition, with a record if it becomes a function."""
    for partition, names in zip(partitions, names_of(loaded, partitions), strict=True):
        parts = zip(partition.groups, results_of(partition), names, strict=True)
        for group, results, name in parts:
            graph = partition.graph.name or ""
            yield group, None if name is None else _group(group, results, name, graph)


def _group(group: Group, results: tuple[ir.Value, ...], name: str, graph: str) -> GroupRecord:
    return GroupRecord(
        name=name,
        graph=graph,
        kind=group.kind.name.lower(),
        anchor=None if group.anchor is None else _title(group.anchor),
        operators=tuple(node.op_type for node in group.nodes),
        nodes=tuple(_title(node) for node in group.nodes),
        repeated=tuple(_title(node) for node in group.duplicates),
        inputs=tuple(value.name or "" for value in operands_of(group)),
        outputs=tuple(value.name or "" for value in results),
    )


def _node(node: ir.Node, partition: Partition, group: GroupRecord | None) -> NodeRecord:
    refusals = tuple(
        _refusal(refusal)
        for refusal in partition.refusals
        if refusal.producer is node or refusal.consumer is node
    )
    return NodeRecord(_title(node), partition.graph.name or "", group, refusals)


def _refusal(refusal: MergeRefusal) -> RefusalRecord:
    consumer = None if refusal.consumer is None else _title(refusal.consumer)
    return RefusalRecord(_title(refusal.producer), consumer, refusal.code, refusal.reason)


def _title(node: ir.Node) -> str:
    """The name of a node, or of what it writes if it has none."""
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)
