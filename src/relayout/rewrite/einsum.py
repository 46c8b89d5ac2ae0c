"""Transposes around an Einsum, whose equation can express them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import is_op, perm_of
from relayout.layout.equation import Equation
from relayout.layout.transport import Changes
from relayout.ops.einsum import equation_of, reads_nothing
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class FoldIntoEinsum:
    """An Einsum reads the operand of a Transpose and writes its result.

    Given:  t = Transpose<perm=[0,2,1]>(k); s = Einsum<equation="bqd,bdk->bqk">(q, t);
            y = Transpose<perm=[0,2,1]>(s)
    Result: y = Einsum<equation="bqd,bkd->bkq">(q, k)
    """

    name: str = "fold Transpose into Einsum"
    op_types: tuple[str, ...] = ("Einsum",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        view = editor.region.view(node)
        if view.unknown_attribute is not None or reads_nothing(view):
            return None
        return _operand_folded(node, equation_of(view), editor) or _result_folded(
            node, equation_of(view), editor
        )


def _operand_folded(node: ir.Node, equation: Equation, editor: Editor) -> list[ir.Node] | None:
    """Only where nothing else reads the Transpose, or it would stay beside what Einsum copies."""
    for index, value in enumerate(node.inputs):
        if value is None or value.is_graph_output() or len(value.uses()) != 1:
            continue
        producer = value.producer()
        order = None if producer is None else perm_of(producer)
        if producer is None or order is None or not is_op(producer, "Transpose"):
            continue
        moved = equation.with_operand(index, order.inverse())
        if moved is None:
            continue
        operands = [*node.inputs[:index], producer.inputs[0], *node.inputs[index + 1 :]]
        return _replaced(node, node, operands, moved, editor)
    return None


def _result_folded(node: ir.Node, equation: Equation, editor: Editor) -> list[ir.Node] | None:
    """Only where nothing else reads the result, or a Transpose would be needed for that."""
    value = node.outputs[0]
    consumer = consumers(value)[0] if len(consumers(value)) == 1 else None
    order = None if consumer is None or value.is_graph_output() else perm_of(consumer)
    if consumer is None or order is None or not is_op(consumer, "Transpose"):
        return None
    moved = equation.with_result(order)
    if moved is None or consumer.graph is not node.graph:
        return None
    return _replaced(consumer, node, node.inputs, moved, editor)


def _replaced(
    old: ir.Node,
    node: ir.Node,
    operands: Sequence[ir.Value | None],
    equation: Equation,
    editor: Editor,
) -> list[ir.Node]:
    """Let an Einsum with another equation give what `old` gives; the nodes to look at again."""
    changes = Changes({"equation": str(equation)})
    (result,) = editor.adapted(node, operands, [old.outputs[0].shape], changes)
    producer = result.producer()
    touched = consumers(old.outputs[0])
    editor.substitute(old.outputs[0], result, origin=old)
    editor.discard(old)
    return [*touched, *([] if producer is None else [producer])]
