"""Steps of random models that hold nodes of their own: branches, loops and functions."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.near_misses.build import BOOL, DOUBLE, INT, OPSET, Builder, UnfitError

OPSETS = [helper.make_opsetid("", OPSET)]


def _inner(b: Builder, name: str, prefix: str) -> tuple[list[onnx.NodeProto], str]:
    """One or two nodes that keep a shape."""
    nodes, now, rank = [], name, len(b.shape(name))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    square = rank > 1 and b.shape(name)[-1] == b.shape(name)[-2]
    alike = [one for one in b.values() if b.shape(one) == b.shape(name)]
    for number in range(b.rng.randrange(1, 4)):
        made = f"{prefix}{number}"
        way = b.rng.random()
        if way < 0.35 and square:
            nodes.append(helper.make_node("Transpose", [now], [made], perm=swapped))
        elif way < 0.6:
            pair = [now, b.rng.choice(alike)]
            nodes.append(helper.make_node(b.rng.choice(["Add", "Sub", "Mul"]), pair, [made]))
        elif way < 0.8 and rank:
            nodes.append(helper.make_node("Softmax", [now], [made], axis=b.rng.randrange(rank)))
        else:
            nodes.append(helper.make_node("Tanh", [now], [made]))
        now = made
    return nodes, now


def _port(b: Builder, like: str, name: str) -> onnx.ValueInfoProto:
    return helper.make_value_info(name, b.types[like])


def branches(b: Builder) -> None:
    name = b.pick(range(1, 4))
    total = b.add("ReduceSum", [b.pick()], keepdims=0)
    test = b.add("Greater", [total, b.constant(np.array(0.1))])
    graphs = {}
    output = b.name()
    for key in ("then_branch", "else_branch"):
        nodes, last = _inner(b, name, f"{output}{key[0]}")
        graphs[key] = helper.make_graph(nodes, key, [], [_port(b, name, last)])
    b.block([helper.make_node("If", [test], [output], **graphs)], output, b.types[name])


def loop(b: Builder) -> None:
    start, other = b.pick(range(1, 4)), b.pick(range(1, 4))
    output = b.name()
    read, more = f"{output}read", f"{output}other"
    b.types |= {read: b.types[start], more: b.types[other]}
    nodes, last = _inner(b, read, f"{output}n")
    rest, end = _inner(b, more, f"{output}m")
    given = [
        helper.make_tensor_value_info(f"{output}i", INT, []),
        helper.make_tensor_value_info(f"{output}go", BOOL, []),
        _port(b, start, read),
        _port(b, other, more),
    ]
    go = helper.make_node("Identity", [f"{output}go"], [f"{output}goes"])
    results = [
        helper.make_tensor_value_info(f"{output}goes", BOOL, []),
        _port(b, start, last),
        _port(b, other, end),
        _port(b, start, f"{output}copy"),
    ]
    copy = helper.make_node("Identity", [last], [f"{output}copy"])
    body = helper.make_graph([*nodes, *rest, go, copy], "body", given, results)
    count = b.constant(np.array(b.rng.choice([1, 2, 3])))
    second, stacked = b.name(), b.name()
    inputs = [count, b.constant(np.array(True)), start, other]
    node = helper.make_node("Loop", inputs, [output, second, stacked], body=body)
    b.block([node], output, b.types[start])
    b.types[second] = b.types[other]
    trips = int(numpy_helper.to_array(b.constants[count]))
    shape = [trips, *b.shape(start)]
    if np.prod(shape) > 200:
        b.nodes.pop()
        raise UnfitError
    b.types[stacked] = helper.make_tensor_type_proto(DOUBLE, shape)


def _leaky() -> onnx.FunctionProto:
    relu = helper.make_node("LeakyRelu", ["a"], ["r"])
    relu.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    last = helper.make_node("Sub", ["r", "b"], ["y"])
    return helper.make_function("own", "leaky", ["a", "b"], ["y"], [relu, last], OPSETS, ["slope"])


def _chosen() -> onnx.FunctionProto:
    """A function with a branch that reads an attribute of it."""
    relu = helper.make_node("LeakyRelu", ["a"], ["t"])
    relu.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    none = helper.make_node("Add", ["a", "b"], ["e"])
    port = [helper.make_tensor_value_info(n, DOUBLE, None) for n in ("t", "e")]
    yes = helper.make_graph([relu], "yes", [], port[:1])
    no = helper.make_graph([none], "no", [], port[1:])
    nodes = [
        helper.make_node("ReduceSum", ["b"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], to=BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no),
    ]
    return helper.make_function("own", "chosen", ["a", "b"], ["y"], nodes, OPSETS, ["slope"])


def function(b: Builder) -> None:
    name = b.pick(range(1, 4))
    alike = [one for one in b.values() if b.shape(one) == b.shape(name)]
    made = b.rng.choice([_leaky, _chosen])()
    b.call(made, [name, b.rng.choice(alike)], slope=b.rng.choice([0.2, 0.7]))
