"""Lengths carried forward through a graph, including those that are computed at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir

from relayout.graph.editing.learning import learn_type, name_lengths, note_nonzero, sharpen
from relayout.graph.read import (
    Dim,
    NodeView,
    Shape,
    constant_of,
    is_op,
    shape_of,
    view_of,
)
from relayout.graph.region import subgraphs_of
from relayout.graph.shapes.node import inferred_types
from relayout.layout.blocks import Size, Symbol, is_invented, length_of
from relayout.layout.transport import Array
from relayout.ops.lengths.cuts import Cut
from relayout.ops.lengths.entries import Entries, Known, count_of, entries_of
from relayout.ops.registry import facts_of


def carry_lengths(model: ir.Model) -> int:
    """Name every length of the main graph, alike where it is known to be the same.

    A length that is neither known nor named by the model gets the name of the value it is first
    met in. Returns how many shapes became more exact.
    """
    sweep = _Sweep(model.opset_imports)
    learned = sum(map(sweep.visit, model.graph))
    note_nonzero(model.graph, frozenset(sweep.nonzero))
    return learned


@dataclass(slots=True)
class _Sweep:
    opsets: Mapping[str, int]
    known: dict[ir.Value, Entries] = field(default_factory=dict)
    nonzero: set[Symbol] = field(default_factory=set)
    limits: dict[Dim, Dim] = field(default_factory=dict)
    """For a length that was cut from a longer axis, the length it was cut to at most."""

    def visit(self, node: ir.Node) -> bool:
        """Learn what a node gives; whether that is more than was known."""
        view = view_of(node, self.opsets)
        vague = [value for value in node.outputs if value.name and has_unnamed_length(value)]
        learned = False
        if any(value.type is None for value in vague):
            self._learn_types(view)
        if vague and view.unknown_attribute is None:
            for value, found in self._found(view):
                learned = sharpen(value, found) or learned
        for value in vague:
            name_lengths(value)
        lengths = facts_of(node).lengths
        if lengths.cuts is not None:
            self._note_limits(view, lengths.cuts(view, self.known))
        if lengths.divisors is not None:
            self.nonzero |= lengths.divisors(view, self.known)
        entries = _computed_entries(view, self.known)
        if entries is not None:
            self.known[node.outputs[0]] = entries
        return learned

    def _learn_types(self, view: NodeView) -> None:
        """Learn of what type results are, which is new where that of an operand is."""
        node = view.node
        if not node.domain:
            self._inferred(view)
        elif _is_of_one_type(view):
            learn_type(node.outputs[0], _type_of(node.inputs[facts_of(node).rule.lead(view)]))

    def _found(self, view: NodeView) -> list[tuple[ir.Value, Shape]]:
        node, lengths = view.node, facts_of(view.node).lengths
        shape = None if lengths.shape is None else lengths.shape(view, self.known)
        if shape is not None:
            return [(node.outputs[0], _possible([_length(size) for size in shape]))]
        if is_op(node, "If"):
            return _branch_shapes(node)
        cuts = {} if lengths.cuts is None else lengths.cuts(view, self.known)
        if (left := _sliced(view, cuts)) is not None:
            return [(node.outputs[0], left)]
        if (sides := self._broadcast_sides(view, lengths.expands_to)) is not None:
            return [(node.outputs[0], self._broadcast(sides))]
        return [] if any(subgraphs_of(node)) else self._inferred(view)

    def _note_limits(self, view: NodeView, cuts: Mapping[int, Cut]) -> None:
        shape, given = shape_of(view.node.outputs[0]), view.shape(0)
        if shape is None or given is None:
            return
        for axis, cut in cuts.items():
            length, left = given[axis], shape[axis]
            # An axis of length 0 would stay empty beside one of length 1.
            if isinstance(length, int) and length > 0 and isinstance(left, str):
                self.limits[left] = length_of(cut.length)

    def _broadcast_sides(self, view: NodeView, expands_to: int | None) -> list[Shape] | None:
        """The shapes that an operator broadcasts to one another."""
        if expands_to is not None:
            target = entries_of(view.node.inputs[expands_to], self.known)
            sides = [view.shape(0), None if target is None else tuple(map(_length, target))]
        else:
            places = _broadcast_operands(view)
            sides = [view.shape(index) for index in places]
        if not sides:
            return None
        return [side for side in sides if side is not None] if None not in sides else None

    def _broadcast(self, sides: Sequence[Shape]) -> Shape:
        rank = max(map(len, sides))
        wide = [(1,) * (rank - len(side)) + side for side in sides]
        return tuple(self._common(lengths) for lengths in zip(*wide, strict=True))

    def _common(self, lengths: Sequence[Dim]) -> Dim:
        """The one length besides 1; what was cut to it at most has it too, or is 1."""
        others = [length for length in dict.fromkeys(lengths) if length != 1]
        known = [length for length in others if isinstance(length, int)]
        if known or not others:
            return known[0] if known else 1
        left = [length for length in others if self.limits.get(length) not in others]
        return left[0] if len(left) == 1 else None

    def _inferred(self, view: NodeView) -> list[tuple[ir.Value, Shape]]:
        """The shapes that onnx's inference gives for one node."""
        node = view.node
        operands = [value for value in node.inputs if value is not None]
        data = {
            str(value.name): onnx.numpy_helper.from_array(array)
            for value in operands
            if (array := self._array(value)) is not None
        }
        inferred = inferred_types(node, view.version, data)
        found = []
        for value in node.outputs:
            found_type = inferred.get(str(value.name), onnx.TypeProto()).tensor_type
            if found_type.elem_type:
                learn_type(value, ir.TensorType(ir.DataType(found_type.elem_type)))
            if found_type.HasField("shape"):
                found.append((value, _lengths(found_type.shape)))
        return found

    def _array(self, value: ir.Value) -> Array | None:
        """What an operand holds, if it is small and every entry is a number."""
        shape, entries = shape_of(value), entries_of(value, self.known)
        if entries is None or shape is None or value.dtype is None:
            return None
        numbers = [size.number for size in entries if size is not None and not size.symbols]
        if len(numbers) < len(entries):
            return None
        return np.asarray(numbers, value.dtype.numpy()).reshape([-1] * len(shape))


