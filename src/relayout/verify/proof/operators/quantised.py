"""Operators that compute on quantised numbers, with their scales and zero points as operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import times
from relayout.verify.proof.operators.contractions import SUM
from relayout.verify.proof.operators.elementwise import aligned, broadcast
from relayout.verify.proof.operators.moving import concat_columns
from relayout.verify.proof.operators.windows import conv_columns, grouped, pool_columns, windows
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import reshaped, transposed

CONTRIB = "com.microsoft"


def _present(call: NodeCall, number: int) -> TermValue:
    value = call.optional(number)
    return TermValue(call.table.term("left out"), ()) if value is None else value


def _scalar(value: TermValue) -> TermValue:
    if value.pieces:
        raise NotKnownError("a scale for each of several places")
    return value.with_dims(())


def _channels_first(value: TermValue) -> TermValue:
    return transposed(value, (0, value.rank - 1, *range(1, value.rank - 1)))


def _channels_last(value: TermValue) -> TermValue:
    return transposed(value, (0, *range(2, value.rank), 1))


def _last(call: NodeCall) -> bool:
    return bool(call.attribute("channels_last", 0))


def _conv(call: NodeCall, key: str, weight_at: int, others: Sequence[int]) -> list[TermValue]:
    """A convolution with more operands, of one number each or one for each channel it makes."""
    source = call.operand(0)
    source = _channels_first(source) if _last(call) else source
    value, weight, groups = grouped(call, source, call.operand(weight_at))
    moved = windows(call, value.shape[3:], weight.shape[3:])
    columns, _ = conv_columns(moved, "windows")
    operands = [value, weight]
    for number in others:
        one = _present(call, number)
        if one.pieces:
            one = reshaped(call.table, one, [groups, weight.shape[1]])
            place = len(operands)
            columns[1] = replace(columns[1], dims=(*columns[1].dims, (place, 0)))
            columns[2] = replace(columns[2], dims=(*columns[2].dims, (place, 1)))
        else:
            one = one.with_dims(())
        operands.append(one)
    result = combined(call.table, (key,), operands, columns)
    batch, many, each, *rest = result.shape
    result = reshaped(call.table, result, [batch, times(many, each), *rest])
    return [_channels_last(result) if _last(call) else result]


def _qlinear_conv(call: NodeCall) -> list[TermValue]:
    return _conv(call, "QLinearConv", 3, (1, 2, 4, 5, 6, 7, 8))


def _conv_integer(call: NodeCall) -> list[TermValue]:
    return _conv(call, "ConvInteger", 1, (2, 3))


def _qlinear_matmul(call: NodeCall) -> list[TermValue]:
    left, right = call.operand(0), call.operand(3)
    others = [_scalar(_present(call, number)) for number in (1, 2, 4, 5, 6, 7)]
    return [_product(call.table, "QLinearMatMul", left, right, others)]


def _qgemm(call: NodeCall) -> list[TermValue]:
    if call.attribute("alpha", 1.0) != 1.0:
        raise NotKnownError("QGemm with a factor")
    left, right = call.operand(0), call.operand(3)
    left = transposed(left, (1, 0)) if call.attribute("transA", 0) else left
    right = transposed(right, (1, 0)) if call.attribute("transB", 0) else right
    others = [_present(call, number) for number in (1, 2, 4, 5, 6, 7, 8)]
    return [_product(call.table, "QGemm", left, right, others)]


def _product(
    table: TermTable, key: str, left: TermValue, right: TermValue, others: Sequence[TermValue]
) -> TermValue:
    rank = max(left.rank, right.rank)
    if min(left.rank, right.rank) < 2:
        raise NotKnownError(f"{key} with a vector")
    operands = [left, right]
    columns = []
    for axis in range(rank - 2):
        places = ((0, axis - rank + left.rank), (1, axis - rank + right.rank))
        dims = tuple(place for place in places if place[1] >= 0)
        columns.append(aligned(table, [left, right], dims))
    wide: list[tuple[int, int]] = [(1, right.rank - 1)]
    for other in others:
        one = other if other.pieces else other.with_dims(())
        if one.rank > 1:
            raise NotKnownError(f"{key} with a scale for each row")
        wide += [(len(operands), 0)] if one.rank else []
        operands.append(one)
    columns += [Column(((0, left.rank - 2),)), Column(tuple(wide))]
    columns.append(Column(((0, left.rank - 1), (1, right.rank - 2)), SUM, kept=False))
    return combined(table, (key,), operands, columns)


def _qlinear_binary(call: NodeCall) -> list[TermValue]:
    left, right = call.operand(0), call.operand(3)
    others = [_scalar(_present(call, number)) for number in (1, 2, 4, 5, 6, 7)]
    operands = [left, right, *others]
    key = ("each", (CONTRIB, call.node.op_type))
    return [combined(call.table, key, operands, broadcast(call.table, operands))]


def _qlinear_unary(call: NodeCall) -> list[TermValue]:
    others = [_scalar(_present(call, number)) for number in range(1, 5)]
    operands = [call.operand(0), *others]
    key = ("each", (CONTRIB, call.node.op_type, call.settings()))
    return [combined(call.table, key, operands, broadcast(call.table, operands))]


def _qlinear_concat(call: NodeCall) -> list[TermValue]:
    scale, zero, *rest = call.present()
    tensors = rest[::3]
    steps = [scale, zero, *rest[1::3], *rest[2::3]]
    columns = concat_columns(tensors, call.axis("axis", 0, tensors[0].rank))
    operands = [*tensors, *map(_scalar, steps)]
    return [combined(call.table, ("QLinearConcat",), operands, columns)]


def _qlinear_pool(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    value = _channels_first(value) if _last(call) else value
    others = [_scalar(_present(call, number)) for number in range(1, 5)]
    if call.node.op_type == "QLinearGlobalAveragePool":
        columns = [
            Column(((0, d),), "reduced" if d > 1 else None, kept=d < 2) for d in range(value.rank)
        ]
        result = combined(call.table, (call.node.op_type,), [value, *others], columns)
        result = result.with_dims([*result.known_dims, *[()] * (value.rank - 2)])
    else:
        columns = pool_columns(call, value)
        key = (call.node.op_type, call.attribute("count_include_pad", 0))
        result = combined(call.table, key, [value, *others], columns)
    return [_channels_last(result) if _last(call) else result]


def _nhwc_max_pool(call: NodeCall) -> list[TermValue]:
    value = _channels_first(call.operand(0))
    columns = pool_columns(call, value)
    return [_channels_last(combined(call.table, ("MaxPool",), [value], columns))]


RULES: dict[tuple[str, str], Rule] = {
    ("", "QLinearConv"): _qlinear_conv,
    (CONTRIB, "QLinearConv"): _qlinear_conv,
    ("", "ConvInteger"): _conv_integer,
    ("", "QLinearMatMul"): _qlinear_matmul,
    (CONTRIB, "QGemm"): _qgemm,
    (CONTRIB, "QLinearAdd"): _qlinear_binary,
    (CONTRIB, "QLinearMul"): _qlinear_binary,
    (CONTRIB, "QLinearSigmoid"): _qlinear_unary,
    (CONTRIB, "QLinearLeakyRelu"): _qlinear_unary,
    (CONTRIB, "QLinearConcat"): _qlinear_concat,
    (CONTRIB, "QLinearAveragePool"): _qlinear_pool,
    (CONTRIB, "QLinearGlobalAveragePool"): _qlinear_pool,
    (CONTRIB, "NhwcMaxPool"): _nhwc_max_pool,
}
