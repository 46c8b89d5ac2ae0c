"""Transposes of a kind that the runtime is slow at, as two of kinds that it is fast at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import Shape, constant_of, perm_of, shape_of
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import item_bytes, lengths_of
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.split_transposes import FLATTEN_TAKES_ANY_TYPE, can_be_split


@dataclass(frozen=True, slots=True)
class SplitSlowTranspose:
    """Two moves of one axis each take less than one move of a kind without a fast kernel.

    Given:  y = Transpose<perm=[2,1,0]>(x), x of shape [64,56,32]
    Result: a = Transpose<perm=[2,0,1]>(x); b = Flatten(a); c = Reshape(b, [32,64,56])
            y = Transpose<perm=[0,2,1]>(c)

    The runtime would make one Transpose of the two again through a Reshape, but not through a
    Flatten.
    """

    prices: RuntimePrices
    dims: Mapping[str, int]
    name: str = "split slow Transpose"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        shape = shape_of(source)
        if order is None or source is None or shape is None or source.dtype is None:
            return None
        if len(shape) != order.rank:
            return None
        if constant_of(source) is not None or editor.region.version < FLATTEN_TAKES_ANY_TYPE:
            return None
        lengths = lengths_of(shape, self.dims)
        step = self.prices.split(Move.of(lengths, order), item_bytes(source.dtype))
        if step is None or not can_be_split(shape):
            return None
        first = _of_all_axes(step, lengths, order)
        between = self._between(node, source, first, shape, editor)
        result = node.outputs[0]
        moved = editor.transposed(between, first.inverse().then(order), before=node, origin=[node])
        editor.substitute(result, moved, origin=node)
        editor.discard(node)
        return []

    def _between(
        self, node: ir.Node, source: ir.Value, first: Permutation, shape: Shape, editor: Editor
    ) -> ir.Value:
        moved = editor.transposed(source, first, before=node, origin=[node])
        flat = editor.add(
            "Flatten", [moved], {"axis": 1}, before=node, hint=f"{moved.name}_flat", like=moved
        )
        target = [each if isinstance(each, int) else -1 for each in first.reorder(shape)]
        operand = editor.constant(
            np.asarray(target, np.int64), hint=f"{moved.name}_shape", before=node
        )
        return editor.add(
            "Reshape",
            [flat, operand],
            {},
            before=node,
            hint=f"{moved.name}_again",
            like=moved,
            shape=moved.shape,
        )


def _of_all_axes(merged: Permutation, lengths: tuple[int, ...], whole: Permutation) -> Permutation:
    """A permutation of groups of axes that `whole` keeps together, as one of all axes."""
    groups: list[list[int]] = []
    for axis in (axis for axis in whole if lengths[axis] != 1):
        follows = bool(groups) and _next_long(groups[-1][-1], lengths) == axis
        if follows:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    given = sorted(groups)
    units = [axis for axis, length in enumerate(lengths) if length == 1]
    return Permutation((*units, *(axis for group in merged for axis in given[group])))


def _next_long(axis: int, lengths: tuple[int, ...]) -> int | None:
    later = range(axis + 1, len(lengths))
    return next((each for each in later if lengths[each] != 1), None)
