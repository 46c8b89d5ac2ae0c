"""The graphs of a report as data for the page: nodes, edges, boxes and where they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayout.report.html.arranging import BOX_WIDTH, NODE_WIDTH, Arrangement, arranged
from relayout.report.html.drawn import DrawnGraph, DrawnNode
from relayout.report.html.folding import Box, Folding, Item
from relayout.report.html.pairing import PairedEdge, PairedGraph, paired

Data = dict[str, Any]

OPENED = 48
"""How many items are shown at first, at most, by opening boxes that hold Transposes."""
LONGEST_CHAIN = 6
"""How many removed nodes an edge may take the place of and still be drawn straight."""


def picture(before: DrawnGraph, after: DrawnGraph | None) -> Data:
    """One graph, or two side by side: what is drawn, with coordinates."""
    graph = paired(before, after)
    drawing = _Drawing(graph)
    drawing.add_box(_folded(graph))
    return {
        "both": after is not None,
        "nodes": [_node(graph, place) for place in range(len(graph.nodes))],
        "values": [_values(before), [] if after is None else _values(after)],
        "edges": [
            [edge.source, edge.target, _or_none(edge.before), _or_none(edge.after)]
            for edge in graph.edges
        ],
        "boxes": drawing.boxes,
        "left_out": [before.left_out, 0 if after is None else after.left_out],
        "open": drawing.opened(),
        "widths": {"node": NODE_WIDTH, "box": BOX_WIDTH},
    }


def _or_none(place: int | None) -> int:
    return -1 if place is None else place


def _folded(graph: PairedGraph) -> Box:
    """The whole graph as a box."""
    count = len(graph.nodes)
    reads: list[list[int]] = [[] for _ in range(count)]
    for edge in graph.edges:
        if edge.source not in reads[edge.target]:
            reads[edge.target].append(edge.source)
    drawn = [graph.drawn(place) for place in range(count)]
    moving = [each.transpose is not None for each in drawn]
    shown = [each.is_port or moves for each, moves in zip(drawn, moving, strict=True)]
    for target, sources in enumerate(reads):
        for source in sources:
            # What is next to a Transpose shows where it stands.
            shown[source] |= moving[target]
            shown[target] |= moving[source]
    labels = [_label(graph, place, drawn[place], reads[place]) for place in range(count)]
    folding = Folding(labels, shown, reads, [each.op for each in drawn])
    fixed = sum(each.is_fixed for each in drawn)
    return Box("", folding.top(fixed), "section")


def _label(graph: PairedGraph, place: int, drawn: DrawnNode, reads: Sequence[int]) -> Hashable:
    """What makes a node look like another: also how far back what it reads is."""
    perm = None if drawn.transpose is None else drawn.transpose.perm
    near = tuple(place - source for source in reads if place - source < 4)
    ports = drawn.name if drawn.is_port else ""
    return drawn.op, graph.nodes[place].state, perm, len(reads), near, ports


def _node(graph: PairedGraph, place: int) -> Data:
    node = graph.nodes[place]
    data: Data = {"s": node.state}
    if node.before is not None:
        data["b"] = _side(graph.before.nodes[node.before])
    if node.after is not None and graph.after is not None:
        data["a"] = _side(graph.after.nodes[node.after])
    return data


def _side(node: DrawnNode) -> Data:
    """A node of one of the graphs; what is empty is left out."""
    data: Data = {"op": node.op, "n": node.name, "r": list(node.reads), "w": list(node.writes)}
    more = {"at": node.attributes, "ln": node.line, "g": node.group}
    data |= {key: text for key, text in more.items() if text}
    if node.transpose is not None:
        moved = node.transpose
        data["t"] = {
            "p": None if moved.perm is None else list(moved.perm),
            "m": moved.move,
            "y": moved.bytes_moved,
            "why": list(moved.why),
            "c": list(moved.causes),
            "by": moved.removed_by,
        }
    return data


def _values(graph: DrawnGraph) -> list[list[str]]:
    return [[value.name, value.shape, value.layout, value.kind] for value in graph.values]


@dataclass
class _Drawing:
    """Boxes as they are numbered for the page: nodes first, then boxes, outer ones first."""

    graph: PairedGraph
    boxes: list[Data] = field(default_factory=list)
    trees: list[Box] = field(default_factory=list)

    def add_box(self, box: Box) -> int:
        number = len(self.boxes)
        self.boxes.append({})
        self.trees.append(box)
        items = [self._number(item) for item in box.items]
        home = {place: at for at, item in enumerate(box.items) for place in _nodes(item)}
        placed = self._arranged(box, home)
        self.boxes[number] = {
            "t": box.title,
            "k": box.kind,
            "layers": [[items[at] for at in layer] for layer in placed.layers],
            "x": [[placed.x[at] for at in layer] for layer in placed.layers],
            "bends": [[items[a], items[b], *at] for (a, b), at in placed.bends.items() if at],
            "ins": [[source, items[b], *at] for (source, b), at in placed.entries.items()],
            "outs": [[items[a], *at] for a, at in placed.exits.items()],
            "c": self._counts(box),
        }
        return number

    def _arranged(self, box: Box, home: Mapping[int, int]) -> Arrangement:
        """The items of a box in their places; edges that reach beyond it go through its border."""
        widths = [BOX_WIDTH if isinstance(item, Box) else NODE_WIDTH for item in box.items]
        is_whole = len(self.boxes) == 1
        edges = [edge for place in home for edge in self._from.get(place, ())]
        inner = [edge for edge in edges if edge.target in home and edge not in self._straight]
        read = () if is_whole else [each for place in home for each in self._to.get(place, ())]
        return arranged(
            widths,
            ((home[e.source], home[e.target]) for e in inner if home[e.source] != home[e.target]),
            ((edge.source, home[edge.target]) for edge in read if edge.source not in home),
            (home[edge.source] for edge in edges if edge.target not in home),
        )

    def _number(self, item: Item) -> int:
        return len(self.graph.nodes) + self.add_box(item) if isinstance(item, Box) else item

    def __post_init__(self) -> None:
        self._from: dict[int, list[PairedEdge]] = {}
        self._to: dict[int, list[PairedEdge]] = {}
        for edge in self.graph.edges:
            self._from.setdefault(edge.source, []).append(edge)
            self._to.setdefault(edge.target, []).append(edge)
        self._straight = {edge for edge in self.graph.edges if self._goes_through(edge)}

    def _goes_through(self, edge: PairedEdge) -> bool:
        """Whether an edge takes the place of nodes that only the other graph has."""
        if edge.before is not None and edge.after is not None:
            return False
        reached, seen = [edge.source], {edge.source}
        for _ in range(LONGEST_CHAIN):
            alone = [
                each.target
                for place in reached
                for each in self._from.get(place, ())
                if not self.graph.nodes[each.target].is_both and each.target not in seen
            ]
            seen.update(alone)
            if any(each.target == edge.target for i in alone for each in self._from.get(i, ())):
                return True
            reached = alone
        return False

    def _counts(self, box: Box) -> list[int]:
        """Nodes before and after, Transposes before and after."""
        found: Counter[str] = Counter()
        for place in box.nodes:
            node = self.graph.nodes[place]
            for side, graph, at in (
                ("before", self.graph.before, node.before),
                ("after", self.graph.after, node.after),
            ):
                if graph is not None and at is not None:
                    found[side] += not graph.nodes[at].is_port
                    found[f"{side} moved"] += graph.nodes[at].transpose is not None
        return [found[each] for each in ("before", "after", "before moved", "after moved")]

    def opened(self) -> list[int]:
        """The boxes that are open at first: the whole, then those with most Transposes left."""
        opened, shown = [0], len(self.trees[0].items)
        waiting = self._inner(0)
        while waiting:
            waiting.sort(key=self._importance)
            number = waiting.pop(0)
            items = self.boxes[number]["layers"]
            count = sum(map(len, items))
            if shown + count <= OPENED and any(self.boxes[number]["c"][2:]):
                opened.append(number)
                shown += count
                waiting += self._inner(number)
        return sorted(opened)

    def _inner(self, number: int) -> list[int]:
        first = len(self.graph.nodes)
        items = [item for layer in self.boxes[number]["layers"] for item in layer]
        found = sorted(item - first for item in items if item >= first)
        is_sample = self.boxes[number]["k"] == "copies"
        return found[:1] if is_sample else found

    def _importance(self, number: int) -> tuple[int, ...]:
        counts = self.boxes[number]["c"]
        return -bool(counts[3]), -bool(counts[2]), number


def _nodes(item: Item) -> Iterator[int]:
    if isinstance(item, Box):
        yield from item.nodes
    else:
        yield item
