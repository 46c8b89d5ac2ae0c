"""Transposes that the runtime is slow at, in ways that it is fast at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import Dim, constant_of, perm_of, shape_of
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import item_bytes, lengths_of
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.transpose_prices import FLATTEN_TAKES_ANY_TYPE, can_be_rewritten


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
        if step is None or not can_be_rewritten(shape, lengths):
            return None
        longs = _of_all_axes(step, lengths, order)
        first = Permutation(tuple(_with_units(longs, range(order.rank), lengths)))
        between = _with_units(longs, order.axes, lengths)
        view = self._between(node, source, first, [shape[axis] for axis in between], editor)
        second = Permutation(tuple(between.index(axis) for axis in order))
        moved = editor.transposed(view, second, before=node, origin=[node])
        editor.substitute(node.outputs[0], moved, origin=node)
        editor.discard(node)
        return []

    def _between(
        self,
        node: ir.Node,
        source: ir.Value,
        first: Permutation,
        shape: Sequence[Dim],
        editor: Editor,
    ) -> ir.Value:
        moved = editor.transposed(source, first, before=node, origin=[node])
        flat = editor.add(
            "Flatten", [moved], {"axis": 1}, before=node, hint=f"{moved.name}_flat", like=moved
        )
        return reshaped(flat, shape, node, editor)


@dataclass(frozen=True, slots=True)
class DropUnitAxes:
    """A Transpose that axes of length 1 keep from a fast kernel is done without them.

    Given:  y = Transpose<perm=[2,0,3,1]>(x), x of shape [64,49,1,96]
    Result: a = Reshape(x, [64,49,96]); b = Transpose<perm=[0,2,1]>(a)
            y = Reshape(b, [1,64,96,49])
    """

    prices: RuntimePrices
    dims: Mapping[str, int]
    name: str = "drop unit axes of a slow Transpose"
    op_types: tuple[str, ...] = ("Transpose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        order, source = perm_of(node), node.inputs[0]
        shape = shape_of(source)
        if order is None or source is None or shape is None or source.dtype is None:
            return None
        if constant_of(source) is not None or len(shape) != order.rank:
            return None
        lengths = lengths_of(shape, self.dims)
        size = item_bytes(source.dtype)
        if not self.prices.drops_unit_axes(Move.of(lengths, order), size):
            return None
        kept = [axis for axis, length in enumerate(shape) if length != 1]
        bare = Permutation(tuple(kept.index(axis) for axis in order if axis in kept))
        if not can_be_rewritten(shape, lengths):
            return None
        short = reshaped(source, [shape[axis] for axis in kept], node, editor)
        moved = editor.transposed(short, bare, before=node, origin=[node])
        whole = reshaped(moved, order.reorder(shape), node, editor)
        editor.substitute(node.outputs[0], whole, origin=node)
        editor.discard(node)
        return []


def reshaped(value: ir.Value, shape: Sequence[Dim], node: ir.Node, editor: Editor) -> ir.Value:
    """A value in a shape of which at most one length is not known."""
    target = [each if isinstance(each, int) else -1 for each in shape]
    operand = editor.constant(np.asarray(target, np.int64), hint=f"{value.name}_shape", before=node)
    return editor.add(
        "Reshape",
        [value, operand],
        {},
        before=node,
        hint=f"{value.name}_view",
        like=value,
        shape=ir.Shape(list(shape)),
    )


def _of_all_axes(merged: Permutation, lengths: tuple[int, ...], whole: Permutation) -> list[int]:
    """Long axes by a permutation of the groups of them that another one keeps together."""
    groups: list[list[int]] = []
    for axis in (axis for axis in whole if lengths[axis] != 1):
        follows = bool(groups) and _next_long(groups[-1][-1], lengths) == axis
        if follows:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    given = sorted(groups)
    return [axis for group in merged for axis in given[group]]


def _with_units(longs: Sequence[int], around: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """Long axes, and those of length 1 beside the ones that they are beside in another order.

    So they hinder no kernel between the two orders.
    """
    first = next(axis for axis in around if lengths[axis] != 1)
    beside: dict[int, list[int]] = {axis: [axis] for axis in longs}
    last = first
    for place, axis in enumerate(around):
        if lengths[axis] != 1:
            last = axis
        elif place < around.index(first):
            beside[first].insert(place, axis)
        else:
            beside[last].append(axis)
    return [axis for long in longs for axis in beside[long]]


def _next_long(axis: int, lengths: tuple[int, ...]) -> int | None:
    later = range(axis + 1, len(lengths))
    return next((each for each in later if lengths[each] != 1), None)
