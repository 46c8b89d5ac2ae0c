"""Operators of ONNX Runtime's own domain, by what its documentation says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from relayout.verify.field.call import at_one_type
from relayout.verify.field.operators.activation import function, softmax
from relayout.verify.field.operators.arithmetic import largest
from relayout.verify.field.operators.attention import HeadsApart, apart, as_bias, scores, together
from relayout.verify.field.operators.contraction import multiplied_matrices
from relayout.verify.field.operators.convolution import conv
from relayout.verify.field.operators.pooling import average_pool, global_average_pool, max_pool
from relayout.verify.field.operators.quantization import (
    operand,
    qlinear_conv,
    quantised,
    result_of,
)
from relayout.verify.field.residues import added, multiplied, subtracted
from relayout.verify.field.values import FieldTensor, UnknownError, residue_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues

DOMAIN = "com.microsoft"
ZERO = np.zeros((), np.int64)


def fused_matmul(call: FieldCall) -> FieldTensor:
    """A B times alpha."""
    product = multiplied_matrices(call, _turned(call, 0, "A"), _turned(call, 1, "B"))
    return call.like(multiplied(product, call.encoded("alpha", 1.0)))


def _turned(call: FieldCall, place: int, name: str) -> Residues:
    """A factor with axis 0 after its batch axes, then its last two exchanged, if asked for."""
    factor = call.residues(place)
    if call.integer(f"transBatch{name}", 0) and factor.ndim > 2:
        factor = np.moveaxis(factor, 0, -2)
    return (
        factor.swapaxes(-1, -2) if call.integer(f"trans{name}", 0) and factor.ndim > 1 else factor
    )


def fused_conv(call: FieldCall) -> FieldTensor:
    result = conv(call).data
    if call.has(3):
        result = added(result, call.residues(3))
    name = call.text("activation", "")
    if name == "Relu":
        return call.like(largest(call, result, ZERO))
    if name in ("", "Sigmoid", "Tanh"):
        return call.like(function(call, name, result) if name else result)
    raise UnknownError(f"with activation '{name}'")


def multi_head_attention(call: FieldCall) -> FieldTensor:
    if any(call.has(i) for i in (3, 4, 6, 7)) or call.results > 1:
        raise UnknownError("with a bias, a mask of keys or past keys")
    if call.integer("unidirectional", 0):
        raise UnknownError("unidirectional")
    count = call.integer("num_heads", 1)
    given = (call.residues(i) for i in range(3))
    query, key, value = (apart(each, count) if each.ndim == 3 else each for each in given)
    numbers = scores(call, HeadsApart(query, key, value))
    if call.has(5):
        numbers = added(numbers, as_bias(call.tensor(5)))
    return call.like(together(call.product(softmax(call, numbers, (-1,)), value)))


def quick_gelu(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    scaled = multiplied(numbers, call.encoded("alpha", 1.702))
    return call.like(multiplied(numbers, function(call, "Sigmoid", scaled)))


# operators on bytes


def channels_last(kernel: FieldKernel) -> FieldKernel:
    """An operator whose first operand and result have channels last."""

    def moved(call: FieldCall) -> Computed:
        tensor = call.tensor(0)
        first = tensor.with_data(np.moveaxis(tensor.data, -1, 1))
        result = kernel(call.of(call.op_type, first, *call.operands[1:], **call.attributes))
        head = result[0] if isinstance(result, tuple) else result
        if not isinstance(head, FieldTensor):
            raise UnknownError("its result is not a tensor")
        return head.with_data(np.moveaxis(head.data, 1, -1))

    return moved


def _marked(kernel: FieldKernel) -> FieldKernel:
    """Channels last if an attribute states it."""

    def marked(call: FieldCall) -> Computed:
        last = call.integer("channels_last", 0)
        return channels_last(kernel)(call) if last else kernel(call)

    return marked


def _pair(call: FieldCall, *, apply: Callable[[Residues, Residues], Residues]) -> FieldTensor:
    result = apply(operand(call, 0), operand(call, 3))
    return result_of(call, result, 6, call.tensor(0).element)


def _by_floats(call: FieldCall, *, kernel: FieldKernel, **attributes: Any) -> FieldTensor:
    """An operator on numbers between quantisers; scale and zero point follow each operand."""
    numbers = residue_tensor(operand(call, 0))
    inner = kernel(call.of(call.op_type, numbers, **{**call.attributes, **attributes}))
    if not isinstance(inner, FieldTensor):
        raise UnknownError("its result is not a tensor")
    return result_of(call, inner.data, 3, call.tensor(0).element)


def _sigmoid(call: FieldCall) -> FieldTensor:
    return call.like(function(call, "Sigmoid", call.residues(0)))


def _leaky_relu(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    above = largest(call, numbers, ZERO)
    slope = call.encoded("alpha", 0.01)
    return call.like(added(above, multiplied(subtracted(numbers, above), slope)))


def _softmax(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    axis = call.integer("axis", -1) % numbers.ndim
    whole = call.integer("opset", 0) >= 13
    axes = (axis,) if whole else tuple(range(axis, numbers.ndim))
    return call.like(softmax(call, numbers, axes))


def qlinear_concat(call: FieldCall) -> FieldTensor:
    """Scale and zero point of the result come first, then three operands a part."""
    parts = [residue_tensor(operand(call, place)) for place in range(2, len(call.operands), 3)]
    arrays, _ = at_one_type(parts)
    joined = np.concatenate(arrays, call.integer("axis", 0))
    return result_of(call, joined, 0, call.tensor(2).element)


def qgemm(call: FieldCall) -> FieldTensor:
    left = operand(call, 0)
    turned = call.integer("transB", 0)
    right = operand(call, 3, 0 if turned else 1)
    left = left.T if call.integer("transA", 0) else left
    result = call.product(left, right.T if turned else right)
    result = multiplied(result, call.encoded("alpha", 1.0))
    if call.has(6):
        step = multiplied(call.residues(1).reshape(()), call.residues(4))
        result = added(result, multiplied(call.residues(6), step))
    if not call.has(7):
        return residue_tensor(result)
    zero = call.residues(8) if call.has(8) else ZERO
    return quantised(call, result, call.residues(7), zero, call.tensor(0).element)


KERNELS: dict[str, FieldKernel] = {
    "FusedMatMul": fused_matmul,
    "TransposeMatMul": fused_matmul,
    "FusedConv": fused_conv,
    "MultiHeadAttention": multi_head_attention,
    "QuickGelu": quick_gelu,
    "NhwcMaxPool": channels_last(max_pool),
    "QLinearConv": _marked(qlinear_conv),
    "QLinearAdd": partial(_pair, apply=added),
    "QLinearMul": partial(_pair, apply=multiplied),
    "QLinearSigmoid": partial(_by_floats, kernel=_sigmoid),
    "QLinearLeakyRelu": partial(_by_floats, kernel=_leaky_relu),
    "QLinearSoftmax": partial(_by_floats, kernel=_softmax),
    "QLinearAveragePool": _marked(partial(_by_floats, kernel=average_pool)),
    "QLinearGlobalAveragePool": _marked(partial(_by_floats, kernel=global_average_pool)),
    "QLinearConcat": qlinear_concat,
    "QGemm": qgemm,
}
