"""Graphs as Model Explorer reads them: one file with the graphs, one with what it colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from relayout.report.html.drawn import DrawnGraph, DrawnNode
from relayout.report.html.pairing import paired

Data = dict[str, Any]

GRAPHS, NODE_DATA = "graphs.json", "node_data.json"
BEFORE, AFTER = "before", "after"
LEFT_COLOUR, REMOVED_COLOUR, TEXT_COLOUR = "#b84a00", "#e69f00", "#ffffff"


def explorer_files(title: str, before: DrawnGraph | None, after: DrawnGraph | None) -> Data:
    """By name of a file, what it holds.

    Nodes that compute the same have the same id in both graphs, so that Model Explorer's
    'match node id' selects them together and shows which are there once only.
    """
    graphs = {} if before is None else _graphs(before, after)
    return {
        GRAPHS: {"label": title, "graphs": [each.graph(name) for name, each in graphs.items()]},
        NODE_DATA: {name: each.node_data() for name, each in graphs.items()},
    }


def _graphs(before: DrawnGraph, after: DrawnGraph | None) -> dict[str, _Explored]:
    ids: tuple[dict[int, str], dict[int, str]] = ({}, {})
    removed: set[int] = set()
    taken: set[str] = set()
    pair = paired(before, after)
    for place, node in enumerate(pair.nodes):
        name = _unique(_name(pair.drawn(place)), taken)
        if node.before is not None:
            ids[0][node.before] = name
        if node.after is not None:
            ids[1][node.after] = name
        elif after is not None and node.before is not None:
            removed.add(node.before)
    graphs = {BEFORE: _Explored(before, ids[0], removed)}
    return graphs if after is None else {**graphs, AFTER: _Explored(after, ids[1], set())}


def _name(node: DrawnNode) -> str:
    return f"{node.op} {node.name}" if node.is_port else node.name or node.op


def _unique(name: str, taken: set[str]) -> str:
    """A name that was not taken before, and is now."""
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name} ({number})"
    taken.add(unique)
    return unique


class _Explored:
    """One of the graphs."""

    def __init__(self, drawn: DrawnGraph, ids: Mapping[int, str], removed: set[int]) -> None:
        self.drawn, self.ids, self.removed = drawn, ids, removed
        self.sources = {
            value: (ids[place], str(output))
            for place, node in enumerate(drawn.nodes)
            for output, value in enumerate(node.writes)
        }

    def graph(self, name: str) -> Data:
        return {"id": name, "nodes": [self._node(place) for place in range(len(self.drawn.nodes))]}

    def node_data(self) -> Data:
        """The bytes that each Transpose moves."""
        results = {
            self.ids[place]: {
                "value": node.transpose.bytes_moved,
                "bgColor": self._colour(place),
                "textColor": TEXT_COLOUR,
            }
            for place, node in enumerate(self.drawn.nodes)
            if node.transpose is not None
        }
        return {"name": "bytes that Transposes move", "results": results}

    def _colour(self, place: int) -> str:
        return REMOVED_COLOUR if place in self.removed else LEFT_COLOUR

    def _node(self, place: int) -> Data:
        node = self.drawn.nodes[place]
        data: Data = {
            "id": self.ids[place],
            "label": node.name if node.is_port else node.op,
            "namespace": "/".join(filter(None, node.name.split("/")[:-1])),
            "attrs": [{"key": key, "value": value} for key, value in _attributes(node)],
            "incomingEdges": [*self._edges(node)],
            "outputsMetadata": [
                {"id": str(output), "attrs": self._tensor(value)}
                for output, value in enumerate(node.writes)
            ],
        }
        if node.transpose is not None:
            data["style"] = {"backgroundColor": self._colour(place)}
        return data

    def _edges(self, node: DrawnNode) -> Iterator[Data]:
        for number, value in enumerate(node.reads):
            if value in self.sources:
                source, output = self.sources[value]
                yield {
                    "sourceNodeId": source,
                    "sourceNodeOutputId": output,
                    "targetNodeInputId": str(number),
                }

    def _tensor(self, place: int) -> list[Data]:
        value = self.drawn.values[place]
        told = {"tensor_name": value.name, "tensor_shape": value.shape, "layout": value.layout}
        return [{"key": key, "value": text} for key, text in told.items() if text]


def _attributes(node: DrawnNode) -> Iterator[tuple[str, str]]:
    told = {
        "name": node.name,
        "attributes": node.attributes,
        "source": node.line,
        "kernel": node.group,
    }
    yield from ((key, text) for key, text in told.items() if text)
    moved = node.transpose
    if moved is None:
        return
    yield "bytes moved", str(moved.bytes_moved)
    if moved.removed_by:
        yield "removed by", moved.removed_by
    yield from ((f"why {number}", line) for number, line in enumerate(moved.why, 1))
