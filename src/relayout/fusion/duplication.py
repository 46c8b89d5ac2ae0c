"""Repeats cheap operators in every kernel that reads them, where that saves bytes.

Only operators that give the same bits each time, so that no two readers ever see different values,
and all readers or none, so that the value need not be written.
"""

from __future__ import annotations

from collections.abc import Iterator

from relayout.fusion.clusters import Clusters
from relayout.fusion.codes import Why
from relayout.fusion.gains import Gains
from relayout.ops.iteration import is_exact

MOST_COPIES = 4
MOST_REPEATED = 4
"""Operators in one repeated cluster."""


def repeat_cheap(clusters: Clusters, gains: Gains) -> Iterator[int]:
    """Repeats what is worth it; yields the clusters that have changed."""
    for cluster in clusters.in_order():
        if _is_cheap(clusters, cluster) and _saves(clusters, gains, cluster):
            readers = list(clusters.after[cluster])
            clusters.repeat(cluster, readers)
            gains.forget(readers)
            yield from readers


def _is_cheap(clusters: Clusters, cluster: int) -> bool:
    members = clusters.members[cluster]
    operators = [clusters.sketch.operators[number] for number in members]
    if len(members) > MOST_REPEATED or not all(is_exact(each.node) for each in operators):
        return False
    if any(result.leaves for each in operators for result in each.results):
        return False
    if any(each.followers for each in operators):
        return False
    if not set(clusters.sketch.stops).isdisjoint(members):
        return False
    return 1 < len(clusters.after[cluster]) <= MOST_COPIES


def _saves(clusters: Clusters, gains: Gains, cluster: int) -> bool:
    saved = gains.saved_by_repeating(cluster, list(clusters.after[cluster]))
    return not isinstance(saved, Why) and saved > 0
