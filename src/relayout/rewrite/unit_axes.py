"""Transposes that move no data, or only what another one has moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.permuted import permuted_shape
from relayout.graph.read import Shape, is_op, perm_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class UnitAxisMoveToReshape:
    """A Transpose that only moves axes of length 1 is a Reshape, which copies nothing.

    Given:  y = Transpose<perm=[0,2,3,1]>(x), x of shape [N,1,8,8]
    Result: y = Reshape(x, [0,8,8,1])

    Where the new shape cannot be written down as a constant, the axes of length 1 are taken out and
    put back in; where it is the given one, nothing is left. Left as it is where another Transpose
    reads it, which could take it in.
    """

    name: str = "Transpose of unit axes becomes Reshape"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        shape = shape_of(source)
        if order is None or source is None or shape is None or order.is_identity:
            return None
        if not order.moves_only_unit_axes(shape):
            return None
        result = node.outputs[0]
        if any(is_op(consumer, "Transpose") for consumer in consumers(result)):
            return None
        moved = _moved(node, source, shape, order, editor)
        touched = consumers(result)
        editor.substitute(result, moved, origin=node)
        editor.discard(node)
        return [*touched, *_makers(moved, until=source)]


@dataclass(slots=True)
class ShareButForUnitAxes:
    """Transposes of a value that differ only in where axes of length 1 go copy its data once.

    Given:  a = Transpose<perm=[0,3,1,2]>(x); b = Transpose<perm=[3,0,1,2]>(x), x of [1,2,3,4]
    Result: a = Transpose<perm=[0,3,1,2]>(x); b = Reshape(a, [4,1,2,3])

    Nodes are visited in topological order, so the one that was seen first stands first.
    """

    name: str = "share Transposes but for unit axes"
    op_types: tuple[str, ...] = ("Transpose",)
    _first: dict[tuple[ir.Value, tuple[int, ...], ir.Graph], ir.Node] = field(default_factory=dict)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        shape = shape_of(source)
        if order is None or source is None or shape is None or node.graph is None:
            return None
        if order.moves_only_unit_axes(shape):
            return None
        key = (source, tuple(axis for axis in order if shape[axis] != 1), node.graph)
        first = self._first.setdefault(key, node)
        before = perm_of(first)
        if first.graph is None or first.inputs[0] is not source or before is None:
            self._first[key] = node
            return None
        if first is node or before == order:
            return None
        result = node.outputs[0]
        stored = before.reorder(shape)
        moved = _moved(node, first.outputs[0], stored, before.inverse().then(order), editor)
        touched = consumers(result)
        editor.substitute(result, moved, origin=node)
        editor.discard(node)
        return touched


def _moved(
    node: ir.Node, source: ir.Value, shape: Shape, order: Permutation, editor: Editor
) -> ir.Value:
    """A value with its axes of length 1 in other places, as the result of a Transpose has them."""
    if _is_same_shape(shape, order):
        return source
    target = reshape_target(shape, order)
    if target is None:
        units = [axis for axis, length in enumerate(shape) if length == 1]
        places = [place for place, axis in enumerate(order) if axis in units]
        squeezed = editor.squeezed(source, units, before=node)
        return editor.unsqueezed(squeezed, places, before=node)
    result = node.outputs[0]
    new_shape = editor.constant(
        np.asarray(target, np.int64), hint=f"{result.name}_shape", before=node
    )
    return editor.add(
        "Reshape",
        [source, new_shape],
        before=node,
        hint=f"{result.name}_reshaped",
        like=result,
        shape=permuted_shape(source.shape, order),
        origin=[node],
    )


def _makers(value: ir.Value, until: ir.Value) -> Iterator[ir.Node]:
    """The nodes, each of one operand that moves, that make a value of another."""
    while value is not until and (node := value.producer()) is not None:
        yield node
        value = node.inputs[0] or until


def _is_same_shape(shape: Shape, order: Permutation) -> bool:
    return all(
        axis == place or (shape[axis] is not None and shape[axis] == shape[place])
        for place, axis in enumerate(order)
    )


def reshape_target(shape: Shape, order: Permutation) -> list[int] | None:
    """The constant operand of the Reshape that does what this Transpose does, if there is one.

    A known length stands for itself and 0 copies the length at the same place. A length that moves
    and that is known only at run time is left to -1, which is safe only if it is the one unknown:
    were another one 0, nothing could be inferred.
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
