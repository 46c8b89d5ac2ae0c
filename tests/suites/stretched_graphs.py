"""Random graphs of operands whose lengths have names of their own and are broadcast in some runs.

Lengths with two names may be equal in one run, and in another one of them is 1. What is restated
must hold in both.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.samples.sample import Array

LENGTHS = (1, 2, 3, 5)
FEWEST, MOST = 4, 9
"""How many operators are drawn."""


@dataclass(slots=True)
class StretchedGraph:
    """A graph that grows, with the rank of each value."""

    chance: random.Random
    lengths: list[int | str]
    inputs: dict[str, list[int | str]] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, seed: int) -> StretchedGraph:
        chance = random.Random(seed)
        graph = cls(chance, [chance.choice(("A", "B", 2, 3)) for _ in range(chance.choice((3, 4)))])
        for number in range(chance.randint(2, 4)):
            named = [graph._stretched(number, axis) for axis in range(len(graph.lengths))]
            graph.inputs[f"x{number}"] = named if number else list(graph.lengths)
            graph.ranks[f"x{number}"] = len(graph.lengths)
        steps = (graph.transpose, graph.join, graph.merge, graph.multiply, graph.normalise)
        for _ in range(chance.randint(FEWEST, MOST)):
            chance.choice((graph.transpose, *steps))()
        return graph

    def model(self) -> onnx.ModelProto:
        read = {name for node in self.nodes for name in node.input}
        outputs = [name for name in self.ranks if name not in read and name not in self.inputs]
        inputs = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
            for name, shape in self.inputs.items()
        ]
        results = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs
        ]
        graph = helper.make_graph(self.nodes, "stretched", inputs, results, self.constants)
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def feeds(self, run: int) -> Mapping[str, Array]:
        """Inputs of which some are stretched: the same for the same run."""
        chance = random.Random(run)
        bound: dict[int | str, int] = {"A": chance.choice(LENGTHS), "B": chance.choice(LENGTHS)}
        numbers = np.random.default_rng(run)
        feeds = {}
        for name, shape in self.inputs.items():
            wide = [bound.get(length, length) for length in self.lengths]
            for length, full in zip(shape, wide, strict=True):
                if isinstance(length, str):
                    bound.setdefault(length, int(chance.choice((full, 1))))
            dims = [int(bound.get(length, length)) for length in shape]
            feeds[name] = numbers.integers(-8, 9, dims).astype(np.float32)
        return feeds

    def transpose(self) -> None:
        value = self._any()
        order = list(range(self.ranks[value]))
        self.chance.shuffle(order)
        self._add("Transpose", [value], self.ranks[value], perm=order)

    def join(self) -> None:
        one, other = self._any(), self._any()
        op_type = self.chance.choice(("Add", "Mul", "Max"))
        self._add(op_type, [one, other], max(self.ranks[one], self.ranks[other]))

    def merge(self) -> None:
        """Two axes become one, or all are as they are in another value."""
        value = self._any()
        rank = self.ranks[value]
        if rank < 3 or self.chance.random() < 0.3:
            like = self.chance.choice([name for name in self.ranks if name in self.inputs])
            self._add("Reshape", [value, self._shape_of(like)], self.ranks[like])
            return
        target = np.asarray([*[0] * (rank - 2), -1], np.int64)
        self.constants.append(numpy_helper.from_array(target, f"to{len(self.constants)}"))
        self._add("Reshape", [value, self.constants[-1].name], rank - 1)

    def multiply(self) -> None:
        one = self._any()
        rank = self.ranks[one]
        other = self.chance.choice([name for name, found in self.ranks.items() if found == rank])
        order = [*range(rank - 2), rank - 1, rank - 2]
        turned = self._add("Transpose", [other], rank, perm=order)
        self._add("MatMul", [one, turned], rank)

    def normalise(self) -> None:
        value = self._any()
        axis = self.chance.randrange(self.ranks[value])
        self._add("Softmax", [value], self.ranks[value], axis=axis)

    def _stretched(self, number: int, axis: int) -> int | str:
        name = f"S{number}_{axis}"
        return self.chance.choice((self.lengths[axis], name, name, 1))

    def _shape_of(self, value: str) -> str:
        name = f"shape{len(self.nodes)}"
        self.nodes.append(helper.make_node("Shape", [value], [name]))
        return name

    def _any(self) -> str:
        names = list(self.ranks)
        return self.chance.choice(names[-5:] if self.chance.random() < 0.7 else names)

    def _add(self, op_type: str, operands: list[str], rank: int, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [name], **attributes))
        self.ranks[name] = rank
        return name
