"""Operators that place elements along axes: Concat, Split, Slice, Pad, Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import (
    Length,
    floor,
    minus,
    nonnegative,
    plus,
    product,
    smaller,
    symbol,
)
from relayout.verify.proof.openings import AxisMaking
from relayout.verify.proof.operators.resizing import Resizing, Stretch, resized
from relayout.verify.proof.slices import AxisPart, cut_out
from relayout.verify.proof.table import Data, NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import array_of

JOINED = "concat"
# From this version on, Resize puts pixels at the centre of their places unless told otherwise.
HALF_PIXEL_SINCE = 11
# An end beyond every length, as exporters write it.
BEYOND = 2**31 - 1


def _concat(call: NodeCall) -> list[TermValue]:
    operands = call.present()
    rank = operands[0].rank
    axis = call.axis("axis", 0, rank)
    if len(operands) == 1:
        return [operands[0]]
    if rank == 1 and all(value.data is not None for value in operands):
        datas = [value.data for value in operands if value.data is not None]
        elements = tuple(n for data in datas for n in data.elements)
        return [of_data(call.table, Data(datas[0].kind, elements), (len(elements),))]
    operands = [value for value in operands if value.shape[axis] != 0] or operands[:1]
    return [joined(call.table, operands, axis)]


def joined(table: TermTable, operands: Sequence[TermValue], axis: int) -> TermValue:
    """Tensors that follow each other along an axis."""
    result = combined(table, ("Concat",), operands, concat_columns(operands, axis))
    if table.ledger is not None:
        making = AxisMaking(JOINED, result.known_dims, tuple(operands), (axis,), None)
        table.makings.setdefault(result.term, making)
    return result


def concat_columns(operands: Sequence[TermValue], axis: int) -> list[Column]:
    """A column for each dimension of tensors that follow each other along an axis."""
    lengths = tuple(value.shape[axis] for value in operands)
    total: Length = 0
    for length in lengths:
        total = plus(total, length)
    columns = []
    for d in range(operands[0].rank):
        dims = tuple((i, d) for i in range(len(operands)))
        if d == axis:
            columns.append(Column(dims, ("concat", lengths), ordered=True, length=total))
        else:
            columns.append(Column(dims))
    return columns


def _split(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    axis = call.axis("axis", 0, value.rank)
    lengths = call.lengths(1, "split")
    if lengths is None:
        parts = int(call.attribute("num_outputs", len(call.node.output)))
        each = floor(plus(value.shape[axis], parts - 1), parts)
        if not isinstance(each, int) or not isinstance(value.shape[axis], int):
            raise NotKnownError("Split of an open length")
        last = minus(value.shape[axis], each * (parts - 1))
        lengths = (*([each] * (parts - 1)), last)
    results, start, whole = [], 0, value.shape[axis]
    for length in lengths:
        if not isinstance(length, int):
            raise NotKnownError("Split into open lengths")
        results.append(cut_out(call.table, value, axis, AxisPart(start, 1, length)))
        start += length
    if isinstance(whole, int) and start != whole:
        raise NotKnownError("Split into parts that are not the whole")
    return results


class SliceBounds(NamedTuple):
    """From where to where an axis is walked, as a Slice is told it."""

    start: Length
    end: Length
    step: int


def _slice(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    old = call.since < 10
    starts = call.attribute("starts") if old else call.lengths(1)
    ends = call.attribute("ends") if old else call.lengths(2)
    axes = call.attribute("axes") if old else call.numbers(3)
    if starts is None or ends is None:
        raise NotKnownError("Slice without bounds")
    steps = (None if old else call.numbers(4)) or (1,) * len(starts)
    bounds = [SliceBounds(*row) for row in zip(starts, ends, steps, strict=True)]
    data = value.data
    if data is not None and value.rank == 1 and len(bounds) == 1:
        start, end, step = bounds[0]
        if isinstance(start, int) and isinstance(end, int):
            elements = data.elements[start:end:step]
            return [of_data(call.table, Data(data.kind, elements), (len(elements),))]
    for axis, one in zip(range(len(bounds)) if axes is None else axes, bounds, strict=True):
        place = axis % value.rank
        part = _part(value.shape[place], one)
        value = value if part is None else cut_out(call.table, value, place, part)
    return [value]


def _part(length: Length, bounds: SliceBounds) -> AxisPart | None:
    """The part of an axis; None if it is all of it."""
    start, end, step = bounds
    if isinstance(length, int) and isinstance(start, int) and isinstance(end, int):
        indices = range(length)[start:end:step]
        return AxisPart(indices[0] if len(indices) else 0, step, len(indices))
    to_end = nonnegative(minus(end, length)) or (isinstance(end, int) and end >= BEYOND)
    if step == 1 and start == 0 and to_end:
        return None
    if bounds == (0, 1, 1):
        return AxisPart(0, 1, 1)  # no length is 0
    return AxisPart((start, end), step, _open_length(length, bounds))


def _open_length(length: Length, bounds: SliceBounds) -> Length:
    """The length of what is cut out of an open one, which is at least 1."""
    start, end, step = bounds
    if start == 0 and step == 1 and nonnegative(end):
        return smaller(length, end)
    return symbol(f"slice({length}; {start}:{end}:{step})")


def _pad(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    pads = call.numbers(1, "pads")
    if pads is None:
        pads = call.attribute("paddings")
    axes = call.numbers(3) or tuple(range(value.rank))
    ends = {axis % value.rank: (pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes)}
    columns = []
    for d in range(value.rank):
        before, after = ends.get(d, (0, 0))
        if before == after == 0:
            columns.append(Column(((0, d),)))
            continue
        length = plus(value.shape[d], before + after)
        columns.append(Column(((0, d),), ("pad", before, after), ordered=True, length=length))
    mode = call.text("mode", "constant")
    fill: list[TermValue] = []
    if mode == "constant":
        given = call.optional(2)
        given = given if given is not None else TermValue(call.table.term("zero"), ())
        fill = [_zero(call, given)]
    if not any(column.ordered for column in columns):
        return [value]
    key = ("Pad", mode, call.attribute("value", 0.0))
    return [combined(call.table, key, [value, *fill], columns)]


def _zero(call: NodeCall, fill: TermValue) -> TermValue:
    """A fill of 0 is what is meant where none is given."""
    array = call.table.arrays.get(fill.term)
    if array is not None and array.size == 1 and array.dtype.kind in "fiu" and not array.any():
        return TermValue(call.table.term("zero"), ())
    return fill.with_dims(())


def _resize(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    scales = _numbers(call, 2 if call.node.op_type == "Resize" and call.since > 10 else 1)
    sizes = call.lengths(3)
    if call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NotKnownError("Resize that keeps the aspect ratio")
    mode = call.text("coordinate_transformation_mode")
    if mode in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
        raise NotKnownError(f"Resize with {mode}")
    if scales is None and sizes is None:
        scales = call.attribute("scales")
    axes = call.attribute("axes", tuple(range(value.rank)))
    stretches: dict[int, Stretch] = {}
    for i, axis in enumerate(axes):
        length = value.shape[axis]
        scale = None if scales is None else float(scales[i])
        if sizes is not None:
            after: Length = sizes[i]
        else:
            assert scale is not None
            after = _scaled_length(length, scale)
        if after == length and scale in (None, 1.0):
            continue
        stretches[axis % value.rank] = Stretch(scale, after)
    key = (call.node.op_type, call.since >= HALF_PIXEL_SINCE, call.settings("axes", "scales"))
    return [resized(call.table, Resizing(key, stretches), value)]


def _scaled_length(length: Length, scale: float) -> Length:
    if isinstance(length, int):
        return int(length * scale)
    if scale == int(scale):
        return product([length, int(scale)])
    raise NotKnownError("Resize of an open length by a broken factor")


def _numbers(call: NodeCall, number: int) -> Any:
    value = call.optional(number)
    if value is None or 0 in value.shape:
        return None
    if value.term not in call.table.arrays:
        raise NotKnownError(f"{call.node.op_type} by numbers that only a run tells")
    return array_of(call.table, value).tolist()


RULES: dict[tuple[str, str], Rule] = {
    ("", "Concat"): _concat,
    ("", "Split"): _split,
    ("", "Slice"): _slice,
    ("", "Pad"): _pad,
    ("", "Resize"): _resize,
    ("", "Upsample"): _resize,
}
