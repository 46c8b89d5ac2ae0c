"""Rewrites that keep what a model computes if they are done right, as they are most of the time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.near_misses.edits import Edit

RIGHT = 0.7
AROUND: tuple[str, ...] = ("Add", "Sub", "Mul", "Max", "Min", "Where", "Concat", "Softmax")
AROUND += ("LogSoftmax", "Hardmax")
AROUND += ("Relu", "Tanh", "Abs", "Sigmoid", "Neg", "Round", "LpNormalization", "Split", "ArgMax")
AROUND += ("ReduceSum", "ReduceMean", "ReduceMax", "CumSum", "Greater", "Less", "Pad", "Slice")
AROUND += ("Tile", "Expand", "DequantizeLinear", "QuantizeLinear", "TopK", "LayerNormalization")
VECTORS = {"ReduceSum": 1, "ReduceMean": 1, "ReduceMax": 1, "CumSum": 1, "Slice": 3}
"""By operator, the operand that names axes."""
LISTS = {"Pad": 1, "Tile": 1, "Expand": 1}
"""By operator, the operand that holds a number, or two, for each axis."""


def _ranks(model: onnx.ModelProto) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    ports = [*graph.input, *graph.value_info, *graph.output]
    held = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return held | {
        port.name: len(port.type.tensor_type.shape.dim)
        for port in ports
        if port.type.tensor_type.HasField("shape")
    }


def _inverse(perm: Sequence[int]) -> list[int]:
    return [list(perm).index(i) for i in range(len(perm))]


def _fresh(model: onnx.ModelProto, name: str) -> str:
    return f"{name}_{len(model.graph.node)}_{len(model.graph.initializer)}"


def two_transposes(rng: random.Random, model: onnx.ModelProto) -> bool:
    """Two Transposes before an operand, the second mostly the inverse of the first."""
    ranks = _ranks(model)
    number = rng.randrange(len(model.graph.node))
    node = model.graph.node[number]
    places = [i for i, name in enumerate(node.input) if ranks.get(name, 0) > 1]
    if not places:
        return False
    place = rng.choice(places)
    rank = ranks[node.input[place]]
    perm = rng.sample(range(rank), rank)
    back = _inverse(perm) if rng.random() < RIGHT else rng.sample(range(rank), rank)
    first = _fresh(model, node.input[place])
    made = [
        helper.make_node("Transpose", [node.input[place]], [first], perm=perm),
        helper.make_node("Transpose", [first], [f"{first}b"], perm=back),
    ]
    node.input[place] = f"{first}b"
    for one in reversed(made):
        model.graph.node.insert(number, one)
    return True


def around_node(rng: random.Random, model: onnx.ModelProto) -> bool:
    """A Transpose before all operands of a node and its inverse behind, with the axes renamed."""
    ranks = _ranks(model)
    fit = [i for i, node in enumerate(model.graph.node) if node.op_type in AROUND]
    if not fit:
        return False
    number = rng.choice(fit)
    node = model.graph.node[number]
    rank = ranks.get(node.input[0], 0)
    outside = [name for name in node.output if ranks.get(name) != rank]
    if rank < 2 or outside:
        return False
    perm = rng.sample(range(rank), rank)
    moved = {i for i, name in enumerate(node.input) if ranks.get(name) == rank}
    if node.op_type in ("Add", "Sub", "Mul", "Max", "Min", "Where", "Greater", "Less", "Concat"):
        if len(moved) < len(node.input):
            return False
    else:
        moved = {0}
    _rename_axes(rng, model, node, perm, rank)
    before, after = [], []
    for place in moved:
        name = f"{_fresh(model, node.input[place])}i{place}"
        before.append(helper.make_node("Transpose", [node.input[place]], [name], perm=perm))
        node.input[place] = name
    back = _inverse(perm) if rng.random() < RIGHT else rng.sample(range(rank), rank)
    for place, name in enumerate(list(node.output)):
        inner = f"{_fresh(model, name)}o{place}"
        after.append(helper.make_node("Transpose", [inner], [name], perm=back))
        node.output[place] = inner
    for one in reversed(after):
        model.graph.node.insert(number + 1, one)
    for one in before:
        model.graph.node.insert(number, one)
    return True


def _rename_axes(
    rng: random.Random, model: onnx.ModelProto, node: onnx.NodeProto, perm: list[int], rank: int
) -> None:
    right = rng.random() < RIGHT + 0.15
    for attribute in node.attribute:
        if attribute.name == "axis" and node.op_type != "LayerNormalization" and right:
            attribute.i = perm.index(attribute.i % rank)
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    place = VECTORS.get(node.op_type, LISTS.get(node.op_type))
    if place is None or place >= len(node.input) or node.input[place] not in held or not right:
        return
    tensor = held[node.input[place]]
    array = numpy_helper.to_array(tensor)
    if node.op_type in VECTORS:
        array = np.array([perm.index(int(n) % rank) for n in array.reshape(-1)]).reshape(
            array.shape
        )
    elif array.size % rank == 0:
        array = array.reshape(-1, rank)[:, perm].reshape(-1)
    name = f"{_fresh(model, tensor.name)}n"
    model.graph.initializer.append(numpy_helper.from_array(array.astype(np.int64), name))
    node.input[place] = name


def swap_commutative(rng: random.Random, model: onnx.ModelProto) -> bool:
    nodes = [n for n in model.graph.node if n.op_type in ("Add", "Mul", "Max", "Min", "Sum")]
    nodes = [node for node in nodes if len(node.input) == 2]
    if not nodes:
        return False
    node = rng.choice(nodes)
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


def product_turned(rng: random.Random, model: onnx.ModelProto) -> bool:
    """A product of matrices as the transpose of the product of their transposes."""
    ranks = _ranks(model)
    fit = [i for i, node in enumerate(model.graph.node) if node.op_type == "MatMul"]
    fit = [i for i in fit if all(ranks.get(n) == 2 for n in model.graph.node[i].input)]
    if not fit:
        return False
    number = rng.choice(fit)
    node = model.graph.node[number]
    left, right = node.input
    name = _fresh(model, node.output[0])
    made = [
        helper.make_node("Transpose", [left], [f"{name}l"], perm=[1, 0]),
        helper.make_node("Transpose", [right], [f"{name}r"], perm=[1, 0]),
        helper.make_node("MatMul", [f"{name}r", f"{name}l"], [f"{name}p"]),
        helper.make_node("Transpose", [f"{name}p"], [node.output[0]], perm=[1, 0]),
    ]
    if rng.random() > RIGHT:
        made[2].input.reverse()
    del model.graph.node[number]
    for one in reversed(made):
        model.graph.node.insert(number, one)
    return True


def store_turned(rng: random.Random, model: onnx.ModelProto) -> bool:
    """A constant stored in another order of axes, and a Transpose that undoes it."""
    tensors = [t for t in model.graph.initializer if len(t.dims) > 1]
    if not tensors:
        return False
    tensor = rng.choice(tensors)
    rank = len(tensor.dims)
    perm = rng.sample(range(rank), rank)
    array = np.ascontiguousarray(numpy_helper.to_array(tensor).transpose(perm))
    name, stored = tensor.name, f"{_fresh(model, tensor.name)}s"
    tensor.CopyFrom(numpy_helper.from_array(array, stored))
    back = _inverse(perm) if rng.random() < RIGHT else rng.sample(range(rank), rank)
    model.graph.node.insert(0, helper.make_node("Transpose", [stored], [name], perm=back))
    return True


def through_one_axis(rng: random.Random, model: onnx.ModelProto) -> bool:
    """An operand reshaped to one axis and back."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {
        port.name: [d.dim_value for d in port.type.tensor_type.shape.dim]
        for port in [*graph.input, *graph.value_info]
    }
    number = rng.randrange(len(model.graph.node))
    node = model.graph.node[number]
    places = [i for i, n in enumerate(node.input) if shapes.get(n) and all(shapes[n])]
    if not places:
        return False
    place = rng.choice(places)
    name = _fresh(model, node.input[place])
    shape = list(shapes[node.input[place]])
    if rng.random() > RIGHT:
        rng.shuffle(shape)
    for suffix, lengths in (("f", [-1]), ("u", shape)):
        constant = numpy_helper.from_array(np.array(lengths, np.int64), f"{name}{suffix}c")
        model.graph.initializer.append(constant)
    made = [
        helper.make_node("Reshape", [node.input[place], f"{name}fc"], [f"{name}f"]),
        helper.make_node("Reshape", [f"{name}f", f"{name}uc"], [f"{name}u"]),
    ]
    node.input[place] = f"{name}u"
    for one in reversed(made):
        model.graph.node.insert(number, one)
    return True


