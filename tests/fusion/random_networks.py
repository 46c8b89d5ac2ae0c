"""Random networks of many operators, whose values are read here and there."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BATCH, CHANNELS, SIDE = 2, 4, 6
FIRST = (BATCH, CHANNELS, SIDE, SIDE)
LAST = (BATCH, SIDE, SIDE, CHANNELS)
FLAT = (BATCH, CHANNELS, SIDE * SIDE)
TO_LAST, TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
POINTWISE = ("Abs", "Exp", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh")
JOINING = ("Add", "Max", "Mul", "Sub")
REDUCING = ("ReduceMax", "ReduceMean", "ReduceSum")


@dataclass(slots=True)
class _Network:
    chance: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: list[tuple[str, tuple[int, ...]]] = field(default_factory=lambda: [("x", FIRST)])
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def node(self, op_type: str, operands: list[str], shape: tuple[int, ...], **more: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [name], name, **more))
        self.values.append((name, shape))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def pick(self, *shapes: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        """A value, more likely a late one."""
        fit = [each for each in self.values if not shapes or each[1] in shapes]
        return self.chance.choice(fit[-5:] if self.chance.random() < 0.7 else fit) if fit else None

    def axes(self, *axes: int) -> str:
        return self.constant(np.asarray(axes, np.int64))


def _pointwise(net: _Network) -> None:
    picked = net.pick()
    if picked:
        net.node(net.chance.choice(POINTWISE), [picked[0]], picked[1])


def _joined(net: _Network) -> None:
    first = net.pick()
    second = net.pick(first[1]) if first else None
    if first and second:
        net.node(net.chance.choice(JOINING), [first[0], second[0]], first[1])


def _scaled(net: _Network) -> None:
    picked = net.pick(FIRST, LAST)
    if picked:
        scalar = net.chance.random() < 0.5
        shape = () if scalar else (CHANNELS, 1, 1) if picked[1] == FIRST else (CHANNELS,)
        net.node("Mul", [picked[0], net.constant(np.full(shape, 0.5, np.float32))], picked[1])


def _convolved(net: _Network) -> None:
    picked = net.pick(FIRST)
    if picked:
        side = net.chance.choice((1, 3))
        weight = np.full((CHANNELS, CHANNELS, side, side), 0.1, np.float32)
        pads = [side // 2] * 4
        net.node("Conv", [picked[0], net.constant(weight)], FIRST, pads=pads)


def _multiplied(net: _Network) -> None:
    picked = net.pick(LAST)
    if picked:
        weight = np.full((CHANNELS, CHANNELS), 0.1, np.float32)
        net.node("MatMul", [picked[0], net.constant(weight)], LAST)


def _moved(net: _Network) -> None:
    picked = net.pick(FIRST, LAST)
    if picked:
        is_first = picked[1] == FIRST
        perm = TO_LAST if is_first else TO_FIRST
        net.node("Transpose", [picked[0]], LAST if is_first else FIRST, perm=perm)


def _swapped(net: _Network) -> None:
    """Another order of the same shape."""
    picked = net.pick(FIRST)
    if picked:
        net.node("Transpose", [picked[0]], FIRST, perm=[0, 1, 3, 2])


def _reshaped(net: _Network) -> None:
    picked = net.pick(FIRST, FLAT)
    if picked:
        shape = FLAT if picked[1] == FIRST else FIRST
        net.node("Reshape", [picked[0], net.axes(*shape)], shape)


def _reduced(net: _Network) -> None:
    """A reduction, read by its own operand more often than not."""
    picked = net.pick(FIRST, LAST, FLAT)
    if not picked:
        return
    shape = (*picked[1][:-1], 1)
    row = net.node(net.chance.choice(REDUCING), [picked[0], net.axes(-1)], shape, keepdims=1)
    if net.chance.random() < 0.7:
        net.node(net.chance.choice(JOINING), [picked[0], row], picked[1])


def _normalised(net: _Network) -> None:
    picked = net.pick(FIRST, LAST, FLAT)
    if picked:
        net.node("Softmax", [picked[0]], picked[1], axis=-1)


def _pooled(net: _Network) -> None:
    picked = net.pick(FIRST)
    if picked:
        net.node("MaxPool", [picked[0]], FIRST, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def _sliced_and_joined(net: _Network) -> None:
    picked = net.pick(FIRST)
    if picked:
        half = (BATCH, CHANNELS // 2, SIDE, SIDE)
        low = net.node("Slice", [picked[0], *map(net.axes, (0, 2, 1))], half)
        high = net.node("Slice", [picked[0], *map(net.axes, (2, 4, 1))], half)
        net.node("Concat", [high, low], FIRST, axis=1)


STEPS = (
    *(_pointwise, _pointwise, _pointwise, _joined, _joined, _scaled, _convolved, _convolved),
    *(_multiplied, _moved, _swapped, _reshaped, _reduced, _reduced, _normalised, _pooled),
    _sliced_and_joined,
)


def random_network(seed: int) -> onnx.ModelProto:
    net = _Network(random.Random(seed))
    for _ in range(net.chance.randint(5, 30)):
        net.chance.choice(STEPS)(net)
    read = {name for node in net.nodes for name in node.input}
    ends = [(n, s) for n, s in net.values[1:] if n not in read or net.chance.random() < 0.05]
    graph = helper.make_graph(
        net.nodes,
        "random",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, FIRST)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends],
        [numpy_helper.from_array(array, name) for name, array in net.constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
