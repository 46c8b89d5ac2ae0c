"""Random graphs of small tensors, of which all values can be compared with all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LIMIT = 200
"""Elements of a tensor, at most."""
OPSET = 18

Array = np.ndarray[Any, Any]


@dataclass
class RandomGraph:
    """A graph that grows by nodes whose results the reference computes at once."""

    random: Random
    arrays: dict[str, Array] = field(default_factory=dict)
    held: dict[str, Array] = field(default_factory=dict)
    """The constants by name."""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def input(self, *shape: int) -> None:
        name = f"x{len(self.inputs)}"
        numbers = [self.random.randint(-40, 40) / 8 for _ in range(int(np.prod(shape)))]
        self.arrays[name] = np.array(numbers, np.float32).reshape(shape)
        self.inputs.append(name)

    def numbers(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, np.int64), known=False)

    def constant(self, array: Array, *, known: bool = True) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        self.held[name] = array
        if known:
            self.arrays[name] = array
        return name

    def add(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        node = helper.make_node(op_type, inputs, [name], **attributes)
        try:
            result = self._computed(node)
        except (ValueError, IndexError, TypeError, RuntimeError):
            return  # the shapes do not fit
        if 0 < result.size <= LIMIT and result.ndim <= 5:
            self.arrays[name] = result
            self.nodes.append(node)

    def _computed(self, node: onnx.NodeProto) -> Array:
        feeds = {name: self.held.get(name, self.arrays.get(name)) for name in node.input}
        opset = [helper.make_opsetid("", OPSET)]
        function = helper.make_function("t", "f", list(feeds), list(node.output), [node], opset)
        with np.errstate(all="ignore"):
            (result,) = ReferenceEvaluator(function).run(None, feeds, attributes={})
        return np.asarray(result)

    def grow(self) -> None:
        self.random.choice(STEPS)(self)

    def pick(self) -> str:
        """Some value, the later the likelier."""
        names = list(self.arrays)
        return names[max(self.random.randrange(len(names)) for _ in range(2))]

    def model(self) -> onnx.ModelProto:
        kind = onnx.TensorProto.FLOAT
        inputs = [
            helper.make_tensor_value_info(name, kind, self.arrays[name].shape)
            for name in self.inputs
        ]
        outputs = [helper.make_tensor_value_info(name, kind, None) for name in self.arrays]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])


def _transpose(graph: RandomGraph) -> None:
    name = graph.pick()
    perm = list(range(graph.arrays[name].ndim))
    graph.random.shuffle(perm)
    if perm:
        graph.add("Transpose", [name], perm=perm)


def _reshape(graph: RandomGraph) -> None:
    name = graph.pick()
    rest, lengths = graph.arrays[name].size, list[int]()
    while rest > 1 and len(lengths) < 3:
        divisors = [n for n in range(1, rest + 1) if rest % n == 0]
        lengths.append(graph.random.choice(divisors))
        rest //= lengths[-1]
    graph.add("Reshape", [name, graph.numbers([*lengths, rest])])


def _binary(graph: RandomGraph) -> None:
    op_type = graph.random.choice(["Add", "Sub", "Mul", "MatMul", "Max"])
    graph.add(op_type, [graph.pick(), graph.pick()])


def _outer(graph: RandomGraph) -> None:
    """Of a vector and itself: where an index is easily taken for another."""
    name, other = graph.pick(), graph.pick()
    graph.add("Reshape", [name, graph.numbers([-1, 1])])
    column = list(graph.arrays)[-1]
    if graph.random.random() < 0.6:
        graph.add("Reshape", [name, graph.numbers([1, -1])])
        other = list(graph.arrays)[-1]
    graph.add(graph.random.choice(["Sub", "Mul", "Add"]), [column, other])


def _unary(graph: RandomGraph) -> None:
    graph.add(graph.random.choice(["Relu", "Neg"]), [graph.pick()])


def _axis(graph: RandomGraph) -> int:
    """Most tensors have it; -1 is in all but scalars."""
    return graph.random.choice([-1, 0, 1, 2])


def _reduce(graph: RandomGraph) -> None:
    op_type = graph.random.choice(["ReduceSum", "ReduceMax"])
    operands = [graph.pick(), graph.numbers([_axis(graph)])]
    graph.add(op_type, operands, keepdims=graph.random.randrange(2))


def _softmax(graph: RandomGraph) -> None:
    graph.add("Softmax", [graph.pick()], axis=_axis(graph))


def _concat(graph: RandomGraph) -> None:
    graph.add("Concat", [graph.pick(), graph.pick()], axis=_axis(graph))


def _slice(graph: RandomGraph) -> None:
    start, step = graph.random.randrange(2), graph.random.choice([1, 1, 2])
    bounds = [[start], [start + graph.random.randint(1, 3)], [_axis(graph)], [step]]
    graph.add("Slice", [graph.pick(), *map(graph.numbers, bounds)])


def _gather(graph: RandomGraph) -> None:
    picked = [graph.random.randrange(3) for _ in range(graph.random.randint(1, 3))]
    graph.add("Gather", [graph.pick(), graph.numbers(picked)], axis=_axis(graph))


def _pad(graph: RandomGraph) -> None:
    name = graph.pick()
    count = 2 * graph.arrays[name].ndim
    graph.add("Pad", [name, graph.numbers([graph.random.choice([0, 0, 1]) for _ in range(count)])])


def _expand(graph: RandomGraph) -> None:
    name, op_type = graph.pick(), graph.random.choice(["Expand", "Tile"])
    count = 3 if op_type == "Expand" else graph.arrays[name].ndim
    lengths = [graph.random.choice([1, 2, 3]) for _ in range(count)]
    graph.add(op_type, [name, graph.numbers(lengths)])


def _cumulative(graph: RandomGraph) -> None:
    graph.add("CumSum", [graph.pick(), graph.numbers([_axis(graph)])])


def _mirror(graph: RandomGraph) -> None:
    """A value and itself transposed."""
    name = graph.pick()
    graph.add("Transpose", [name])
    pair = [name, list(graph.arrays)[-1]]
    graph.random.shuffle(pair)
    graph.add(graph.random.choice(["Sub", "Add", "MatMul"]), pair)


def _number(graph: RandomGraph) -> None:
    number = graph.random.choice([0.5, 2.0, -1.0])
    pair = [graph.pick(), graph.constant(np.array(number, np.float32), known=False)]
    graph.add(graph.random.choice(["Mul", "Add", "Div"]), pair)


STEPS: tuple[Callable[[RandomGraph], None], ...] = (
    *(_transpose, _transpose, _transpose, _reshape, _reshape, _reshape, _binary, _binary, _outer),
    *(_unary, _reduce, _softmax, _concat, _slice, _slice, _gather, _pad, _expand, _cumulative),
    *(_mirror, _number),
)


def random_graph(seed: int, size: int) -> RandomGraph:
    graph = RandomGraph(Random(seed))
    for shape in ((2, 3), (3, 3), (2, 2, 3)):
        graph.input(*shape)
    square = np.array([[1, 2, 3], [2, 5, 6], [3, 6, 9]], np.float32)
    graph.constant(square)  # the same whatever the order of its axes
    graph.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    while len(graph.nodes) < size:
        graph.grow()
    return graph
