"""A Transpose before features that are summed by constant weights is taken up by the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Transport
from relayout.ops.registry import facts_of
from relayout.rewrite.transposes import transposed_source

BY_FEATURE = ("Add", "Div", "Max", "Min", "Mul", "Pow", "PRelu", "Sub")
"""Operators of two operands that may take a constant for every feature."""


class Reordering(NamedTuple):
    """A constant operand whose entries follow the features along one axis."""

    node: ir.Node
    operand: int
    axis: int


@dataclass(frozen=True, slots=True)
class ReorderWeights:
    """Features that are merged in another order meet weights whose rows are in that order.

    Given:  t = Transpose<perm=[0,2,3,1]>(x); f = Flatten(t); r = Relu(f); y = MatMul(r, w)
    Result: f = Flatten(x); r = Relu(f); y = MatMul(r, v), where v has the rows of w reordered

    Between the two may stand operators that treat every feature alike, or each by a constant of its
    own, which is reordered too. Nothing else may read the features. Sums are taken in a new order.
    """

    name: str = "reorder weights instead of features"
    op_types: tuple[str, ...] = ("Flatten", "Reshape")

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        inner = transposed_source(node.inputs[0])
        if inner is None or not _is_read_once(node.inputs[0]):
            return None
        source, order = inner
        lengths = _merged_features(node)
        if lengths is None or not order.fixes(0):
            return None
        reorderings = _reorderings(node, math.prod(lengths))
        if reorderings is None:
            return None
        transposed = node.inputs[0]
        editor.read(node, 0, source)
        if transposed is not None and (producer := transposed.producer()) is not None:
            editor.discard(producer)
        places = _places(lengths, order)
        for reordering in reorderings:
            _reorder(reordering, places, editor)
        return [node]


def _merged_features(node: ir.Node) -> tuple[int, ...] | None:
    """The lengths of the axes after the first, where all of them become one."""
    given, result = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    if given is None or result is None or len(result) != 2 or not _names_no_feature(node):
        return None
    lengths = tuple(length for length in given[1:] if isinstance(length, int))
    if len(lengths) != len(given) - 1 or result[1] != math.prod(lengths) or 0 in lengths:
        return None
    return lengths


def _names_no_feature(node: ir.Node) -> bool:
    """Whether a Reshape means the same for reordered features: it copies no length of them."""
    if is_op(node, "Flatten"):
        return True
    target = constant_of(node.inputs[1])
    return target is not None and target.size == 2 and int(target.numpy()[1]) != 0


def _reorderings(node: ir.Node, features: int) -> list[Reordering] | None:
    """What has to be reordered from here to the product that sums the features."""
    found: list[Reordering] = []
    while True:
        if not _is_read_once(node.outputs[0]):
            return None
        (use,) = node.outputs[0].uses()
        if use.node.graph is not node.graph:
            return None
        weight = _weight(use.node, use.idx, features)
        if weight is not None:
            return [*found, weight]
        along = _alike(use.node, use.idx, features)
        if along is None:
            return None
        found += along
        node = use.node


def _weight(node: ir.Node, operand: int, features: int) -> Reordering | None:
    """The weights of a product that sums the features."""
    if operand != 0 or not is_op(node, "MatMul", "Gemm"):
        return None
    shape = shape_of(node.inputs[1]) if constant_of(node.inputs[1]) is not None else None
    axis = node.attributes.get_int("transB", 0)
    is_turned = node.attributes.get_int("transA", 0) != 0
    if is_turned or shape is None or len(shape) != 2 or shape[axis] != features:
        return None
    return Reordering(node, 1, axis)


def _alike(node: ir.Node, operand: int, features: int) -> list[Reordering] | None:
    """What has to be reordered for an operator that treats the features one by one."""
    if facts_of(node).by_element and operand == 0:
        return []
    if not is_op(node, *BY_FEATURE) or len(node.inputs) != 2 or node.inputs[0] is node.inputs[1]:
        return None
    other = 1 - operand
    shape = shape_of(node.inputs[other]) if constant_of(node.inputs[other]) is not None else None
    if shape is None or len(shape) > 2 or any(length != 1 for length in shape[:-1]):
        return None
    if not shape or shape[-1] == 1:
        return []
    return [Reordering(node, other, len(shape) - 1)] if shape[-1] == features else None


def _reorder(reordering: Reordering, places: list[int], editor: Editor) -> None:
    node, operand, axis = reordering
    tensor = constant_of(node.inputs[operand])
    if tensor is None:
        raise ValueError(f"operand {operand} of {node.name!r} is not a constant")
    array = np.take(tensor.numpy(), places, axis)
    unmoved = ((None,) * len(node.inputs), (None,) * len(node.outputs))
    changed = Transport(*unmoved, Changes(constants={operand: array}))
    (result,) = editor.restated(node, changed, node.inputs)
    editor.take_over(node.outputs[0], result)
    editor.substitute(node.outputs[0], result, origin=node)
    editor.discard(node)


def _places(lengths: tuple[int, ...], order: Permutation) -> list[int]:
    """Where the features, as they come now, stood when the Transpose had moved them."""
    back = order.drop({0}).inverse()
    return np.arange(math.prod(lengths)).reshape(lengths).transpose(back.axes).ravel().tolist()


def _is_read_once(value: ir.Value | None) -> bool:
    return value is not None and len(value.uses()) == 1 and not value.is_graph_output()
