"""Operators that find elements by numbers: Gather and its kin."""

from __future__ import annotations

import numpy as np

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.slices import AxisPart, cut_out
from relayout.verify.proof.table import Data, Key, NotKnownError, TermValue
from relayout.verify.proof.views import exact, squeezed, transposed


def _gather(call: NodeCall) -> list[TermValue]:
    value, indices = call.operand(0), call.operand(1)
    axis = call.axis("axis", 0, value.rank)
    if value.data is not None and indices.data is not None and value.rank == 1:
        return [_picked(call, value.data, indices)]
    part = _run(value, axis, indices)
    if part is not None:
        result = cut_out(call.table, value, axis, part)
        return [squeezed(call.table, result, [axis]) if indices.rank == 0 else result]
    columns = [Column(((0, d),)) for d in range(axis)]
    columns += [Column(((1, d),)) for d in range(indices.rank)]
    columns += [Column(((0, d),)) for d in range(axis + 1, value.rank)]
    columns.append(Column(((0, axis),), "found by number", kept=False, ordered=True))
    return [combined(call.table, ("Gather",), [value, indices], columns)]


def _picked(call: NodeCall, data: Data, indices: TermValue) -> TermValue:
    assert indices.data is not None
    numbers = indices.data.elements
    if not all(isinstance(n, int) for n in numbers):
        raise NotKnownError("Gather by open numbers")
    elements = tuple(data.elements[n] for n in numbers if isinstance(n, int))
    return of_data(call.table, Data(data.kind, elements), indices.shape)


def _run(value: TermValue, axis: int, indices: TermValue) -> AxisPart | None:
    """The part that neighbouring indices are."""
    if indices.data is None or indices.rank > 1:
        return None
    length = value.shape[axis]
    numbers = list(indices.data.elements)
    if not numbers or not all(isinstance(n, int) for n in numbers):
        return None
    whole = [n for n in numbers if isinstance(n, int)]
    if isinstance(length, int) and not all(-length <= n < length for n in whole):
        return None
    if min(whole) < 0:
        if not isinstance(length, int):
            return None
        whole = [n % length for n in whole]
    if whole != list(range(whole[0], whole[0] + len(whole))):
        return None
    return AxisPart(whole[0], 1, len(whole))


def _gather_elements(call: NodeCall) -> list[TermValue]:
    """Found element by element: of the shape of the indices."""
    value, indices = call.operand(0), call.operand(1)
    axis = call.axis("axis", 0, value.rank)
    if not _same_but(axis, value, indices):
        return _opaque(call, indices)
    columns = [Column(((1, d),) if d == axis else ((0, d), (1, d))) for d in range(value.rank)]
    columns.append(Column(((0, axis),), "found by number", kept=False, ordered=True))
    return _or_opaque(call, ("GatherElements",), columns, indices)


def _scatter_elements(call: NodeCall) -> list[TermValue]:
    """Written into a copy, element by element."""
    value, indices, updates = (call.operand(i) for i in range(3))
    axis = call.axis("axis", 0, value.rank)
    if not _same_but(axis, value, indices) or indices.shape != updates.shape:
        return _opaque(call, value)
    columns = [
        Column(((0, d),), "written by number", ordered=True)
        if d == axis
        else Column(((0, d), (1, d), (2, d)))
        for d in range(value.rank)
    ]
    columns.append(Column(((1, axis), (2, axis)), "numbers", kept=False, ordered=True))
    return _or_opaque(call, ("ScatterElements", call.settings("axis")), columns, value)


def _or_opaque(call: NodeCall, key: Key, columns: list[Column], like: TermValue) -> list[TermValue]:
    """By named axes or, where a constant of open lengths is walked, by its exact operands."""
    try:
        return [combined(call.table, key, call.present(), columns)]
    except NotKnownError:
        return _opaque(call, like)


def _same_but(axis: int, value: TermValue, indices: TermValue) -> bool:
    """Whether both have the same lengths along all other axes."""
    pairs = enumerate(zip(value.shape, indices.shape, strict=True))
    return all(one == other for d, (one, other) in pairs if d != axis)


