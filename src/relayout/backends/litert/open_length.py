"""One length that callers of a file may change: its batch.

A model is lowered twice, at two lengths. Where both results are the same builtins, with the same
constants but for lengths that LiteRT can count itself, one file does for all lengths; otherwise the
first builtin in the way is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from relayout.backends.litert.flat_graph import FlatData, FlatGraph, FlatOperator, FlatTensor
from relayout.backends.litert.repeated import without_repeated
from relayout.errors import RelayoutError, quoted

LENGTHS = (2, 3)
"""A length of 1 would take away Transposes that other lengths need."""
COUNTED = -1
"""Stands for a length that LiteRT counts."""


def with_open_length(one: FlatGraph, other: FlatGraph, symbol: str) -> FlatGraph:
    """The graph that two lengths of a symbol have in common, the length 1 unless it is changed."""
    return _Opening(one, other, symbol).run()


@dataclass(slots=True)
class _Opening:
    one: FlatGraph
    other: FlatGraph
    symbol: str
    partners: dict[FlatTensor, FlatTensor] = field(default_factory=dict)
    """By tensor of the first graph, that of the other."""

    def run(self) -> FlatGraph:
        pairs = zip(self.one.operators, self.other.operators, strict=False)
        operators = [self._common(*each) for pair in pairs for each in without_repeated(*pair)]
        if len(self.one.operators) != len(self.other.operators):
            raise self._refusal("the builtins")
        for mine, theirs in zip(self.one.inputs, self.other.inputs, strict=True):
            self._pair(mine, theirs)
        for mine, theirs in self.partners.items():
            self._open(mine, theirs)
        return FlatGraph(self.one.inputs, self.one.outputs, operators)

    def _common(self, first: FlatOperator, second: FlatOperator) -> FlatOperator:
        """One operator for both lengths."""
        found = _common(first, second)
        if found is None:
            raise self._refusal(f"{first.builtin} at {quoted(first.outputs[0].name)}")
        mine, theirs = (*first.inputs, *first.outputs), (*second.inputs, *second.outputs)
        for one, other in zip(mine, theirs, strict=True):
            if one is not None and other is not None and one.data is None:
                self._pair(one, other)
        return found

    def _pair(self, mine: FlatTensor, theirs: FlatTensor) -> None:
        known = self.partners.setdefault(mine, theirs)
        if known is not theirs or mine.rank != theirs.rank:
            raise self._refusal(f"the shape of {quoted(mine.name)}")

    def _open(self, mine: FlatTensor, theirs: FlatTensor) -> None:
        """Leave axes open whose lengths differ; at a length of 1 they are as much shorter again."""
        lengths = tuple(2 * a - b for a, b in zip(mine.shape, theirs.shape, strict=True))
        if any(length < 1 for length in lengths):
            raise self._refusal(f"the shape of {quoted(mine.name)}")
        open_axes = (axis for axis, n in enumerate(theirs.shape) if n != mine.shape[axis])
        mine.open_axes, mine.shape = frozenset(open_axes), lengths

    def _refusal(self, place: str) -> RelayoutError:
        return RelayoutError(
            f"length {quoted(self.symbol)} cannot stay open, since {place} has to know it; "
            "give it by --shape or --dim"
        )


def _common(first: FlatOperator, second: FlatOperator) -> FlatOperator | None:
    """An operator as it is at both lengths, or with lengths that LiteRT counts."""
    if first.builtin != second.builtin or len(first.inputs) != len(second.inputs):
        return None
    different = [place for place in range(len(first.inputs)) if _differs(first, second, place)]
    if not different:
        return first if first.options == second.options else None
    place, count = COUNTING.get(first.builtin, (None, None))
    return count(first, second) if count is not None and different == [place] else None


def _differs(first: FlatOperator, second: FlatOperator, place: int) -> bool:
    """Whether two operands are different constants, or one of them is no constant."""
    mine, theirs = _data(first, place), _data(second, place)
    if mine is None or theirs is None:
        return mine is not theirs or (first.inputs[place] is None) != (second.inputs[place] is None)
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return True
    return mine.tobytes() != theirs.tobytes()


def _data(operator: FlatOperator, place: int) -> FlatData | None:
    tensor = operator.inputs[place]
    return None if tensor is None else tensor.data


def _reshape(first: FlatOperator, second: FlatOperator) -> FlatOperator | None:
    """A target may leave one length to be counted."""
    mine, theirs = _data(first, 1), _data(second, 1)
    if mine is None or theirs is None or np.count_nonzero(mine != theirs) != 1:
        return None
    target = np.where(mine != theirs, COUNTED, mine)
    return replace(_with(first, 1, target), options={"newShape": target.tolist()})


def _slice(first: FlatOperator, second: FlatOperator) -> FlatOperator | None:
    """A box whose size reaches to the end of an axis; XNNPACK takes no SLICE with such a size."""
    starts, mine, theirs = _data(first, 1), _data(first, 2), _data(second, 2)
    whole = _whole_axes(first) & _whole_axes(second)
    if starts is None or mine is None or theirs is None or not np.all(whole | (mine == theirs)):
        return None
    strided = replace(first, builtin="STRIDED_SLICE", options={"endMask": _mask(mine != theirs)})
    return _with(_with(strided, 2, starts + mine), 3, np.ones_like(mine))


def _whole_axes(operator: FlatOperator) -> FlatData:
    """Of a SLICE or STRIDED_SLICE, the axes of which everything is taken."""
    tensor, result = operator.inputs[0], operator.outputs[0]
    shape = () if tensor is None else tensor.shape
    return np.equal(shape, result.shape)


def _strided(first: FlatOperator, second: FlatOperator) -> FlatOperator | None:
    """The end of an axis that is taken as a whole may be that of the operand, by a mask."""
    whole = _whole_axes(first) & _whole_axes(second)
    mine, theirs, steps = _data(first, 2), _data(second, 2), _data(first, 3)
    if mine is None or theirs is None or steps is None:
        return None
    if not np.all(whole & (steps == 1) | (mine == theirs)) or first.options != second.options:
        return None
    mask = first.options["endMask"] | _mask(mine != theirs)
    return replace(first, options={**first.options, "endMask": mask})


def _with(operator: FlatOperator, place: int, data: FlatData) -> FlatOperator:
    """An operator with another constant among its operands, or after them."""
    name = f"{operator.outputs[0].name}/open{place}"
    constant = FlatTensor(name, data.shape, data.dtype, data)
    return replace(
        operator, inputs=(*operator.inputs[:place], constant, *operator.inputs[place + 1 :])
    )


def _mask(axes: FlatData) -> int:
    """Axes as the bits of a number."""
    return sum(1 << int(axis) for axis in np.flatnonzero(axes))


COUNTING: Mapping[str, tuple[int, Callable[[FlatOperator, FlatOperator], FlatOperator | None]]] = {
    "RESHAPE": (1, _reshape),
    "SLICE": (2, _slice),
    "STRIDED_SLICE": (2, _strided),
}
"""By builtin, the operand that lengths stand in, and how it is written for all lengths."""
