"""The partition of a graph by the rules of TVM's Relax, which succeeded its Relay."""

from __future__ import annotations

from relayout.fusion.dialects import RELAX
from relayout.fusion.exceeding import within
from relayout.fusion.faithful import fuse, stated
from relayout.fusion.groups import Abilities, Limits, Partition
from relayout.fusion.settled import Settled
from relayout.graph.region import Region


def relaxed(
    region: Region, limits: Limits, settled: Settled, _abilities: Abilities | None = None
) -> Partition:
    """Relax has no limit on arguments: groups that exceed one are taken apart."""
    fused = fuse(region, limits, settled, RELAX)
    return within(stated(fused, limits), limits, fused.translation)
