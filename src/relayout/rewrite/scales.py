"""Factors per channel after a convolution or a product go into its weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, perm_of, rank_of, shape_of
from relayout.rewrite.worklist import consumers

Doubles = npt.NDArray[np.float64]

FOLDED_TYPES = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE))
"""In narrower types the product of two rounded numbers would be rounded once more."""


@dataclass(frozen=True, slots=True)
class FoldBatchNormalization:
    """Statistics that are constants become part of the convolution before them.

    Given:  c = Conv(x, w); y = BatchNormalization(c, scale, shift, mean, variance)
    Result: y = Conv(x, v, b), where v is w with each filter times its factor

    Nothing else may read the convolution. It is removed with the normalisation, so nodes get fewer.
    Products are taken in double precision and rounded once.
    """

    name: str = "fold a normalisation into a convolution"
    op_types: tuple[str, ...] = ("BatchNormalization",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        conv = _only_producer(node.inputs[0])
        if conv is None or not is_op(conv, "Conv") or _trains(node):
            return None
        weights = _constants(conv.inputs[1:])
        statistics = _constants(node.inputs[1:])
        if weights is None or statistics is None or node.inputs[0] is None:
            return None
        if node.inputs[0].dtype not in FOLDED_TYPES:
            return None
        scale, shift, mean, variance = statistics
        factor = scale / np.sqrt(variance + node.attributes.get_float("epsilon", 1e-5))
        weight, bias = weights[0], weights[1] if len(weights) > 1 else np.zeros_like(mean)
        filters = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
        return _restate_conv(node, conv, (filters, (bias - mean) * factor + shift), editor)


@dataclass(frozen=True, slots=True)
class FoldScale:
    """A learned gain after a linear layer becomes part of its matrix and bias.

    Given:  p = MatMul(x, w); a = Add(p, b); t = Transpose(a); y = Mul(t, gain)
    Result: p = MatMul(x, v); a = Add(p, c); y = Transpose(a)

    The Transpose may be missing. The Mul is removed, so nodes get fewer.
    """

    name: str = "fold a gain into a linear layer"
    op_types: tuple[str, ...] = ("Mul",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        for index in (0, 1):
            gain = constant_of(node.inputs[1 - index])
            linear = (
                None
                if gain is None
                else _linear_before(node.inputs[index], gain.numpy().astype(np.float64))
            )
            if linear is not None:
                return self._fold(node, index, linear, editor)
        return None

    def _fold(
        self, node: ir.Node, index: int, linear: _ScalableProduct, editor: Editor
    ) -> Iterable[ir.Node]:
        _scale_operand(linear.product, 1, linear.gain, editor)
        _scale_operand(linear.sum, linear.bias, linear.gain, editor)
        touched = consumers(node.outputs[0])
        value = node.inputs[index]
        if value is not None:
            editor.substitute(node.outputs[0], value, origin=node)
        editor.discard(node)
        return touched


@dataclass(frozen=True, slots=True)
class FoldBias:
    """A constant for each channel that is added after a convolution becomes its bias.

    Given:  c = Conv(x, w); t = Transpose(c); y = Add(t, b)
    Result: c = Conv(x, w, b); y = Transpose(c)

    The Transpose may be missing, and a bias that is there is added to. The Add is removed, so nodes
    get fewer.
    """

    name: str = "fold a sum into a bias"
    op_types: tuple[str, ...] = ("Add",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        for index in (0, 1):
            added = _constants([node.inputs[1 - index]])
            value = node.inputs[index]
            conv = None if added is None or value is None else _conv_before(value, added[0])
            if added is not None and value is not None and conv is not None:
                _add_to_bias(conv, added[0].reshape(-1), editor)
                touched = consumers(node.outputs[0])
                editor.substitute(node.outputs[0], value, origin=node)
                editor.discard(node)
                return touched
        return None


def _conv_before(value: ir.Value, added: Doubles) -> ir.Node | None:
    """The convolution to whose channels something is added, with a bias that may be changed."""
    producer, axis = _made_along(value, added)
    if axis != 1 or producer is None or not is_op(producer, "Conv"):
        return None
    filters = shape_of(producer.inputs[1])
    is_each = filters is not None and filters[0] == added.size
    return producer if is_each and _constants(producer.inputs[2:]) is not None else None


def _add_to_bias(conv: ir.Node, added: Doubles, editor: Editor) -> None:
    given = _constants(conv.inputs[2:])
    total = added + given[0] if given else added
    dtype = np.float64 if conv.outputs[0].dtype == ir.DataType.DOUBLE else np.float32
    hint = f"{conv.outputs[0].name}_bias"
    bias = editor.constant(total.astype(dtype), hint=hint, before=conv)
    editor.read(conv, 2, bias)


@dataclass(frozen=True, slots=True)
class _ScalableProduct:
    """A product with a matrix and a sum with a bias, and what both are to be multiplied by."""

    product: ir.Node
    sum: ir.Node
    bias: int
    gain: Doubles


def _linear_before(value: ir.Value | None, gain: Doubles) -> _ScalableProduct | None:
    rank = rank_of(value)
    producer, axis = (None, None) if value is None else _made_along(value, gain)
    if rank is None or axis != rank - 1 or producer is None or not is_op(producer, "Add"):
        return None
    return _linear_of(producer, gain.reshape(-1))


def _made_along(value: ir.Value, constant: Doubles) -> tuple[ir.Node | None, int | None]:
    """What makes a value, before it is transposed, and along which of its axes a constant differs.

    Nothing else may read it; either is None where it is not known.
    """
    rank, producer = rank_of(value), _only_producer(value)
    if rank is None or producer is None or value.dtype not in FOLDED_TYPES:
        return None, None
    axis = _only_long_axis(constant, rank)
    if not is_op(producer, "Transpose"):
        return producer, axis
    perm = perm_of(producer)
    before = None if axis is None or perm is None else perm.axes[axis]
    return _only_producer(producer.inputs[0]), before


def _linear_of(total: ir.Node, gain: Doubles) -> _ScalableProduct | None:
    for bias in (0, 1):
        product = _only_producer(total.inputs[1 - bias])
        if product is None or not is_op(product, "MatMul"):
            continue
        shapes = [shape_of(product.inputs[1]), shape_of(total.inputs[bias])]
        if _constants((product.inputs[1], total.inputs[bias])) is None:
            continue
        if shapes[1] == (gain.size,) and shapes[0] is not None and len(shapes[0]) == 2:
            return _ScalableProduct(product, total, bias, gain)
    return None


def _only_long_axis(gain: Doubles, rank: int) -> int | None:
    """The axis of a tensor of this rank along which a factor differs, if it is one."""
    if gain.ndim > rank:
        return None
    axes = [rank - gain.ndim + axis for axis, length in enumerate(gain.shape) if length != 1]
    return axes[0] if len(axes) == 1 else None


def _scale_operand(node: ir.Node, index: int, gain: Doubles, editor: Editor) -> None:
    value = node.inputs[index]
    tensor = constant_of(value)
    if value is None or tensor is None:
        raise ValueError(f"operand {index} of {node.name!r} is not a constant")
    array = tensor.numpy()
    scaled = (array.astype(np.float64) * gain).astype(array.dtype)
    editor.read(node, index, editor.constant(scaled, hint=f"{value.name}_scaled", before=node))


def _restate_conv(
    node: ir.Node, conv: ir.Node, weights: tuple[Doubles, Doubles], editor: Editor
) -> Iterable[ir.Node]:
    name, dtype = node.outputs[0].name, conv.inputs[1].dtype if conv.inputs[1] else None
    kind = np.float32 if dtype == ir.DataType.FLOAT else np.float64
    constants = [
        editor.constant(array.astype(kind), hint=f"{name}_{part}", before=conv)
        for array, part in zip(weights, ("weight", "bias"), strict=True)
    ]
    result = editor.add(
        "Conv",
        [conv.inputs[0], *constants],
        {attribute.name: attribute.value for attribute in conv.attributes.values()},
        before=conv,
        hint=f"{name}_conv",
        like=node.outputs[0],
        shape=node.outputs[0].shape,
        origin=[conv, node],
        succeeds=conv,
    )
    touched = consumers(node.outputs[0])
    editor.take_over(node.outputs[0], result)
    editor.substitute(node.outputs[0], result, origin=node)
    editor.discard(node)
    return touched


def _trains(node: ir.Node) -> bool:
    """Whether a normalisation takes its statistics from the data, or gives them as results."""
    more = any(value.uses() or value.is_graph_output() for value in node.outputs[1:])
    is_training = node.attributes.get_int("training_mode", 0) != 0
    return more or is_training or node.attributes.get_int("spatial", 1) != 1


def _constants(values: Iterable[ir.Value | None]) -> list[Doubles] | None:
    """What operands hold, in double precision, if all of them are constants."""
    tensors = [constant_of(value) for value in values if value is not None]
    if any(tensor is None for tensor in tensors):
        return None
    return [tensor.numpy().astype(np.float64) for tensor in tensors if tensor is not None]


def _only_producer(value: ir.Value | None) -> ir.Node | None:
    """The node that writes a value, if it has one consumer."""
    if value is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    return value.producer()
