"""Transposes that move no data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.edit import Editor, permuted_shape
from relayout.graph.read import Shape, is_op, perm_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.rewrite.worklist import readers


@dataclass(frozen=True, slots=True)
class UnitMoveToReshape:
    """A Transpose that only moves axes of length 1 is a Reshape, which copies nothing.

    Given:  y = Transpose<perm=[0,2,3,1]>(x), x of shape [N,1,8,8]
    Result: y = Reshape(x, [0,8,8,1])

    Left as it is where the new shape cannot be written down as a constant, or where another
    Transpose reads it, which could take it in.
    """

    name: str = "Transpose of unit axes becomes Reshape"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        shape = shape_of(source)
        if order is None or source is None or shape is None or order.is_identity:
            return None
        target = reshape_target(shape, order) if order.moves_only_units(shape) else None
        if target is None or any(is_op(reader, "Transpose") for reader in readers(node.outputs[0])):
            return None
        return self._reshape(node, source, order, target, editor)

    def _reshape(
        self,
        node: ir.Node,
        source: ir.Value,
        order: Permutation,
        target: list[int],
        editor: Editor,
    ) -> list[ir.Node]:
        result = node.outputs[0]
        shape = editor.constant(
            np.asarray(target, np.int64), hint=f"{result.name}_shape", before=node
        )
        reshaped = editor.add(
            "Reshape",
            [source, shape],
            before=node,
            hint=f"{result.name}_reshaped",
            like=result,
            shape=permuted_shape(source.shape, order),
            origin=[node],
        )
        touched = readers(result)
        editor.substitute(result, reshaped, origin=node)
        editor.discard(node)
        return touched


def reshape_target(shape: Shape, order: Permutation) -> list[int] | None:
    """The constant operand of the Reshape that does what this Transpose does, if there is one.

    A known length stands for itself and 0 copies the length at the same place. A length that moves
    and that only the run will tell is left to -1, which is safe only if it is the one unknown: were
    another one 0, nothing could be inferred.
    """
    if 0 in shape:
        return None
    unknown = [axis for axis, length in enumerate(shape) if not isinstance(length, int)]
    moved = [axis for axis in unknown if order[axis] != axis]
    if moved and len(unknown) > 1:
        return None
    target = []
    for place, axis in enumerate(order):
        length = shape[axis]
        if isinstance(length, int):
            target.append(length)
        else:
            target.append(0 if axis == place else -1)
    return target
