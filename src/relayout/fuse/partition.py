"""Chooses which operators of a graph run as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from relayout.collector import paused_collector
from relayout.fuse.faithful import alone, faithful
from relayout.fuse.groups import Limits, Mode, Partition
from relayout.fuse.improved import improved
from relayout.fuse.translate import translate
from relayout.graph.region import Region

CHOICES: Mapping[Mode, Callable[[Region, Limits], Partition]] = MappingProxyType(
    {"relayout": improved, "tvm": faithful}
)


def partition(region: Region, mode: Mode = "relayout", limits: Limits | None = None) -> Partition:
    """The groups of one graph; the bodies inside it are graphs of their own."""
    with paused_collector():
        return CHOICES[mode](region, limits or Limits())


def unfused(region: Region) -> Partition:
    """Every operator alone."""
    translation = translate(region)
    groups = tuple(alone(node, translation) for node in translation.calls)
    return Partition(region.graph, groups, (), "tvm")
