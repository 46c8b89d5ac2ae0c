"""Changes of a model that keep it valid, most of which change what it computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Edit = Callable[[random.Random, onnx.ModelProto], bool]
"""Changes the model and says whether it found something to change."""

SIBLINGS = (
    ("Add", "Sub", "Mul", "Max", "Min"),
    ("Relu", "Neg", "Tanh", "Sigmoid", "Abs", "Sin"),
    ("Greater", "Less", "GreaterOrEqual", "LessOrEqual"),
    ("ArgMax", "ArgMin"),
    ("Softmax", "LogSoftmax", "Hardmax"),
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceProd"),
    ("GlobalAveragePool", "GlobalMaxPool"),
)
WORDS = (
    ("constant", "edge", "reflect", "wrap"),
    ("nearest", "linear"),
    ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
    ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    ("SAME_UPPER", "SAME_LOWER", "VALID"),
    ("DCR", "CRD"),
)


def all_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes of graph, bodies and functions."""

    def within(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
        for node in nodes:
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from within(attribute.g.node)

    return [*within(model.graph.node), *(n for f in model.functions for n in within(f.node))]


def change_attribute(rng: random.Random, model: onnx.ModelProto) -> bool:
    places = [
        attribute
        for node in all_nodes(model)
        for attribute in node.attribute
        if not attribute.HasField("g") and not attribute.ref_attr_name and attribute.name != "to"
    ]
    if not places:
        return False
    attribute = rng.choice(places)
    changed = _changed(rng, attribute.name, helper.get_attribute_value(attribute))
    attribute.CopyFrom(helper.make_attribute(attribute.name, changed, attr_type=attribute.type))
    return True


def _changed(rng: random.Random, name: str, value: Any) -> Any:
    if name == "perm":
        return rng.sample(list(value), len(value))
    if name == "equation":
        return _other_equation(rng, value.decode())
    if isinstance(value, bytes):
        others = [words for words in WORDS if value.decode() in words]
        return rng.choice(others[0]) if others else value
    if isinstance(value, float):
        return value * rng.choice([2.0, 0.5, -1.0]) + rng.choice([0.0, 0.25])
    if isinstance(value, int):
        return value + rng.choice([-2, -1, 1, 2])
    numbers = list(value)
    if len(numbers) > 1 and rng.random() < 0.5:
        rng.shuffle(numbers)
    elif numbers:
        numbers[rng.randrange(len(numbers))] += rng.choice([-1, 1])
    return numbers


def _other_equation(rng: random.Random, equation: str) -> str:
    left, right = equation.split("->")
    if rng.random() < 0.5:
        return f"{left}->{''.join(rng.sample(right, len(right)))}"
    first, *second = left.split(",")
    swapped = ["".join(rng.sample(one, len(one))) for one in second]
    return f"{','.join([first, *swapped])}->{right}"


def change_constant(rng: random.Random, model: onnx.ModelProto) -> bool:
    if not model.graph.initializer:
        return False
    tensor = rng.choice(model.graph.initializer)
    array = numpy_helper.to_array(tensor)
    changed = _whole_numbers(rng, array) if array.dtype == np.int64 else _numbers(rng, array)
    tensor.CopyFrom(numpy_helper.from_array(np.array(changed, order="C"), tensor.name))
    return True


def _whole_numbers(rng: random.Random, array: Any) -> Any:
    flat = array.reshape(-1).copy()
    if flat.size > 1 and rng.random() < 0.5:
        flat = np.array(rng.sample(flat.tolist(), flat.size), array.dtype)
    elif flat.size:
        flat[rng.randrange(flat.size)] += rng.choice([-2, -1, 1, 2])
    return flat.reshape(array.shape)


def _numbers(rng: random.Random, array: Any) -> Any:
    way = rng.random()
    if array.dtype == bool or not array.size:
        return array
    if way < 0.3 and array.ndim:
        return np.roll(array, 1, rng.randrange(array.ndim))
    if way < 0.5 and array.ndim:
        return np.flip(array, rng.randrange(array.ndim))
    order = rng.sample(range(array.ndim), array.ndim)
    if way < 0.7 and array.transpose(order).shape == array.shape:
        return array.transpose(order)
    flat = array.reshape(-1).copy()
    flat[rng.randrange(flat.size)] += flat.dtype.type(rng.choice([0.25, -1, 3]))
    return flat.reshape(array.shape)


def _known_types(model: onnx.ModelProto) -> dict[str, bytes]:
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    ports = [*graph.input, *graph.value_info, *graph.output]
    return {port.name: port.type.SerializeToString(deterministic=True) for port in ports}


def change_edge(rng: random.Random, model: onnx.ModelProto) -> bool:
    """Another operand of the same shape, made before."""
    nodes = model.graph.node
    types = _known_types(model)
    number = rng.randrange(len(nodes))
    node = nodes[number]
    ready = [port.name for port in model.graph.input]
    ready += [name for one in nodes[:number] for name in one.output]
    place = rng.randrange(len(node.input)) if node.input else 0
    if not node.input or node.input[place] not in types:
        return False
    wanted = types[node.input[place]]
    others = [n for n in ready if types.get(n) == wanted and n != node.input[place]]
    if not others:
        return False
    node.input[place] = rng.choice(others)
    return True


def swap_operands(rng: random.Random, model: onnx.ModelProto) -> bool:
    nodes = [node for node in all_nodes(model) if len(node.input) > 1]
    if not nodes:
        return False
    node = rng.choice(nodes)
    one, other = rng.sample(range(len(node.input)), 2)
    node.input[one], node.input[other] = node.input[other], node.input[one]
    return True


def swap_results(rng: random.Random, model: onnx.ModelProto) -> bool:
    """Two results of a node, or of two nodes, change places."""
    nodes = [node for node in model.graph.node if len(node.output) > 1]
    if not nodes:
        return False
    node = rng.choice(nodes)
    one, other = rng.sample(range(len(node.output)), 2)
    node.output[one], node.output[other] = node.output[other], node.output[one]
    return True


def change_operator(rng: random.Random, model: onnx.ModelProto) -> bool:
    known = [node for node in all_nodes(model) if any(node.op_type in row for row in SIBLINGS)]
    if not known:
        return False
    node = rng.choice(known)
    row = next(row for row in SIBLINGS if node.op_type in row)
    node.op_type = rng.choice([name for name in row if name != node.op_type])
    return True


def insert_transpose(rng: random.Random, model: onnx.ModelProto) -> bool:
    """A Transpose of equal lengths before an operand."""
    types = _known_types(model)
    places = [
        (number, place)
        for number, node in enumerate(model.graph.node)
        for place, name in enumerate(node.input)
        if name in types
    ]
    if not places:
        return False
    number, place = rng.choice(places)
    node = model.graph.node[number]
    kind = onnx.TypeProto.FromString(types[node.input[place]]).tensor_type
    rank = len(kind.shape.dim)
    if rank < 2:
        return False
    perm = rng.sample(range(rank), rank)
    name = f"{node.input[place]}_t{number}{place}{len(model.graph.node)}"
    made = helper.make_node("Transpose", [node.input[place]], [name], perm=perm)
    node.input[place] = name
    model.graph.node.insert(number, made)
    return True


EDITS: tuple[Edit, ...] = (
    change_attribute, change_attribute, change_attribute, change_constant, change_constant,
    change_edge, change_edge, swap_operands, swap_results, change_operator, insert_transpose,
)  # fmt: skip