def multiplied_first(rng: random.Random, model: onnx.ModelProto) -> bool:
    """A product of channels that are put together and resized, as a sum of resized products.

    Done wrong, a part is resized as another is, or multiplied by what another is, or not resized.
    """
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    fit = [i for i, n in enumerate(model.graph.node) if _is_pointwise(n, held, makers)]
    if not fit:
        return False
    number = rng.choice(fit)
    conv = model.graph.node[number]
    source = makers[conv.input[0]]
    parts = list(source.input) if source.op_type == "Concat" else [conv.input[0]]
    weights = np.split(held[conv.input[1]], len(parts), axis=1)
    if rng.random() > RIGHT:
        rng.shuffle(weights)
    name, made, terms = _fresh(model, conv.output[0]), [], []
    for place, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        model.graph.initializer.append(numpy_helper.from_array(weight, f"{name}w{place}"))
        resize = makers.get(part)
        if resize is None or resize.op_type != "Resize" or len(resize.input) != 4:
            made.append(helper.make_node("Conv", [part, f"{name}w{place}"], [f"{name}t{place}"]))
        else:
            sizes = held[resize.input[3]].copy()
            sizes[1] = len(weight)
            model.graph.initializer.append(numpy_helper.from_array(sizes, f"{name}z{place}"))
            small = helper.make_node(
                "Conv", [resize.input[0], f"{name}w{place}"], [f"{name}c{place}"]
            )
            large = onnx.NodeProto()
            large.CopyFrom(resize)
            large.input[0], large.input[3] = f"{name}c{place}", f"{name}z{place}"
            large.output[0] = f"{name}t{place}"
            made += [small, large]
        terms.append(f"{name}t{place}")
    terms = terms if rng.random() < RIGHT + 0.2 else [rng.choice(terms) for _ in terms]
    total = terms[0]
    for place, term in enumerate(terms[1:]):
        made.append(helper.make_node("Add", [total, term], [f"{name}s{place}"]))
        total = f"{name}s{place}"
    made += _with_bias(rng, conv, total, made)
    del model.graph.node[number]
    for one in reversed(made):
        model.graph.node.insert(number, one)
    return True


