"""Random ONNX files of up to a hundred nodes that TVM imports node by node.

Pointwise operators with scalars and with tensors that are broadcast, moves, reductions, products,
windows, Split and Concat; values are read here and there, and some are outputs besides.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MOST_NODES = 100
WHOLE, DOUBLE = (1, 4, 6, 6), (1, 8, 6, 6)
ROW, CHANNEL = (1, 4, 6, 1), (1, 4, 1, 1)
FLAT = (1, 4, 36)
INPUTS = {"x": WHOLE, "y": WHOLE, "s": CHANNEL}
POINTWISE = ("Abs", "Exp", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh")
JOINING = ("Add", "Div", "Mul", "Sub")
REDUCING = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
Shape = tuple[int, ...]


@dataclass(slots=True)
class _File:
    chance: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: dict[str, Shape] = field(default_factory=lambda: dict(INPUTS))
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def node(self, op_type: str, operands: list[str], *shapes: Shape, **more: Any) -> None:
        place = len(self.nodes)
        names = [f"v{place}_{number}" for number in range(len(shapes))]
        self.nodes.append(helper.make_node(op_type, operands, names, f"n{place}", **more))
        self.values.update(zip(names, shapes, strict=True))

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def scalar(self) -> str:
        """A new one, or one that is read elsewhere too."""
        known = [name for name, array in self.constants.items() if array.shape == ()]
        if known and self.chance.random() < 0.4:
            return self.chance.choice(known)
        return self.constant(np.float32(0.5))

    def pick(self, *shapes: Shape) -> str:
        """A value, more likely a late one."""
        fit = [name for name, shape in self.values.items() if not shapes or shape in shapes]
        return self.chance.choice(fit[-4:] if self.chance.random() < 0.7 else fit)


def _pointwise(file: _File) -> None:
    value = file.pick()
    file.node(file.chance.choice(POINTWISE), [value], file.values[value])


def _scaled(file: _File) -> None:
    value = file.pick()
    pair = [value, file.scalar()]
    pair = pair if file.chance.random() < 0.7 else pair[::-1]
    file.node(file.chance.choice(JOINING), pair, file.values[value])


def _joined(file: _File) -> None:
    value = file.pick()
    shape = file.values[value]
    file.node(file.chance.choice(JOINING), [value, file.pick(shape)], shape)


def _broadcast(file: _File) -> None:
    pair = [file.pick(WHOLE), file.pick(CHANNEL, ROW)]
    file.node(
        file.chance.choice(JOINING), pair if file.chance.random() < 0.5 else pair[::-1], WHOLE
    )


def _shifted(file: _File) -> None:
    bias = file.constant(np.ones((4, 1, 1), np.float32))
    file.node("Add", [file.pick(WHOLE), bias], WHOLE)


def _convolved(file: _File) -> None:
    value = file.pick(WHOLE, DOUBLE)
    weight = file.constant(np.full((4, file.values[value][1], 3, 3), 0.1, np.float32))
    file.node("Conv", [value, weight], WHOLE, pads=[1, 1, 1, 1])


def _multiplied(file: _File) -> None:
    value = file.pick(WHOLE, DOUBLE)
    weight = file.constant(np.full((6, 6), 0.1, np.float32))
    file.node("MatMul", [value, weight], file.values[value])


def _normalised(file: _File) -> None:
    value = file.pick(WHOLE, FLAT)
    file.node("Softmax", [value], file.values[value], axis=-1)


def _pooled(file: _File) -> None:
    value = file.pick(WHOLE, DOUBLE)
    shape = file.values[value]
    file.node("MaxPool", [value], shape, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def _reduced(file: _File) -> None:
    axes = file.constant(np.asarray([3], np.int64))
    file.node(file.chance.choice(REDUCING), [file.pick(WHOLE), axes], ROW, keepdims=1)


def _swapped(file: _File) -> None:
    value = file.pick(WHOLE, DOUBLE)
    file.node("Transpose", [value], file.values[value], perm=[0, 1, 3, 2])


def _reshaped(file: _File) -> None:
    value = file.pick(WHOLE, FLAT)
    shape = FLAT if file.values[value] == WHOLE else WHOLE
    file.node("Reshape", [value, file.constant(np.asarray(shape, np.int64))], shape)


def _expanded(file: _File) -> None:
    shape = file.constant(np.asarray(WHOLE, np.int64))
    file.node("Expand", [file.pick(CHANNEL, ROW), shape], WHOLE)


def _cut(file: _File) -> None:
    start = file.chance.choice((0, 4))
    bounds = [file.constant(np.asarray([each], np.int64)) for each in (start, start + 4, 1)]
    if any(shape == DOUBLE for shape in file.values.values()):
        file.node("Slice", [file.pick(DOUBLE), *bounds], WHOLE)


def _concatenated(file: _File) -> None:
    file.node("Concat", [file.pick(WHOLE), file.pick(WHOLE)], DOUBLE, axis=1)


def _split(file: _File) -> None:
    if any(shape == DOUBLE for shape in file.values.values()):
        file.node("Split", [file.pick(DOUBLE)], WHOLE, WHOLE, axis=1, num_outputs=2)


STEPS = (
    *(_pointwise, _pointwise, _pointwise, _scaled, _scaled, _joined, _joined, _broadcast),
    *(_shifted, _convolved, _multiplied, _normalised, _pooled, _reduced, _swapped, _reshaped),
    *(_expanded, _cut, _concatenated, _concatenated, _split, _split),
)


def random_file(seed: int) -> onnx.ModelProto:
    file = _File(random.Random(seed))
    # FLAT and ROW have to be there before they are picked.
    file.node("Reshape", ["x", file.constant(np.asarray(FLAT, np.int64))], FLAT)
    file.node("ReduceSum", ["x", file.constant(np.asarray([3], np.int64))], ROW, keepdims=1)
    wanted = file.chance.randint(3, MOST_NODES)
    while len(file.nodes) < wanted:
        file.chance.choice(STEPS)(file)
    read = {name for node in file.nodes for name in node.input}
    made = [name for name in file.values if name not in INPUTS]
    ends = [name for name in made if name not in read or file.chance.random() < 0.05]
    graph = helper.make_graph(
        file.nodes,
        "random",
        [_described(name, shape) for name, shape in INPUTS.items()],
        [_described(name, file.values[name]) for name in ends],
        [numpy_helper.from_array(array, name) for name, array in file.constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _described(name: str, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
