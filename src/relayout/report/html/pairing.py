"""Two graphs as one: nodes that compute the same are one node, whatever they are called."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from relayout.report.html.drawn import DrawnGraph, DrawnNode

SAME, RESTATED, REMOVED, NEW = "same", "restated", "removed", "new"

Key = Callable[[DrawnGraph, DrawnNode], Hashable]
"""What two nodes must have in common; None for nodes that are not looked at."""


@dataclass(frozen=True, slots=True)
class PairedNode:
    """A node of the graph before, of the one after, or of both."""

    before: int | None
    after: int | None
    state: str

    @property
    def is_both(self) -> bool:
        return self.before is not None and self.after is not None


@dataclass(frozen=True, slots=True)
class PairedEdge:
    source: int
    target: int
    before: int | None
    """The value that goes along it in the graph before, by its place there."""
    after: int | None


@dataclass(frozen=True, slots=True)
class PairedGraph:
    """Both graphs in one; nodes come in an order in which they could run."""

    before: DrawnGraph
    after: DrawnGraph | None
    nodes: tuple[PairedNode, ...]
    edges: tuple[PairedEdge, ...]

    def drawn(self, place: int) -> DrawnNode:
        """One of the nodes of a pair: the one after, where there is one."""
        node = self.nodes[place]
        if node.after is not None and self.after is not None:
            return self.after.nodes[node.after]
        assert node.before is not None
        return self.before.nodes[node.before]


def paired(before: DrawnGraph, after: DrawnGraph | None) -> PairedGraph:
    """The graphs in one; without a second one, the first as it is."""
    nodes = [*_pairs(before, after)]
    edges = _edges(before, after, nodes)
    order = _order(nodes, edges)
    # What is the same in every run reads nothing that is not, and can come first.
    order.sort(key=lambda number: not _is_fixed(before, after, nodes[number]))
    place = {number: new for new, number in enumerate(order)}
    moved = [PairedEdge(place[e.source], place[e.target], e.before, e.after) for e in edges]
    ordered = tuple(nodes[number] for number in order)
    return PairedGraph(before, after, ordered, tuple(sorted(moved, key=_ends)))


def _is_fixed(before: DrawnGraph, after: DrawnGraph | None, node: PairedNode) -> bool:
    was = node.before is None or before.nodes[node.before].is_fixed
    return was and (node.after is None or after is None or after.nodes[node.after].is_fixed)


def _ends(edge: PairedEdge) -> tuple[int, ...]:
    return edge.source, edge.target, _or_none(edge.before), _or_none(edge.after)


def _or_none(place: int | None) -> int:
    return -1 if place is None else place


def _pairs(before: DrawnGraph, after: DrawnGraph | None) -> Iterator[PairedNode]:
    if after is None:
        yield from (PairedNode(place, None, SAME) for place in range(len(before.nodes)))
        return
    found = _matches(before, after)
    for place, node in enumerate(before.nodes):
        other = found.get(place)
        if other is None:
            yield PairedNode(place, None, REMOVED)
            continue
        is_same = _looks(before, node) == _looks(after, after.nodes[other])
        yield PairedNode(place, other, SAME if is_same else RESTATED)
    taken = set(found.values())
    yield from (PairedNode(None, i, NEW) for i in range(len(after.nodes)) if i not in taken)


def _looks(graph: DrawnGraph, node: DrawnNode) -> Hashable:
    """The operator, its attributes, and in which order its tensors are, as far as that is known."""
    values = [graph.values[value] for value in (*node.reads, *node.writes)]
    orders = [value.layout if value.exact is None else value.exact for value in values]
    return node.op, node.attributes, tuple(orders)


def _matches(before: DrawnGraph, after: DrawnGraph) -> dict[int, int]:
    """By place before, the place after: first those that mean the same, then those by name."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    for key in KEYS:
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for place, node in enumerate(after.nodes):
            wanted = key(after, node)
            if place not in taken and wanted is not None:
                waiting[wanted].append(place)
        for place, node in enumerate(before.nodes):
            wanted = key(before, node)
            if place in found or wanted is None or not waiting.get(wanted):
                continue
            found[place] = waiting[wanted].popleft()
            taken.add(found[place])
    return found


def _port(_graph: DrawnGraph, node: DrawnNode) -> Hashable:
    return (node.op, node.name) if node.is_port else None


