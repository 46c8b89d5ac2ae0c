"""What small integer tensors hold, as products of numbers and of lengths known only at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import onnx_ir as ir

from relayout.graph.read import NodeView, Parameter, constant_of, shape_of
from relayout.layout.blocks import UNIT, Size, Symbol, size_of
from relayout.layout.transport import Refusal

LONGEST = 64
"""A vector with more entries than this is not taken for a shape."""

Entries: TypeAlias = tuple[Size | None, ...]
"""The entries of a scalar or a vector; None where nothing is known of one."""

Known: TypeAlias = Mapping[ir.Value, Entries]


def entries_of(value: ir.Value | None, known: Known) -> Entries | None:
    """The entries of a value that is constant or was looked at before."""
    tensor = constant_of(value)
    if value is None or tensor is None:
        return None if value is None else known.get(value)
    if not _is_counted(tensor.dtype) or len(tensor.shape) > 1 or tensor.size > LONGEST:
        return None
    return tuple(Size(int(entry)) for entry in tensor.numpy().reshape(-1))


def _is_counted(dtype: ir.DataType) -> bool:
    return dtype.is_integer() or dtype == ir.DataType.BOOL


def count_of(value: ir.Value) -> int | None:
    """How many entries a value has, if it is a small vector of integers, or one of them."""
    shape = shape_of(value)
    if shape is None or len(shape) > 1 or value.dtype is None or not _is_counted(value.dtype):
        return None
    count = shape[0] if shape else 1
    return count if isinstance(count, int) and count <= LONGEST else None


def whole_shape(view: NodeView, _known: Known) -> Entries | None:
    lengths = view.shape(0)
    if lengths is None:
        return None
    end = view.node.attributes.get("end")
    chosen = lengths[view.integer("start", 0) : None if end is None else end.as_int()]
    return tuple(None if length is None else size_of(length) for length in chosen)


def same(view: NodeView, known: Known) -> Entries | None:
    return entries_of(view.node.inputs[0], known)


def gathered(view: NodeView, known: Known) -> Entries | None:
    given, places = same(view, known), view.constant(1)
    if given is None or places is None or view.rank(0) != 1:
        return None
    picked = [int(place) for place in places.reshape(-1)]
    if any(not -len(given) <= place < len(given) for place in picked):
        return None
    return tuple(given[place] for place in picked)


_BOUNDS = tuple(Parameter(name, index) for index, name in enumerate(("starts", "ends"), 1))
AXES, STEPS = Parameter("axes", 3), Parameter("steps", 4)


def sliced(view: NodeView, known: Known) -> Entries | None:
    given = same(view, known)
    start, end, axes, steps = (bound.read_ints(view) for bound in (*_BOUNDS, AXES, STEPS))
    if given is None or isinstance(axes, Refusal) or isinstance(steps, Refusal):
        return None
    if not isinstance(start, tuple) or not isinstance(end, tuple) or len(start) != 1:
        return None
    step = steps[0] if steps else 1
    return given[start[0] : end[0] : step] if axes in {None, (0,), (-1,)} and step > 0 else None


def joined(view: NodeView, known: Known) -> Entries | None:
    parts = [entries_of(value, known) for value in view.node.inputs]
    return tuple(entry for part in parts for entry in part or ()) if None not in parts else None


def multiplied(view: NodeView, known: Known) -> Entries | None:
    return _paired(view, known, lambda one, other: one * other)


def quotient(view: NodeView, known: Known) -> Entries | None:
    """The quotient where there is no remainder: only then do runtimes agree."""
    return _paired(view, known, lambda one, other: one.over(other) if other.number > 0 else None)


def total(view: NodeView, known: Known) -> Entries | None:
    return _paired(view, known, lambda one, other: _sum(one, other, 1))


def difference(view: NodeView, known: Known) -> Entries | None:
    return _paired(view, known, lambda one, other: _sum(one, other, -1))


def _sum(one: Size, other: Size, sign: int) -> Size | None:
    if not other.symbols and other.number == 0:
        return one
    if one.symbols != other.symbols:
        return None
    return Size(one.number + sign * other.number, one.symbols)


def equal(view: NodeView, known: Known) -> Entries | None:
    return _paired(view, known, _are_equal)


def _are_equal(one: Size, other: Size) -> Size | None:
    """1 or 0; a product of lengths is never negative."""
    if one == other:
        return UNIT
    negative = any(size.number < 0 for size in (one, other))
    numbers = not one.symbols and not other.symbols
    return Size(0) if negative or numbers else None


def selected(view: NodeView, known: Known) -> Entries | None:
    chosen, then, otherwise = (entries_of(value, known) for value in view.node.inputs)
    if not chosen or not then or not otherwise:
        return None
    length = max(map(len, (chosen, then, otherwise)))
    if any(len(part) not in {1, length} for part in (chosen, then, otherwise)):
        return None
    columns = (part * (length // len(part)) for part in (chosen, then, otherwise))
    return tuple(
        None if c is None else no if c == Size(0) else yes
        for c, yes, no in zip(*columns, strict=True)
    )


def _paired(
    view: NodeView, known: Known, combine: Callable[[Size, Size], Size | None]
) -> Entries | None:
    one, other = (entries_of(value, known) for value in view.node.inputs[:2])
    if one is None or other is None or not one or not other:
        return None
    length = max(len(one), len(other))
    if {len(one), len(other)} - {1, length}:
        return None
    pairs = zip(one * (length // len(one)), other * (length // len(other)), strict=True)
    return tuple(None if a is None or b is None else combine(a, b) for a, b in pairs)


# shapes known from entries


def reshaped(view: NodeView, known: Known) -> tuple[Size | None, ...] | None:
    """The lengths that the target states; one more follows from the number of elements."""
    target, given = _reshape_target(view, known), view.shape(0)
    if target is None or given is None or 0 in given:
        return None
    source = [None if length is None else size_of(length) for length in given]
    copies = not view.integer("allowzero", 0)
    asked: list[Size | None] = []
    for axis, entry in enumerate(target):
        is_copy = entry == Size(0) and copies
        if is_copy and axis >= len(source):
            return None
        asked.append(source[axis] if is_copy else entry)
    open_axes = [axis for axis, size in enumerate(asked) if size in {None, Size(-1)}]
    if len(open_axes) == 1:
        asked[open_axes[0]] = _rest(source, asked, open_axes[0])
    return tuple(None if size == Size(-1) else size for size in asked)


def _reshape_target(view: NodeView, known: Known) -> Entries | None:
    """The target shape where it is an operand, as it is from opset 5 on."""
    return entries_of(view.node.inputs[1], known) if view.arity > 1 else None


def divisors(view: NodeView, known: Known) -> frozenset[Symbol]:
    """The lengths that a Reshape divides by, which fails if one of them is 0."""
    target = _reshape_target(view, known)
    given = view.shape(0)
    if target is None or given is None or Size(-1) not in target:
        return frozenset()
    found: list[Symbol] = []
    for entry, length in zip(target, given, strict=False):
        # Elsewhere an entry that turns out to be 0 would copy another length.
        if length is not None and entry in {Size(0), size_of(length)}:
            found += size_of(length).symbols
    return frozenset(found)


def _rest(source: list[Size | None], asked: list[Size | None], axis: int) -> Size | None:
    whole, rest = UNIT, UNIT
    for size in source:
        if size is None:
            return None
        whole *= size
    for size in (*asked[:axis], *asked[axis + 1 :]):
        rest *= size or UNIT
    return whole.over(rest)


def filled(view: NodeView, known: Known) -> tuple[Size | None, ...] | None:
    return entries_of(view.node.inputs[0], known)


def counted_up(view: NodeView, known: Known) -> tuple[Size | None, ...] | None:
    """A Range from 0 by steps of 1 has as many elements as its limit."""
    first, limit, step = (entries_of(value, known) for value in view.node.inputs)
    if first != (Size(0),) or step != (UNIT,) or limit is None or len(limit) != 1:
        return None
    return limit if limit[0] is not None and limit[0].number >= 0 else None
