"""Inputs and outputs in other layouts than the model has them, as its caller asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from relayout.graph.io.load import reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.messages.walk import nested_bodies
from relayout.layout.permutation import Permutation


def with_border_layouts(
    loaded: LoadedModel, inputs: Mapping[str, Permutation], outputs: Mapping[str, Permutation]
) -> LoadedModel:
    """The model with a Transpose at each of these inputs and outputs, which are stored in an order.

    It computes the same of what is given in the new orders, so it takes the place of the given
    model: it has no file, and no bytes that it was read from.
    """
    message = onnx.ModelProto()
    message.CopyFrom(loaded.source)
    graph = message.graph
    taken = _names(graph)
    entering = [
        _node(name, _renamed(graph, name, taken, writes=False), order.inverse())
        for name, order in inputs.items()
    ]
    leaving = [
        _node(_renamed(graph, name, taken, writes=True), name, order)
        for name, order in outputs.items()
    ]
    nodes = [*entering, *graph.node, *leaving]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    _declare(graph.input, inputs)
    _declare(graph.output, outputs)
    changed = reloaded(loaded, message)
    changed.path, changed.data = None, None
    changed.notices[:] = [
        *loaded.notices,
        *(_notice("input", name, order) for name, order in inputs.items()),
        *(_notice("output", name, order) for name, order in outputs.items()),
    ]
    return changed


def _node(source: str, result: str, order: Permutation) -> onnx.NodeProto:
    name = f"{result}_layout"
    return onnx.helper.make_node("Transpose", [source], [result], name, perm=list(order))


def _renamed(graph: onnx.GraphProto, name: str, taken: set[str], *, writes: bool) -> str:
    """Give a value a new name wherever nodes read it, or read and write it."""
    fresh, count = f"{name}_as_given", 0
    while fresh in taken:
        count += 1
        fresh = f"{name}_as_given_{count}"
    taken.add(fresh)
    for body in nested_bodies(graph):
        for node in body.node:
            node.input[:] = [fresh if each == name else each for each in node.input]
            if writes:
                node.output[:] = [fresh if each == name else each for each in node.output]
        if body is graph:
            continue
        for value in body.output:
            value.name = fresh if value.name == name else value.name
    return fresh


def _names(graph: onnx.GraphProto) -> set[str]:
    bodies = list(nested_bodies(graph))
    written = {
        name for body in bodies for node in body.node for name in (*node.input, *node.output)
    }
    return written | {value.name for value in (*graph.input, *graph.output)}


def _declare(values: Iterable[onnx.ValueInfoProto], orders: Mapping[str, Permutation]) -> None:
    """State the lengths of values in their new orders."""
    for value in values:
        order, shape = orders.get(value.name), value.type.tensor_type.shape
        if order is None or len(shape.dim) != order.rank:
            continue
        dims = [type(dim).FromString(dim.SerializeToString()) for dim in shape.dim]
        del shape.dim[:]
        shape.dim.extend(order.reorder(dims))


def _notice(kind: str, name: str, order: Permutation) -> str:
    return f"{kind} {name!r} is now Transpose(perm={list(order)}) of what it was, as asked"
