"""The partition that moves fewest bytes, then has fewest kernels, as far as a search finds it.

It starts from the groups that TVM would choose, cuts them where costly work would be repeated, and
from there on only ever takes steps that move no more bytes and run no more kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from relayout.fusion.clusters import Clusters
from relayout.fusion.codes import Code, Why
from relayout.fusion.duplication import repeat_cheap
from relayout.fusion.exceeding import within
from relayout.fusion.faithful import faithful, fuse, groups_of
from relayout.fusion.gains import Gains
from relayout.fusion.groups import Abilities, Group, Limits, MergeRefusal, Partition
from relayout.fusion.helpers import with_helpers
from relayout.fusion.merging import Merging
from relayout.fusion.reasons import reason_of
from relayout.fusion.repeats import Rates, without_repeats
from relayout.fusion.settled import Settled
from relayout.fusion.sketch import Sketch
from relayout.graph.region import Region
from relayout.ops.kind import Kind


def improved(
    region: Region, limits: Limits, settled: Settled, abilities: Abilities | None = None
) -> Partition:
    abilities = abilities or Abilities()
    if not limits.level or not abilities.any:
        return faithful(region, limits, settled)
    rates = Rates()
    fused = fuse(region, limits, settled)
    sketch = Sketch(fused.translation)
    start = [[sketch.number_of[node] for node in group.nodes] for group in groups_of(fused)]
    cut = [part for group in start for part in without_repeats(sketch, group, rates)]
    clusters = Clusters(sketch, cut)
    gains = Gains(clusters, limits, rates, abilities)
    if any(map(gains.exceeds, clusters.in_order())):
        clusters = Clusters(sketch, _within(clusters, gains))
        gains = Gains(clusters, limits, rates, abilities)
    merging = Merging(clusters, gains)
    merging.run(clusters.in_order())
    changed = list(dict.fromkeys(repeat_cheap(clusters, gains) if abilities.repeats else ()))
    merging.forget(changed)
    merging.run(clusters.in_order() if changed else ())
    groups = [_group(clusters, cluster) for cluster in clusters.in_order()]
    found = tuple(with_helpers(groups, settled.ahead))
    refusals = tuple(_refusals(clusters, merging, limits))
    made = Partition(region.graph, found, refusals, settled.ahead)
    return within(made, limits, fused.translation)


def _within(clusters: Clusters, gains: Gains) -> Iterator[Sequence[int]]:
    """The clusters, and one operator at a time of those that exceed a limit, as TVM's may."""
    for cluster in clusters.in_order():
        members = clusters.members[cluster]
        yield from ([each] for each in members) if gains.exceeds(cluster) else [members]


def _group(clusters: Clusters, cluster: int) -> Group:
    sketch = clusters.sketch
    members = clusters.members[cluster]
    nodes = [sketch.operators[number].node for number in members]
    kinds = {node: sketch.translation.fusings[node].kind for node in nodes}
    anchor = next((node for node in nodes if kinds[node] is Kind.COMPLEX), None)
    repeated = [
        sketch.operators[number].node
        for number in members
        if min(clusters.homes[number], key=clusters.rank) != cluster
    ]
    constants = sketch.held_constants(members)
    return Group(tuple(nodes), max(kinds.values()), anchor, tuple(repeated), constants)


def _refusals(clusters: Clusters, merging: Merging, limits: Limits) -> Iterator[MergeRefusal]:
    """Why an operator that reads the result of another has a kernel of its own."""
    for cluster in clusters.in_order():
        for reader, producer, consumer in _crossings(clusters, cluster):
            why = merging.refusals.get((cluster, reader), Why(Code.READERS))
            code, reason = reason_of(why, clusters.sketch, producer, consumer, limits)
            yield MergeRefusal(producer, consumer, code, reason)


def _crossings(clusters: Clusters, cluster: int) -> Iterator[tuple[int, ir.Node, ir.Node]]:
    """Where other clusters read this one: the cluster, what is read, and what reads it."""
    operators = clusters.sketch.operators
    for number in clusters.members[cluster]:
        for reader in dict.fromkeys(r for made in operators[number].results for r in made.readers):
            for home in clusters.homes[reader]:
                if number not in clusters.inside[home]:
                    yield home, operators[number].node, operators[reader].node