def _exact(graph: DrawnGraph, node: DrawnNode) -> Hashable:
    """The same operator with the same results in the same order."""
    meant = tuple(graph.values[value].exact for value in node.writes)
    return None if node.is_port or None in meant or not meant else (node.op, meant)


def _content(graph: DrawnGraph, node: DrawnNode) -> Hashable:
    """The same operator with the same results, in whichever order."""
    if node.transpose is not None or node.is_port:
        return None
    meant = tuple(graph.values[value].content for value in node.writes)
    return None if None in meant or not meant else (node.op, meant)


def _result(graph: DrawnGraph, node: DrawnNode) -> Hashable:
    """Another operator with the same result, that is none of what it reads."""
    if node.transpose is not None or node.is_port or not node.writes:
        return None
    made = graph.values[node.writes[0]].content
    read = {graph.values[value].content for value in node.reads}
    return None if made is None or made in read else made


def _name(graph: DrawnGraph, node: DrawnNode) -> Hashable:
    perm = None if node.transpose is None else node.transpose.perm
    has_meaning = any(graph.values[value].exact is not None for value in node.writes)
    is_moved = node.transpose is not None and has_meaning
    return None if is_moved or node.is_port else (node.op, node.name, perm)


KEYS: tuple[Key, ...] = (_port, _exact, _content, _result, _name)


def _edges(
    before: DrawnGraph, after: DrawnGraph | None, nodes: list[PairedNode]
) -> list[PairedEdge]:
    """What nodes read, once for each pair of nodes and value."""
    found: dict[tuple[int, int, int], list[int | None]] = {}
    for side, graph in enumerate((before, after)):
        if graph is None:
            continue
        places = [node.after if side else node.before for node in nodes]
        numbers = {place: number for number, place in enumerate(places) if place is not None}
        writers = graph.writers
        for number, place in enumerate(places):
            for count, value in enumerate(() if place is None else graph.nodes[place].reads):
                if value in writers:
                    key = numbers[writers[value]], number, count
                    found.setdefault(key, [None, None])[side] = value
    return [PairedEdge(source, target, *ends) for (source, target, _), ends in found.items()]


def _order(nodes: list[PairedNode], edges: list[PairedEdge]) -> list[int]:
    """The order of the first graph as far as it goes, new nodes after what they read.

    What was moved against the direction of the first graph makes a cycle, which is cut at the node
    that came first.
    """
    ordering = _Ordering(nodes, edges)
    return [ordering.take() for _ in nodes]


class _Ordering:
    """Takes nodes one after the other, of those that can come next the one that ranks first."""

    def __init__(self, nodes: list[PairedNode], edges: list[PairedEdge]) -> None:
        reads: list[set[int]] = [set() for _ in nodes]
        self.read_by: list[set[int]] = [set() for _ in nodes]
        for edge in edges:
            reads[edge.target].add(edge.source)
            self.read_by[edge.source].add(edge.target)
        self.is_new = [node.before is None for node in nodes]
        self.waiting = [len(each) for each in reads]
        self.rank = [float(_or_none(node.before)) for node in nodes]
        for number, readers in enumerate(self.read_by):
            if self.is_new[number] and not self.waiting[number]:
                # It stands before what reads it.
                known = [self.rank[i] for i in readers if not self.is_new[i]]
                self.rank[number] = min(known, default=0.5) - 0.25
        numbers = range(len(nodes))
        self.ready = sorted((self.rank[i], i) for i in numbers if not self.waiting[i])
        self.left = deque(sorted(numbers, key=lambda i: (self.is_new[i], self.rank[i], i)))
        self.done = [False] * len(nodes)

    def take(self) -> int:
        """The next node."""
        number = self._next()
        self.done[number] = True
        for other in sorted(self.read_by[number]):
            self.waiting[other] -= 1
            if self.is_new[other]:
                self.rank[other] = max(self.rank[other], self.rank[number] + 0.25)
            if not self.waiting[other]:
                heappush(self.ready, (self.rank[other], other))
        return number

    def _next(self) -> int:
        while self.ready:
            _, number = heappop(self.ready)
            if not self.done[number]:
                return number
        while self.done[self.left[0]]:
            self.left.popleft()
        return self.left[0]
