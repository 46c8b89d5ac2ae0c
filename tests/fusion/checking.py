"""What holds for every partition."""

from __future__ import annotations

from graphlib import TopologicalSorter

import onnx_ir as ir

from relayout.fusion.border import operands_of, results_of
from relayout.fusion.groups import Limits, Partition
from relayout.fusion.partition import partition
from relayout.fusion.traffic import traffic_of
from relayout.graph.region import Region, captured_by


def check_partition(found: Partition) -> None:
    """Every operator belongs to one group, and groups can run in the order they are listed in."""
    owned = [node for group in found.groups for node in group.nodes if node not in group.duplicates]
    operators = [node for node in found.graph if node.op_type != "Constant"]
    assert sorted(map(id, owned)) == sorted(map(id, operators))
    check_order(found)


def check_order(found: Partition) -> None:
    makers = {
        value: number for number, results in enumerate(results_of(found)) for value in results
    }
    needs: dict[int, set[int]] = {}
    for number, group in enumerate(found.groups):
        read = [*operands_of(group), *(v for node in group.nodes for v in captured_by(node))]
        made = {value for node in group.nodes for value in node.outputs}
        outside = [value for value in read if value not in made]
        needs[number] = {makers[value] for value in outside if _is_made_here(value, found)}
        assert all(need < number for need in needs[number]), "a group reads what comes later"
    tuple(TopologicalSorter(needs).static_order())


def _is_made_here(value: ir.Value, found: Partition) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is found.graph and producer.op_type != "Constant"


def check_modes(region: Region, limits: Limits | None = None) -> tuple[Partition, Partition]:
    """Both modes hold, and ours costs no more."""
    tvm, ours = (partition(region, mode, limits) for mode in ("tvm", "relayout"))
    for found in (tvm, ours):
        check_partition(found)
    assert all(not group.duplicates for group in tvm.groups)
    theirs, cost = traffic_of(tvm), traffic_of(ours)
    assert cost.kernels <= theirs.kernels
    assert cost.bytes_moved <= theirs.bytes_moved
    return tvm, ours
