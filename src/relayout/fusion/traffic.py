"""What a partition costs: how many kernels run, and the bytes they read and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from relayout.fusion.border import operands_of, results_of
from relayout.fusion.groups import Group, Partition
from relayout.ops.iteration import is_view
from relayout.ops.measure import bytes_of


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over the groups; lengths known only at run time count as in other figures."""

    kernels: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.kernels + other.kernels,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )


def traffic_of(partition: Partition, dims: Mapping[str, int] | None = None) -> Traffic:
    """A group of views alone is not a kernel: it gives a tensor another shape without moving it."""
    total = Traffic()
    for group, results in zip(partition.groups, results_of(partition), strict=True):
        if not all(is_view(node) for node in group.nodes):
            written = tuple(value for value in results if _is_written(value, group, partition))
            total += _group_traffic(group, written, dims or {})
    return total


def _is_written(value: ir.Value, group: Group, partition: Partition) -> bool:
    """Whether a result is read for more than its shape, which is known ahead."""
    if not partition.ahead or value.is_graph_output():
        return True
    readers = {reader for reader, _place in value.uses()} - set(group.nodes)
    return not readers or not readers <= partition.ahead


def _group_traffic(group: Group, results: tuple[ir.Value, ...], dims: Mapping[str, int]) -> Traffic:
    read = sum(bytes_of(value, dims) for value in operands_of(group))
    return Traffic(1, read, sum(bytes_of(value, dims) for value in results))
