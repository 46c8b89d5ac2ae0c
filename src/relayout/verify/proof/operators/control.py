"""Operators with bodies."""

from __future__ import annotations

from collections.abc import Hashable

import onnx

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.lengths import UNSTABLE, symbol
from relayout.verify.proof.operators.elementwise import elementwise
from relayout.verify.proof.pieces import FREE, Piece, refined
from relayout.verify.proof.table import Key, NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import exact


def _if(call: NodeCall) -> list[TermValue]:
    condition = call.operand(0)
    known = call.table.arrays.get(condition.term)
    if known is not None:
        taken = "then_branch" if known.reshape(-1)[0] else "else_branch"
        return call.scope.body().run(call.attribute(taken))
    with call.table.perhaps():
        branches = [
            call.scope.body().run(call.attribute(name)) for name in ("then_branch", "else_branch")
        ]
    return [_either(call, condition, *pair) for pair in zip(*branches, strict=True)]


def _either(call: NodeCall, condition: TermValue, yes: TermValue, no: TermValue) -> TermValue:
    if yes == no:
        return yes
    if yes.dims is not None and no.dims is not None and yes.shape == no.shape:
        alone = condition.with_dims(())
        return elementwise(call.table, "If", [alone, yes, no])
    sides = tuple(exact(call.table, side) for side in (yes, no))
    return call.table.opaque(("If", condition.term, sides), None)


class _Ties:
    """Values that a loop carries, each called the same at both ends of the body."""

    def __init__(self, call: NodeCall, kind: str) -> None:
        self.call, self.kind, self.depth = call, kind, call.scope.depth

    def carried(self, number: int, start: TermValue) -> TermValue:
        """What the body reads: a tensor of its own, with indices named after those of the start."""
        key = ("carried", self.kind, self.depth, number)
        return _named_after(self.call.table, self.call.table.term(*key), key, start)

    def tie(self, number: int, start: TermValue, end: TermValue) -> Hashable:
        """How what the body writes goes over into what it reads, whatever the order of axes."""
        read = self.carried(number, start)
        if read.shape != end.shape:
            raise NotKnownError("a loop that changes a shape")
        pairs: set[Hashable] = set()
        for one, other in zip(read.known_dims, end.known_dims, strict=True):
            rows = refined([one, other]) if one else []
            if rows is None:
                raise NotKnownError("a loop that carries axes cut at other places")
            pairs |= set(rows)
        return end.term, frozenset(pairs)


def _loop(call: NodeCall) -> list[TermValue]:
    """The trip count, the condition, the starts, and how one round leads to the next."""
    body: onnx.GraphProto = call.attribute("body")
    starts = [call.operand(i) for i in range(2, len(call.operands))]
    ties = _Ties(call, "Loop")
    scope = call.scope.body()
    table = call.table
    fixed = [
        TermValue(table.term("round", ties.depth), ()),
        TermValue(table.term("going", ties.depth), ()),
    ]
    carried = [ties.carried(i, start) for i, start in enumerate(starts)]
    reads = [*fixed, *carried]
    for port, value in zip(body.input, reads, strict=True):
        scope.values[port.name] = value
    with table.perhaps():
        goes, *ends = scope.run(body)
    count = len(starts)
    tied = tuple(
        ties.tie(i, start, end)
        for i, (start, end) in enumerate(zip(starts, ends[:count], strict=True))
    )
    begun = tuple(
        (start.term, frozenset(read.pieces)) for start, read in zip(starts, carried, strict=True)
    )
    limits = tuple(None if one is None else one.term for one in call.operands[:2])
    key = ("Loop", limits, goes.term, begun, tied)
    results = [_left(table, key, i, start) for i, start in enumerate(starts)]
    return results + [_stacked(table, key, i, end) for i, end in enumerate(ends[count:])]


def _left(table: TermTable, key: Key, number: int, start: TermValue) -> TermValue:
    """What a loop leaves: its indices are named after those it started with."""
    term = table.term(*key, "left", number)
    return _named_after(table, term, ("left", term), start)


def _named_after(table: TermTable, term: int, key: Key, start: TermValue) -> TermValue:
    """A tensor with an index for each of another's; of free ones only the place is known."""

    def named(axis: int, position: int, piece: Piece) -> Piece:
        origin = (axis, position, piece.extent) if piece.base == FREE else piece
        return Piece(table.base(*key, origin), 1, piece.extent)

    return TermValue(
        term,
        tuple(
            tuple(named(axis, position, piece) for position, piece in enumerate(dim))
            for axis, dim in enumerate(start.known_dims)
        ),
    )


def _stacked(table: TermTable, key: Key, number: int, one: TermValue) -> TermValue:
    """What each round gives, one after the other."""
    term = table.term(*key, "stacked", number, one.term)
    rounds = table.axis(symbol(f"{UNSTABLE}rounds {term}"), "rounds", term)
    return TermValue(term, (rounds, *one.known_dims))


RULES: dict[tuple[str, str], Rule] = {
    ("", "If"): _if,
    ("", "Loop"): _loop,
}