def _sliced(view: NodeView, cuts: Mapping[int, Cut]) -> Shape | None:
    """The lengths after cuts whose ends the run computes; None where they are numbers."""
    shape = view.shape(0)
    if shape is None or not any(cut.length.symbols for cut in cuts.values()):
        return None
    whole = [axis not in cuts or cuts[axis].leaves(shape[axis]) for axis in range(len(shape))]
    return tuple(
        length if is_whole else None for length, is_whole in zip(shape, whole, strict=True)
    )


def _broadcast_operands(view: NodeView) -> Sequence[int]:
    """The operands that are broadcast to the shape of the result, of operators known for that.

    What keeps its shape is known to onnx's inference where the operator is.
    """
    lengths = facts_of(view.node).lengths
    if lengths.broadcast is not None:
        return lengths.broadcast(view)
    return (0,) if view.node.domain and lengths.keeps_shape else ()


def _is_of_one_type(view: NodeView) -> bool:
    """Whether an operator gives the type that it reads: onnx knows that of its own only."""
    return bool(_broadcast_operands(view)) or facts_of(view.node).lengths.shape is not None


def _computed_entries(view: NodeView, known: Known) -> Entries | None:
    """The entries of the first result of a node; None where it is not a small integer vector."""
    result = view.node.outputs[0] if view.node.outputs else None
    count = None if result is None else count_of(result)
    compute = facts_of(view.node).lengths.entries
    if count is None or (compute is None and view.node.domain):
        return None
    found = None if compute is None else compute(view, known)
    return found if found is not None and len(found) == count else (None,) * count


def _branch_shapes(node: ir.Node) -> list[tuple[ir.Value, Shape]]:
    """The shapes that the chosen branch of an If gives, where the choice is a constant."""
    condition = constant_of(node.inputs[0])
    if condition is None or condition.size != 1:
        return []
    chosen = "then_branch" if condition.numpy().reshape(-1)[0] else "else_branch"
    results = node.attributes[chosen].as_graph().outputs
    shapes = [
        (value, shape_of(result)) for value, result in zip(node.outputs, results, strict=True)
    ]
    return [(value, shape) for value, shape in shapes if shape is not None]


def has_unnamed_length(value: ir.Value) -> bool:
    """Whether a length is neither known nor named by the model."""
    shape = shape_of(value)
    return shape is None or any(map(is_invented, shape))


def _type_of(value: ir.Value | None) -> ir.TypeProtocol | None:
    return None if value is None else value.type


def _length(size: Size | None) -> Dim:
    return None if size is None else length_of(size)


def _possible(lengths: Sequence[int | str | None]) -> Shape:
    return tuple(None if isinstance(length, int) and length < 0 else length for length in lengths)


def _lengths(shape: onnx.TensorShapeProto) -> Shape:
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in shape.dim
    )
