"""Legs of a Split that are transposed alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import is_op, perm_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class GroupTransposedLegs:
    """Neighbouring legs of a Split that are only read in one other order are transposed as one.

    Given:  a, b, c = Split<axis=3>(x); s = Transpose<perm=p>(b); t = Transpose<perm=p>(c)
    Result: a, g = Split<axis=3>(x); h = Transpose<perm=p>(g); s, t = Split<axis=p⁻¹[3]>(h)

    As many bytes move, by fewer Transposes. A leg whose Transpose moves nothing stays alone, for
    within a group it would move.
    """

    name: str = "transpose legs of a Split as one"
    op_types: tuple[str, ...] = ("Split",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        source, axis = node.inputs[0], _axis(node)
        lengths = None if axis is None else _lengths(node, axis)
        if source is None or axis is None or lengths is None:
            return None
        runs = _runs([_Leg(value, n) for value, n in zip(node.outputs, lengths, strict=True)])
        if all(run.order is None for run in runs):
            return None
        parts = _split(source, axis, [run.length for run in runs], node, editor)
        for run, part in zip(runs, parts, strict=True):
            if run.order is None:
                editor.substitute(run.legs[0].value, part, origin=node)
            else:
                transposed = editor.transposed(part, run.order, before=node, origin=[node])
                _read_past_transposes(run, transposed, run.order.position(axis), node, editor)
        editor.discard(node)
        return []


@dataclass(frozen=True, slots=True)
class _Leg:
    value: ir.Value
    length: int


@dataclass(frozen=True, slots=True)
class _LegRun:
    """Neighbouring legs that are transposed as one, or a single leg that stays as it is."""

    legs: tuple[_Leg, ...]
    order: Permutation | None = None

    @property
    def length(self) -> int:
        return sum(leg.length for leg in self.legs)


def _runs(legs: Sequence[_Leg]) -> list[_LegRun]:
    """The legs in their order, those that gain by it taken together."""
    runs = []
    for order, members in groupby(legs, lambda leg: _order(leg.value)):
        run = tuple(members)
        if order is None or len(run) == 1:
            runs += [_LegRun((leg,)) for leg in run]
        else:
            runs.append(_LegRun(run, order))
    return runs


def _read_past_transposes(
    run: _LegRun, transposed: ir.Value, axis: int, node: ir.Node, editor: Editor
) -> None:
    """Let the consumers of the Transposes read the legs of what is transposed."""
    legs = _split(transposed, axis, [leg.length for leg in run.legs], node, editor)
    for old, new in zip(run.legs, legs, strict=True):
        (transpose,) = consumers(old.value)
        editor.substitute(transpose.outputs[0], new, origin=transpose)
        editor.discard(transpose)


def _order(leg: ir.Value) -> Permutation | None:
    """The order by which the only consumer of a leg transposes it, if data moves."""
    uses, shape = consumers(leg), shape_of(leg)
    if len(uses) != 1 or leg.is_graph_output() or shape is None:
        return None
    consumer = uses[0]
    if not is_op(consumer, "Transpose") or consumer.graph is not leg.graph:
        return None
    order = perm_of(consumer)
    return None if order is None or order.moves_only_unit_axes(shape) else order


def _axis(node: ir.Node) -> int | None:
    """The axis, counted from the front."""
    attribute, shape = node.attributes.get("axis"), shape_of(node.inputs[0])
    if shape is None or (attribute is not None and attribute.is_ref()):
        return None
    axis = 0 if attribute is None else attribute.as_int()
    return axis % len(shape) if -len(shape) <= axis < len(shape) else None


def _lengths(node: ir.Node, axis: int) -> list[int] | None:
    """The length of every leg along the axis, however the node states it.

    Attribute, operand, number of legs and equal parts all come out in the shapes of the legs.
    """
    shapes = [shape_of(leg) for leg in node.outputs]
    known = [shape[axis] for shape in shapes if shape is not None and axis < len(shape)]
    lengths = [length for length in known if isinstance(length, int)]
    return lengths if len(lengths) == len(node.outputs) else None


def _split(
    value: ir.Value,
    axis: int,
    lengths: Sequence[int],
    node: ir.Node,
    editor: Editor,
) -> list[ir.Value]:
    """The legs of a value in place of those of `node`; the value itself if there is but one."""
    if len(lengths) == 1:
        return [value]
    hint = f"{value.name}_legs"
    shapes = [_leg_shape(value.shape, axis, length) for length in lengths]
    return editor.split(value, axis, shapes, lengths, before=node, hint=hint)


def _leg_shape(shape: ir.Shape | None, axis: int, length: int) -> ir.Shape | None:
    if shape is None:
        return None
    return ir.Shape([length if place == axis else dim for place, dim in enumerate(shape)])
