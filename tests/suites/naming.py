"""Whether the nodes of a result have the names they should have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx

from relayout.graph.editing.writer import ORIGIN_KEY
from relayout.graph.messages.walk import bodies_of
from relayout.graph.region import KERNEL_DOMAIN

SERVES = re.compile(r"(?P<op>.*)_transpose(_(?P<side>input|output)_(?P<slot>\d+))?(_\d+)?")
GIVES_WAY = frozenset(("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"))
"""Operators that only move or view: what stands for them may be something else."""
RAISED = frozenset(("Attention", "MultiHeadAttention"))
"""What stands for many nodes."""


@dataclass
class _Named:
    """The nodes of all bodies of a model but those of kernels, and who reads and writes what."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    producers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    readers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, model: onnx.ModelProto) -> _Named:
        found = cls()
        for body in bodies_of(model):
            if isinstance(body, onnx.FunctionProto) and body.domain == KERNEL_DOMAIN:
                continue
            found.outputs.update(
                value if isinstance(value, str) else value.name for value in body.output
            )
            for node in body.node:
                found.nodes.append(node)
                found.producers.update(dict.fromkeys(node.output, node))
                for name in dict.fromkeys(node.input):
                    found.readers.setdefault(name, []).append(node)
        return found

    @property
    def names(self) -> Counter[str]:
        return Counter(node.name for node in self.nodes if node.name)


def node_names(model: onnx.ModelProto) -> Counter[str]:
    """How often each name of a node occurs in all bodies of a model."""
    return _Named.of(model).names


def violations(given: onnx.ModelProto, result: onnx.ModelProto) -> list[str]:
    """What is wrong with the names of the nodes of a result, one line each."""
    before, after = _Named.of(given), _Named.of(result)
    return [*_renamed(before, after), *_twice(before, after), *_misnamed(before, after)]


def _renamed(before: _Named, after: _Named) -> Iterator[str]:
    """Nodes that are gone though a new node stands for them alone."""
    heirs: dict[str, list[onnx.NodeProto]] = {}
    for node in after.nodes:
        heirs.setdefault(_origin(node), []).append(node)
    for node in before.nodes:
        if not node.name or node.op_type in GIVES_WAY or after.names[node.name]:
            continue
        heir = heirs.get(node.name, [])
        if heir and not RAISED & {one.op_type for one in heir}:
            yield f"{node.op_type} {node.name} is now {', '.join(one.name for one in heir)}"


def _twice(before: _Named, after: _Named) -> Iterator[str]:
    known = before.names
    for name, count in after.names.items():
        if count > max(1, known[name]):
            yield f"{count} nodes are called {name}"


def _misnamed(before: _Named, after: _Named) -> Iterator[str]:
    known = before.names
    for node in after.nodes:
        if node.op_type == "Transpose" and node.name not in known and not _serves(node, after):
            yield f"Transpose {node.name} is not named after what it serves"


def _serves(node: onnx.NodeProto, named: _Named) -> bool:
    match = SERVES.fullmatch(node.name)
    if match is None:
        return False
    (source, *_), (result,) = node.input, node.output
    readers = named.readers.get(result, [])
    slot = int(match["slot"] or 0)
    if len(readers) == 1 and result not in named.outputs:
        is_there = readers[0].input[slot] == result
        return match["side"] == "input" and match["op"] == _title(readers[0]) and is_there
    if source not in named.producers:
        return match["side"] is None and match["op"] == source
    producer = named.producers[source]
    is_there = producer.output[slot] == source
    return match["side"] == "output" and match["op"] == _title(producer) and is_there


def _title(node: onnx.NodeProto) -> str:
    return node.name or node.output[0]


def _origin(node: onnx.NodeProto) -> str:
    return next((entry.value for entry in node.metadata_props if entry.key == ORIGIN_KEY), "")
