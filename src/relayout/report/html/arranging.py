"""Where the items of a box stand: layer by layer from top to bottom, with few crossings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 4
"""How often the order within layers is improved, downwards and upwards."""
NODE_WIDTH = 152
BOX_WIDTH = 208
BEND_WIDTH = 18
GAP = 22


Path = tuple[int, ...]
"""Where an edge crosses layers, one after the other."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Places of items, and of the bends of edges that pass layers by."""

    layers: tuple[tuple[int, ...], ...]
    """The items of each layer from left to right; the first and the last may have none."""
    x: Mapping[int, int]
    """The middle of each item."""
    bends: Mapping[tuple[int, int], Path]
    """By edge, where it crosses each layer between its ends."""
    entries: Mapping[tuple[int, int], Path]
    """By what comes from outside and the item that reads it, the same from the first layer on."""
    exits: Mapping[int, Path]
    """By an item that is read outside, the same to the last layer."""


def arranged(
    widths: Sequence[int],
    edges: Iterable[tuple[int, int]],
    entries: Iterable[tuple[int, int]] = (),
    exits: Iterable[int] = (),
) -> Arrangement:
    """Items of some widths, in an order in which edges go forwards but for a few.

    `entries` are what is read from outside, each with the item that reads it, `exits` the items
    that are read outside.
    """
    count = len(widths)
    inner = sorted({edge for edge in edges if edge[0] < edge[1]})
    depth = [layer + 1 for layer in _depths(count, inner)]
    last = max(depth, default=0)
    deep = [entry for entry in sorted(set(entries)) if depth[entry[1]] > 1]
    high = [item for item in sorted(set(exits)) if depth[item] < last]
    sources = {source: count + i for i, source in enumerate(dict.fromkeys(s for s, _ in deep))}
    ends = {item: count + len(sources) + i for i, item in enumerate(high)}
    depth += [0] * len(sources) + [last + 1] * len(ends)
    beyond = [(sources[source], item) for source, item in deep] + list(ends.items())
    sizes = [*widths, *[BEND_WIDTH] * (len(sources) + len(ends))]
    grid = _Layers.of(sizes, depth, [*inner, *beyond])
    grid.sort_layers()
    x = {item: round(place) for item, place in grid.places().items()}
    paths = {edge: tuple(x[bend] for bend in bends) for edge, bends in grid.bends.items()}
    return Arrangement(
        tuple(tuple(item for item in layer if item < count) for layer in grid.layers),
        {item: x[item] for item in range(count)},
        {edge: paths[edge] for edge in inner},
        {entry: (x[sources[entry[0]]], *paths[sources[entry[0]], entry[1]]) for entry in deep},
        {item: (*paths[item, end], x[end]) for item, end in ends.items()},
    )


def _depths(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each item: one below the lowest that it reads; sources near their readers."""
    depth = [0] * count
    for source, target in edges:
        depth[target] = max(depth[target], depth[source] + 1)
    read = {target for _, target in edges}
    lowest: dict[int, int] = {}
    for source, target in edges:
        lowest[source] = min(lowest.get(source, depth[target]), depth[target])
    for item, below in lowest.items():
        if item not in read:
            depth[item] = below - 1
    return depth


@dataclass
class _Layers:
    """Layers of items and of bends, numbered after the items."""

    layers: list[list[int]]
    above: dict[int, list[int]]
    below: dict[int, list[int]]
    widths: list[int]
    bends: dict[tuple[int, int], list[int]]

    @classmethod
    def of(cls, widths: list[int], depth: list[int], edges: Sequence[tuple[int, int]]) -> _Layers:
        layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
        for item, layer in enumerate(depth):
            layers[layer].append(item)
        grid = cls(layers, {}, {}, widths, {})
        for source, target in edges:
            grid._connect(source, target, depth)
        return grid

    def _connect(self, source: int, target: int, depth: list[int]) -> None:
        path = [source]
        for layer in range(depth[source] + 1, depth[target]):
            path.append(len(self.widths))
            self.layers[layer].append(len(self.widths))
            self.widths.append(BEND_WIDTH)
        self.bends[source, target] = path[1:]
        for upper, lower in zip(path, [*path[1:], target], strict=True):
            self.below.setdefault(upper, []).append(lower)
            self.above.setdefault(lower, []).append(upper)

    def sort_layers(self) -> None:
        """Order each layer by the middle of what its items are connected to."""
        for _ in range(SWEEPS):
            for near, layers in ((self.above, self.layers), (self.below, self.layers[::-1])):
                for fixed, layer in pairwise(layers):
                    place = {item: number for number, item in enumerate(fixed)}
                    own = {item: number for number, item in enumerate(layer)}
                    layer.sort(key=lambda item: _middle(near, item, place, own))

    def places(self) -> dict[int, float]:
        """The middle of each item, as near as can be to the middle of its neighbours."""
        x = {item: 0.0 for layer in self.layers for item in layer}
        for layer in self.layers:
            x.update(zip(layer, spread([0.0] * len(layer), self._widths(layer)), strict=True))
        for _ in range(SWEEPS):
            for near, layers in ((self.above, self.layers), (self.below, self.layers[::-1])):
                for layer in layers[1:]:
                    wanted = [_mean(near, item, x) for item in layer]
                    x.update(zip(layer, spread(wanted, self._widths(layer)), strict=True))
        return x

    def _widths(self, layer: Sequence[int]) -> list[int]:
        return [self.widths[item] for item in layer]


def _middle(
    near: Mapping[int, list[int]], item: int, place: Mapping[int, int], own: Mapping[int, int]
) -> tuple[float, int]:
    known = [place[other] for other in near.get(item, ()) if other in place]
    return (sum(known) / len(known) if known else own[item]), own[item]


def _mean(near: Mapping[int, list[int]], item: int, x: Mapping[int, float]) -> float:
    others = near.get(item)
    return sum(x[other] for other in others) / len(others) if others else x[item]


def spread(wanted: Sequence[float], widths: Sequence[int]) -> list[float]:
    """Middles as near as can be to those wanted (least squares), side by side in this order."""
    offsets, reached = [], 0.0
    for number, width in enumerate(widths):
        reached += (widths[number - 1] + width) / 2 + GAP if number else 0.0
        offsets.append(reached)
    pools: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=True):
        pools.append((place - offset, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (low, few), (high, more) = pools[-2], pools[-1]
            pools[-2:] = [((low * few + high * more) / (few + more), few + more)]
    levels = [level for level, count in pools for _ in range(count)]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]