def _with_bias(
    rng: random.Random, conv: onnx.NodeProto, total: str, made: Sequence[onnx.NodeProto]
) -> list[onnx.NodeProto]:
    """The bias of a convolution on one of the products, and the sum of these as its result."""
    if len(conv.input) > 2:
        products = [node for node in made if node.op_type == "Conv"]
        times = 1 if rng.random() < RIGHT + 0.2 else 2
        for node in rng.sample(products, min(times, len(products))):
            node.input.append(conv.input[2])
    return [helper.make_node("Identity", [total], [conv.output[0]])]


def _is_pointwise(
    node: onnx.NodeProto, held: dict[str, np.ndarray[Any, Any]], makers: dict[str, onnx.NodeProto]
) -> bool:
    """Whether a convolution sees one pixel at a time, of channels that were resized."""
    if node.op_type != "Conv" or node.input[1] not in held or node.input[0] not in makers:
        return False
    source, attributes = makers[node.input[0]], {a.name: a for a in node.attribute}
    parts = list(source.input) if source.op_type == "Concat" else [node.input[0]]
    if source.op_type == "Concat" and next(a.i for a in source.attribute if a.name == "axis") != 1:
        return False
    is_resized = any(name in makers and makers[name].op_type == "Resize" for name in parts)
    is_plain = not attributes.keys() & {"strides", "pads", "group", "auto_pad"}
    weight = held[node.input[1]]
    return is_resized and is_plain and weight[0, 0].size == 1 and weight.shape[1] % len(parts) == 0


REWRITES: tuple[Edit, ...] = (
    two_transposes, around_node, around_node, around_node, swap_commutative, product_turned,
    store_turned, through_one_axis, multiplied_first, multiplied_first,
)  # fmt: skip
