"""Constants that are repeated as often as a length says, such as a class token for each picture.

What one is joined with, or added to, has the length too. So it may be one entry, which elementwise
builtins repeat by themselves; for a join it is repeated by a choice between it and a part of the
other operand that never takes the latter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from relayout.backends.litert.flat_graph import FlatData, FlatOperator, FlatTensor

JOIN = "CONCATENATION"
ELEMENTWISE = frozenset({"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"})
AtBothLengths: TypeAlias = tuple[FlatOperator, FlatOperator]


def without_repeated(first: FlatOperator, second: FlatOperator) -> Iterator[AtBothLengths]:
    """One operator at two lengths, after what makes its repeated constants of one entry."""
    for place in range(_count(first, second)):
        entry = _entry(first.inputs[place], second.inputs[place])
        made = [] if entry is None else [_repeat(each, place, entry) for each in (first, second)]
        if entry is not None and all(made):
            *before, (first, second) = zip(*made, strict=True)
            yield from before
    yield first, second


def _count(first: FlatOperator, second: FlatOperator) -> int:
    """How many operands may be repeated constants."""
    is_one = (first.builtin, len(first.inputs)) == (second.builtin, len(second.inputs))
    return len(first.inputs) if is_one and first.builtin in ELEMENTWISE | {JOIN} else 0


def _entry(mine: FlatTensor | None, theirs: FlatTensor | None) -> FlatData | None:
    """The one entry along the axis whose lengths differ, if all of both constants are that."""
    one, other = (None if each is None else each.data for each in (mine, theirs))
    if one is None or other is None or one.dtype != np.float32 or one.ndim != other.ndim:
        return None
    axes = [axis for axis in range(one.ndim) if one.shape[axis] != other.shape[axis]]
    if len(axes) != 1 or not one.size:
        return None
    entry: FlatData = one.take([0], axes[0])
    both = (one, other)
    is_repeated = all(np.array_equal(each, np.broadcast_to(entry, each.shape)) for each in both)
    return entry if is_repeated else None


def _repeat(operator: FlatOperator, place: int, entry: FlatData) -> list[FlatOperator]:
    """An operator that reads one entry, after what it needs for that; nothing if it cannot."""
    if operator.builtin == JOIN:
        return _joined(operator, place, entry)
    one = FlatTensor(f"{operator.outputs[0].name}/entry", entry.shape, entry.dtype, entry)
    changed = _with(operator, place, one)
    shapes = (each.shape for each in changed.inputs if each is not None)
    return [changed] if np.broadcast_shapes(*shapes) == operator.outputs[0].shape else []


def _joined(join: FlatOperator, place: int, entry: FlatData) -> list[FlatOperator]:
    """A part of another operand, the choice, and the join; nothing if no operand is long enough."""
    constant, axis = join.inputs[place], join.options["axis"]
    if constant is None:
        return []
    length, name = constant.shape[axis], f"{join.outputs[0].name}/{place}"
    long = (t for t in join.inputs if t is not None and t.data is None and t.shape[axis] >= length)
    whole = next(long, None)
    if whole is None:
        return []
    part, chosen = (
        FlatTensor(f"{name}/{kind}", constant.shape, constant.dtype) for kind in ("part", "chosen")
    )
    ends = [length if each == axis else 0 for each in range(constant.rank)]
    bounds = ([0] * constant.rank, ends, [1] * constant.rank)
    places = (_constant(f"{name}/bound{i}", each) for i, each in enumerate(bounds))
    mask = sum(1 << each for each in range(constant.rank) if each != axis)
    is_entry = FlatTensor(f"{name}/always", (1,), np.dtype(bool), np.ones(1, bool))
    one = FlatTensor(f"{name}/entry", entry.shape, entry.dtype, entry)
    return [
        FlatOperator("STRIDED_SLICE", (whole, *places), (part,), {"endMask": mask}),
        FlatOperator("SELECT_V2", (is_entry, one, part), (chosen,)),
        _with(join, place, chosen),
    ]


def _with(operator: FlatOperator, place: int, operand: FlatTensor) -> FlatOperator:
    inputs = (*operator.inputs[:place], operand, *operator.inputs[place + 1 :])
    return replace(operator, inputs=inputs)


def _constant(name: str, numbers: list[int]) -> FlatTensor:
    data = np.asarray(numbers, np.int32)
    return FlatTensor(name, data.shape, data.dtype, data)
