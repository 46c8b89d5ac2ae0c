"""Edits of the borders of a body, which only the node around it sees."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.permuted import permuted_shape
from relayout.layout.permutation import Permutation


def take_in(editor: Editor, index: int, order: Permutation) -> ir.Value:
    """Let an input of the editor's graph come in `order`: a new value in place of the given."""
    inputs = editor.region.graph.inputs
    given = inputs[index]
    inputs[index] = ir.Value(
        name=editor.names.fresh(f"{given.name}_{order}"),
        type=given.type,
        shape=permuted_shape(given.shape, order),
    )
    return inputs[index]


def give_back(editor: Editor, index: int, value: ir.Value) -> None:
    """Let an output of the editor's graph be `value`, by an Identity if no node of it makes that.

    A body may not give back an outer value as it is, nor one value twice: of such a body ONNX
    Runtime gives arbitrary numbers.
    """
    graph = editor.region.graph
    given = graph.outputs[index]
    is_made = value.producer() is not None or given.producer() is None
    is_given_back = any(output is value for output in graph.outputs if output is not given)
    if value.graph is not graph or not is_made or is_given_back:
        value = editor.add(
            "Identity",
            [value],
            before=None,
            hint=f"{value.name}_given_back",
            like=value,
            shape=value.shape,
        )
    # Readers of the body infer nothing through operators of other domains.
    value.type = value.type or given.type
    graph.outputs[index] = value


def release(editor: Editor, node: ir.Node) -> None:
    """Take the bodies off a node that is replaced, so that they are not removed with it."""
    for name in list(node.attributes):
        editor.set_attribute(node, name, None)
