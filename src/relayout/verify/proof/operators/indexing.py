"""Operators that find elements by numbers: Gather and its kin."""

from __future__ import annotations

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.slices import AxisPart, cut_out
from relayout.verify.proof.table import Data, NotKnownError, TermValue
from relayout.verify.proof.views import exact, squeezed


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


def _as_index(call: NodeCall) -> list[TermValue]:
    """Found element by element: of the shape of the indices."""
    return _opaque(call, call.operand(1))


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
    shape = list(indices.shape)
    shape.insert(axis, depth[0])
    inputs = tuple(exact(call.table, value) for value in call.present())
    return [call.table.opaque(("exact", call.key(), inputs), shape)]


def _recurrent(call: NodeCall) -> list[TermValue]:
    value, weight = call.operand(0), call.operand(2)
    if call.attribute("layout", 0):
        raise NotKnownError("a recurrent operator with the batch first")
    steps, batch, _ = value.shape
    directions, hidden = weight.shape[0], weight.shape[2]
    shapes = [(steps, directions, batch, hidden), *[(directions, batch, hidden)] * 2]
    inputs = tuple(exact(call.table, value) for value in call.operands)
    key = ("exact", call.key(), inputs)
    return [call.table.opaque((*key, i), shapes[i]) for i in range(len(call.node.output))]


RULES: dict[tuple[str, str], Rule] = {
    ("", "Gather"): _gather,
    ("", "GatherElements"): _as_index,
    ("", "GatherND"): _gather_nd,
    ("", "ScatterElements"): _as_data,
    ("", "ScatterND"): _as_data,
    ("", "Trilu"): _as_data,
    ("", "ReverseSequence"): _as_data,
    ("", "OneHot"): _one_hot,
    ("", "LSTM"): _recurrent,
    ("", "GRU"): _recurrent,
    ("", "RNN"): _recurrent,
}
