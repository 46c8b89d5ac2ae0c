"""Takes Transposes at the border of a model into its interface, when the user allows it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.io.model import LoadedModel
from relayout.graph.names import Names
from relayout.graph.read import is_op, perm_of
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation


def free_interface(loaded: LoadedModel, *, inputs: bool, outputs: bool) -> list[str]:
    """Remove the Transposes at the border; a notice for each change of the interface."""
    region = next(regions_of(loaded.ir))
    editor = Editor(region, Names.of(loaded.ir))
    message = onnx.ModelProto()
    message.CopyFrom(loaded.source)
    changes = []
    if inputs:
        changes += _free(region.graph.inputs, message.graph.input, "input", editor)
    if outputs:
        changes += _free(region.graph.outputs, message.graph.output, "output", editor)
    if changes:
        loaded.source = message
    return changes


def _free(
    values: Sequence[ir.Value],
    declared: Sequence[onnx.ValueInfoProto],
    kind: str,
    editor: Editor,
) -> list[str]:
    changes = []
    for value, declaration in zip(list(values), declared, strict=True):
        take_in = _take_in_input if kind == "input" else _take_in_output
        order = take_in(value, editor)
        if order is None:
            continue
        dims = [
            onnx.TensorShapeProto.Dimension.FromString(dim.SerializeToString())
            for dim in declaration.type.tensor_type.shape.dim
        ]
        if len(dims) == order.rank:
            del declaration.type.tensor_type.shape.dim[:]
            declaration.type.tensor_type.shape.dim.extend(order.reorder(dims))
        changes.append(f"{kind} {value.name!r} is now Transpose(perm={list(order)}) of what it was")
    return changes


def _take_in_input(value: ir.Value, editor: Editor) -> Permutation | None:
    """Let an input be the result of the one Transpose that reads it; the order it has now."""
    readers = [use.node for use in value.uses()]
    if len(readers) != 1 or value.is_graph_output() or value.is_initializer():
        return None
    node = readers[0]
    order = perm_of(node) if is_op(node, "Transpose") and node.graph is value.graph else None
    if order is None or node.outputs[0].is_graph_output():
        return None
    editor.absorb_into_input(value, node, order)
    return order


def _take_in_output(value: ir.Value, editor: Editor) -> Permutation | None:
    """Let an output be what the Transpose that writes it reads; the order it has now."""
    node = value.producer()
    if not is_op(node, "Transpose") or node is None or value.uses():
        return None
    order, source = perm_of(node), node.inputs[0]
    if order is None or source is None or not editor.may_be_renamed(source):
        return None
    editor.substitute(value, source, origin=node)
    editor.discard(node)
    return order.inverse()
