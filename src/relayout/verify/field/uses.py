"""In which order nodes are run, and which of them reads a value last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import onnx


def in_order(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes after those whose results they read, else as they came: runtimes run unsorted files."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [
        {makers[name] for name in read_by(node) if makers.get(name, index) != index}
        for index, node in enumerate(nodes)
    ]
    if all(max(need, default=-1) < index for index, need in enumerate(needs)):
        return list(nodes)
    done: dict[int, None] = {}
    waiting = list(range(len(nodes)))
    while waiting:
        ready = [index for index in waiting if needs[index] <= done.keys()]
        if not ready:
            raise ValueError("nodes need one another's results")
        done.update(dict.fromkeys(ready))
        waiting = [index for index in waiting if index not in done]
    return [nodes[index] for index in done]


def last_uses(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> dict[int, list[str]]:
    """The names that no later node of a graph reads, by the index of the node."""
    last = {name: index for index, node in enumerate(nodes) for name in read_by(node)}
    uses: dict[int, list[str]] = {}
    for name, index in last.items():
        if name not in outputs:
            uses.setdefault(index, []).append(name)
    return uses


def read_by(node: onnx.NodeProto) -> Iterator[str]:
    """All names that a node or a body within it mentions."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield from (value.name for value in graph.output)
            for inner in graph.node:
                yield from read_by(inner)
