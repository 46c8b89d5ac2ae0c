"""Operators with bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.lengths import UNSTABLE, Length, symbol
from relayout.verify.proof.operators.elementwise import elementwise
from relayout.verify.proof.operators.ties import CarriedValues, named_after
from relayout.verify.proof.table import Key, NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import exact

# From this version on Scan has no axis of batches of its own.
NO_BATCH_SINCE = 9


def _if(call: NodeCall) -> list[TermValue]:
    condition = call.operand(0)
    known = call.table.arrays.get(condition.term)
    then, otherwise = (call.attribute(name) for name in ("then_branch", "else_branch"))
    if known is not None:
        return call.scope.body().run(then if known.reshape(-1)[0] else otherwise)
    with call.table.perhaps():
        branches = [call.scope.body().run(body) for body in (then, otherwise)]
    return [_either(call, condition, *pair) for pair in zip(*branches, strict=True)]


def _either(call: NodeCall, condition: TermValue, yes: TermValue, no: TermValue) -> TermValue:
    if yes == no:
        return yes
    if yes.dims is not None and no.dims is not None and yes.shape == no.shape:
        alone = condition.with_dims(())
        return elementwise(call.table, "If", [alone, yes, no])
    sides = tuple(exact(call.table, side) for side in (yes, no))
    return call.table.opaque(("If", condition.term, sides), None)


def _run_body(call: NodeCall, reads: Sequence[TermValue]) -> list[TermValue]:
    body: onnx.GraphProto = call.attribute("body")
    scope = call.scope.body()
    for port, value in zip(body.input, reads, strict=True):
        scope.values[port.name] = value
    with call.table.perhaps():
        return scope.run(body)


def _loop(call: NodeCall) -> list[TermValue]:
    """The trip count, the condition, the starts, and how one round leads to the next."""
    starts = [call.operand(i) for i in range(2, len(call.operands))]
    table, depth = call.table, call.scope.depth
    fixed = [TermValue(table.term(name, depth), ()) for name in ("round", "going")]

    def rounds(carried: list[TermValue]) -> tuple[list[TermValue], list[TermValue]]:
        goes, *ends = _run_body(call, [*fixed, *carried])
        return ends[: len(starts)], [goes, *ends[len(starts) :]]

    values, (goes, *each) = _settled(CarriedValues(table, "Loop", depth, starts), rounds)
    limits = tuple(None if one is None else one.term for one in call.operands[:2])
    key = ("Loop", limits, goes.term, values.key())
    length = symbol(f"{UNSTABLE}rounds {table.term(*key)}")
    stacked = [_stacked(table, (*key, i), one, length, 0) for i, one in enumerate(each)]
    return values.left(key) + stacked


def _scan(call: NodeCall) -> list[TermValue]:
    """As a loop, of which each round reads one place along an axis of some operands."""
    if call.since < NO_BATCH_SINCE:
        raise NotKnownError("Scan over batches")
    table, depth, count = call.table, call.scope.depth, int(call.attribute("num_scan_inputs"))
    operands = [call.operand(i) for i in range(len(call.operands))]
    starts, read = operands[: len(operands) - count], operands[len(operands) - count :]
    axes = _places(call, "scan_input_axes", read)
    backwards = call.attribute("scan_input_directions", (0,) * count)
    slices, keys = [], []
    for number, (value, axis) in enumerate(zip(read, axes, strict=True)):
        rest = [dim for d, dim in enumerate(value.known_dims) if d != axis]
        name = ("scanned", depth, number)
        slices.append(named_after(table, table.term(*name), name, value.with_dims(rest)))
        one = (value.term, value.known_dims[axis], backwards[number])
        keys.append((*one, frozenset(slices[-1].pieces)))

    def rounds(carried: list[TermValue]) -> tuple[list[TermValue], list[TermValue]]:
        ends = _run_body(call, [*carried, *slices])
        return ends[: len(starts)], ends[len(starts) :]

    values, each = _settled(CarriedValues(table, "Scan", depth, starts), rounds)
    key = ("Scan", tuple(keys), values.key())
    length = read[0].shape[axes[0]]
    directions = call.attribute("scan_output_directions", (0,) * len(each))
    places = call.attribute("scan_output_axes", (0,) * len(each))
    stacked = [
        _stacked(table, (*key, directions[i], i), one, length, places[i] % (one.rank + 1))
        for i, one in enumerate(each)
    ]
    return values.left(key) + stacked


def _places(call: NodeCall, name: str, values: Sequence[TermValue]) -> list[int]:
    given = call.attribute(name, (0,) * len(values))
    return [call.place(axis, value.rank) for axis, value in zip(given, values, strict=True)]


_Rounds = Callable[[list[TermValue]], tuple[list[TermValue], list[TermValue]]]
"""From what a body reads to what it carries on, and to what else it gives."""


def _settled(values: CarriedValues, rounds: _Rounds) -> tuple[CarriedValues, list[TermValue]]:
    """What is carried, read with what the body was found to leave as it is or to make longer."""
    while True:
        ends, others = rounds(values.reads())
        known = values.learned(ends)
        if known is None:
            return values.ending(ends), others
        values = known


def _stacked(table: TermTable, key: Key, one: TermValue, length: Length, axis: int) -> TermValue:
    """What each round gives, one after the other along an axis."""
    term = table.term(*key, "stacked", one.term)
    rounds = table.axis(length, "rounds", term)
    dims = one.known_dims
    return TermValue(term, (*dims[:axis], rounds, *dims[axis:]))


RULES: dict[tuple[str, str], Rule] = {
    ("", "If"): _if,
    ("", "Loop"): _loop,
    ("", "Scan"): _scan,
}
