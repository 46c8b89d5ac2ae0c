"""Operators that compute each element of the result from one element of each operand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import Length, fits_only_as, symbol
from relayout.verify.proof.operators.arithmetic import with_data
from relayout.verify.proof.table import Data, NotKnownError, TermTable, TermValue

UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu"),
    *("Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "IsInf"),
    *("IsNaN", "LeakyRelu", "Log", "Not", "Reciprocal", "Relu", "Round", "Selu"),
    *("Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan"),
    *("Tanh", "ThresholdedRelu"),
)
COMMUTATIVE = ("And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Or", "Xor")
SEVERAL = ("Max", "Mean", "Min")
ORDERED = ("BitShift", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mod")
# The version from which on operands are aligned from their last axes on.
ALIGNED_FROM_THE_END_SINCE = 7
NAN_GUARD = "guards of softmax against rows that are masked as a whole"


def elementwise(
    table: TermTable, key: Hashable, operands: Sequence[TermValue], *, commutative: bool = False
) -> TermValue:
    """An operator whose operands are broadcast against each other."""
    columns = broadcast(table, operands)
    return combined(table, ("each", key), operands, columns, commutative=commutative)


def broadcast(table: TermTable, operands: Sequence[TermValue]) -> list[Column]:
    """A column for each dimension of the result, aligned from the last one on."""
    rank = max(value.rank for value in operands)
    columns = []
    for axis in range(rank):
        dims = tuple(
            (number, axis - rank + value.rank)
            for number, value in enumerate(operands)
            if axis >= rank - value.rank
        )
        columns.append(aligned(table, operands, dims))
    return columns


def aligned(
    table: TermTable, operands: Sequence[TermValue], dims: tuple[tuple[int, int], ...]
) -> Column:
    """An index that each operand walks, or has once; for open lengths only a run tells which."""
    found = dict.fromkeys(operands[number].shape[dim] for number, dim in dims)
    lengths = [length for length in found if length != 1]
    if len(lengths) < 2:
        return Column(dims)
    note_meeting(table, lengths)
    either = symbol(f"broadcast({', '.join(sorted(map(str, lengths)))})")
    return Column(dims, "broadcast", ordered=True, length=either)


def note_meeting(table: TermTable, lengths: Sequence[Length]) -> None:
    """Notes lengths that are broadcast against each other: which must be equal, which may be."""
    first = next((length for length in lengths if isinstance(length, int)), lengths[0])
    for length in lengths:
        if fits_only_as(first, length) or fits_only_as(length, first):
            table.must_equal(first, length)
        else:
            table.guesses[first, length] = None


def refuse_old_broadcast(call: NodeCall) -> None:
    """Before version 7, operands were aligned from an axis that an attribute gives."""
    if call.attribute("broadcast", 0):
        raise NotKnownError(f"{call.node.op_type} that aligns its operands from an axis on")


def _rule(commutative: bool) -> Rule:
    def rule(call: NodeCall) -> list[TermValue]:
        refuse_old_broadcast(call)
        key = (call.node.op_type, call.settings())
        operands = [_without_gaps(call, number) for number in range(len(call.operands))]
        result = elementwise(call.table, key, operands, commutative=commutative)
        return [with_data(call, result)]

    return rule


def _without_gaps(call: NodeCall, number: int) -> TermValue:
    value = call.optional(number)
    return TermValue(call.table.term("left out"), ()) if value is None else value


def _cast(call: NodeCall) -> list[TermValue]:
    source = call.operand(0)
    key = ("Cast", call.attribute("to"), call.settings("to"))
    result = elementwise(call.table, key, [source])
    kinds = {1: "float32", 6: "int32", 7: "int64", 11: "float64"}
    kind = kinds.get(call.attribute("to"))
    if source.data is None or kind is None:
        return [result]
    return [of_data(call.table, Data(kind, source.data.elements), source.shape)]


def _clip(call: NodeCall) -> list[TermValue]:
    bounds = []
    for number, name in ((1, "min"), (2, "max")):
        value, given = call.optional(number), call.attribute(name)
        if value is None and given is not None:
            value = call.constant(np.array(given, np.float32))
        bounds.append(value or _without_gaps(call, number))
    return [elementwise(call.table, "Clip", [call.operand(0), *bounds])]


def _several(call: NodeCall) -> list[TermValue]:
    """Max, Min, Mean of any number of operands."""
    if len(call.operands) == 1:
        return [call.operand(0)]
    key = (call.node.op_type, call.settings())
    return [with_data(call, elementwise(call.table, key, call.present(), commutative=True))]


def _prelu(call: NodeCall) -> list[TermValue]:
    if call.since < ALIGNED_FROM_THE_END_SINCE and call.operand(1).pieces:
        raise NotKnownError("PRelu with a slope for each channel")
    return _rule(commutative=False)(call)


def batch_normalization(call: NodeCall) -> list[TermValue]:
    if call.attribute("training_mode", 0) or len([n for n in call.node.output if n]) > 1:
        raise NotKnownError("BatchNormalization that learns")
    if not call.attribute("spatial", 1):
        raise NotKnownError("BatchNormalization of each place by itself")
    operands = call.present()
    columns = [
        Column(((0, axis), *(((i, 0) for i in range(1, 5)) if axis == 1 else ())))
        for axis in range(operands[0].rank)
    ]
    key = ("each", ("BatchNormalization", call.settings("momentum", "spatial", "training_mode")))
    return [combined(call.table, key, operands, columns)]


def _quantization(call: NodeCall) -> list[TermValue]:
    """QuantizeLinear and DequantizeLinear, with one scale or one for each place along an axis."""
    operands = call.present()
    if call.attribute("block_size", 0) or any(v.rank > 1 and v.pieces for v in operands[1:]):
        raise NotKnownError("scales of blocks")
    rank = operands[0].rank
    per_axis = any(value.rank == 1 and value.shape != (1,) for value in operands[1:])
    axis = call.axis("axis", 1, rank) if per_axis else -1
    columns = [
        Column(
            (
                (0, d),
                *((i, 0) for i, v in enumerate(operands[1:], 1) if d == axis and v.rank == 1),
            )
        )
        for d in range(rank)
    ]
    operands = [operands[0], *(v if per_axis and v.rank else v.with_dims(()) for v in operands[1:])]
    key = ("each", (call.node.op_type, call.settings("axis")))
    return [combined(call.table, key, operands, columns)]


def _where(call: NodeCall) -> list[TermValue]:
    condition, yes, no = (call.operand(i) for i in range(3))
    if _guards(call.table, condition, yes, no) and call.table.step(NAN_GUARD):
        return [no]
    result = elementwise(call.table, ("Where", frozenset()), [condition, yes, no])
    return [with_data(call, result)]


def _guards(table: TermTable, condition: TermValue, yes: TermValue, no: TermValue) -> bool:
    """Whether it is Where(IsNaN(x), 0, x) of a softmax x."""
    key = table.terms[condition.term]
    zero = table.arrays.get(yes.term)
    return (
        key[:3] == ("each", ("IsNaN", frozenset()), (no.term,))
        and table.terms[no.term][0] == "Softmax"
        and condition.dims == no.dims
        and zero is not None
        and zero.size == 1
        and not zero.any()
        and not yes.pieces
    )


def _identity(call: NodeCall) -> list[TermValue]:
    return [call.operand(0)]


def _dropout(call: NodeCall) -> list[TermValue]:
    training = call.optional(2)
    known = None if training is None else call.table.arrays.get(training.term)
    learns = training is not None and (known is None or bool(known.any()))
    if learns or len([n for n in call.node.output if n]) > 1:
        raise NotKnownError("Dropout that learns")
    call.disregard("ratio", "seed")
    return [call.operand(0)]


RULES: dict[tuple[str, str], Rule] = {
    **{("", name): _rule(commutative=False) for name in (*UNARY, *ORDERED)},
    **{("", name): _rule(commutative=True) for name in COMMUTATIVE},
    **{("", name): _several for name in SEVERAL},
    ("", "Cast"): _cast,
    ("", "Clip"): _clip,
    ("", "PRelu"): _prelu,
    ("", "Where"): _where,
    ("", "QuantizeLinear"): _quantization,
    ("", "DequantizeLinear"): _quantization,
    ("com.microsoft", "QuantizeLinear"): _quantization,
    ("com.microsoft", "DequantizeLinear"): _quantization,
    ("", "Identity"): _identity,
    ("", "Dropout"): _dropout,
}
