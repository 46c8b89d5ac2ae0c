"""How many entries onnx's inference would follow through a model.

It carries what shapes are computed from as lists of entries, and a Concat makes one list of
several: thirty that each double the one before are a small file and more than any memory.
"""

from __future__ import annotations

import math
from collections import defaultdict

import onnx

from relayout.graph.messages.functions import FunctionKey, key_of
from relayout.graph.messages.walk import Body, subgraphs_of

MOST_ENTRIES = 1_000_000
"""Inference follows lists up to this length."""

MOST_AXES = 64
"""So long is a shape at most."""

FOLLOWED = frozenset(
    {"Add", "Cast", "Gather", "Mul", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze"}
)
"""Operators besides Concat and Shape whose results inference makes of the lists they are given."""


def most_entries(model: onnx.ModelProto) -> int:
    """At least as many entries as the longest list has that inference would make."""
    functions = {key_of(each): each for each in model.functions}
    return _Lists(functions).of(model.graph, {})[0]


class _Lists:
    def __init__(self, functions: dict[FunctionKey, onnx.FunctionProto]) -> None:
        self.functions = functions
        self.growths: dict[FunctionKey, int] = {}

    def of(self, body: Body, outer: dict[str, int]) -> tuple[int, int]:
        """The longest list in a body, and the longest among its outputs."""
        lengths = defaultdict(int, outer)
        if isinstance(body, onnx.GraphProto):
            for tensor in body.initializer:
                # Only scalars and vectors are followed.
                lengths[tensor.name] = math.prod(tensor.dims) if len(tensor.dims) < 2 else 0
        else:
            lengths.update(dict.fromkeys(body.input, 1))
        longest = 0
        for node in body.node:
            made = self._made(node, lengths)
            longest = max(longest, made)
            lengths.update(dict.fromkeys(node.output, made))
        names = [value if isinstance(value, str) else value.name for value in body.output]
        return longest, max((lengths[name] for name in names), default=0)

    def _made(self, node: onnx.NodeProto, lengths: dict[str, int]) -> int:
        """How long a list is that a node gives, and those in its bodies at most."""
        kind = node.op_type
        if kind == "Constant":
            return max((_entries(attribute) for attribute in node.attribute), default=0)
        if kind == "Concat":
            return sum([lengths[name] for name in node.input])
        if kind in FOLLOWED:
            return max([lengths[name] for name in node.input], default=0)
        if self.functions and (key := (node.domain, kind, node.overload)) in self.functions:
            return max([1, *(lengths[name] for name in node.input)]) * self._growth(key)
        if kind == "Shape":
            return MOST_AXES
        return max((self.of(graph, lengths)[0] for graph in subgraphs_of(node)), default=0)

    def _growth(self, key: FunctionKey) -> int:
        """How many times as long a list may be that a function makes of another."""
        if key not in self.growths:
            self.growths[key] = max((1, *self.of(self.functions[key], {})))
        return self.growths[key]


def _entries(attribute: onnx.AttributeProto) -> int:
    if len(attribute.t.dims) > 1:
        return 0
    sizes = math.prod(attribute.t.dims), len(attribute.ints), len(attribute.floats)
    return int(max(sizes))
