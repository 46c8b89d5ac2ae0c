"""Chooses which operators of a graph run as one kernel."""

from __future__ import annotations

from relayout.fusion.faithful import alone, faithful
from relayout.fusion.groups import Abilities, Limits, Mode, Partition
from relayout.fusion.improved import improved
from relayout.fusion.translate import translate
from relayout.graph.collector import paused_collector
from relayout.graph.region import Region


def partition(
    region: Region,
    mode: Mode = "relayout",
    limits: Limits | None = None,
    abilities: Abilities | None = None,
) -> Partition:
    """The groups of one graph; the bodies inside it are graphs of their own."""
    with paused_collector():
        if mode == "tvm":
            return faithful(region, limits or Limits())
        return improved(region, limits or Limits(), abilities)


def unfused(region: Region) -> Partition:
    """Every operator alone."""
    translation = translate(region)
    groups = tuple(alone(node, translation) for node in translation.calls)
    return Partition(region.graph, groups, (), "tvm")
