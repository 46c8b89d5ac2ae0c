"""Values in the bodies of a model, made results and inputs of the model itself.

Given a Loop whose body computes v, `lift` gives the model an output in which the v of all rounds
are stacked, and `feed` an input of that form, from which the body reads v instead; `feed_carried`
does so for what a round takes from the one before. Bodies of Scan likewise; what lies in a branch
of an If is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from relayout.verify.quantisers import bodies_of

ROUNDS = ("Loop", "Scan")
FIRST_CARRIED = 2
"""The body of a Loop has the number of the round and the condition as its first inputs."""


@dataclass(frozen=True)
class Turn:
    """An operator with rounds, the graph it stands in, and its body."""

    graph: onnx.GraphProto
    node: onnx.NodeProto
    body: onnx.GraphProto


@dataclass(frozen=True)
class NodeSite:
    """A node, and the operators with rounds around it, the outermost first."""

    node: onnx.NodeProto
    graph: onnx.GraphProto
    turns: tuple[Turn, ...]


def sites_of(graph: onnx.GraphProto, turns: tuple[Turn, ...] = ()) -> Iterator[NodeSite]:
    for node in graph.node:
        yield NodeSite(node, graph, turns)
        if node.op_type in ROUNDS and not node.domain:
            for body in bodies_of(node):
                yield from sites_of(body, (*turns, Turn(graph, node, body)))


def lift(main: onnx.GraphProto, turns: tuple[Turn, ...], name: str, label: str) -> None:
    """Give the model an output of a name that has the value of another in all rounds."""
    for depth in range(len(turns) - 1, -1, -1):
        turn, inner, outer = turns[depth], f"{label}/{depth}", f"{label}/{depth}/all"
        # The results of a body must be computed in it, each for one result alone.
        turn.body.node.append(helper.make_node("Identity", [name], [inner]))
        turn.body.output.append(onnx.ValueInfoProto(name=inner))
        turn.node.output.append(outer)
        _add_axis(turn.node, "scan_output_axes")
        _add_axis(turn.node, "scan_output_directions")
        name = outer
    main.node.append(helper.make_node("Identity", [name], [label]))
    main.output.append(onnx.ValueInfoProto(name=label))


def feed(main: onnx.GraphProto, site: NodeSite, result: int, label: str, element: int) -> str:
    """Let what reads a result of a node read an input of the model; gives the result's new name."""
    main.input.append(helper.make_tensor_value_info(label, element, None))
    names = [label, *(f"{label}/{depth}/given" for depth in range(len(site.turns)))]
    old, own = site.node.output[result], f"{label}/own"
    site.node.output[result] = own
    _prepend(site.graph, helper.make_node("Identity", [names[-1]], [old]))
    for turn, stacked, name in zip(site.turns, names, names[1:], strict=False):
        _add_round(turn, stacked, name, element)
    return own


def feed_carried(main: onnx.GraphProto, turns: tuple[Turn, ...], i: int, label: str) -> None:
    """Let the body of the innermost Loop read a carried value from an input of the model."""
    port = turns[-1].body.input[FIRST_CARRIED + i]
    element = port.type.tensor_type.elem_type
    main.input.append(helper.make_tensor_value_info(label, element, None))
    names = [label, *(f"{label}/{depth}/given" for depth in range(len(turns)))]
    _prepend(turns[-1].body, helper.make_node("Identity", [names[-1]], [port.name]))
    for turn, stacked, name in zip(turns, names, names[1:], strict=False):
        _add_round(turn, stacked, name, element)
    port.name = f"{label}/own"


def _add_round(turn: Turn, stacked: str, name: str, element: int) -> None:
    """Give a body the value of its round, of those of all rounds."""
    if turn.node.op_type == "Scan":
        turn.node.input.append(stacked)
        turn.body.input.append(helper.make_tensor_value_info(name, element, None))
        count = next(one for one in turn.node.attribute if one.name == "num_scan_inputs")
        count.i += 1
        _add_axis(turn.node, "scan_input_axes")
        _add_axis(turn.node, "scan_input_directions")
        return
    shape = numpy_helper.from_array(np.zeros(0, np.int64))
    number = turn.body.input[0].name
    # Some exporters write the number of the round as a tensor of one element.
    for node in (
        helper.make_node("Gather", [stacked, f"{name}/round"], [name], axis=0),
        helper.make_node("Reshape", [number, f"{name}/shape"], [f"{name}/round"]),
        helper.make_node("Constant", [], [f"{name}/shape"], value=shape),
    ):
        _prepend(turn.body, node)


def _prepend(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    graph.node.insert(0, node)


def _add_axis(node: onnx.NodeProto, attribute: str) -> None:
    for one in node.attribute:
        if one.name == attribute:
            one.ints.append(0)