def _triangle(call: NodeCall) -> list[TermValue]:
    value, offset = call.operand(0), call.optional(1)
    columns = [Column(((0, d),)) for d in range(value.rank - 2)]
    columns.append(Column(((0, value.rank - 2),), "row", ordered=True))
    columns.append(Column(((0, value.rank - 1),), "column", ordered=True))
    zero = call.constant(np.array(0, np.int64))
    bound = zero if offset is None else offset.with_dims(())
    key = ("Trilu", call.settings())
    return [combined(call.table, key, [value, bound], columns)]


def _reverse_sequence(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    batch, time = call.axis("batch_axis", 1, value.rank), call.axis("time_axis", 0, value.rank)
    columns = [
        Column(((0, d),), "reversed", ordered=True)
        if d == time
        else Column(((0, d), (1, 0)) if d == batch else ((0, d),))
        for d in range(value.rank)
    ]
    return _or_opaque(call, ("ReverseSequence",), columns, value)


def _as_data(call: NodeCall) -> list[TermValue]:
    """Written into a copy: of the shape of the first operand."""
    return _opaque(call, call.operand(0))


def _opaque(call: NodeCall, like: TermValue) -> list[TermValue]:
    inputs = tuple(exact(call.table, value) for value in call.present())
    return [call.table.opaque(("exact", call.key(), inputs), like.shape)]


def _gather_nd(call: NodeCall) -> list[TermValue]:
    value, indices = call.operand(0), call.operand(1)
    last = indices.shape[-1]
    if not isinstance(last, int):
        raise NotKnownError("GatherND by open numbers")
    batch = int(call.attribute("batch_dims", 0))
    shape = (*indices.shape[:-1], *value.shape[batch + last :])
    inputs = tuple(exact(call.table, value) for value in call.present())
    return [call.table.opaque(("exact", call.key(), inputs), shape)]


def _one_hot(call: NodeCall) -> list[TermValue]:
    indices, depth = call.operand(0), call.lengths(1)
    assert depth is not None
    axis = int(call.attribute("axis", -1)) % (indices.rank + 1)
    columns = [Column(((0, d),)) for d in range(indices.rank)]
    columns.insert(axis, Column((), ("one of", depth[0]), ordered=True, length=depth[0]))
    columns.append(Column(((1, 0),), "off and on", kept=False, ordered=True))
    return [combined(call.table, ("OneHot",), [indices, call.operand(2)], columns)]


def _recurrent(call: NodeCall) -> list[TermValue]:
    """LSTM, GRU, RNN, with steps before batches whatever the layout of the node."""
    batch_first = bool(call.attribute("layout", 0))
    states = (0, *INITIAL_STATES) if batch_first else ()
    operands = [
        value if value is None or i not in states else transposed(value, (1, 0, 2))
        for i, value in enumerate(call.operands)
    ]
    value, weight = operands[0], call.operand(2)
    assert value is not None
    steps, batch, _ = value.shape
    directions, hidden = weight.shape[0], weight.shape[2]
    shapes = [(steps, directions, batch, hidden), *[(directions, batch, hidden)] * 2]
    inputs = tuple(exact(call.table, value) for value in operands)
    key = ("exact", call.node.op_type, call.since, call.settings("layout"), inputs)
    found = [call.table.opaque((*key, i), shapes[i]) for i in range(len(call.node.output))]
    if not batch_first:
        return found
    return [transposed(one, (2, 0, 1, 3) if one.rank == 4 else (1, 0, 2)) for one in found]


INITIAL_STATES = (5, 6)
"""The operands of a recurrent operator that hold a state for each batch."""


RULES: dict[tuple[str, str], Rule] = {
    ("", "Gather"): _gather,
    ("", "GatherElements"): _gather_elements,
    ("", "GatherND"): _gather_nd,
    ("", "ScatterElements"): _scatter_elements,
    ("", "ScatterND"): _as_data,
    ("", "Trilu"): _triangle,
    ("", "ReverseSequence"): _reverse_sequence,
    ("", "OneHot"): _one_hot,
    ("", "LSTM"): _recurrent,
    ("", "GRU"): _recurrent,
    ("", "RNN"): _recurrent,
}
