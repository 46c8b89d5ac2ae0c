"""Models in a newer opset, for the operators that came with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx

from relayout.errors import RelayoutError
from relayout.graph.io.limits import standard_name
from relayout.graph.messages.walk import Body, nested_bodies
from relayout.graph.read import version_of

Restate: TypeAlias = Callable[[onnx.NodeProto, int], list[onnx.NodeProto] | None]
"""The nodes that state in a version what a node stated in the one before; None for the same."""

RestateIn: TypeAlias = Callable[[Body], Restate]
"""How to restate the nodes of a graph or a function, and of the bodies inside it."""


def raise_opset(
    message: onnx.ModelProto, version: int, newest: int, restate_in: RestateIn
) -> onnx.ModelProto:
    """The model in a newer opset; the given one where it has this version already.

    Functions are brought to the same version. What is not restated keeps its message.
    """
    current = _version(message)
    if version < current:
        raise RelayoutError(f"the model has opset {current}, which cannot be lowered to {version}")
    if version == current:
        return message
    if version > newest:
        raise RelayoutError(f"opset {version} is not known here; the newest one is {newest}")
    result = onnx.ModelProto()
    result.CopyFrom(message)
    _raise_body(result, result.graph, version, restate_in)
    for function in result.functions:
        _raise_body(function, function, version, restate_in)
    oldest = onnx.helper.find_min_ir_version_for(list(result.opset_import), ignore_unknown=True)
    result.ir_version = max(message.ir_version, oldest)
    return result


def _version(holder: onnx.ModelProto | onnx.FunctionProto) -> int:
    return version_of({entry.domain: entry.version for entry in holder.opset_import}, "")


def _raise_body(
    holder: onnx.ModelProto | onnx.FunctionProto, root: Body, version: int, restate_in: RestateIn
) -> None:
    current = _version(holder)
    if not 0 < current < version:
        return
    restate = restate_in(root)
    # Inner bodies first: an edit copies the nodes of its body, and what is inside them.
    for body in reversed(list(nested_bodies(root))):
        nodes = [
            onnx.NodeProto.FromString(new.SerializeToString())
            for node in body.node
            for new in _stepped(node, range(current + 1, version + 1), restate)
        ]
        del body.node[:]
        body.node.extend(nodes)
    for entry in holder.opset_import:
        if not standard_name(entry.domain):
            entry.version = version


def _stepped(node: onnx.NodeProto, versions: range, restate: Restate) -> list[onnx.NodeProto]:
    """A node brought to each version in turn."""
    nodes = [node]
    for version in versions:
        nodes = [new for each in nodes for new in _in_version(each, version, restate)]
    return nodes


def _in_version(node: onnx.NodeProto, version: int, restate: Restate) -> list[onnx.NodeProto]:
    found = None if standard_name(node.domain) else restate(node, version)
    return [node] if found is None else found
